"""Pack published ``.tiktoken`` rank files into the form that ctxctl carries (`ctxctl/tokens/data/*.lb.z`).

Usage: ``python scripts/build_vocab.py FILE.tiktoken…`` with files named as published (o200k_base.tiktoken).
Every input is checked against the SHA-256 that tiktoken itself demands, and every output is unpacked again
and compared before it is written; `tests/unit/tokens/test_tokens_encodings.py` checks once more what is
committed.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ctxctl.tokens.ranks import DATA, PUBLISHED_SHA256, published_text, unpack_ranks


def read_published(text: bytes) -> list[bytes]:
    """The tokens of a ``.tiktoken`` file in order of rank; raises ValueError unless the ranks are 0, 1, 2…"""
    tokens = []
    for number, line in enumerate(text.splitlines()):
        token, rank = line.split()
        if int(rank) != number:
            raise ValueError(f"line {number + 1}: rank {int(rank)}, expected {number}")
        tokens.append(base64.b64decode(token, validate=True))
    return tokens


def pack(tokens: list[bytes]) -> bytes:
    """zlib of: number of tokens (u32, big endian), one length byte for each, the tokens themselves."""
    if max(map(len, tokens)) > 255:
        raise ValueError("a token does not fit into one length byte")
    raw = struct.pack(">I", len(tokens)) + bytes(map(len, tokens)) + b"".join(tokens)
    return zlib.compress(raw, 9)


def main(paths: list[str]) -> int:
    """Pack each file; returns the exit code."""
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    for path in map(Path, paths):
        text = path.read_bytes()
        if hashlib.sha256(text).hexdigest() != PUBLISHED_SHA256.get(path.stem):
            print(f"{path}: not the published ranks of {path.stem}", file=sys.stderr)
            return 1
        packed = pack(read_published(text))
        if published_text(unpack_ranks(packed)) != text:
            print(f"{path}: does not survive packing", file=sys.stderr)
            return 1
        target = DATA / f"{path.stem}.lb.z"
        target.write_bytes(packed)
        print(f"{target.name}: {len(text)} -> {len(packed)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

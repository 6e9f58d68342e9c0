"""The encodings ctxctl carries: OpenAI's published ranks, embedded, so that no count ever needs a network.

`data/*.lb.z` holds the ranks of o200k_base and cl100k_base byte for byte (`scripts/build_vocab.py` packs
them, `data/NOTICE` names their source and licence); o200k_harmony is o200k_base with more special tokens.
tiktoken is imported by `get_encoding`, not by this module: it costs some 150 ms and 80 MB to import it and
to build an encoding.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ctxctl.errors import UnavailableError, UsageError

if TYPE_CHECKING:
    import tiktoken

NAMES: Final = ("o200k_base", "cl100k_base", "o200k_harmony")
DATA: Final = Path(__file__).parent / "data"

RANKS_OF: Final = {
    "o200k_base": "o200k_base",
    "cl100k_base": "cl100k_base",
    "o200k_harmony": "o200k_base",
}
"""The ranks and pattern that an encoding uses: encodings with the same ones count ordinary text alike."""

PUBLISHED_SHA256: Final = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""SHA-256 of the published ``.tiktoken`` files, as tiktoken demands them."""

PATTERNS: Final = {
    "o200k_base": "|".join(
        (
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        )
    ),
    "cl100k_base": "|".join(
        (
            r"'(?i:[sdmt]|ll|ve|re)",
            r"[^\r\n\p{L}\p{N}]?+\p{L}++",
            r"\p{N}{1,3}+",
            r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
            r"\s++$",
            r"\s*[\r\n]",
            r"\s+(?!\S)",
            r"\s",
        )
    ),
}
"""Patterns that split a text into pre-tokens, by ranks; a test holds them against the installed tiktoken."""

_HARMONY_NAMED: Final = {
    "startoftext": 199998,
    "endoftext": 199999,
    "return": 200002,
    "constrain": 200003,
    "channel": 200005,
    "start": 200006,
    "end": 200007,
    "message": 200008,
    "call": 200012,
    "endofprompt": 200018,
}

_lock = threading.Lock()
_loaded: dict[str, tiktoken.Encoding] = {}
_ranks: dict[str, dict[bytes, int]] = {}


def special_tokens(name: str) -> dict[str, int]:
    """The special tokens of an encoding; counting never uses them (their text is ordinary text)."""
    if name == "cl100k_base":
        names = ("endoftext", "fim_prefix", "fim_middle", "fim_suffix")
        return {f"<|{each}|>": 100257 + i for i, each in enumerate(names)} | {"<|endofprompt|>": 100276}
    if name == "o200k_base":
        return {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
    taken = set(_HARMONY_NAMED.values()) - {200018}
    reserved = {f"<|reserved_{i}|>": i for i in range(200000, 201088) if i not in taken}
    return {f"<|{each}|>": i for each, i in _HARMONY_NAMED.items()} | reserved


def unpack_ranks(packed: bytes) -> dict[bytes, int]:
    """Token bytes to rank, in the order of the ranks, from the content of one ``.lb.z`` file."""
    import struct
    import zlib

    raw = zlib.decompress(packed)
    (number,) = struct.unpack_from(">I", raw)
    lengths = raw[4 : 4 + number]
    tokens = struct.unpack_from("%ds" * number % tuple(lengths), raw, 4 + number)
    return dict(zip(tokens, range(number), strict=True))


def published_text(ranks: dict[bytes, int]) -> bytes:
    """The ``.tiktoken`` file that the ranks came from: a line for each, base64 of the token and the rank."""
    from base64 import b64encode

    return b"".join(b"%s %d\n" % (b64encode(token), rank) for token, rank in ranks.items())


def ranks_of(name: str) -> str:
    """The ranks that an encoding uses, by name; UsageError("unknown-encoding") if it is none of `NAMES`."""
    if name not in RANKS_OF:
        raise UsageError(
            "unknown-encoding", f"no encoding is called {name!r}", hint=f"known here: {', '.join(NAMES)}"
        )
    return RANKS_OF[name]


def ranks(name: str) -> dict[bytes, int]:
    """The mergeable ranks of an encoding (shared: do not change them), some 40 MB that stay.

    Only a very long text without a word's end ever needs them; raises as `get_encoding` does.
    """
    base = ranks_of(name)
    if base not in _ranks:
        _ranks[base] = _unpacked(base)
    return _ranks[base]


def _unpacked(base: str) -> dict[bytes, int]:
    try:
        return unpack_ranks((DATA / f"{base}.lb.z").read_bytes())
    except OSError as error:
        raise UnavailableError(
            "no-ranks", f"the ranks of {base} cannot be read: {error.strerror}", hint="reinstall ctxctl"
        ) from error


def get_encoding(name: str) -> tiktoken.Encoding:
    """The encoding of that name, built from the embedded ranks; one object a process, never a network.

    Thread-safe.  Raises UsageError("unknown-encoding") for a name that is not in `NAMES`.
    """
    found = _loaded.get(name)
    if found is not None:
        return found
    with _lock:
        if name not in _loaded:
            base = ranks_of(name)
            mergeable = _ranks.get(base) or _unpacked(base)
            import tiktoken

            made = tiktoken.Encoding(
                name=name,
                pat_str=PATTERNS[base],
                mergeable_ranks=mergeable,
                special_tokens=special_tokens(name),
            )
            # Its core has them in a form of its own; it keeps these only so that it can be pickled.
            made._mergeable_ranks = {}
            _loaded[name] = made
    return _loaded[name]

"""What the counting process does: it reads where texts lie, counts them, and writes what they come to.

It ends when nobody can ask it any more: at the end of its input, which the death of its parent brings too.
"""

from __future__ import annotations

import os
import signal
import struct
from typing import Final

JOB: Final = struct.Struct("=QII")
"""Where the texts of a job begin in the file, how many there are, and how many bytes they have in all.

At that place are their lengths, 32 bits each, and behind those the texts in UTF-8.
"""


def main(base: str, jobs: int, texts: int, counts: int) -> None:
    """Count until `jobs` ends, under the encoding with the ranks called `base`; never returns.

    For each job its counts go to `counts` in one piece, 64 bits each: tokens, or their complement where they
    are an estimate.

    Args:
        base: The name of the ranks.
        jobs: Descriptor from which jobs are read.
        texts: Descriptor of the file in which they lie.
        counts: Descriptor to which counts are written.
    """
    from ctxctl.tokens.chunks import count_tokens
    from ctxctl.tokens.ranks import get_encoding

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    status = 1
    try:
        encoding = get_encoding(base)
        while job := _read(jobs, JOB.size):
            at, number, size = JOB.unpack(job)
            lengths = struct.unpack(f"={number}I", os.pread(texts, 4 * number, at))
            data = os.pread(texts, size, at + 4 * number)
            found, begin = [], 0
            for length in lengths:
                text = data[begin : begin + length].decode()
                tokens, exact = count_tokens(encoding, base, text)
                found.append(tokens if exact else ~tokens)
                begin += length
            _write(counts, struct.pack(f"={number}q", *found))
        status = 0
    finally:
        # Without taking the vocabulary apart, which takes longer than counting a hundred kilobytes.
        os._exit(status)


def _read(descriptor: int, size: int) -> bytes:
    """Exactly so many bytes, or none at the end."""
    data = b""
    while len(data) < size:
        piece = os.read(descriptor, size - len(data))
        if not piece:
            return b""
        data += piece
    return data


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

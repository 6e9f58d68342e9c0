"""Cut a source into blocks of whole lines, with bounded memory whatever the line lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ctxctl.trace.source import Source
from ctxctl.trace.spool import CHUNK

LINE_LIMIT = 64 << 20
"""Longest line that is read, in bytes."""


class Hole(NamedTuple):
    """A skipped range."""

    length: int
    slug: str
    message: str
    whole_line: bool
    """False for NULs before a line that continues after them."""


class Block(NamedTuple):
    """The next part of the file: whole lines, the unfinished last line, or a hole."""

    base: int
    """Byte offset in the source."""
    data: bytes
    ended: bool
    """Whether `data` ends in a newline."""
    hole: Hole | None = None


def line_blocks(source: Source, start: int = 0, stop: int | None = None) -> Iterator[Block]:
    """Yield the lines that begin in [start, stop), some 256 KiB a block. Only `\\n` ends a line."""
    held: list[bytes] = []
    size = nuls = 0
    begin = at = start
    while chunk := source.read(at, CHUNK):
        here, at = at, at + len(chunk)
        cut = chunk.rfind(b"\n") + 1
        if not cut:
            if not held and not chunk.strip(b"\0"):
                at = source.data_from(at)
                nuls += at - here
                begin = at
                continue
            held.append(chunk)
            size += len(chunk)
            if size > LINE_LIMIT:
                if not any(piece.strip(b"\0") for piece in held):  # no line, however long
                    at = source.data_from(at)
                    nuls, begin = nuls + at - begin, at
                    held, size = [], 0
                    continue
                if nuls:
                    yield _nuls(begin, nuls)
                yield (skipped := _skip(source, begin, at))
                assert skipped.hole is not None
                held, size, nuls = [], 0, 0
                begin = at = begin + skipped.hole.length
                if stop is not None and begin >= stop:
                    return
            continue
        if nuls:
            yield _nuls(begin, nuls)
            nuls = 0
        data = b"".join((*held, chunk[:cut])) if held else chunk[:cut]
        begun, begin = begin, here + cut
        # First, because its pieces may be as large as the block.
        held = [chunk[cut:]] if cut < len(chunk) else []
        size = len(chunk) - cut
        del chunk
        if stop is not None and stop - begun <= len(data):
            end = data.find(b"\n", max(0, stop - begun - 1)) + 1
            if stop > begun:
                yield Block(begun, data[:end], True)
            return
        yield Block(begun, data, True)
    if nuls:
        yield _nuls(begin, nuls)
    if held and (stop is None or begin < stop):
        yield Block(begin, b"".join(held), False)


def _nuls(begin: int, count: int) -> Block:
    hole = Hole(count, "nul-bytes", f"{count} NUL bytes where a line should be; skipped", False)
    return Block(begin - count, b"", False, hole)


def _skip(source: Source, begin: int, at: int) -> Block:
    """Skip a line that is too long, without keeping it."""
    ended = False
    while chunk := source.read(at, CHUNK):
        end = chunk.find(b"\n") + 1
        at += end or len(chunk)
        if end:
            ended = True
            break
    length = at - begin
    message = f"a line of {length - ended} bytes is longer than {LINE_LIMIT}; skipped"
    return Block(begin, b"", ended, Hole(length, "line-too-long", message, True))

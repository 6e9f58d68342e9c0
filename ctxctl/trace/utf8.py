"""Check that a line is UTF-8, without checking known parts again.

msgspec does not validate the strings that it skips, and decoding a large line to validate it costs as much as
parsing it. Known records and blocks are valid, and the rest of a line is small.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.trace.wire import Raw

_NEEDLE = 48


def check_utf8(data: bytes | Raw) -> None:
    """Raise UnicodeDecodeError if `data` is not UTF-8."""
    data = bytes(data)
    if not data.isascii():
        data.decode()


def check_around(line: bytes, data: Raw) -> None:
    """Check a line like `check_utf8`, except for its `data`, which its decoder checks."""
    raw = bytes(data)
    at = place(line, raw) if raw else -1
    check_utf8(line if at < 0 else line[:at] + line[at + len(raw) :])


def check_around_blocks(raw: bytes, blocks: Sequence[Raw]) -> None:
    """Check an assembly like `check_utf8`, except for its blocks, which their decoder checks."""
    if raw.isascii():
        return
    if not blocks:
        raw.decode()
        return
    first, last = bytes(blocks[0]), bytes(blocks[-1])
    tail = last[-_NEEDLE:]
    start, end = place(raw, first), raw.rfind(tail) + len(tail)
    # Longer if a block's bytes occur elsewhere too, or if there are spaces between blocks.
    alone = end - start == sum(map(len, blocks)) + len(blocks) - 1
    check_utf8(raw[:start] + raw[end:] if alone else raw)


def place(line: bytes, raw: bytes, start: int = 0) -> int:
    """Return an offset of `raw` in `line`, or -1. Fast for long ones: their beginning is searched.

    `start`: what precedes it is searched last, because the records of a line are read in order.
    """
    at = len(line) - 1 - len(raw)
    if at > 0 and line.startswith(raw, at):
        return at
    at = line.find(raw[:_NEEDLE], start)
    if at >= 0 and not line.startswith(raw, at):
        at = line.find(raw, at)
    return place(line, raw) if at < 0 and start else at

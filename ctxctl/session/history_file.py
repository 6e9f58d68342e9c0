"""The item history of a trace as a file in the user's cache, beside the step index."""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.session.history import ITEMS, ROWS, STEPS, ItemHistory
from ctxctl.trace.cache_files import cache_file, fingerprint_of, read_own, replace_file, same_file
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from ctxctl.session.results import ReportedProblems
    from ctxctl.trace.reader import Trace

FORMAT: Final = 4
_MAGIC: Final = b"ctxctl history\n"
_CHECK: Final = 16
_MOST: Final = 1 << 30
"""Largest file that is read."""


def save_history(source: Source, made_under: str, found: ItemHistory) -> bool:
    """Save the history of a file that was read to its end; False where it cannot be saved."""
    path = cache_file(source, "why")
    if path is None or source.spooled:
        return False
    head = {
        "format": FORMAT,
        "byteorder": sys.byteorder,
        "made_under": made_under,
        "size": source.size,
        "file": fingerprint_of(source, source.size),
        "threads": [list(key) for key in found.threads],
        "strings": found.strings,
        "lengths": [len(table[next(iter(table))]) for table in (found.rows, found.items, found.steps)],
    }
    data = msgspec.json.encode(head)
    columns = (*found.rows.values(), *found.items.values(), *found.steps.values())
    body = b"".join(column.tobytes() for column in columns)
    whole = _MAGIC + len(data).to_bytes(8, "little") + data + body
    return replace_file(path, whole + xxhash.xxh3_128_digest(whole))


def load_history(source: Source, made_under: str) -> ItemHistory | None:
    """The saved history of this very file under these parameters; None where none is saved."""
    path = cache_file(source, "why")
    if path is None or source.spooled:
        return None
    try:
        return _parse(read_own(path, _MOST), source, made_under)
    except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, msgspec.MsgspecError):
        return None


def _parse(data: bytes, source: Source, made_under: str) -> ItemHistory | None:
    start = len(_MAGIC) + 8
    if not data.startswith(_MAGIC) or xxhash.xxh3_128_digest(data[:-_CHECK]) != data[-_CHECK:]:
        return None
    size = int.from_bytes(data[len(_MAGIC) : start], "little")
    head: dict[str, Any] = msgspec.json.decode(data[start : start + size])
    if (head["format"], head["byteorder"], head["made_under"]) != (FORMAT, sys.byteorder, made_under):
        return None
    if head["size"] != source.size or not same_file(head["file"], source, source.size):
        return None
    found = ItemHistory()
    found.strings = head["strings"]
    found.threads = [ThreadKey(session, thread) for session, thread in head["threads"]]
    at, body = 0, memoryview(data)[start + size : -_CHECK]
    for layout, columns, rows in zip(
        (ROWS, ITEMS, STEPS), (found.rows, found.items, found.steps), head["lengths"], strict=True
    ):
        for name in layout:
            end = at + rows * columns[name].itemsize
            column = array(layout[name])
            column.frombytes(body[at:end])
            columns[name], at = column, end
    return found.restored(source.size) if at == len(body) else None


def keep_history(trace: Trace, made_under: str | None, made: ItemHistory, found: ReportedProblems) -> None:
    """Save what a pass over a trace has made, if that came to its end and found nothing wrong.

    Of a trace with problems nothing is saved: each run has to read it anew to report them.  What its import
    found is told in any case.
    """
    if made_under is None or found.count or trace.problem_count or not len(made):
        return
    if made.covered == trace.source.size:
        save_history(trace.source, made_under, made)

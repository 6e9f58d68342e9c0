"""Two tables that a trace is exported as, a row for each step or for each change of one, made in one replay.

As CSV they follow RFC 4180: a head, commas, CRLF, UTF-8.  As Parquet they are compressed with zstd, which
needs pyarrow (extra `parquet`).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from ctxctl.errors import UnavailableError, UsageError
from ctxctl.model.results import Change, Step, Turn
from ctxctl.model.vocab import SEGMENTS
from ctxctl.session import Inspector
from ctxctl.text import visible


def columns(table: str) -> tuple[Column, ...]:
    """The columns of a table; raises UsageError("unknown-table")."""
    found = TABLES.get(table)
    if found is None:
        raise UsageError(
            "unknown-table", f"there is no table {visible(table[:40])}", hint=f"one of {', '.join(TABLES)}"
        )
    return found


def rows(inspector: Inspector, table: str, progress: Callable[[float], None]) -> Iterator[list[Any]]:
    """Values in the order of `columns(table)`."""
    made = columns(table)
    ordinal = -1
    for result in inspector.replay(progress):
        if isinstance(result, Turn):
            continue
        ordinal += 1
        at = At(ordinal, result)
        if made is STEPS:
            found = [[column.of(at) for column in made]]
        else:
            found = [
                [c.of(at, change) for c in CHANGES] for change in result.changes if change.status != "skipped"
            ]
        yield from found


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_BATCH: Final = 512


def csv_pieces(inspector: Inspector, table: str, progress: Callable[[float], None]) -> Iterator[bytes]:
    """The file, piece by piece; raises UsageError("unknown-table")."""
    made = columns(table)
    buffer = StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow([column.name for column in made])
    for count, row in enumerate(rows(inspector, table, progress), 1):
        writer.writerow([csv_cell(value) for value in row])
        if not count % _BATCH:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode("utf-8", "replace")


def csv_cell(value: Any) -> Any:
    """A value as a spreadsheet may have it: controls made visible, and nothing that it would compute.

    A text that begins like a formula gets an apostrophe in front (OWASP, "CSV Injection").
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


Type = Literal["text", "int", "bool"]


class Column(NamedTuple):
    """A column: values are text, integers or truths; None where the trace does not say."""

    name: str
    type: Type
    of: Callable[..., Any]


class At(NamedTuple):
    """A step and its number in the trace, from 0."""

    ordinal: int
    step: Step


def _usage(name: str) -> Callable[[At], Any]:
    return lambda at: None if at.step.usage is None else getattr(at.step.usage, name)


def _segment(name: str) -> Callable[[At], int]:
    return lambda at: at.step.segments.get(name, 0)


def _other(at: At) -> int:
    return sum(tokens for name, tokens in at.step.segments.items() if name not in SEGMENTS)


def _broken(at: At) -> str | None:
    return None if at.step.cache.broken_by is None else at.step.cache.broken_by.name


_PLACE: Final = (
    Column("ordinal", "int", lambda at: at.ordinal),
    Column("session", "text", lambda at: at.step.session),
    Column("thread", "text", lambda at: at.step.thread),
    Column("turn", "int", lambda at: at.step.turn),
    Column("step", "int", lambda at: at.step.step),
)


STEPS: Final = (
    *_PLACE,
    Column("turn_id", "text", lambda at: at.step.turn_id),
    Column("step_id", "text", lambda at: at.step.step_id),
    Column("time", "text", lambda at: at.step.time),
    Column("model", "text", lambda at: at.step.model),
    Column("mode", "text", lambda at: at.step.mode),
    Column("basis", "text", lambda at: at.step.basis),
    Column("layer", "text", lambda at: at.step.layer),
    Column("window_limit", "int", lambda at: at.step.window.limit),
    Column("window_reserved", "int", lambda at: at.step.window.reserved),
    Column("window_cap", "int", lambda at: at.step.window.cap),
    Column("limit_source", "text", lambda at: at.step.window.limit_source),
    Column("window_used", "int", lambda at: at.step.window.used),
    Column("used_method", "text", lambda at: at.step.window.used_method),
    Column("used_error", "int", lambda at: at.step.window.used_error),
    Column("recorded", "int", lambda at: at.step.window.recorded),
    Column("unrecorded", "int", lambda at: at.step.window.unrecorded),
    Column("counted", "int", lambda at: at.step.window.counted),
    Column("threshold", "int", lambda at: at.step.window.threshold),
    Column("window_free", "int", lambda at: at.step.window.free),
    Column("window_over", "int", lambda at: at.step.window.over),
    Column("uncounted", "int", lambda at: at.step.window.uncounted),
    Column("window_before", "int", lambda at: at.step.ledger.window_before),
    Column("new", "int", lambda at: at.step.ledger.new),
    Column("freed", "int", lambda at: at.step.ledger.freed),
    Column("window_after", "int", lambda at: at.step.ledger.window_after),
    Column("saved", "int", lambda at: at.step.ledger.saved),
    Column("stale", "int", lambda at: at.step.ledger.stale),
    Column("added", "int", lambda at: at.step.counts.added),
    Column("updated", "int", lambda at: at.step.counts.updated),
    Column("removed", "int", lambda at: at.step.counts.removed),
    Column("skipped", "int", lambda at: at.step.counts.skipped),
    Column("omitted", "int", lambda at: at.step.counts.omitted),
    *(Column(f"segment_{name}", "int", _segment(name)) for name in SEGMENTS),
    Column("segment_other", "int", _other),
    Column("possible_prefix", "int", lambda at: at.step.cache.possible_prefix),
    Column("broken_by", "text", _broken),
    Column("reported_input", "int", _usage("reported_input")),
    Column("reported_cached", "int", _usage("reported_cached")),
    Column("reported_cache_write", "int", lambda at: at.step.cache.reported_cache_write),
    Column("reported_cache_write_1h", "int", lambda at: at.step.cache.reported_cache_write_1h),
    Column("missed", "int", lambda at: at.step.cache.miss and at.step.cache.miss.tokens),
    Column("miss_cause", "text", lambda at: at.step.cache.miss and at.step.cache.miss.cause),
    Column("reported_output", "int", _usage("reported_output")),
    Column("counted_output", "int", _usage("counted_output")),
    Column("believed_output", "int", _usage("believed_output")),
    Column("counted_input", "int", _usage("counted_input")),
    Column("difference", "int", _usage("difference")),
    Column("usage_provenance", "text", _usage("provenance")),
    Column("provider", "text", _usage("provider")),
    Column("flags", "text", lambda at: " ".join(at.step.flags)),
    Column("line", "int", lambda at: at.step.first_line),
)
"""A row for each step, of a (step, ordinal) pair; names are those of the JSON contract, flattened."""


def _of(name: str) -> Callable[[At, Change], Any]:
    return lambda _at, change: getattr(change, name)


def _step(column: Column) -> Column:
    return Column(column.name, column.type, lambda at, _change: column.of(at))


CHANGES: Final = (
    *(_step(column) for column in _PLACE),
    *(
        Column(name, "text", _of(name))
        for name in ("status", "item", "kind", "title", "version", "previous_version")
    ),
    Column("tokens", "int", _of("size")),
    *(Column(name, "int", _of(name)) for name in ("in_window", "new", "freed")),
    *(Column(name, "text", _of(name)) for name in ("cause", "reason", "into")),
    Column("flags", "text", lambda _at, change: " ".join(change.flags)),
    *(Column(name, "text", _of(name)) for name in ("source", "provenance")),
    Column("line", "int", _of("line")),
)
"""A row for each change of a step; not the skipped ones: each step has as many as its window holds."""

TABLES: Final = {"steps": STEPS, "changes": CHANGES}


_BATCH_ROWS: Final = 8192
"""Rows of a row group: what a reader may skip at once, and what is in memory here."""


class _Pieces:
    """A file to write to that hands out what was written since the last time."""

    closed = False

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._at = 0

    def write(self, data: Any) -> int:
        """Take in some bytes."""
        held = bytes(data)
        self._held.append(held)
        self._at += len(held)
        return len(held)

    def tell(self) -> int:
        """Bytes written altogether."""
        return self._at

    def flush(self) -> None:
        """Do nothing: no bytes are held back."""

    def close(self) -> None:
        """Do nothing: what was written can still be taken."""

    def taken(self) -> bytes:
        """The bytes written since the last call."""
        data = b"".join(self._held)
        self._held.clear()
        return data


def parquet_pieces(inspector: Inspector, table: str, progress: Callable[[float], None]) -> Iterator[bytes]:
    """The file, piece by piece; raises UsageError("unknown-table") and UnavailableError("needs-parquet")."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UnavailableError(
            "needs-parquet", "writing Parquet needs pyarrow", hint="pip install 'ctxctl[parquet]'"
        ) from None
    made = columns(table)
    types = {"text": pa.string(), "int": pa.int64(), "bool": pa.bool_()}
    schema = pa.schema([(column.name, types[column.type]) for column in made])
    pieces = _Pieces()
    found = rows(inspector, table, progress)
    with pq.ParquetWriter(pa.PythonFile(pieces, mode="w"), schema, compression="zstd") as writer:
        while batch := list(islice(found, _BATCH_ROWS)):
            cells = [
                pa.array([_sound(row[place]) for row in batch], types[column.type])
                for place, column in enumerate(made)
            ]
            writer.write_batch(pa.record_batch(cells, schema=schema))
            yield pieces.taken()
    yield pieces.taken()


def _sound(value: Any) -> Any:
    """A value that the file can hold: lone surrogates are no UTF-8, and integers have 64 bits."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return value

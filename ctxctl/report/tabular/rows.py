"""The rows of a table, as one replay comes by them.

A table as CSV (RFC 4180): a head, commas, CRLF, UTF-8.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any, Final

from ctxctl.errors import UsageError
from ctxctl.model.results import Turn
from ctxctl.report.tabular.columns import CHANGES, STEPS, TABLES, At, Column
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


def written(inspector: Inspector, table: str, progress: Callable[[float], None]) -> Iterator[bytes]:
    """The file, piece by piece; raises UsageError("unknown-table")."""
    made = columns(table)
    buffer = StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow([column.name for column in made])
    for count, row in enumerate(rows(inspector, table, progress), 1):
        writer.writerow([_cell(value) for value in row])
        if not count % _BATCH:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    """A value as a spreadsheet may have it: controls made visible, and nothing that it would compute.

    A text that begins like a formula gets an apostrophe in front (OWASP, "CSV Injection").
    """
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown

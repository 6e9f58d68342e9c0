"""A table as CSV (RFC 4180): a head, commas, CRLF, UTF-8."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any, Final

from ctxctl.inspector import Inspector
from ctxctl.report.tabular.rows import columns, rows
from ctxctl.text import visible

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

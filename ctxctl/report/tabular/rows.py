"""The rows of a table, as one replay comes by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ctxctl.errors import UsageError
from ctxctl.inspector import Inspector
from ctxctl.model.results import Turn
from ctxctl.report.tabular.columns import CHANGES, STEPS, TABLES, At, Column
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

"""The limits that a predicate was held against, in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ctxctl.labels import LIMIT_SOURCES, plural
from ctxctl.session.ceilings import Ceiling
from ctxctl.text import visible

_LISTED: Final = 4
"""Limits that are told; a trace whose limits change at every step has as many as steps."""


def ceilings_text(rows: Sequence[Ceiling]) -> str:
    """``200,000 from the model table (models.dev as of …) at 146 steps; not known at 3 steps``."""
    said = [_one(row) for row in rows[:_LISTED]]
    more = sum(row.steps for row in rows[_LISTED:])
    return "; ".join(said + [f"others at {plural(more, 'step')}"] * bool(more))


def _one(row: Ceiling) -> str:
    note = f" ({visible(row.note.rstrip('.'))})" if row.note else ""
    if row.cap is None:
        return f"not known at {plural(row.steps, 'step')}{note}"
    who = f" {LIMIT_SOURCES[row.source]}" if row.source is not None else ""
    return f"{row.cap:,}{who}{note} at {plural(row.steps, 'step')}"


def ceilings_json(rows: Sequence[Ceiling]) -> list[dict[str, Any]]:
    """The same as data."""
    return [
        {"cap": row.cap, "limit_source": row.source, "limit_note": row.note, "steps": row.steps}
        for row in rows
    ]

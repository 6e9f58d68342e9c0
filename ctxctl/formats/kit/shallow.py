"""Records that nest deeper than any reader or writer of ours goes."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.trace.depth import deeper_than, nests_deeper

LIMIT: Final = 100
"""Levels that an importer takes over; a trace keeps 200, its own wrapping included."""
_DEEPER: Final = "…"


def shallow(value: Any, raw: bytes = b"") -> Any:
    """The value, with what lies below `LIMIT` levels replaced by an ellipsis.

    Args:
        value: As parsed.
        raw: The bytes that it was parsed from, if at hand: they tell faster that there is nothing to do.
    """
    if raw and not deeper_than(LIMIT, raw):
        return value
    return _cut(value, 0) if nests_deeper(LIMIT, value) else value


def _cut(value: Any, depth: int) -> Any:
    if not isinstance(value, dict | list):
        return value
    if depth >= LIMIT:
        return _DEEPER
    if isinstance(value, list):
        return [_cut(inner, depth + 1) for inner in value]
    return {key: _cut(inner, depth + 1) for key, inner in value.items()}

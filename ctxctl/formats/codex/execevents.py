"""The events of ``codex exec --json``, by themselves or wrapped by what keeps them."""

from __future__ import annotations

from typing import Any, Final

import orjson

from ctxctl.formats.codex.records import EXEC

Json = dict[str, Any]

_DEPTH: Final = 3
"""Envelopes that are opened around an event."""
_LONGEST: Final = 4 << 20
"""Bytes of an event that stands in a string."""


def unwrapped(value: Any) -> Json | None:
    """The event that a line holds: the line itself, or what stands under its `data`; None where it is none.

    What keeps such logs puts each event under `data`, as an object or a string, or leaves its type outside.
    """
    for _ in range(_DEPTH):
        if not isinstance(value, dict):
            return None
        inner = value.get("data")
        if isinstance(inner, str) and len(inner) <= _LONGEST and inner.lstrip().startswith("{"):
            try:
                inner = orjson.loads(inner)
            except orjson.JSONDecodeError:
                inner = None
        kind = value.get("type")
        known = isinstance(kind, str) and kind in EXEC
        if not isinstance(inner, dict):
            return value if known else None
        if known and inner.get("type") not in EXEC:
            return {**inner, "type": kind, "timestamp": inner.get("timestamp", value.get("timestamp"))}
        value = inner if "timestamp" in inner else {**inner, "timestamp": value.get("timestamp")}
    return None

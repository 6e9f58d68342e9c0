"""Find an event's record if it is not `data` itself.

Producers of the draft's events wrap the record once more (``"data": {"context_item": {…}}``), put it under
its own name beside the envelope (``"item": {…}``), or spread its fields over the envelope.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from ctxctl.model import vocab
from ctxctl.trace.coerce import parse_json

_NAMES: Final = {
    "surface": ("surface_id", "context_surface", "surface"),
    "item": ("item_id", "context_item", "item"),
    "selection": ("selection_id", "context_selection", "selection"),
    "budget": ("budget_id", "context_budget", "budget"),
    "assembly": ("assembly_id", "context_assembly", "assembly"),
    "injection": ("injection_id", "context_injection", "injection"),
    "compaction": ("compaction_id", "context_compaction", "compaction"),
    "summary": ("summary_id", "context_summary", "summary"),
    "missing": ("missing_id", "missing_context", "missing"),
    "redaction": ("item_id", "context_redaction", "redaction", "redaction_record"),
    "exported": ("context_id", "context_envelope", "envelope"),
}
"""The record's id field and names, by the second word of the event type."""
_WRAPPED: Final = re.compile(
    rb'\{\s*"(?:context_[a-z]+|missing_context|surface|item|selection|budget|assembly|injection|compaction|summary'
    rb'|missing|redaction|envelope|record|payload|body)"\s*:\s*\{'
)
_ANY: Final = ("record", "payload", "body", "context_record")
_SPREAD: Final = {
    "redaction": ("redaction_state", "redaction_method"),
    "exported": ("lifecycle", "surface_refs", "item_refs"),
}
"""Beside what a spread record is known by where its id alone is the envelope's too."""


def may_be_elsewhere(event_type: str, data: bytes | memoryview) -> bool:
    """Return whether to call `record_of`: a cheap test that is False for nearly every sound line."""
    sign = _SIGNS.get(event_type)
    if sign is None:
        return False
    raw = bytes(data)
    return sign not in raw or _WRAPPED.match(raw) is not None


def record_of(event_type: str, data: bytes, line: bytes) -> bytes | None:
    """Return the JSON of the record if it is not in `data`; None if it is, or there is none."""
    if event_type not in vocab.STANDARD_EVENTS:
        return None
    identity, *names = _NAMES[event_type.split(".")[1]]
    if data[:1] == b"{":
        inner = _table(data)
        if inner is None or identity in inner:
            return None
        return _named(inner, (*names, *_ANY))
    if data and data != b"null":
        return None
    outer = _table(line)
    if outer is None:
        return None
    found = _named(outer, (*names, *_ANY))
    if found is not None:
        return found
    spread = _SPREAD.get(event_type.split(".")[1], (identity,))
    if any(name in outer for name in spread):
        return _dumped(outer)
    return None


_SIGNS: Final = {
    event_type: b'"%b"' % _NAMES[event_type.split(".")[1]][0].encode() for event_type in vocab.STANDARD_EVENTS
}


def _table(raw: bytes) -> dict[str, Any] | None:
    try:
        value = parse_json(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _named(table: dict[str, Any], names: tuple[str, ...]) -> bytes | None:
    found = next((table[name] for name in names if isinstance(table.get(name), dict)), None)
    return None if found is None else _dumped(found)


def _dumped(table: dict[str, Any]) -> bytes | None:
    """Return a table as JSON, numbers beyond 64 bits included; None if it cannot be."""
    try:
        return orjson.dumps(table)
    except (orjson.JSONEncodeError, RecursionError):
        pass
    try:
        return json.dumps(table, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None

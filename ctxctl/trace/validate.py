"""Conformance of an event to the Agent Context JSON Schemas in `schemas/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources
from typing import Any, Final

from ctxctl.model import vocab
from ctxctl.trace.shapes import Shapes

RECORD_SCHEMAS: Final = {
    vocab.SURFACE_CREATED: "context-surface",
    vocab.SURFACE_UPDATED: "context-surface",
    vocab.ITEM_ADDED: "context-item",
    vocab.ITEM_UPDATED: "context-item",
    vocab.SELECTION_STARTED: "selection",
    vocab.SELECTION_COMPLETED: "selection",
    vocab.BUDGET_APPLIED: "budget",
    vocab.ASSEMBLY_CREATED: "assembly",
    vocab.COMPACTION_STARTED: "compaction",
    vocab.COMPACTION_COMPLETED: "compaction",
    vocab.MISSING_DETECTED: "missing-context",
    vocab.MISSING_REQUESTED: "missing-context",
    vocab.MISSING_RESOLVED: "missing-context",
    vocab.EXPORTED: "context-envelope",
}
"""Schema of `data` by event type. The standard has none for other records."""


def validate_event(event: dict[str, Any]) -> list[str]:
    """Return the faults of an event by the schemas: at most one for the event and one for its data."""
    found: list[str | None] = []
    if not _shapes("event").allow(event):
        found.append(_fault("event", event))
    name = RECORD_SCHEMAS.get(event.get("event_type", ""))
    if name is not None:
        data = event.get("data")
        if not isinstance(data, dict):
            found.append("data is missing or not an object")
        elif not _shapes(name).allow(data):
            found.append(_fault(name, data))
    return [message for message in found if message is not None]


@cache
def _shapes(name: str) -> Shapes:
    return Shapes(_schema(name))


def _fault(name: str, value: dict[str, Any]) -> str | None:
    """Return the schema's own message on a value whose shape is not known to be valid."""
    import fastjsonschema

    try:
        _compiled(name)(value)
    except fastjsonschema.JsonSchemaValueException as error:
        return f"{name}: {error.message}"
    return None


@cache
def _compiled(name: str) -> Callable[[dict[str, Any]], Any]:
    import fastjsonschema  # slow to import

    compiled: Callable[[dict[str, Any]], Any] = fastjsonschema.compile(_schema(name))
    return compiled


def _schema(name: str) -> dict[str, Any]:
    path = resources.files("ctxctl.trace") / "schemas" / f"agentcontext-{name}.schema.json"
    read: dict[str, Any] = json.loads(path.read_bytes())
    return read


@cache
def schema_fields() -> frozenset[str]:
    """Return the names of all fields in the schemas, at any depth."""
    found: set[str] = set()
    for name in ("event", *dict.fromkeys(RECORD_SCHEMAS.values())):
        found.update(_named(_schema(name)))
    return frozenset(found)


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for part in schema.values():
            yield from _named(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _named(part)

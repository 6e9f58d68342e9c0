"""Records made to fit the standard's schemas; what does not fit is kept under `metadata.native`."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, Final

from ctxctl.ingest import build
from ctxctl.model import vocab
from ctxctl.plugins.agent_context.records import Json, Kind
from ctxctl.trace.coerce import Fields

_UNKNOWN: Final = "unknown"
_SCOPES: Final = frozenset({"turn", "task", "session", "tool_invocation", "review", "handoff", "custom"})
_FILLED: Final[dict[str, Any]] = {"target": vocab.MODEL, "context_kind": "custom", "visibility": []}
"""What a lacking field means, where the standard or the design says it; else `unknown` stands there."""
_LEFT_TO_WRITER: Final = frozenset({"schema_version", "created_at", "content_mode"})


def conformed_record(kind: Kind, data: Json) -> tuple[Json, list[str]]:
    """The record as its schema wants it, and what had to be put aside, one phrase each."""
    made = dict(data)
    faults: list[str] = []
    native: Json = {}
    if not isinstance(made.get("metadata", {}), dict):
        native["metadata"] = made.pop("metadata")
    if made.get("created_at") is not None:
        stamp = build.timestamp(made["created_at"])
        if stamp is None:
            native["created_at"] = made["created_at"]
        made["created_at"] = stamp
    if made.get("created_at") is None:
        made.pop("created_at", None)
    properties, required = _schema(kind.schema) if kind.schema is not None else ({}, ())
    for name, wanted in properties.items():
        if name in made and not _fits(made[name], wanted):
            fixed = _coerced(made[name], wanted)
            if fixed is None:
                faults.append(f"{name} is of another type than the standard's; put under metadata.native")
                native[name] = made.pop(name)
            else:
                made[name] = fixed
    if kind.name == "context_assembly" and _without_empty_refs(made):
        faults.append("a reference in item_refs names nothing; left out")
    scope = made.get("scope")
    if kind.name == "context_envelope" and scope not in _SCOPES:
        if scope is not None:
            native["scope"] = scope
        made["scope"] = "custom"
    filled = [name for name in required if name not in made and name not in _LEFT_TO_WRITER]
    for name in filled:
        made[name] = _FILLED.get(name, [] if properties[name].get("type") == "array" else _UNKNOWN)
    if kind.name == "context_redaction" and "item_id" not in made:
        made["item_id"] = made.get("item_ref", made.get("target_ref"))
    if native or filled:
        _note(made, native, filled)
    return made, faults


def _without_empty_refs(assembly: Json) -> bool:
    """Leave out what blocks refer to without a name; whether there was any."""
    told = assembly.get("ordered_blocks")
    blocks = list(told) if isinstance(told, list) else []
    found = False
    for at, block in enumerate(blocks):
        refs = block.get("item_refs") if isinstance(block, dict) else None
        refs = [refs] if isinstance(refs, dict) else refs
        if isinstance(refs, list) and not all(map(_names_something, refs)):
            blocks[at] = {**block, "item_refs": list(filter(_names_something, refs))}
            found = True
    if found:
        assembly["ordered_blocks"] = blocks
    return found


def _names_something(ref: Any) -> bool:
    return Fields({}, lambda slug, key, message: None, "").ref(ref, "") is not None


def _note(made: Json, native: Json, filled: list[str]) -> None:
    metadata = dict(made.get("metadata") or {})
    if native:
        before = metadata.get("native")
        metadata["native"] = {**(before if isinstance(before, dict) else {}), **native}
    if filled:
        ours = metadata.get("ctxctl")
        metadata["ctxctl"] = {**(ours if isinstance(ours, dict) else {}), "not_recorded": filled}
    made["metadata"] = metadata


def with_segments(budget: Json, windows: list[Json]) -> None:
    """A window's segments belong to its budget, the standard's only record of them with a schema."""
    segments = list(budget.get("window_segments") or ())
    for window in windows:
        rows = window.get("segments", window.get("window_segments"))
        if isinstance(rows, list):
            segments += [row for row in rows if isinstance(row, dict)]
    if segments:
        budget["window_segments"] = segments


@cache
def _schema(name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    path = resources.files("ctxctl.trace") / "schemas" / f"agentcontext-{name}.schema.json"
    schema = json.loads(path.read_bytes())
    return schema["properties"], tuple(schema["required"])


def _fits(value: Any, wanted: Json) -> bool:
    types = wanted.get("type")
    if types is None:
        return True
    if isinstance(types, str):
        types = [types]
    if not any(_is(value, name) for name in types):
        return False
    if isinstance(value, list) and isinstance(items := wanted.get("items"), dict):
        return all(_fits(one, items) for one in value)
    if wanted.get("format") == "date-time":
        return build.timestamp(value) is not None
    return not ("minimum" in wanted and isinstance(value, int | float) and value < wanted["minimum"])


def _is(value: Any, name: str) -> bool:
    if name == "string":
        return isinstance(value, str)
    if name == "array":
        return isinstance(value, list)
    if name == "object":
        return isinstance(value, dict)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return name == "boolean" and isinstance(value, bool)
    return name == "number" or (name == "integer" and isinstance(value, int))


def _coerced(value: Any, wanted: Json) -> Any:
    """The value as the schema wants it where that changes only its spelling; None where it cannot be."""
    types = wanted.get("type")
    types = [types] if isinstance(types, str) else types or []
    if "array" in types and isinstance(value, str | dict):
        return [value] if _fits([value], wanted) else None
    if "integer" in types and isinstance(value, float) and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    if "string" in types and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if wanted.get("format") == "date-time":
        return build.timestamp(value)
    return None

"""Keeps every record valid by the schemas: a field of the wrong type is set aside."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.model import vocab

_TEXTS: Final = (
    "surface_id", "scope", "surface_kind", "expires_at", "item_id", "context_kind", "title", "mime_type",
    "language", "trust_level", "sensitivity", "redaction_state", "selection_id", "query", "intent",
    "rationale", "budget_id", "target", "overflow_strategy", "assembly_id", "compaction_id", "method",
    "trigger", "replacement_policy", "missing_id", "question", "needed_for", "severity", "status",
    "injection_id", "injection_point", "native_id", "content_mode", "created_at", "context_id",
    "lifecycle", "redaction_method", "redaction_reason", "model", "provider", "service_tier", "speed",
    "inference_geo",
)  # fmt: skip
_REFS: Final = (
    "available_source_refs", "available_item_refs", "capability_refs", "policy_refs", "source_refs",
    "candidate_item_refs", "selected_item_refs", "omitted_item_refs", "source_item_refs",
    "resolution_refs", "actor_refs", "runtime_refs", "surface_refs", "item_refs", "selection_refs",
    "assembly_refs", "injection_refs", "compaction_refs", "missing_context_refs", "evidence_refs",
    "telemetry_refs",
)  # fmt: skip
_TEXT_LISTS: Final = ("visibility", "loss_notes", "blocked_actions")
_OBJECT_LISTS: Final = (
    "ordered_blocks",
    "truncation_records",
    "window_segments",
    "candidate_sources",
    "further",
)
_COUNTS: Final = (
    "max_tokens", "reserved_tokens", "max_bytes", "max_items", "actual_tokens", "actual_bytes",
    "actual_items", "token_estimate", "byte_size", "input_tokens", "cached_tokens", "cache_write_tokens",
    "cache_write_1h_tokens", "output_tokens", "reasoning_tokens",
)  # fmt: skip
_OBJECTS: Final = ("metadata", "coverage", "ranking_signals", "modalities", "units")
_EITHER: Final = (
    "producer", "freshness", "wrapping_policy", "separator_policy", "budget_ref", "summary_ref",
    "validation", "requested_from", "selection_policy", "actor_ref", "model_ref", "content_ref",
)  # fmt: skip
_KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(_TEXTS, "text"), **dict.fromkeys(_REFS, "list"),
    **dict.fromkeys(_TEXT_LISTS, "list"), **dict.fromkeys(_OBJECT_LISTS, "list"),
    **dict.fromkeys(_COUNTS, "count"),
    **dict.fromkeys(_OBJECTS, "object"), **dict.fromkeys(_EITHER, "either"), "priority": "number",
}  # fmt: skip
_SCOPES: Final = ("turn", "task", "session", "tool_invocation", "review", "handoff", "custom")
_GAP: Final[dict[str, Any]] = {
    "missing_id": "unnamed", "scope": "custom", "question": "", "severity": "info", "status": "open",
}  # fmt: skip
_NEEDED: Final[dict[str, dict[str, Any]]] = {
    vocab.SURFACE_CREATED: {"surface_id": "unnamed", "scope": "custom"},
    vocab.SURFACE_UPDATED: {"surface_id": "unnamed", "scope": "custom"},
    vocab.ITEM_ADDED: {"item_id": "unnamed", "context_kind": "custom", "visibility": []},
    vocab.SELECTION_STARTED: {"selection_id": "unnamed", "surface_id": "unrecorded"},
    vocab.SELECTION_COMPLETED: {"selection_id": "unnamed", "surface_id": "unrecorded"},
    vocab.BUDGET_APPLIED: {"budget_id": "unnamed", "target": vocab.MODEL},
    vocab.ASSEMBLY_CREATED: {"assembly_id": "unnamed", "target": vocab.MODEL, "ordered_blocks": []},
    vocab.COMPACTION_STARTED: {"compaction_id": "unnamed", "scope": "custom", "source_item_refs": [],
    "method": "custom"},
    vocab.COMPACTION_COMPLETED: {"compaction_id": "unnamed", "scope": "custom", "source_item_refs": [],
    "method": "custom"},
    vocab.MISSING_DETECTED: _GAP,
    vocab.MISSING_REQUESTED: _GAP,
    vocab.MISSING_RESOLVED: _GAP,
    vocab.EXPORTED: {"context_id": "unnamed", "scope": "custom", "lifecycle": "available"},
}  # fmt: skip
"""What the schemas demand, and what is said where a caller said nothing fit."""
_DATED: Final = frozenset(_NEEDED) - {vocab.ITEM_ADDED} | {vocab.INJECTION_APPLIED}
_ELEMENTS: Final[dict[str, type]] = {**dict.fromkeys(_TEXT_LISTS, str), **dict.fromkeys(_OBJECT_LISTS, dict)}
_TEXT_NAMES: Final = frozenset(_TEXTS)
_SHORT: Final = 4096
_FOR_MODEL: Final = [vocab.MODEL]


def fitted(event_type: str, record: dict[str, Any], stamp: str) -> tuple[dict[str, Any], bool]:
    """The record less what is None, with what its schema demands; and whether it is all short texts.

    A field of a type that its schema does not take goes to `metadata.ctxctl.misfits`, under its name.
    """
    made: dict[str, Any] = {"schema_version": vocab.SCHEMA_VERSION}
    misfits: dict[str, Any] = {}
    simple = True
    for name, value in record.items():
        if value is None or name == "schema_version":
            continue
        if type(value) is str and len(value) < _SHORT and name in _TEXT_NAMES:
            made[name] = value
            continue
        if name == "visibility" and _is_for_model(value):
            made[name] = _FOR_MODEL
            continue
        simple = False
        kind = _KINDS.get(name) if type(name) is str else None
        if name == "status" and event_type == vocab.STEP_FAILED:
            kind = "count"  # of HTTP; elsewhere it is a word
        if kind == "list" and isinstance(value, list | tuple | set | frozenset):
            fit = _ELEMENTS.get(name, (str, dict))
            made[name] = [one for one in value if isinstance(one, fit)]
            if len(made[name]) < len(value):
                misfits[name] = [one for one in value if not isinstance(one, fit)]
        elif kind is None or _fits(kind, value):
            made[name] = value
        elif kind in ("text", "either") and isinstance(value, int) and not isinstance(value, bool):
            made[name] = str(value) if value.bit_length() < 1000 else "unnamed"
        else:
            misfits[name] = value
    for name, value in _NEEDED.get(event_type, {}).items():
        if name not in made:
            made[name] = value
    if event_type == vocab.EXPORTED and made["scope"] not in _SCOPES:
        made["scope"] = "custom"
    if event_type in _DATED:
        made.setdefault("created_at", stamp)
    if misfits:
        meta = made.get("metadata", {})
        own = meta.get("ctxctl")
        made["metadata"] = {**meta, "ctxctl": {**(own if isinstance(own, dict) else {}), "misfits": misfits}}
    return made, simple


def _is_for_model(value: Any) -> bool:
    return type(value) is list and len(value) == 1 and type(value[0]) is str and value[0] == vocab.MODEL


def _fits(kind: str, value: Any) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "object":
        return isinstance(value, dict)
    if kind == "either":
        return isinstance(value, str | dict)
    if isinstance(value, bool):
        return False
    if kind == "number":
        return isinstance(value, int | float) and value == value and abs(value) < 1e300
    return isinstance(value, int) and 0 <= value < 2**53

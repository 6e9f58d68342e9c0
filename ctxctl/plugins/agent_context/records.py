"""Which record of the standard an object is, and what each kind is called and needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ctxctl.model import vocab

Json = dict[str, Any]


class Kind(NamedTuple):
    """One kind of record."""

    name: str
    id: str
    """The field that holds its id."""
    also: tuple[str, ...]
    """Fields of which one must stand beside the id for a nameless object to be this kind."""
    event_type: str
    schema: str | None
    """Its JSON Schema, where the standard has one."""


_NATIVE: Final = "ctxctl.native."

KINDS: Final = (
    Kind("context_injection", "injection_id", ("injection_point", "assembly_id", "target", "native_id"),
         vocab.INJECTION_APPLIED, None),
    Kind("context_assembly", "assembly_id", ("ordered_blocks", "source_item_refs", "target"),
         vocab.ASSEMBLY_CREATED, "assembly"),
    Kind("context_selection", "selection_id",
         ("selected_item_refs", "omitted_item_refs", "candidate_item_refs", "surface_id", "ranking_signals"),
         vocab.SELECTION_COMPLETED, "selection"),
    Kind("context_window", "window_id", ("segments", "window_segments"), f"{_NATIVE}context_window", None),
    Kind("context_budget", "budget_id",
         ("max_tokens", "max_bytes", "max_items", "max_time_ms", "actual_tokens", "actual_items",
          "actual_bytes", "overflow_strategy", "window_segments", "truncation_records", "target",
          "reserved_tokens"),
         vocab.BUDGET_APPLIED, "budget"),
    Kind("context_compaction", "compaction_id",
         ("source_item_refs", "summary_ref", "method", "replacement_policy", "loss_notes", "trigger"),
         vocab.COMPACTION_COMPLETED, "compaction"),
    Kind("context_summary", "summary_id",
         ("content", "text", "summary_kind", "source_item_refs", "coverage", "refresh_policy"),
         vocab.SUMMARY_CREATED, None),
    Kind("missing_context", "missing_id", ("question", "severity", "status", "needed_for", "blocked_actions"),
         vocab.MISSING_DETECTED, "missing-context"),
    Kind("context_surface", "surface_id",
         ("available_item_refs", "available_source_refs", "surface_kind", "capability_refs", "scope"),
         vocab.SURFACE_CREATED, "context-surface"),
    Kind("context_item", "item_id", ("context_kind", "content_mode", "content", "content_ref", "visibility"),
         vocab.ITEM_ADDED, "context-item"),
    Kind("context_redaction", "redaction_id", ("redaction_state", "redaction_method", "redacted_fields"),
         vocab.REDACTION_APPLIED, None),
    Kind("context_source_ref", "source_id", ("uri", "source_kind", "selector"),
         f"{_NATIVE}context_source_ref", "source-ref"),
    Kind("context_envelope", "context_id",
         ("scope", "lifecycle", "surface_refs", "item_refs", "selection_refs", "assembly_refs",
          "runtime_refs"),
         vocab.EXPORTED, "context-envelope"),
)  # fmt: skip
"""More telling ones first: an injection names its assembly, a selection its surface."""

ENVELOPE: Final = KINDS[-1]
ITEM: Final = next(kind for kind in KINDS if kind.name == "context_item")
REDACTION: Final = next(kind for kind in KINDS if kind.name == "context_redaction")
SOURCE: Final = next(kind for kind in KINDS if kind.name == "context_source_ref")
BY_NAME: Final = {kind.name: kind for kind in KINDS}

_NAMES: Final = {
    spelling: kind
    for kind in KINDS
    for bare in (kind.name, kind.name.removeprefix("context_").removesuffix("_context"))
    for spelling in (bare, f"{bare}s", f"{bare}_records", f"{bare}_record", bare.replace("_", ""))
} | {
    spelling: BY_NAME[name]
    for spelling, name in (
        ("assemblies", "context_assembly"), ("context_assemblies", "context_assembly"),
        ("summaries", "context_summary"), ("context_summaries", "context_summary"),
        ("missing_contexts", "missing_context"), ("redaction_records", "context_redaction"),
        ("sources", "context_source_ref"), ("contextitem", "context_item"),
    )
}  # fmt: skip
"""Kinds by the names that bundles and typed records give them."""

_TYPE_KEYS: Final = ("record_type", "object", "type", "kind", "@type", "record_kind")
_DEPTH: Final = 6

SIGNATURE: Final = re.compile(
    rb'(?<!\\)"(?:(?:context_id"\s*:[^{}]{0,400}"(?:scope|lifecycle))'
    rb'|(?:item_id"\s*:[^{}]{0,400}"(?:context_kind|content_mode))'
    rb'|(?:selection_id"\s*:[^{}]{0,800}"(?:selected_item_refs|omitted_item_refs|surface_id))'
    rb'|(?:surface_id"\s*:[^{}]{0,400}"(?:available_item_refs|available_source_refs))'
    rb'|(?:budget_id"\s*:[^{}]{0,400}"(?:max_tokens|max_items|max_bytes|overflow_strategy))'
    rb'|(?:assembly_id"\s*:[^{}]{0,400}"(?:ordered_blocks|injection_point))'
    rb'|(?:compaction_id"\s*:[^{}]{0,800}"(?:source_item_refs|replacement_policy))'
    rb'|(?:missing_id"\s*:[^{}]{0,800}"(?:question|severity|blocked_actions)))"\s*:'
)
"""Two fields of one record near each other; what a text quotes is escaped."""


def kind_of(value: Json, named: Kind | None = None) -> Kind | None:
    """The kind of an object: as its bundle or its own type field names it, else by its fields.

    `named` is what the key above it says; it holds only where the object has that kind's id or two fields
    of it, as other runtimes have summaries and items too.
    """
    for key in _TYPE_KEYS:
        said = value.get(key)
        kind = _NAMES.get(said.lower()) if isinstance(said, str) else None
        if kind is not None and (kind.id in value or any(field in value for field in kind.also)):
            return kind
    if named is not None and (
        isinstance(value.get(named.id), str) or sum(field in value for field in named.also) > 1
    ):
        return named
    for kind in KINDS:
        if isinstance(value.get(kind.id), str) and any(field in value for field in kind.also):
            return kind
    if "redaction_state" in value and any(name in value for name in ("item_id", "item_ref", "target_ref")):
        return REDACTION
    return None


def named(key: str) -> Kind | None:
    """The kind that a key of a bundle names."""
    return _NAMES.get(key.lower())


def is_event(value: Json) -> bool:
    """Whether an object is a `context_event`."""
    kind = value.get("event_type")
    return isinstance(kind, str) and kind.startswith(("context.", "ctxctl."))


def records(value: Any, under: Kind | None = None, depth: int = 0) -> Iterator[tuple[Kind | None, Json]]:
    """The records in a value: itself, those of an array, those that a bundle holds under telling keys.

    Events come with no kind.  What is neither is passed over.
    """
    if isinstance(value, list):
        if depth < _DEPTH:
            for one in value:
                yield from records(one, under, depth + 1)
        return
    if not isinstance(value, dict):
        return
    if is_event(value):
        yield None, value
        return
    kind = kind_of(value, under)
    if kind is not None:
        yield kind, value
        return
    if depth >= _DEPTH:
        return
    for key, inner in value.items():
        if isinstance(inner, dict | list):
            found = named(key)
            if isinstance(inner, dict) and found is not None and kind_of(inner, found) is None:
                yield from _by_id(inner, found, depth)
            else:
                yield from records(inner, found, depth + 1)


def _by_id(table: Json, kind: Kind, depth: int) -> Iterator[tuple[Kind | None, Json]]:
    """Records under their ids: ``{"items": {"item_1": {…}}}``."""
    for name, one in table.items():
        if isinstance(one, dict):
            found = one if kind.id in one else {kind.id: name, **one}
            yield from records(found, kind, depth + 1)


def holds_records(value: Any) -> bool:
    """Whether a value is records of the standard: one, a list of them, or a bundle under telling keys.

    For detection: a record deep within something else is that runtime's own.
    """
    if isinstance(value, list):
        return any(isinstance(one, dict) and holds_records(one) for one in value[:50])
    if is_event(value) or kind_of(value) is not None:
        return True
    inside = ((named(key), inner) for key, inner in value.items() if isinstance(inner, dict | list))
    return any(
        isinstance(one, dict) and kind_of(one, kind) is not None
        for kind, inner in inside
        if kind is not None
        for one in (inner[:50] if isinstance(inner, list) else [inner, *inner.values()][:50])
    ) or any(
        isinstance(one, dict) and is_event(one)
        for inner in value.values()
        if isinstance(inner, list)
        for one in inner[:50]
    )

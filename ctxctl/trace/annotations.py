"""Builders of records that describe a step beside its frame: compactions, gaps, redactions, envelopes.

They are lenient like those in `trace.build`. If the draft names a fact but no field for it, the spellings of
known producers are tried in turn.
"""

from __future__ import annotations

from typing import Any, Final

from ctxctl.model.annotations import UNREDACTED
from ctxctl.model.records import Compaction, Envelope, Missing, Redaction
from ctxctl.trace.coerce import Fields

_REFS: Final = (
    "surface_refs", "item_refs", "selection_refs", "budget_ref", "assembly_refs", "injection_refs",
    "compaction_refs", "missing_context_refs", "runtime_refs", "policy_refs", "evidence_refs",
    "artifact_refs", "tool_refs",
)  # fmt: skip
"""Fields of an envelope that name other records."""


def compaction(fields: Fields) -> Compaction:
    """`context_compaction`."""
    validation = fields.get("validation")
    if isinstance(validation, dict):
        validated = Fields(validation, fields.report, f"{fields.where}.validation")
        said = [validated.text("status"), validated.text("reviewer", "by")]
        validation = " by ".join(word for word in said if word) or None
    sources, summary = fields.ref_names("source_item_refs"), fields.name("summary_ref")
    if summary is not None and summary in sources:
        fields.report(
            "bad-field", "summary_ref", f"summary {summary} is named among its own sources; it stays"
        )
        sources = tuple(ref for ref in sources if ref != summary)
    return Compaction(
        fields.ident("compaction_id"),
        sources,
        summary,
        fields.text("method"),
        fields.text("trigger"),
        _ordered(fields.table("coverage")),
        fields.texts("loss_notes"),
        fields.text("replacement_policy"),
        fields.table("metadata"),
        fields.text("scope"),
        validation if isinstance(validation, str) else None,
    )


def _ordered(value: Any) -> Any:
    """Return a value with sorted keys, so that all spellings of a record look the same."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(inner) for inner in value] if isinstance(value, list) else value


def missing(fields: Fields) -> Missing:
    """`missing_context`."""
    more = Fields(fields.table("metadata"), fields.report, f"{fields.where}.metadata")
    summaries = ("user_summary", "safe_summary", "user_safe_summary", "user_facing_summary", "summary")
    return Missing(
        fields.ident("missing_id"),
        fields.text("question"),
        fields.text("severity"),
        fields.text("status"),
        fields.name("needed_for"),
        fields.name("requested_from", "owner", "owner_ref"),
        fields.texts("blocked_actions"),
        fields.ref_names("resolution_refs"),
        fields.table("metadata"),
        fields.text("scope"),
        tuple(_source(row) for row in fields.rows("candidate_sources")),
        fields.text("requested_action") or more.text("requested_action"),
        fields.text(*summaries) or more.text(*summaries),
    )


def _source(row: Any) -> str:
    """Return a candidate source as one phrase: its kind, and its name or hint."""
    if not isinstance(row, dict):
        return str(row)
    said = [row.get(name) for name in ("kind", "hint", "name", "uri", "source_id", "ref", "id")]
    return ": ".join([word for word in said if isinstance(word, str) and word][:2]) or "unnamed"


def redaction(fields: Fields) -> Redaction | None:
    """Return the record of `context.redaction.applied`, which names the item."""
    item_id = fields.name("item_id", "item_ref", "target_ref", "ref", "id")
    if item_id is None:
        fields.report("bad-field", "item_id", f"{fields.where} names no item; ignored")
        return None
    return Redaction(
        item_id,
        fields.text("redaction_state"),
        fields.text("redaction_method", "method"),
        fields.ref_names("policy_refs"),
        fields.table("metadata"),
        fields.text("redaction_reason", "reason"),
        fields.texts("redacted_fields"),
        fields.name("redacted_by", "actor_ref"),
        fields.name("replacement_ref"),
    )


def of_item(item_id: str, fields: Fields) -> Redaction | None:
    """Return the redaction in an item's own record; None if it says `none`, or nothing."""
    state = fields.text("redaction_state")
    if state is None or state in UNREDACTED:
        return None
    more = Fields(fields.table("metadata"), fields.report, f"{fields.where}.metadata")
    return Redaction(
        item_id,
        state,
        fields.text("redaction_method") or more.text("redaction_method"),
        fields.ref_names("policy_refs") or more.ref_names("policy_refs"),
        {},
        fields.text("redaction_reason") or more.text("redaction_reason"),
        more.texts("redacted_fields"),
        fields.name("redacted_by") or more.name("redacted_by"),
    )


def envelope(fields: Fields) -> Envelope:
    """`context_envelope`."""
    refs = {name: found for name in _REFS if (found := fields.ref_names(name))}
    return Envelope(
        fields.ident("context_id"),
        fields.text("scope"),
        fields.text("lifecycle"),
        fields.table("metadata"),
        refs,
    )

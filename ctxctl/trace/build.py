"""Build the model's typed records from the decoded `data` of events, one function per record.

Builders are lenient: an invalid field is reported and left out. A builder returns None only if the record has
no meaning (an item without an id, invalid splices). Field names follow Agent Context 0.1.1; alternatives are
those of earlier drafts and of ctxctl's own importers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ctxctl.model import vocab
from ctxctl.model.records import (
    Answered,
    Assembly,
    Block,
    Budget,
    Dropped,
    Ended,
    Failure,
    Fidelity,
    Injection,
    Record,
    Selection,
    Splice,
    Surface,
    Totals,
    Truncation,
    Usage,
)
from ctxctl.model.terms import terms_of, totals_of
from ctxctl.trace.annotations import compaction, envelope, missing, redaction
from ctxctl.trace.coerce import Fields

_DROPPED = re.compile(r"drop|omit|remov", re.IGNORECASE)
_CUT = re.compile(r"truncat|cut|shorten|blank", re.IGNORECASE)
_LEFT = tuple(
    name
    for word in ("kept", "retained", "after", "remaining")
    for name in (f"{word}_tokens", f"tokens_{word}", word)
)
"""Fields of a truncation record with the item's remaining tokens."""


_LONGEST = 1e12


def ours(fields: Fields) -> Fields:
    """`metadata.ctxctl` of a record; empty if there is none."""
    meta = Fields(fields.table("metadata"), fields.report, f"{fields.where}.metadata", shallow=fields.shallow)
    return Fields(meta.table("ctxctl"), fields.report, f"{meta.where}.ctxctl", shallow=fields.shallow)


def model_of(fields: Fields) -> str | None:
    """Return the model that a record names: in `metadata.ctxctl.model`, `metadata.model`, or elsewhere."""
    meta = Fields(fields.table("metadata"), fields.report, f"{fields.where}.metadata", shallow=fields.shallow)
    return ours(fields).text("model") or meta.name("model") or fields.name("model_ref", "model")


def surface(fields: Fields) -> Surface:
    """`context_surface`."""
    return Surface(
        fields.ident("surface_id"),
        fields.text("surface_kind"),
        fields.ref_names("available_source_refs"),
        fields.refs("available_item_refs"),
        fields.table("metadata"),
    )


def selection(fields: Fields) -> Selection:
    """`context_selection`."""
    return Selection(
        fields.ident("selection_id"),
        fields.ident("surface_id"),
        fields.text("query"),
        fields.text("intent"),
        fields.refs("candidate_item_refs"),
        fields.refs("selected_item_refs"),
        fields.refs("omitted_item_refs"),
        _scores(fields),
        fields.text("rationale"),
        model_of(fields),
        fields.table("metadata"),
    )


def _scores(fields: Fields) -> dict[str, float]:
    signals = fields.table("ranking_signals")
    scores: dict[str, float] = {}
    for ref, value in signals.items():
        if isinstance(value, dict):
            score = Fields(value, fields.report, "data.ranking_signals").number("relevance", "score")
        else:
            score = Fields(signals, fields.report, "data.ranking_signals").number(ref)
        if score is not None:
            scores[ref] = score
    return scores


def budget(fields: Fields) -> Budget:
    """`context_budget`, with its window segments and truncation records."""
    return Budget(
        fields.ident("budget_id"),
        fields.text("target") or vocab.MODEL,
        fields.count("max_tokens"),
        fields.count("reserved_tokens"),
        ours(fields).count("max_input"),
        fields.count("max_bytes"),
        fields.count("max_items"),
        fields.count("actual_tokens"),
        fields.count("actual_bytes"),
        fields.count("actual_items"),
        fields.text("overflow_strategy"),
        tuple(
            [t for row in fields.rows("truncation_records") if (t := _truncation(row, fields)) is not None]
        ),
        _segments(fields),
        fields.table("metadata"),
        _milliseconds(fields, "max"),
        _milliseconds(fields, "actual"),
        ours(fields).count("compacts_at"),
        ours(fields).text("compacts_by"),
        ours(fields).count("max_chars"),
        ours(fields).count("actual_chars"),
        ours(fields).text("chars_by"),
    )


def _milliseconds(fields: Fields, what: str) -> int | None:
    """Return a limit or measure of time. The draft has no field for such budgets, so spellings vary."""
    found = fields.count(*(f"{what}_{name}" for name in ("time_ms", "duration_ms", "latency_ms", "ms")))
    if found is not None:
        return found
    seconds = fields.number(*(f"{what}_{name}" for name in ("time_seconds", "seconds", "time_s")))
    return round(seconds * 1000) if seconds is not None and 0 <= seconds < _LONGEST else None


def _truncation(row: Any, fields: Fields) -> Truncation | None:
    ref = fields.ref(row, "truncation_records")
    if ref is None:
        return None
    if isinstance(row, str):
        return Truncation(ref.ref, True)
    record = Fields(row, fields.report, "data.truncation_records")
    left = record.count(*_LEFT)
    return Truncation(ref.ref, _was_dropped(record, left), ref.reason, left)


def _was_dropped(record: Fields, left: int | None) -> bool:
    flag = record.flag("dropped")
    if flag is not None:
        return flag
    action = record.text("action", "method", "strategy", "operation")
    if action is not None and _DROPPED.match(action):
        return True
    if action is not None and _CUT.match(action):
        return False
    return not left


def _segments(fields: Fields) -> dict[str, str]:
    segments: dict[str, str] = {}
    for row in fields.rows("window_segments"):
        if not isinstance(row, dict):
            fields.wrong("window_segments", "an array of objects", row)
            continue
        segment = Fields(row, fields.report, "data.window_segments")
        names = [name for key in ("segment", "name", "segment_id", "role") if (name := segment.text(key))]
        name = next((name for name in names if name in vocab.SEGMENTS), names[0] if names else None)
        if name is not None:
            for ref in segment.ref_names("item_refs"):
                segments[ref] = name
    return segments


def assembly(fields: Fields, blocks: tuple[Block, ...]) -> Assembly | None:
    """`context_assembly`; `blocks` are its `ordered_blocks`, already built."""
    own = ours(fields)
    base = own.ident("base")
    splices = _splices(own, len(blocks)) if base is not None else ()
    if splices is None:
        return None
    separator = fields.get("separator_policy")
    if isinstance(separator, dict):
        separator = Fields(separator, fields.report, "data.separator_policy").text(
            "separator", "text", "value"
        )
    return Assembly(
        fields.ident("assembly_id"),
        fields.text("target") or vocab.MODEL,
        blocks,
        base,
        splices,
        _mode(own),
        own.ident("root"),
        own.text("cause"),
        model_of(fields),
        own.text("client_version"),
        separator if isinstance(separator, str) else None,
        fields.text("hash"),
        fields.table("metadata"),
        fields.text("redaction_state"),
        own.table("request") or None,
    )


def _mode(own: Fields) -> str | None:
    mode = own.text("mode")
    if mode is None or mode in ("window", "append"):
        return mode
    own.wrong("mode", "window or append", mode)
    return None


def _splices(own: Fields, blocks: int) -> tuple[Splice, ...] | None:
    """Return the splices; None (with a report) if they are not ascending or do not use up the blocks."""
    found: list[Splice] = []
    end = 0
    for row in own.rows("splices"):
        if not isinstance(row, list) or len(row) != 3 or not all(type(n) is int and n >= 0 for n in row):
            own.report(
                "bad-splice", "splices", "a splice is not [at, removed, inserted]; the assembly is ignored"
            )
            return None
        splice = Splice(*row)
        if splice.at < end:
            own.report("bad-splice", "splices", "splices do not ascend; the assembly is ignored")
            return None
        end = splice.at + splice.removed
        found.append(splice)
    inserted = sum(splice.inserted for splice in found)
    if inserted != blocks:
        own.report(
            "bad-splice",
            "splices",
            f"splices insert {inserted} blocks of {blocks} listed; the assembly is ignored",
        )
        return None
    return tuple(found)


def injection(fields: Fields) -> Injection:
    """`context_injection`."""
    return Injection(
        fields.ident("injection_id"),
        fields.ident("assembly_id"),
        fields.text("target") or vocab.MODEL,
        fields.text("injection_point"),
        fields.ident("native_id"),
        fields.text("hash"),
        model_of(fields),
        fields.table("metadata"),
    )


def usage(fields: Fields) -> Usage:
    """`ctxctl.usage.reported`."""
    return Usage(
        fields.name("model"),
        fields.text("provider"),
        fields.count("input_tokens", "input"),
        fields.count("cached_tokens", "cached_input_tokens", "cache_read_tokens", "cached"),
        fields.count("cache_write_tokens", "cache_write"),
        fields.count("output_tokens", "output"),
        fields.count("reasoning_tokens", "reasoning"),
        fields.table("metadata"),
        fields.count("cache_write_1h_tokens"),
        fields.text("cache_miss_cause"),
        terms_of(fields.data),
        fields.flag("output_is_partial") or False,
    )


def failure(fields: Fields) -> Failure:
    """`ctxctl.step.failed`."""
    return Failure(fields.text("error"), fields.count("status"))


def answered(fields: Fields) -> Answered:
    """`ctxctl.step.answered`."""
    return Answered(fields.count("attempts"))


def dropped(fields: Fields) -> Dropped:
    """`ctxctl.record.dropped`."""
    return Dropped(fields.count("n"), fields.table("reasons"))


def fidelity(fields: Fields) -> Fidelity:
    """Build `ctxctl.fidelity.measured`. Invalid counts are left out."""
    facts: dict[str, dict[str, int]] = {}
    for fact, levels in fields.table("facts").items():
        if isinstance(levels, dict):
            facts[fact] = {
                level: count
                for level, count in levels.items()
                if isinstance(count, int) and not isinstance(count, bool) and count >= 0
            }
    return Fidelity(fields.text("format"), fields.count("requests"), facts, fields.table("understood"))


BUILDERS: dict[str, Callable[[Fields], Record | None]] = {
    vocab.SURFACE_CREATED: surface,
    vocab.SURFACE_UPDATED: surface,
    vocab.SELECTION_STARTED: selection,
    vocab.SELECTION_COMPLETED: selection,
    vocab.BUDGET_APPLIED: budget,
    vocab.INJECTION_APPLIED: injection,
    vocab.COMPACTION_STARTED: compaction,
    vocab.COMPACTION_COMPLETED: compaction,
    vocab.MISSING_DETECTED: missing,
    vocab.MISSING_REQUESTED: missing,
    vocab.MISSING_RESOLVED: missing,
    vocab.REDACTION_APPLIED: redaction,
    vocab.EXPORTED: envelope,
    vocab.USAGE_REPORTED: usage,
    vocab.TOTAL_STATED: lambda fields: Totals(totals_of(fields.data)),
    vocab.FIDELITY_MEASURED: fidelity,
    vocab.STEP_FAILED: failure,
    vocab.STEP_ANSWERED: answered,
    vocab.RECORD_DROPPED: dropped,
    vocab.SESSION_ENDED: lambda fields: Ended(fields.flag("final") or False),
}
"""Builders by event type. Items and assemblies, which have contents, are built in `trace.decode`."""

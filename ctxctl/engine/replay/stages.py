"""What was recorded of each stage of a step, as facts for every view (DESIGN section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctxctl.engine.replay.step_facts import UNCHANGED
from ctxctl.engine.sizes.limits import excess_over, still_over, used_bytes, used_items
from ctxctl.model.records import Assembly, Failure, Ref, Truncation, Usage
from ctxctl.model.results import StageView, Window
from ctxctl.model.vocab import SEGMENTS, UNRECORDED, Provenance, Verdict

if TYPE_CHECKING:
    from ctxctl.engine.replay.frames import FrameState
    from ctxctl.engine.replay.thread import SealedStep, ThreadState
    from ctxctl.engine.replay.window_mode import WindowResolver
    from ctxctl.engine.simulate.policy_run import Fitted
    from ctxctl.engine.sizes.limits import InForce
    from ctxctl.engine.sizes.sent import SentSize
    from ctxctl.model.whatif import Limits

_NOTHING = StageView("not_recorded")
LISTED = 100
"""Most refs and truncations that a stage lists. Its counts include all of them."""


def window_view(size: SentSize, frame: FrameState, by_method: dict[str, int], found: InForce) -> Window:
    """Return the window: cap = min(max_input, limit - reserved); without a limit, derived values are None.

    Used, free and over refer to what was sent (DESIGN section 3, the true window).
    """
    limits, used = found.limits, size.used
    cap = limits.cap
    return Window(
        limit=limits.window,
        reserved=limits.reserve,
        cap=cap,
        used=used,
        free=None if cap is None else max(0, cap - used),
        over=None if cap is None else max(0, used - cap),
        uncounted=frame.uncounted,
        by_method=by_method,
        recorded=frame.used,
        unrecorded=None if size.unrecorded is None else used - frame.used,
        used_method=size.method,
        used_error=size.error,
        counted=frame.counted,
        limit_source=found.source,
        limit_note=found.note,
    )


def stage_views(
    thread: ThreadState, sealed: SealedStep, window: Window, usage: Usage | None, size: SentSize
) -> dict[str, StageView]:
    """Return all seven stages in order, each `recorded` with its facts or `not_recorded`."""
    return {
        "surface": _surface(sealed),
        "selection": _selection(sealed),
        "budget": _budget(thread, sealed, window),
        "window": _window(sealed, segments_of(thread.frame, window)),
        "assembly": _assembly(sealed, thread.windows),
        "injection": _injection(sealed),
        "evidence": _evidence(thread, usage, window.recorded, size, altered=thread.altered),
    }


def _view(recorded: bool, facts: dict[str, Any]) -> StageView:
    verdict: Verdict = "recorded" if recorded else "not_recorded"
    return StageView(verdict, {name: value for name, value in facts.items() if value is not None})


def _surface(sealed: SealedStep) -> StageView:
    surfaces = sealed.facts.surfaces
    if not surfaces:
        return _NOTHING
    last = surfaces[-1]
    return _view(
        True,
        {
            "surface_id": last.surface_id,
            "kind": last.surface_kind,
            "sources": len(last.available_source_refs),
            "items": len(last.available_item_refs),
        },
    )


def _selection(sealed: SealedStep) -> StageView:
    selection = sealed.facts.selection
    if selection is None:
        return _NOTHING
    return _view(
        True,
        {
            "selection_id": selection.selection_id,
            "candidates": len(selection.candidates) or None,
            "selected": len(selection.selected),
            "omitted": len(selection.omitted),
            "unchanged": sealed.skips or None,
            "query": selection.query,
            "intent": selection.intent,
            "rationale": selection.rationale,
            "selected_refs": _refs(selection.selected, sealed),
            "omitted_refs": _refs(selection.omitted, sealed),
        },
    )


def _refs(refs: tuple[Ref, ...], sealed: SealedStep) -> list[dict[str, Any]] | None:
    """Return the selection's reason, rank and score of each item, except for those merely unchanged."""
    found: list[dict[str, Any]] = []
    for ref in refs:
        given = ((name, getattr(ref, name)) for name in ("reason", "native_reason", "rank", "score"))
        said = {name: value for name, value in given if value is not None}
        if said and ref.reason != UNCHANGED and len(found) < LISTED:
            found.append({"item": sealed.reading.item_of(ref.ref), **said})
    return found or None


def _budget(thread: ThreadState, sealed: SealedStep, window: Window) -> StageView:
    budget = sealed.facts.budget
    if budget is None:
        return _NOTHING
    truncations = [t for record in sealed.facts.budgets for t in record.truncations]
    dropped = sum(t.dropped for t in truncations)
    return _view(
        True,
        {
            "max_tokens": budget.max_tokens,
            "reserved_tokens": budget.reserved_tokens,
            "max_input": budget.max_input,
            "actual_tokens": budget.actual_tokens,
            "max_bytes": budget.max_bytes,
            "actual_bytes": budget.actual_bytes,
            "counted_bytes": used_bytes(thread) if budget.max_bytes is not None else None,
            "max_chars": budget.max_chars,
            "actual_chars": budget.actual_chars,
            "chars_by": budget.chars_by,
            "max_items": budget.max_items,
            "actual_items": budget.actual_items,
            "counted_items": used_items(sealed) if budget.max_items is not None else None,
            "max_time_ms": budget.max_time_ms,
            "actual_time_ms": budget.actual_time_ms,
            "headroom": window.free,
            "over": window.over,
            **excess_over(thread, sealed),
            "overflow_strategy": budget.overflow_strategy,
            "dropped": dropped,
            "truncated": len(truncations) - dropped,
            "truncations": [_truncation(t, sealed) for t in truncations[:LISTED]] or None,
            "still_over_budget": still_over(thread, sealed, window) or None,
        },
    )


def supposed_budget(view: StageView, window: Window, limits: Limits) -> StageView:
    """Return the budget stage with the verdict under supposed limits added."""
    supposed = {
        "max_tokens": limits.window,
        "reserved_tokens": limits.reserve,
        "max_input": limits.max_input,
        "headroom": window.free,
        "over": window.over,
        "provenance": "simulated",
    }
    given = {name: value for name, value in supposed.items() if value is not None}
    return StageView(view.verdict, {**view.facts, "supposed": given})


def fitted_budget(view: StageView, fitted: Fitted) -> StageView:
    """Return the budget stage with what a fitting policy did added."""
    simulated = {
        "policy": fitted.policy,
        "verdict": fitted.verdict if fitted.cap is not None else "unknown",
        "wanted": fitted.wanted,
        "dropped": fitted.dropped,
        "cut": fitted.cut,
        "level": fitted.level,
        "restored": fitted.restored or None,
        "provenance": "simulated",
    }
    given = {name: value for name, value in simulated.items() if value is not None}
    return StageView(view.verdict, {**view.facts, "simulated": given})


def _truncation(record: Truncation, sealed: SealedStep) -> dict[str, Any]:
    """Return what the budget did to one item, as recorded."""
    given = {
        "item": sealed.reading.item_of(record.ref),
        "action": "dropped" if record.dropped else "cut",
        "reason": record.reason,
        "tokens_left": record.tokens,
    }
    return {name: value for name, value in given.items() if value is not None}


def segments_of(frame: FrameState, window: Window) -> dict[str, int]:
    """Return tokens by window segment, the unrecorded part first. Their sum is `window.used`."""
    if not window.unrecorded:
        return dict(frame.segments)
    return {UNRECORDED: window.unrecorded, **frame.segments}


def _window(sealed: SealedStep, segments: dict[str, int]) -> StageView:
    order: list[str] = [name for name in SEGMENTS if name in segments]
    order += [name for name in segments if name not in SEGMENTS]
    recorded = bool([b for b in sealed.facts.budgets if b.segments]) and sealed.basis == "assembly"
    return _view(recorded, {"segments": {name: segments[name] for name in order}})


def _assembly(sealed: SealedStep, windows: WindowResolver) -> StageView:
    assembly = sealed.facts.assembly
    if assembly is None:
        return _NOTHING
    return _view(
        True,
        {
            "assembly_id": assembly.assembly_id,
            "blocks": windows.blocks(assembly.assembly_id) or len(assembly.blocks),
            "spliced_onto": assembly.base,
            "separator": assembly.separator,
            "hash": assembly.digest,
            "provenance": _provenance(assembly),
            "redaction_state": assembly.redaction_state,
        },
    )


def _provenance(assembly: Assembly) -> str | None:
    """Return `derived` or `simulated` if an importer says that it arranged the blocks; else None."""
    marks = assembly.metadata.get("ctxctl")
    if not isinstance(marks, dict):
        return None
    if marks.get("simulated") is True:
        return "simulated"
    return "derived" if marks.get("derived") is True else None


def _injection(sealed: SealedStep) -> StageView:
    injections = sealed.facts.injections
    others = list(sealed.facts.elsewhere) or None
    if not injections:
        return _NOTHING if others is None else StageView("not_recorded", {"other_targets": others})
    points = list(dict.fromkeys([i.injection_point for i in injections if i.injection_point]))
    return _view(
        True,
        {
            "points": points,
            "assembly_id": injections[-1].assembly_id,
            "native_id": injections[-1].native_id,
            "hash": injections[-1].digest,
            "injection_id": injections[-1].injection_id,
            "other_targets": others,
        },
    )


def provenance_of(usage: Usage) -> Provenance:
    """Return whether a bill is the provider's own or derived (`metadata.ctxctl.derived`)."""
    marks = usage.metadata.get("ctxctl")
    return "derived" if isinstance(marks, dict) and marks.get("derived") else "native"


def _error(failures: tuple[Failure, ...]) -> str | None:
    """Return the last failure's error."""
    return (failures[-1].error or "unnamed").removeprefix("builtins.") if failures else None


def _evidence(
    thread: ThreadState,
    usage: Usage | None,
    counted: int,
    size: SentSize,
    *,
    altered: bool,
) -> StageView:
    failures, retried = thread.failures, thread.retried
    failed: dict[str, Any] = {}
    if failures or retried:
        failed = {
            "failed": _error(failures),
            "failures": len(failures) if len(failures) > 1 else None,
            "status": failures[-1].status if failures else None,
            "retried": len(retried) or None,
            "retried_after": _error(retried),
        }
    if usage is None:
        return _view(True, failed) if failures or retried else _NOTHING
    sent = usage.terms.sent(usage.input_tokens)
    return _view(
        True,
        {
            **failed,
            "provider": usage.provider,
            "model": usage.model,
            "reported_input": usage.input_tokens,
            "counted_input": counted,
            "difference": None if sent is None or altered else counted - sent,
            "expected_input": None if altered else size.predicted,
            "expected_error": None if altered else size.predicted_error,
            "cached": usage.cached_tokens,
            "cache_write": usage.cache_write_tokens,
            "output": usage.output_tokens,
            "reasoning": usage.reasoning_tokens,
            "provenance": None if provenance_of(usage) == "native" else "derived",
        },
    )

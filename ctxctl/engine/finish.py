"""A sealed step with its usage becomes the value that every view reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.engine.caching import cache_of
from ctxctl.engine.following import followed
from ctxctl.engine.limits import in_force, is_over, still_over
from ctxctl.engine.recompute import recomputed
from ctxctl.engine.simulate import verified
from ctxctl.engine.stages import fitted_budget, provenance_of, stage_views, supposed_budget, window_view
from ctxctl.engine.thread import Billed, Sealed, ThreadState
from ctxctl.engine.told import is_open
from ctxctl.model.records import Compaction, Usage
from ctxctl.model.results import Ledger, StageView, Step, UsageView, Window
from ctxctl.model.told import Told
from ctxctl.model.whatif import AS_RECORDED

if TYPE_CHECKING:
    from ctxctl.engine.rules import Rules

_CUT_SHARE = 0.02
"""Share of the last bill that a drop must exceed: providers themselves leave out a little now and then."""
_SCALE = 2.0
"""Providers' tokenizers give at most this many times our count, so a counted drop explains that much."""


def methods(by_method: dict[str, int], encoding: str, known: bool) -> dict[str, int]:
    """Tokens by counting method under its public name (DESIGN section 2, token counts)."""
    names = {
        "counted": f"{'exact' if known else 'estimate'}:{encoding}",
        "estimated": f"estimate:{encoding}",
        "declared": "declared",
    }
    public: dict[str, int] = {}
    for method, name in names.items():
        if method in by_method:
            public[name] = public.get(name, 0) + by_method[method]
    return public


def finish_step(thread: ThreadState, rules: Rules) -> Step:
    """Close a thread's sealed step."""
    sealed, usage, mode = thread.sealed, thread.usage, thread.mode
    assert sealed is not None
    assert mode is not None
    if usage is not None and usage.model is not None:
        thread.model = usage.model
    model = rules.model or thread.model
    frame, facts = thread.frame, sealed.facts
    by_method = methods(frame.by_method, rules.encoding, rules.known(model))
    limits = in_force(facts.budget, rules.limits)
    window = window_view(frame.used, frame.uncounted, by_method, limits)
    changes = sealed.changes
    ids = sealed.ids if thread.ids is None else thread.ids
    told = thread.telling.told(_compactions(thread, sealed), thread.book, facts.assembly)
    flags = _flags(thread, sealed, window, usage, model, told, supposed=rules.supposed)
    step = Step(
        session=thread.key.session,
        thread=thread.key.thread,
        turn=ids.turn,
        step=ids.step,
        turn_id=ids.turn_id,
        step_id=ids.step_id,
        time=ids.time,
        target=rules.target,
        model=model,
        mode=mode.mode,
        mode_declared=mode.declared,
        basis=sealed.basis,
        layer=sealed.layer,
        window=window,
        ledger=Ledger(
            window_before=sealed.before.used,
            new=changes.new,
            freed=changes.freed,
            window_after=frame.used,
            saved=sealed.saved,
            stale=frame.stale,
            uncounted=frame.uncounted,
        ),
        counts=changes.counts,
        changes=changes.changes,
        stages=_stages(thread, sealed, window, usage, rules),
        cache=cache_of(thread, sealed, usage, window, real="simulated" not in flags and not thread.altered),
        usage=_usage(usage, frame.used, altered=thread.altered),
        flags=flags,
        segments=dict(frame.segments),
        first_line=ids.first_line,
        first_byte=ids.first_byte,
        told=told,
        scores=sealed.reading.scores(),
    )
    if rules.reckon is None:
        return step
    thread.running, step = rules.reckon(thread.running, step)
    return step


def _compactions(thread: ThreadState, sealed: Sealed) -> list[Compaction]:
    """Those that took effect in the step's frame; of a thread's last step, those recorded behind it too."""
    if thread.over and thread.later is not None:
        return sealed.facts.compactions + thread.later.compactions
    return sealed.facts.compactions


def _stages(
    thread: ThreadState, sealed: Sealed, window: Window, usage: Usage | None, rules: Rules
) -> dict[str, StageView]:
    if rules.limits.given:
        # Stages tell what was recorded; the supposed verdict stands beside the recorded one.
        budget = sealed.facts.budget
        recorded = window_view(window.used, window.uncounted, {}, in_force(budget, AS_RECORDED))
        views = stage_views(thread, sealed, recorded, usage)
        limits = in_force(budget, rules.limits)
        views["budget"] = supposed_budget(views["budget"], window, limits)
    else:
        views = stage_views(thread, sealed, window, usage)
    if thread.fitted is not None:
        views["budget"] = fitted_budget(views["budget"], thread.fitted)
        if thread.fitted.held is not None:
            views = followed(views, thread.fitted.held)
    if rules.edits is not None:
        return views  # what the runtime did with other contents is held against nothing
    if rules.recomputer is not None:
        views = recomputed(views, thread, sealed, rules.recomputer)
    if thread.sent is None:
        return views
    return verified(views, thread.sent, sealed.reading)


def _usage(usage: Usage | None, counted: int, *, altered: bool) -> UsageView | None:
    """The bill is of what was sent: a frame out of which something was taken is not compared with it."""
    if usage is None:
        return None
    reported = usage.input_tokens
    return UsageView(
        reported_input=reported,
        reported_cached=usage.cached_tokens,
        reported_output=usage.output_tokens,
        counted_input=counted,
        difference=None if reported is None or altered else counted - reported,
        provenance=provenance_of(usage),
        provider=usage.provider,
    )


def _flags(
    thread: ThreadState,
    sealed: Sealed,
    window: Window,
    usage: Usage | None,
    model: str | None,
    told: Told,
    *,
    supposed: bool,
) -> tuple[str, ...]:
    """`supposed`: limits or contents are; what the runtime did under its own says nothing of these."""
    facts = sealed.facts
    flags = []
    if not facts.injections:
        flags.append("injection_not_recorded")
    fitted = thread.fitted
    if thread.sent is not None or fitted is not None or supposed:
        flags.append("simulated")
    if fitted is not None and fitted.verdict in ("rejected", "asks", "blocked"):
        flags.append(fitted.verdict)
    if facts.compactions:
        flags.append("compacted")
    if facts.causes is not None and facts.causes not in flags:
        flags.append(facts.causes)
    if "unknown-base" in facts.faults:
        flags.append("unknown_base")
    still = not supposed and still_over(thread, sealed, window)
    if fitted is not None:
        still = fitted.verdict == "still_over"
    if still:
        flags.append("still_over_budget")
    elif is_over(thread, sealed, window):
        flags.append("over_budget")
    if any(is_open(gap) for gap in told.missing):
        flags.append("missing_context")
    if told.redactions:
        flags.append("redacted")
    if thread.failures:
        flags.append("failed")
    if usage is not None and usage.input_tokens is not None:
        now = Billed(usage.input_tokens, window.used, model)
        if (
            fitted is None
            and thread.editing is None
            and thread.billed is not None
            and _is_cut(thread.billed, now, recorded=_recorded_cut(sealed))
        ):
            flags.append("unrecorded_cut")
        thread.billed = now
    return tuple(flags)


def _recorded_cut(sealed: Sealed) -> bool:
    facts = sealed.facts
    return bool(facts.compactions) or facts.causes is not None


def _is_cut(before: Billed, now: Billed, *, recorded: bool) -> bool:
    """Whether the billed input fell and nothing in the trace says why (DESIGN section 3, cause)."""
    drop = before.reported - now.reported
    if recorded or before.model != now.model or drop <= _CUT_SHARE * before.reported:
        return False
    return drop > _SCALE * max(0, before.counted - now.counted)

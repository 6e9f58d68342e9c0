"""Turn a sealed step with its usage into a `Step`: its sizes, its bill, its cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ctxctl.engine.replay.annotations import is_open
from ctxctl.engine.replay.renderings import is_rendered_anew
from ctxctl.engine.replay.stages import (
    fitted_budget,
    provenance_of,
    segments_of,
    stage_views,
    supposed_budget,
    window_view,
)
from ctxctl.engine.replay.thread import SealedStep, ThreadState
from ctxctl.engine.sizes.bills import (
    Answer,
    BilledStep,
    billed_size,
    counted_output,
    cut_of,
    known_sent,
    least_tokens,
)
from ctxctl.engine.sizes.cache_misses import BilledRequest, cache_miss, memory_after, memory_unbilled
from ctxctl.engine.sizes.cache_settings import LEVELS
from ctxctl.engine.sizes.limits import (
    InForce,
    compacted_at,
    is_over,
    limits_in_force,
    still_over,
    threshold_in_force,
)
from ctxctl.engine.sizes.sent import ObservedStep, SentSize, sent_size
from ctxctl.model import vocab
from ctxctl.model.annotations import Annotations
from ctxctl.model.records import Compaction, Usage
from ctxctl.model.results import (
    BrokenBy,
    Cache,
    Cut,
    Ledger,
    Miss,
    Placement,
    StageView,
    Step,
    UsageView,
    Window,
)
from ctxctl.model.terms import Pass, Stated
from ctxctl.model.vocab import MODEL, PrefixBasis
from ctxctl.model.whatif import AS_RECORDED
from ctxctl.tokens.calibrate.points import LEFT_SHARE

if TYPE_CHECKING:
    from ctxctl.engine.replay.rules import ReplayRules
    from ctxctl.engine.sizes.prefix import CommonPrefix

_ERRORS: Final = {"exact": 0.02, "calibrated": 0.15}
"""The share by which a count may be too small, by method. Overhead around a text is not included."""
_FOREIGN_ERROR: Final = 1.0
"""The error of a count with another model's tokenizer: providers' tokenizers give at most twice as many."""


def cache_of(
    thread: ThreadState, sealed: SealedStep, usage: Usage | None, window: Window, *, real: bool
) -> Cache:
    """Return a finished step's cache.

    Args:
        thread: Remembers the bill for the thread's next step.
        sealed: The step.
        usage: Its bill.
        window: Its window, for what it has recorded and what it lacks.
        real: Whether the frame is the one that was sent: of another one a bill says nothing.
    """
    cached = usage.cached_tokens if usage is not None else None
    written = usage.cache_write_tokens if usage is not None else None
    hour = usage.cache_write_1h_tokens if usage is not None else None
    prefix, settings = sealed.prefix, sealed.settings
    miss = _miss(thread, sealed, usage, window) if real else None
    if prefix is None:
        return Cache(None, None, cached, written, hour, miss)
    compared: PrefixBasis = "wire" if settings.request is not None else "content"
    return Cache(prefix.tokens, _broken_by(prefix, sealed), cached, written, hour, miss, compared)


def _broken_by(prefix: CommonPrefix, sealed: SealedStep) -> BrokenBy | None:
    if prefix.setting is not None:
        name, rank = prefix.setting
        return BrokenBy(None, None, prefix.length, prefix.status, None, name, LEVELS[rank])
    if prefix.breaker is None:
        return None
    item, cause, change = prefix.breaker.item, None, None
    if prefix.status == "removed":
        cause = sealed.context.cause_of(item).cause
    elif prefix.was is not None and is_rendered_anew(prefix.was, prefix.breaker):
        change = sealed.context.differs(prefix.was, prefix.breaker)
    return BrokenBy(item, prefix.breaker.version, prefix.length, prefix.status, cause, change=change)


def _miss(thread: ThreadState, sealed: SealedStep, usage: Usage | None, window: Window) -> Miss | None:
    # If the model changed, that is the cause: another model's cache was not read.
    before, prefix = thread.cached, sealed.prefix.shared if sealed.prefix is not None else None
    time = thread.asked or sealed.ids.time
    if usage is None or usage.input_tokens is None or window.used_method != "reported":
        if not thread.failures:
            thread.cached = memory_unbilled(before, prefix, time)
        return None
    now = BilledRequest(
        input=usage.input_tokens,
        read=usage.cached_tokens,
        written=usage.cache_write_tokens,
        written_1h=usage.cache_write_1h_tokens,
        output=usage.output_tokens,
        recorded=thread.frame.used,
        unrecorded=window.unrecorded,
        model=usage.model or thread.model,
        provider=usage.provider,
        time=time,
    )
    first, last = (_as_pass(now, one) for one in (usage.terms.passes[:1], usage.terms.passes[-1:]))
    thread.cached = memory_after(before, last)
    return cache_miss(before, first, prefix, _error(window), usage.cache_miss_cause)


def _as_pass(request: BilledRequest, of: tuple[Pass, ...]) -> BilledRequest:
    """Return a request as one of its passes was billed. The first pass reads the previous request's cache,
    and the last one writes the next request's."""
    for one in of:
        request = request._replace(
            input=one.input_tokens, read=one.cached_tokens, written=one.cache_write_tokens,
            written_1h=one.cache_write_1h_tokens, output=one.output_tokens,
        )  # fmt: skip
    return request


def _error(window: Window) -> float:
    """Return the error of a window's least exact counting method."""
    named = {name.partition(":")[0] for name, tokens in window.by_method.items() if tokens}
    return max((_ERRORS.get(name, _FOREIGN_ERROR) for name in named), default=_FOREIGN_ERROR)


def answered(thread: ThreadState) -> Answer | None:
    """Return the answer between the step's seal and the next request; None if unknown.

    Importers and the recorder write answers there. An answer recorded with the next request's window comes
    too late to be compared with the bill.
    """
    if thread.later is None:
        return None
    said = thought = 0
    known = False
    for item in thread.later.entered:
        version = thread.book.latest.get(item)  # a compaction after the answer may have removed it
        # A new version of an earlier message is not an answer.
        if version is None or version.older is not None or not version.visible:
            continue
        kind = version.record.context_kind
        if kind not in vocab.ANSWERS:
            continue
        placement = thread.placer.plain(version)
        known = known or placement.method != "uncounted"
        if kind == "reasoning":
            thought += placement.tokens
        else:
            said += placement.tokens
    return Answer(said, thought) if known else None


def methods(by_method: dict[str, int], encoding: str, known: bool) -> dict[str, int]:
    """Return tokens by counting method under its public name (DESIGN section 2, token counts)."""
    names = {
        "counted": f"{'exact' if known else 'estimate'}:{encoding}",
        "calibrated": f"calibrated:{encoding}",
        "estimated": f"estimate:{encoding}",
        "declared": "declared",
    }
    public: dict[str, int] = {}
    for method, name in names.items():
        if method in by_method:
            public[name] = public.get(name, 0) + by_method[method]
    return public


class _Settled(NamedTuple):
    """What later steps need to know of a sealed step."""

    model: str | None
    bill: UsageView | None
    size: SentSize
    by_method: dict[str, int]
    """The frame's tokens by counting method under its public name."""
    cut: Cut | None


def settle_step(thread: ThreadState, rules: ReplayRules) -> _Settled:
    """Apply a sealed step's bill to the state that later steps use. Values only for views are left to
    `finish_step`."""
    sealed, usage = thread.sealed, thread.usage
    assert sealed is not None
    if usage is not None and usage.model is not None:
        thread.model = usage.model
    model = rules.model or thread.model
    billed = _usage(thread, usage, thread.frame.used)
    size = _size(thread, sealed, billed, model, rules)
    large = _oversized(thread, sealed, model, rules) if billed_size(billed) is None else []
    if large:
        lost = sum(placement.tokens for placement in large)
        beside = (size.unrecorded or 0) - lost
        size = size._replace(used=max(0, size.used - lost), unrecorded=beside, method="expected")
    encoding = thread.placer.weigher.encoding or rules.encoding
    by_method = methods(thread.frame.by_method, encoding, rules.known(model, encoding))
    cut = _cut(thread, sealed, billed, model, by_method, rules)
    cut = _oversized_cut(thread, sealed, large) if large else cut
    thread.placer.weigher.scale = rules.scales.scale(model or rules.first_model, thread.running.thread)
    return _Settled(model, billed, size, by_method, cut)


def finish_step(thread: ThreadState, rules: ReplayRules) -> Step:
    """Turn a thread's sealed step into a `Step`."""
    sealed, usage, mode = thread.sealed, thread.usage, thread.mode
    total = usage.terms.stated_total_usd if usage is not None else None
    assert sealed is not None
    assert mode is not None
    model, billed, size, by_method, cut = settle_step(thread, rules)
    frame, changes = thread.frame, sealed.changes
    found = _limits(thread, sealed, model, rules)
    window = _window(thread, sealed, size, by_method, found, rules)
    ids = sealed.ids if thread.ids is None else thread.ids
    annotations = thread.annotations.of_step(_compactions(thread, sealed), thread.book, sealed.facts.assembly)
    flags = _flags(thread, sealed, window, cut, annotations, supposed=rules.supposed)
    return Step(
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
            window_before=sealed.before.used - sealed.before.reweighed,
            new=changes.new,
            freed=changes.freed,
            window_after=frame.used,
            saved=sealed.saved,
            stale=frame.stale,
            uncounted=frame.uncounted,
            reweighed=sealed.before.reweighed,
        ),
        counts=changes.counts,
        changes=changes.changes,
        stages=_stages(thread, sealed, window, usage, size, found, rules),
        cache=cache_of(thread, sealed, usage, window, real="simulated" not in flags and not thread.altered),
        usage=billed,
        flags=flags,
        segments=segments_of(frame, window),
        first_line=ids.first_line,
        first_byte=ids.first_byte,
        annotations=annotations,
        scores=sealed.reading.scores(),
        cut=cut,
        stated=thread.stated if total is None else (*thread.stated, Stated(usd=total)),
    )


def _size(
    thread: ThreadState, sealed: SealedStep, usage: UsageView | None, model: str | None, rules: ReplayRules
) -> SentSize:
    """Return what the step sent. The thread remembers what its bill says about later steps."""
    frame = thread.frame
    recorded = thread.recorded_tokens
    reported = billed_size(usage) if rules.target == MODEL else None
    if usage is not None:
        thread.provider = usage.provider or thread.provider
    other = None
    if reported is not None and _supposes_model(thread, rules):
        # The bill is in tokens of the model that sent it, so it says nothing of the supposed one.
        other = rules.scales.translated(reported, thread.model, rules.model)
        reported = None if other is None else other.tokens
    seen = ObservedStep(
        model=model,
        recorded=recorded,
        moved=thread.recorded_moved,
        uncounted=frame.uncounted,
        broken=_breaks(sealed) or other is not None,
        reported=reported,
        altered=thread.altered,
        frame=frame.used,
        whole=_whole(sealed),
    )
    thread.running, size = sent_size(thread.running, seen, rules.scales)
    return size if other is None else size._replace(method="expected", error=other.error, predicted=None)


def _supposes_model(thread: ThreadState, rules: ReplayRules) -> bool:
    """Return whether the step is shown for another model than the one that sent it."""
    return rules.model is not None and rules.model != thread.model


def _cut(
    thread: ThreadState,
    sealed: SealedStep,
    usage: UsageView | None,
    model: str | None,
    by_method: dict[str, int],
    rules: ReplayRules,
) -> Cut | None:
    """Return the cut that the bill shows. The next frame begins without what was cut.

    A supposed frame has none, because the bill is for another frame.
    """
    billed = billed_size(usage) if rules.target == MODEL else None
    if billed is None:
        return None
    before = thread.billed
    thread.billed = now = BilledStep(
        billed, thread.recorded_tokens, model, sealed.ids.first_line, sealed.ids.first_byte
    )
    if thread.sent is not None:
        return None
    if thread.altered:  # scale the counts of a what-if's frame to the recorded sum
        by_method = {name: n * now.counted // (thread.frame.used or 1) for name, n in by_method.items()}
    explained = bool(sealed.facts.compactions) or sealed.facts.causes is not None
    found = cut_of(before, now, by_method, explained=explained)
    if found is not None and found.unsent and _is_rebuilt(sealed, rules):
        thread.keep_sent(known_sent(thread.recorded(), thread.entered, billed))
    return None if thread.editing is not None or thread.altered else found


def _is_rebuilt(sealed: SealedStep, rules: ReplayRules) -> bool:
    """Return whether an importer rebuilt the step's window, so that it may hold content that was not sent."""
    return rules.rebuilds_windows and sealed.settings.request is None


def _oversized(
    thread: ThreadState, sealed: SealedStep, model: str | None, rules: ReplayRules
) -> list[Placement]:
    """Return new placements that are larger than the model's whole window, so they were not sent."""
    if not thread.entered or thread.altered or not _is_rebuilt(sealed, rules):
        return []
    limit = _limits(thread, sealed, model, rules).limits.window
    if limit is None:
        return []
    return [p for p in thread.entered if least_tokens(p.tokens, p.method) > limit]


def _oversized_cut(thread: ThreadState, sealed: SealedStep, large: list[Placement]) -> Cut:
    """Return the cut of a request without a bill. The next frame begins without what was too large."""
    thread.keep_sent(set(thread.recorded()).difference(large))
    unsent = sum(least_tokens(placement.tokens, placement.method) for placement in large)
    now = BilledStep(0, 0, None, sealed.ids.first_line, sealed.ids.first_byte)
    first = thread.billed or now
    before = thread.billed.reported if thread.billed is not None else None
    return Cut(unsent, None, before, False, (first.line, now.line), (first.offset, now.offset))


def _whole(sealed: SealedStep) -> str | None:
    """Return the API if the request's whole body is recorded; None if that is unknown."""
    request = sealed.settings.request
    found = request.get("api") if request is not None else None
    return found if isinstance(found, str) else None


def _breaks(sealed: SealedStep) -> bool:
    """Return whether the unrecorded part of requests may change at this step.

    A rewind does not change it: only recorded content leaves (measured with withheld bills,
    docs/calibration.md).
    """
    cut = bool(sealed.facts.compactions) or sealed.facts.causes == "cleared"
    return cut or sealed.changes.freed > LEFT_SHARE * sealed.before.used


def _limits(thread: ThreadState, sealed: SealedStep, model: str | None, rules: ReplayRules) -> InForce:
    """Return the limits in force at the step."""
    named = model or rules.first_model
    for record in (sealed.facts.assembly, *sealed.facts.compactions):
        thread.compacted = compacted_at(record) or thread.compacted
    largest, compacted = thread.running.largest, thread.compacted
    if _supposes_model(thread, rules):  # limits seen with the recorded model do not apply to another one
        largest, compacted = 0, None
    return limits_in_force(
        sealed.facts.budget, named, thread.provider, rules,
        billed=largest, client=thread.client, compacted=compacted,
    )  # fmt: skip


def _window(
    thread: ThreadState,
    sealed: SealedStep,
    size: SentSize,
    by_method: dict[str, int],
    found: InForce,
    rules: ReplayRules,
) -> Window:
    """Return the step's window under the limits in force, with its runtime's compaction threshold."""
    window = window_view(size, thread.frame, by_method, found)
    line = threshold_in_force(thread, sealed, found, rules)
    if line is None:
        return window
    return msgspec.structs.replace(window, threshold=line.tokens, threshold_source=line.source)


def _compactions(thread: ThreadState, sealed: SealedStep) -> list[Compaction]:
    """Return the compactions in effect in the step's frame, and for a thread's last step also later ones."""
    if thread.over and thread.later is not None:
        return sealed.facts.compactions + thread.later.compactions
    return sealed.facts.compactions


def _stages(
    thread: ThreadState,
    sealed: SealedStep,
    window: Window,
    usage: Usage | None,
    size: SentSize,
    found: InForce,
    rules: ReplayRules,
) -> dict[str, StageView]:
    if rules.limits.given:
        # Stages show what was recorded. The supposed verdict is shown beside the recorded one.
        plain = msgspec.structs.replace(rules, limits=AS_RECORDED)
        as_recorded = _limits(thread, sealed, rules.model or thread.model, plain)
        recorded = window_view(size, thread.frame, {}, as_recorded)
        views = stage_views(thread, sealed, recorded, usage, size)
        views["budget"] = supposed_budget(views["budget"], window, found.limits)
    else:
        views = stage_views(thread, sealed, window, usage, size)
    if thread.fitted is not None:
        views["budget"] = fitted_budget(views["budget"], thread.fitted)
        if thread.fitted.held is not None:
            from ctxctl.engine.simulate.runtime_record import followed_stages

            views = followed_stages(views, thread.fitted.held)
    if rules.edits is not None:
        return views  # with other contents, the runtime's stages have nothing to be compared with
    if rules.recomputer is not None:
        from ctxctl.engine.simulate.recompute import recomputed_stages

        views = recomputed_stages(views, thread, sealed, rules.recomputer)
    if thread.sent is None:
        return views
    from ctxctl.engine.simulate.policy_step import verified_stages

    return verified_stages(views, thread.sent, sealed.reading)


def _usage(thread: ThreadState, usage: Usage | None, counted: int) -> UsageView | None:
    """Return the step's bill. If the frame differs from what was sent, the bill is not compared with it."""
    if usage is None:
        return None
    altered = thread.altered
    answer = None if thread.editing is not None else answered(thread)
    reported = usage.terms.sent(usage.input_tokens)
    return UsageView(
        reported_input=usage.input_tokens,
        reported_cached=usage.cached_tokens,
        reported_output=usage.output_tokens,
        counted_input=counted,
        difference=None if reported is None or altered else counted - reported,
        provenance=provenance_of(usage),
        provider=usage.provider,
        believed_output=counted_output(usage, answer),
        counted_output=None if answer is None else answer.tokens,
        reported_reasoning=usage.reasoning_tokens,
        terms=usage.terms,
    )


def _flags(
    thread: ThreadState,
    sealed: SealedStep,
    window: Window,
    cut: Cut | None,
    annotations: Annotations,
    *,
    supposed: bool,
) -> tuple[str, ...]:
    """Return the step's flags; `supposed` if limits or contents are not the recorded ones."""
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
    if not facts.faults.isdisjoint(("unknown-base", "windows-too-large")):
        flags.append("unknown_base")
    still = not supposed and still_over(thread, sealed, window)
    if fitted is not None:
        still = fitted.verdict == "still_over"
    if still:
        flags.append("still_over_budget")
    elif is_over(thread, sealed, window):
        flags.append("over_budget")
    if annotations.missing and any(is_open(gap) for gap in annotations.missing):
        flags.append("missing_context")
    if annotations.redactions:
        flags.append("redacted")
    if thread.failures:
        flags.append("failed")
    if cut is not None:
        flags.append("unrecorded_cut")
    return tuple(flags)

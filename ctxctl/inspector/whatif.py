"""What another window, model, encoding or policy would have meant: a replay beside the recorded one.

A what-if is an ordinary replay under other rules.  Both replays take the same events in one pass, and a step
ends at the same event in both, so the sides are aligned by ordinal.  No model and no network is asked;
the same trace and the same supposition give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from ctxctl.config import load as load_settings
from ctxctl.engine.cursor import ignore
from ctxctl.engine.fitting import Trim
from ctxctl.engine.placing import Count
from ctxctl.engine.replay import Engine
from ctxctl.engine.rules import Rules
from ctxctl.errors import UsageError
from ctxctl.inspector.facade import Inspector, Progress
from ctxctl.inspector.params import Params, fits, plans, recomputes, same_ranks
from ctxctl.model.content import Content
from ctxctl.model.results import Step, Turn
from ctxctl.model.whatif import AS_RECORDED, Limits, Pair, Side, Supposition, Totals
from ctxctl.policies.registry import RECORDED, Strategy, by_name
from ctxctl.tokens.catalogue.find import Known, find
from ctxctl.tokens.encodings import NAMES
from ctxctl.tokens.models import is_known, near, resolve

__all__ = ["Comparison", "FieldError", "Supposition", "WhatIfs"]

_EVENTS: Final = 128
"""Events between two looks at whether anybody still waits."""


class FieldError(UsageError):
    """A field of a supposition names something that does not exist."""

    def __init__(self, field: str, slug: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(slug, message, hint=hint)
        self.field = field


class Supposed(NamedTuple):
    """A supposition against one trace, resolved."""

    params: Params
    policy: Strategy | None
    limits: Limits
    only_limits: bool
    """Frames and counts are those of the other side."""
    same_frames: bool
    """Frames are; they may be counted in another way."""
    notes: tuple[str, ...]
    """What to know before the numbers are read, one sentence each; may hold names from the trace."""


class WhatIfs:
    """All what-ifs of one inspector.  A content is counted once for each encoding that is ever supposed.

    Used by one thread at a time; other threads may use the inspector meanwhile.
    """

    def __init__(self, inspector: Inspector) -> None:
        self.inspector = inspector
        self._counts: dict[str, Recount] = {}

    def resolve(self, supposition: Supposition) -> Supposed:
        """Settle what a what-if is made under.

        Raises FieldError: `unknown-model` (with near names), `unknown-encoding`, `unknown-policy`.
        """
        base = self.inspector.params
        model, encoding, assumed = supposition.model, base.encoding, base.assumed
        if model is not None:
            self._known(model)
            found = resolve(model)
            encoding, assumed = found.encoding, found.assumed
        if supposition.encoding is not None:
            if supposition.encoding not in NAMES:
                raise FieldError(
                    "encoding", "unknown-encoding", f"no encoding is called {_quoted(supposition.encoding)}",
                    hint=f"there are: {', '.join(NAMES)}",
                )  # fmt: skip
            encoding, assumed = supposition.encoding, ""
        policy, changed = self._policy(supposition.policy)
        limits, known = supposition.limits, None
        if model is not None and supposition.window is None and supposition.max_input is None:
            known = find(model, own=load_settings().models)
            limits = Limits(known.window, supposition.reserve, known.max_input)
        changed = changed or (fits(policy) is not None and limits.given)
        params = msgspec.structs.replace(
            base,
            policy=base.policy if supposition.policy is None else supposition.policy,
            model=base.model if model is None else model,
            encoding=encoding,
            assumed=assumed,
            limits=limits,
            fitting=fits(policy) is not None,
        )
        only = not changed and model is None and same_ranks(encoding, base.encoding)
        return Supposed(
            params, policy, limits, only, not changed, tuple(_notes(base, params, supposition, known))
        )

    def compare(self, supposed: Supposed) -> Comparison:
        """Both replays side by side, ready to run."""
        rules = replace(self.inspector.rules(), limits=AS_RECORDED)
        if supposed.only_limits:
            return Comparison(self.inspector, rules, None, supposed)
        encoding = supposed.params.encoding
        count: Count = rules.count
        trim: Trim = rules.trim
        if not same_ranks(encoding, rules.encoding):
            if encoding not in self._counts:
                self._counts[encoding] = Recount(self.inspector, supposed.params)
            count, trim = self._counts[encoding].count, self._counts[encoding].trim
        other = replace(
            rules,
            count=count,
            encoding=encoding,
            known=supposed.params.uses_encoding,
            model=supposed.params.model,
            policy=plans(supposed.policy),
            fitter=fits(supposed.policy),
            recomputer=recomputes(supposed.policy),
            trim=trim,
            limits=supposed.limits,
        )
        return Comparison(self.inspector, rules, other, supposed)

    def close(self) -> None:
        """Write new counts to disk; they may go on being used."""
        for counts in self._counts.values():
            counts.close()

    def _policy(self, name: str | None) -> tuple[Strategy | None, bool]:
        """The strategy, and whether it is another one than the trace is replayed under."""
        current = self.inspector.params.policy
        if name is None or name == current:
            return self.inspector.strategy, False
        try:
            return by_name(name), True
        except UsageError as error:
            raise FieldError("policy", error.slug, error.message, hint=error.hint) from None

    def _known(self, model: str) -> None:
        named = {row.model for row in self.inspector.known}
        named.add(self.inspector.params.first_model)
        if model in named or is_known(model):
            return
        like = near(model, (name for name in named if name))
        hint = f"near: {', '.join(like)}; " if like else ""
        raise FieldError(
            "model", "unknown-model", f"no model called {_quoted(model)} is known",
            hint=f"{hint}for another model suppose its encoding and its window",
        )  # fmt: skip


class Recount:
    """Counts of a trace's contents under another encoding than the inspector's."""

    def __init__(self, inspector: Inspector, params: Params) -> None:
        self._contents = inspector.trace.contents
        self._room = params.counter()
        self._counted: dict[str, tuple[int, bool]] = {}

    def count(self, content: Content) -> tuple[int, bool]:
        """Tokens of a content, and whether that is exact for the encoding."""
        counted = self._counted.get(content.digest)
        if counted is None:
            counted = self._counted[content.digest] = self._room.count(self._contents.text(content))
        return counted

    def trim(self, text: str, tokens: int, side: str) -> str:
        """A text cut exactly at a token bound of this encoding."""
        return self._room.trim(text, tokens, side)

    def close(self) -> None:
        """Write new counts to disk."""
        self._room.close()


class Comparison:
    """One what-if.  `pairs` may be taken once; the totals are of the pairs taken so far."""

    def __init__(
        self, inspector: Inspector, recorded: Rules, simulated: Rules | None, supposed: Supposed
    ) -> None:
        self.supposed = supposed
        self._inspector = inspector
        self._recorded = Engine(recorded, ignore)
        self._simulated = None if simulated is None else Engine(simulated, ignore)
        self._sums = (Tally(), Tally())
        self.held = 0
        """Steps whose cap a recorded limit on input decides, although another window is supposed."""
        self.appended = 0
        """Steps whose request carries the whole window as recorded, and only differences under the policy."""

    @property
    def recorded(self) -> Totals:
        """Sums of the recorded side."""
        return self._sums[0].totals()

    @property
    def simulated(self) -> Totals:
        """Sums of the simulated side."""
        return self._sums[1].totals()

    def pairs(
        self, check: Callable[[], None] | None = None, progress: Progress | None = None
    ) -> Iterator[Pair]:
        """Every step of the trace, in the order of the ordinals, as soon as it has ended.

        `check` is called every few events and may raise to stop.
        """
        trace, other = self._inspector.trace, self._simulated
        size = max(1, trace.source.size)
        for batch in trace.batches():
            if progress is not None:
                progress(batch[0].offset / size)
            for n, event in enumerate(batch):
                if check is not None and n % _EVENTS == 0:
                    check()
                ours = self._recorded.feed(event)
                theirs = None if other is None else other.feed(event)
                if ours:
                    yield from self._paired(ours, theirs)
        yield from self._paired(self._recorded.end(), None if other is None else other.end())

    def _paired(self, ours: Results, theirs: Results | None) -> Iterator[Pair]:
        """The steps that both engines have finished with one event."""
        steps = (step for step in ours if isinstance(step, Step))
        if theirs is None:
            # The frames are the same, and the cap follows from the limits.
            for step in steps:
                limits = self.supposed.limits.over(recorded_limits(step))
                yield self._pair(step, step, side(step, limits))
            return
        for step, other in zip(steps, (s for s in theirs if isinstance(s, Step)), strict=True):
            yield self._pair(step, other, side(other))

    def _pair(self, step: Step, other: Step, simulated: Side) -> Pair:
        supposed = self.supposed
        self.appended += step.mode == "window" and other.mode == "append"
        limits, held = supposed.limits, recorded_limits(step).max_input
        if limits.window is not None and limits.max_input is None and simulated.cap == held is not None:
            self.held += 1
        ordinal = self._sums[0].steps
        reported = step.usage.reported_input if step.usage is not None and supposed.same_frames else None
        pair = Pair(ordinal, step.session, step.thread, step.turn, step.step, side(step), simulated, reported)
        self._sums[0].add(pair, pair.recorded, step)
        self._sums[1].add(pair, pair.simulated, other)
        return pair


Results = Iterable[Step | Turn]


def recorded_limits(step: Step) -> Limits:
    """The limits that a step's budget records, out of its stage."""
    facts = step.stages["budget"].facts
    return Limits(facts.get("max_tokens"), facts.get("reserved_tokens"), facts.get("max_input"))


def side(step: Step, limits: Limits | None = None) -> Side:
    """What the comparison keeps of a step; with `limits`, its verdict under those."""
    window = step.window
    cap, free, over = window.cap, window.free, window.over
    if limits is not None:
        cap = limits.cap
        free = None if cap is None else max(0, cap - window.used)
        over = None if cap is None else max(0, window.used - cap)
    fitted = step.stages["budget"].facts.get("simulated")
    return Side(
        used=window.used,
        cap=cap,
        free=free,
        over=over,
        uncounted=window.uncounted,
        omitted=step.counts.omitted if fitted is None else fitted["dropped"],
        truncated=sum("truncated" in change.flags for change in step.changes)
        if fitted is None
        else fitted["cut"],
        compactions=len(step.told.compactions),
        prefix=step.cache.possible_prefix,
    )


class Tally:
    """Sums over the steps of one side."""

    def __init__(self) -> None:
        self.steps = 0
        self._over = self._unknown = self._omitted = self._truncated = self._compactions = self._prefix = 0
        self._first: Pair | None = None
        self._worst: tuple[int, Pair | None] = (0, None)
        self._peak: tuple[int, Pair | None] = (-1, None)
        self._billed_over = 0
        self._methods: dict[str, int] = {}

    def add(self, pair: Pair, side: Side, step: Step) -> None:
        """Take in one step."""
        self.steps += 1
        if side.over is None:
            self._unknown += 1
        elif side.over:
            self._over += 1
            self._first = self._first or pair
            if side.over > self._worst[0]:
                self._worst = (side.over, pair)
        if side is pair.simulated:
            self._billed_over += pair.billed_over
        if side.used > self._peak[0]:
            self._peak = (side.used, pair)
        self._omitted += side.omitted
        self._truncated += side.truncated
        self._compactions += side.compactions
        self._prefix += side.prefix or 0
        for method, tokens in step.window.by_method.items():
            self._methods[method] = self._methods.get(method, 0) + tokens

    def totals(self) -> Totals:
        """The sums so far."""
        return Totals(
            steps=self.steps,
            over=self._over,
            unknown=self._unknown,
            billed_over=self._billed_over,
            first_over=self._first,
            worst=self._worst[1],
            peak=self._peak[1],
            omitted=self._omitted,
            truncated=self._truncated,
            compactions=self._compactions,
            prefix=self._prefix,
            by_method=dict(self._methods),
        )


def _notes(base: Params, params: Params, supposition: Supposition, known: Known | None) -> Iterator[str]:
    """What the numbers are, and what they are not."""
    limits, policy = params.limits.given, params.policy
    fitting = params.fitting
    if not supposition.given:
        yield "Nothing is supposed: both sides are the recorded one."
    if policy != base.policy:
        if policy == RECORDED:
            yield "Frames as recorded, and not as the trace's own policy sends them."
        else:
            what = "What fits as policy {} leaves it" if fitting else "Contexts as policy {} sends them"
            yield f"{what.format(policy)}; all else as recorded, the answers of the model too."
        if limits and not fitting:
            yield f"Policy {policy} looks at no limit: nothing is left out to fit."
    elif limits and not fitting:
        frames = "Frames as recorded" if policy == RECORDED else f"Frames of policy {policy}"
        yield f"{frames}, only the limits differ: what would be dropped is not simulated."
    if supposition.model is not None and supposition.window is None:
        yield from _window_note(supposition.model, known)
    if supposition.reserve is not None and supposition.window is None:
        yield "The reserve counts only where the trace records a window."
    if params.encoding != base.encoding or params.model != base.model:
        if params.assumed:
            yield params.assumed
        else:
            yield f"Counted with {params.encoding}; the recorded side with {base.encoding}."


def _window_note(model: str, known: Known | None) -> Iterator[str]:
    """Where the limits of a supposed model come from."""
    if known is None:
        return
    if known.window is None and known.max_input is None:
        yield f"The window of {_quoted(model)} is not known here: limits as recorded. {known.note}"
        return
    told = [f"window {known.window:,}"] if known.window is not None else []
    told += [f"max input {known.max_input:,}"] if known.max_input is not None else []
    yield f"{_quoted(model)}: {', '.join(told)}. {known.note}"


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:79] + "…")

"""Compare two replays of one trace in one pass, step by step and turn by turn.

For each side, it has the compared values of a step, the cost of its context, and sums over steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from ctxctl.analysis.request_cost import StepCost, cost_of
from ctxctl.engine.replay.cursor import ignore_problem
from ctxctl.engine.replay.edits import Edits
from ctxctl.engine.replay.rules import ReplayRules
from ctxctl.engine.replay.run import Engine
from ctxctl.model.money import ZERO, Tokens, priced
from ctxctl.model.results import Placement, Step, Summary, Turn
from ctxctl.model.sizes import only_recorded
from ctxctl.model.turnpairs import TurnPair, turn_begun
from ctxctl.model.vocab import UNRECORDED, UsedMethod
from ctxctl.model.whatif import Limits, Pair, Side, Totals
from ctxctl.policies.registry import Strategy
from ctxctl.session.facade import Inspector, Progress
from ctxctl.session.params import Params
from ctxctl.tokens.catalogue.rates import RateBook

_EVENTS_PER_CHECK: Final = 128
"""Number of events between two checks for cancellation."""

Results = Iterable[Step | Turn]


def ratio(ours: Sequence[Placement], theirs: Sequence[Placement]) -> float:
    """Return the ratio of tokens, theirs to ours, of texts in both frames; 1 without common texts."""
    sizes = {p.digest: p.tokens for p in ours if p.digest is not None}
    both = [(p.tokens, sizes[p.digest]) for p in theirs if p.digest in sizes]
    before = sum(tokens for _, tokens in both)
    return sum(tokens for tokens, _ in both) / before if before else 1.0


def retokenized(step: Step, other: Step, ours: Sequence[Placement], theirs: Sequence[Placement]) -> Step:
    """Return the simulated step with its size in its own model's tokens, if the unrecorded part is known.

    A bill is in tokens of the billed model.  Under another model, recorded content is counted again, and the
    unrecorded part, whose text is unknown, is assumed to scale with it.

    Args:
        step: The recorded step, in the tokens of the bill.
        other: The simulated one.
        ours: The recorded frame.
        theirs: The simulated one, counted again.
    """
    window = other.window
    if step.window.unrecorded is None:
        return other
    beside = round(step.window.unrecorded * ratio(ours, theirs))
    used, cap = max(0, window.recorded + beside), window.cap
    replaced = msgspec.structs.replace(
        window,
        used=used,
        used_method="expected",
        used_error=None,
        unrecorded=used - window.recorded,
        free=None if cap is None else max(0, cap - used),
        over=None if cap is None else max(0, used - cap),
    )
    segments = {name: tokens for name, tokens in other.segments.items() if name != UNRECORDED}
    if replaced.unrecorded:
        segments = {UNRECORDED: replaced.unrecorded, **segments}
    return msgspec.structs.replace(other, window=replaced, segments=segments)


class Supposed(NamedTuple):
    """A supposition resolved against one trace."""

    params: Params
    policy: Strategy | None
    limits: Limits
    only_limits: bool
    """Whether only limits are supposed, so that frames and counts are the recorded side's."""
    notes: tuple[str, ...]
    """Notes to read before the numbers, one sentence each; they may hold names from the trace."""
    edits: Edits | None = None
    """Edits of the simulated side."""
    model: str | None = None
    """The model supposed on the simulated side."""


class Comparison:
    """One what-if. `pairs` may be read once; the totals are of the pairs read so far."""

    def __init__(
        self,
        inspector: Inspector,
        recorded: ReplayRules,
        simulated: ReplayRules | None,
        supposed: Supposed,
        *,
        book: RateBook | None = None,
        wanted: Callable[[Step | Turn], bool] | None = None,
        settle: bool = False,
    ) -> None:
        self.supposed = supposed
        self._inspector = inspector
        self._costs = None if book is None else ContextCosts(book, supposed.model)
        self._wanted = wanted
        self._alike: set[tuple[str | None, str]] = set()
        """Threads whose last step sent the same on both sides."""
        self._recorded = Engine(recorded, inspector.reporting().add if settle else ignore_problem)
        self._simulated = None if simulated is None else Engine(simulated, ignore_problem)
        self._sums = (SideTally(), SideTally())
        self._ordinal = 0
        self.held = 0
        """Number of steps whose cap is a recorded limit on input, although another window is supposed."""
        self.appended = 0
        """Number of steps that send the whole window as recorded, but only differences under the policy."""
        self.first_differing: Pair | None = None
        """The first step that sends something else."""

    @property
    def recorded(self) -> Totals:
        """Totals of the recorded side."""
        return self._sums[0].totals()

    @property
    def simulated(self) -> Totals:
        """Totals of the simulated side."""
        return self._sums[1].totals()

    @property
    def prices_from(self) -> dict[str, int]:
        """Number of steps by source of prices; none if no prices were requested."""
        return {} if self._costs is None else self._costs.sources

    def pairs(
        self, check: Callable[[], None] | None = None, progress: Progress | None = None
    ) -> Iterator[Pair]:
        """Yield every step of the trace by ordinal, as soon as it has ended.

        `check` is called every few events and may raise to cancel.
        """
        return (one for one in self._run(check, progress) if isinstance(one, Pair))

    def turns(self, progress: Progress | None = None) -> Iterator[TurnPair]:
        """Yield every turn of the trace as soon as it has ended. Only open turns are held."""
        still: dict[tuple[str | None, str], TurnPair] = {}
        for one in self._run(None, progress):
            key = (one.session, one.thread)
            if isinstance(one, Pair):
                still[key] = (still.get(key) or turn_begun(one, None)).then(one)
            else:
                yield replace(still.pop(key), title=one.title)

    def summary(self) -> Summary:
        """Return the totals of the recorded replay so far."""
        contents = len(self._inspector.trace.contents)
        problems = self._inspector.problem_count
        return self._recorded.totals.summary(problems=problems, unique_contents=contents)

    def _run(self, check: Callable[[], None] | None, progress: Progress | None) -> Iterator[Pair | Turn]:
        other = self._simulated
        size = max(1, self._inspector.trace.source.size)
        for batch in self._inspector.counted():
            if progress is not None:
                progress(batch[0].offset / size)
            for n, event in enumerate(batch):
                if check is not None and n % _EVENTS_PER_CHECK == 0:
                    check()
                ours = self._recorded.feed(event)
                theirs = None if other is None else other.feed(event)
                if ours:
                    yield from self._paired(ours, theirs)
        yield from self._paired(self._recorded.end(), None if other is None else other.end())

    def _paired(self, ours: Results, theirs: Results | None) -> Iterator[Pair | Turn]:
        """Yield what both engines have finished with one event: the same steps and turns."""
        if theirs is None:
            # The frames are equal, and the cap follows from the limits.
            for one in ours:
                if self._passed_over(one):
                    continue
                if isinstance(one, Step):
                    limits = self.supposed.limits.over(limits_of(one))
                    yield self._pair(one, one, whatif_side(one, limits))
                else:
                    yield one
            return
        for one, other in zip(ours, theirs, strict=True):
            if self._passed_over(one):
                continue
            if isinstance(one, Step):
                assert isinstance(other, Step)
                assert self._simulated is not None
                if self.supposed.model is not None and one.model != other.model:
                    other = retokenized(one, other, self._recorded.frame, self._simulated.frame)
                yield self._pair(one, other, whatif_side(other))
            else:
                yield one

    def _passed_over(self, one: Step | Turn) -> bool:
        if self._wanted is None or self._wanted(one):
            return False
        if isinstance(one, Step):
            self._ordinal += 1
            self._alike.discard((one.session, one.thread))
        return True

    def _pair(self, step: Step, other: Step, simulated: Side) -> Pair:
        supposed = self.supposed
        self.appended += step.mode == "window" and other.mode == "append"
        limits, held = supposed.limits, recorded_limits(step).max_input
        if limits.window is not None and limits.max_input is None and simulated.cap == held is not None:
            self.held += 1
        ordinal = self._ordinal
        self._ordinal += 1
        pair = Pair(ordinal, step.session, step.thread, step.turn, step.step, whatif_side(step), simulated)
        if self._costs is not None:
            pair = self._costs.priced(step, other, pair)
        if self.first_differing is None and self._differs(step, other):
            self.first_differing = pair
        self._sums[0].add(pair, pair.recorded, step)
        self._sums[1].add(pair, pair.simulated, other)
        return pair

    def _differs(self, step: Step, other: Step) -> bool:
        """Return whether a step sends something else; checked until the first such step."""
        if step is other or self._simulated is None:
            return False
        if step.ledger != other.ledger or step.window.uncounted != other.window.uncounted:
            return True
        ours, theirs = self._recorded.frame, self._simulated.frame
        if len(ours) != len(theirs):
            return True
        start, end, thread = 0, len(ours), (step.session, step.thread)
        if thread in self._alike:
            # What neither frame changed is the same as in the previous step.
            deltas = self._recorded.delta(), self._simulated.delta()
            start, end = min(d.prefix for d in deltas), end - min(d.suffix for d in deltas)
        self._alike.add(thread)
        return any(
            a.item != b.item or a.digest != b.digest
            for a, b in zip(ours[start:end], theirs[start:end], strict=True)
        )


_LIMITS: Final = ("max_tokens", "reserved_tokens", "max_input")


def recorded_limits(step: Step) -> Limits:
    """Return the limits recorded in a step's budget stage."""
    facts = step.stages["budget"].facts
    return Limits(*(facts.get(name) for name in _LIMITS))


def limits_of(step: Step) -> Limits:
    """Return a step's limits: those recorded in its budget, else those of its window, which the model table
    gives."""
    recorded, window = recorded_limits(step), step.window
    if recorded.cap is not None or window.cap is None:
        return recorded
    rest = None if window.limit is None else max(0, window.limit - (window.reserved or 0))
    return Limits(window.limit, window.reserved, None if window.cap == rest else window.cap)


def whatif_side(step: Step, limits: Limits | None = None) -> Side:
    """Return the compared values of a step; with `limits`, the verdict under those."""
    window, cache = step.window, step.cache
    cap, free, over = window.cap, window.free, window.over
    if limits is not None:
        cap = limits.cap
        free = None if cap is None else max(0, cap - window.used)
        over = None if cap is None else max(0, window.used - cap)
    fitted = step.stages["budget"].facts.get("simulated")
    broke = cache.broken_by is not None
    return Side(
        used=window.used,
        method=window.used_method,
        recorded=window.recorded,
        cap=cap,
        free=free,
        over=over,
        uncounted=window.uncounted,
        omitted=step.counts.omitted if fitted is None else fitted["dropped"],
        truncated=sum("truncated" in change.flags for change in step.changes)
        if fitted is None
        else fitted["cut"],
        compactions=len(step.annotations.compactions)
        if fitted is None
        else _compacted(step, fitted["policy"]),
        prefix=cache.possible_prefix,
        broke=broke,
        lost=max(0, step.ledger.window_before - (cache.possible_prefix or 0)) if broke else 0,
    )


def _compacted(step: Step, policy: str) -> bool:
    """Return whether a fitting policy compacted at a step; it undoes recorded compactions."""
    return any(
        (change.status == "removed" and change.cause == "compacted")
        if not change.item.startswith(f"{policy}:")
        else change.status in ("added", "updated") and change.kind == "thread_summary"
        for change in step.changes
        if change.provenance == "simulated"
    )


class ContextCosts:
    """The costs of both sides' contexts, by what was sent and without answers.

    Args:
        book: The source of rates.
        model: The model supposed on the simulated side; None for each step's own.
    """

    def __init__(self, book: RateBook, model: str | None) -> None:
        self._book = book
        self._model = model
        self.sources: dict[str, int] = {}
        """Number of steps of the recorded side, by source of rates."""

    def priced(self, step: Step, other: Step, pair: Pair) -> Pair:
        """Return the pair with both costs; None if no bill gives the unrecorded part."""
        cost = cost_of(step, self._book)
        known = cost.sent is not None and cost.is_sized and bool(cost.priced.source)
        recorded = cost.sent.context if known and cost.sent is not None else None
        if known:
            self.sources[cost.priced.source] = self.sources.get(cost.priced.source, 0) + 1
        replace = msgspec.structs.replace
        return replace(
            pair,
            recorded=replace(pair.recorded, cost=recorded),
            simulated=replace(pair.simulated, cost=self._simulated(cost, step, other)),
        )

    def _simulated(self, cost: StepCost, step: Step, other: Step) -> Decimal | None:
        if not cost.is_sized or only_recorded(other.window.used_method, other.window.unrecorded):
            return None
        tokens, used = split_context(cost.sent_tokens, step, other), other.window.used
        billed = cost.believed_tokens
        size = used if billed is None or not step.window.used else billed.context * used // step.window.used
        usage = step.usage
        provider = usage.provider if usage is not None and self._model is None else None
        found = self._book.rates(self._model or step.model, provider, step.time, size)
        rates = found.rates
        if self._model is not None:
            # A model without a cache price is billed for plain input.
            rates = rates._replace(
                cache_read=rates.cache_read if rates.cache_read is not None else rates.input,
                cache_write=rates.cache_write if rates.cache_write is not None else rates.input,
                cache_write_1h=rates.cache_write_1h if rates.cache_write_1h is not None else rates.input,
            )
        money = priced(tokens, rates)
        return None if money is None or not found.source else money.context


def split_context(recorded: Tokens, step: Step, other: Step) -> Tokens:
    """Return the simulated context by how it is billed.

    Unrecorded content comes first, so it was read from a cache first, and is again. Of the rest of the
    possible prefix, the same share as recorded is read from the cache, and of what follows, the same share is
    written; without a possible prefix, the shares are of the whole request.
    """
    used, was = other.window.used, step.window.used
    if step.cache.possible_prefix:
        head = min(max(0, step.window.unrecorded or 0), recorded.cached)
        rest = recorded.cached - head
        cached = head + (other.cache.possible_prefix or 0) * rest // step.cache.possible_prefix
    else:
        cached = used * recorded.cached // was if was else 0
    cached = min(cached, used)
    rest = used - cached
    fresh = recorded.context - recorded.cached
    written = rest * recorded.written // fresh if fresh else 0
    hour = rest * recorded.written_1h // fresh if fresh else 0
    return Tokens(rest - written - hour, cached, written, 0, hour)


class SideTally:
    """Sums over the steps of one side."""

    def __init__(self) -> None:
        self.steps = 0
        self._over = self._unknown = 0
        self._first: Pair | None = None
        self._worst: tuple[int, Pair | None] = (0, None)
        self._peak: tuple[int, Pair | None] = (-1, None)
        self._sums = dict.fromkeys(("omitted", "truncated", "compactions", "prefix", "lost"), 0)
        self._sent = self._breaks = self._unpriced = 0
        self._cost = ZERO
        self._methods: dict[str, int] = {}
        self._known: dict[UsedMethod, int] = {}

    def add(self, pair: Pair, side: Side, step: Step) -> None:
        """Add one step."""
        self.steps += 1
        if side.over is None:
            self._unknown += 1
        elif side.over:
            self._over += 1
            self._first = self._first or pair
            if side.over > self._worst[0]:
                self._worst = (side.over, pair)
        if side.used > self._peak[0]:
            self._peak = (side.used, pair)
        for name in self._sums:
            self._sums[name] += getattr(side, name) or 0
        self._sent += side.used
        self._breaks += side.broke
        self._cost += side.cost or ZERO
        self._unpriced += side.cost is None
        self._known[side.method] = self._known.get(side.method, 0) + 1
        for method, tokens in step.window.by_method.items():
            self._methods[method] = self._methods.get(method, 0) + tokens

    def totals(self) -> Totals:
        """Return the sums so far."""
        return Totals(
            steps=self.steps,
            over=self._over,
            unknown=self._unknown,
            first_over=self._first,
            worst=self._worst[1],
            peak=self._peak[1],
            by_method=dict(self._methods),
            known_by=dict(self._known),
            sent=self._sent,
            breaks=self._breaks,
            cost=self._cost,
            unpriced=self._unpriced,
            **self._sums,
        )

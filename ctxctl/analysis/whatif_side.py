"""One step on one side of a what-if, what its context costs, and sums over steps."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from ctxctl.analysis.costs import StepCost, cost_of
from ctxctl.model.money import ZERO, Tokens, priced
from ctxctl.model.results import Step
from ctxctl.model.vocab import UsedMethod
from ctxctl.model.whatif import Limits, Pair, Side, Totals
from ctxctl.tokens.catalogue.rates import RateBook

_LIMITS: Final = ("max_tokens", "reserved_tokens", "max_input")


def recorded_limits(step: Step) -> Limits:
    """The limits that a step's budget records, out of its stage."""
    facts = step.stages["budget"].facts
    return Limits(*(facts.get(name) for name in _LIMITS))


def limits_of(step: Step) -> Limits:
    """The limits that a step was held against: those that its budget records, else those of its window, which
    the model table says."""
    recorded, window = recorded_limits(step), step.window
    if recorded.cap is not None or window.cap is None:
        return recorded
    rest = None if window.limit is None else max(0, window.limit - (window.reserved or 0))
    return Limits(window.limit, window.reserved, None if window.cap == rest else window.cap)


def whatif_side(step: Step, limits: Limits | None = None) -> Side:
    """What the comparison keeps of a step; with `limits`, its verdict under those."""
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
        compactions=len(step.told.compactions) if fitted is None else _compacted(step, fitted["policy"]),
        prefix=cache.possible_prefix,
        broke=broke,
        lost=max(0, step.ledger.window_before - (cache.possible_prefix or 0)) if broke else 0,
    )


def _compacted(step: Step, policy: str) -> bool:
    """Whether a fitting policy compacted at a step: the recorded compactions are undone under it."""
    return any(
        (change.status == "removed" and change.cause == "compacted")
        if not change.item.startswith(f"{policy}:")
        else change.status in ("added", "updated") and change.kind == "thread_summary"
        for change in step.changes
        if change.provenance == "simulated"
    )


class ContextCosts:
    """What the contexts of both sides cost, by what was sent and without the answers.

    Args:
        book: Where rates are from.
        model: The model that is supposed on the simulated side; None: each step's own.
    """

    def __init__(self, book: RateBook, model: str | None) -> None:
        self._book = book
        self._model = model
        self.sources: dict[str, int] = {}
        """Steps of the recorded side by where their rates are from."""

    def priced(self, step: Step, other: Step, pair: Pair) -> Pair:
        """The pair with both costs."""
        cost = cost_of(step, self._book)
        recorded = cost.sent.context if cost.sent is not None and cost.priced.source else None
        if cost.priced.source:
            self.sources[cost.priced.source] = self.sources.get(cost.priced.source, 0) + 1
        replace = msgspec.structs.replace
        return replace(
            pair,
            recorded=replace(pair.recorded, cost=recorded),
            simulated=replace(pair.simulated, cost=self._simulated(cost, step, other)),
        )

    def _simulated(self, cost: StepCost, step: Step, other: Step) -> Decimal | None:
        tokens, used = split_context(cost.sent_tokens, step, other), other.window.used
        billed = cost.believed_tokens
        size = used if billed is None or not step.window.used else billed.context * used // step.window.used
        usage = step.usage
        provider = usage.provider if usage is not None and self._model is None else None
        found = self._book.rates(self._model or step.model, provider, step.time, size)
        rates = found.rates
        if self._model is not None:
            # A model without a price for a cache is billed for plain input.
            rates = rates._replace(
                cache_read=rates.cache_read if rates.cache_read is not None else rates.input,
                cache_write=rates.cache_write if rates.cache_write is not None else rates.input,
                cache_write_1h=rates.cache_write_1h if rates.cache_write_1h is not None else rates.input,
            )
        money = priced(tokens, rates)
        return None if money is None or not found.source else money.context


def split_context(recorded: Tokens, step: Step, other: Step) -> Tokens:
    """The simulated context by how it is billed.

    What is not recorded stands in front, so it is what was read from a cache first, and is again.  Of what a
    cache could have had besides (the possible prefix) as large a share was read from it as recorded, and of
    the rest as large a share written to it; where there was no possible prefix, of the whole request.
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
        """Take in one step."""
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
        """The sums so far."""
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

"""The cost of a session: by step, and by what its context was spent on.

There are three figures. *Billed* is what the provider reported, priced. *Sent* also counts outputs that the
client logged before an answer's end, and requests without a bill at their expected size; a request of unknown
size has no cost. *Counted* is the recorded content alone, at the same rates and with the same cached share.
An item's cost is its part of what was sent, in the order of the provider (unrecorded content, tools, system,
the rest), because the beginning is cached first. In a request of unknown size, it is its recorded tokens at
the input price.

`StatedSums` adds what a runtime, a router or a tracing service states as costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.analysis.spending import NamedFrame
from ctxctl.analysis.spent import Spent, SpentOn
from ctxctl.model.cost_sums import NO_OUTPUT, CostSums, PartialOutputs, StatedSums, count_all
from ctxctl.model.money import CONTEXT, MILLION, ZERO, Money, Rates, Tokens, priced
from ctxctl.model.results import Placement, Step
from ctxctl.model.sizes import only_recorded
from ctxctl.session.facade import Inspector, Progress
from ctxctl.session.priced_bills import answer_of, bill_of, miss_price, totals_by_table, write_rate
from ctxctl.session.walked import walked
from ctxctl.tokens.catalogue.rates import Priced, RateBook

if TYPE_CHECKING:
    from ctxctl.engine.replay.cursor import StepAt
    from ctxctl.engine.replay.frames import FrameDelta


class StepCost(NamedTuple):
    """The cost of one request."""

    step: Step
    billed_tokens: Tokens | None
    """None if no usage was reported."""
    counted_tokens: Tokens
    priced: Priced
    billed: Money | None
    """None without usage, or if a needed rate is unknown."""
    counted: Money | None
    broken: Decimal | None
    """Cost of the step's cache break: tokens common to both requests that were not read from a cache, at the
    difference to the cache price. None without a loss, or if a rate is unknown."""
    saved: Decimal | None
    """Cost at the input rate of content not sent because the model had it; None if none or unknown."""
    assumed: tuple[str, ...] = ()
    """Assumptions about the bill that the capture does not confirm."""
    believed_tokens: Tokens | None = None
    """`billed_tokens`, with a partial output as counted."""
    believed: Money | None = None
    missed: Decimal | None = None
    """Cost of the step's cache miss (`Cache.miss`): its tokens at the difference between their billed price
    and a read. None without a miss, or if a rate is unknown."""
    sent_tokens: Tokens = Tokens()
    """`believed_tokens`; without a bill, the expected size as plain input; if not `is_sized`, the recorded
    size."""
    sent: Money | None = None
    units: Mapping[str, int] = {}
    """Calls of the provider's own tools that were billed, by tool."""
    not_priced: Mapping[str, int] = {}
    """Billed units without a known rate, by kind: calls, samplings, tokens. If there are any, all sums are
    lower bounds."""
    passes: tuple[tuple[Tokens, Rates], ...] = ()
    """See `Bill.passes`."""
    totals: tuple[Decimal | None, ...] = ()
    """The table's price for each total stated with the request."""

    @property
    def is_sized(self) -> bool:
        """Whether the request's size follows from a bill: its own, or an earlier one."""
        window = self.step.window
        return self.billed_tokens is not None or not only_recorded(window.used_method, window.unrecorded)


class Costs(CostSums):
    """Totals over the steps of a session; call `add` for each.

    Args:
        book: The source of rates.
        by: Returns the name that a placement's cost is assigned to; None for no breakdown by items.
    """

    def __init__(self, book: RateBook, by: Callable[[Placement], str] | None = None) -> None:
        super().__init__()
        self._book = book
        self._by = by
        self._frames: dict[tuple[str | None, str], NamedFrame] = {}
        self._spent = Spent()
        self._uncounted: set[str] = set()
        """Names with an item of unknown size."""

    def add(self, step: Step, placements: list[Placement], delta: FrameDelta | None = None) -> StepCost:
        """Add a step with its frame; `delta` is the difference from the thread's previous step."""
        cost = cost_of(step, self._book)
        add_cost(self, cost)
        if self._by is not None:
            key = (step.session, step.thread)
            frame = self._frames.get(key)
            if frame is None:
                frame = self._frames[key] = NamedFrame(self._by, self._uncounted, self._spent)
            frame.move_to(placements, delta)
            beside = max(0, cost.step.window.unrecorded or 0)
            *earlier, (tokens, rates) = cost.passes or [(cost.sent_tokens, cost.priced.rates)]
            frame.spend(tokens, beside, rates, unpriced=cost.sent is None)
            for tokens, rates in earlier:
                self._spent.earlier(tokens, rates, unpriced=cost.sent is None)
        return cost

    @property
    def as_of(self) -> str:
        """YYYY-MM-DD: the day whose prices apply to requests without a time."""
        return self._book.as_of

    def spent(self) -> list[SpentOn]:
        """Return the costs by name, the highest first; among equals by tokens, then by name."""
        for frame in self._frames.values():
            frame.settle()
        return self._spent.found(self._uncounted)


def add_cost(sums: CostSums, cost: StepCost, totals: StatedSums | None = None) -> None:
    """Add the cost of one request. Its stated totals go to `totals`, by default to the sums."""
    step = cost.step
    _add_partial(sums.partial_outputs, cost)
    _add_stated(sums.stated, cost)
    whole = cost.billed is not None and not cost.not_priced and NO_OUTPUT not in cost.assumed
    (sums.stated if totals is None else totals).take(
        step, cost.billed.total if cost.billed is not None and whole else None, cost.totals
    )
    sums.steps += 1
    sums.counted_tokens = sums.counted_tokens.plus(cost.counted_tokens)
    if cost.billed_tokens is None:
        sums.unreported += 1
    else:
        sums.billed_tokens = sums.billed_tokens.plus(cost.billed_tokens)
    count_all(sums.units, cost.units)
    count_all(sums.not_priced, cost.not_priced)
    count_all(sums.assumed, dict.fromkeys(cost.assumed, 1))
    if cost.counted is None or cost.sent is None:
        why = cost.priced.note if not cost.priced.source else "a rate that it needs is not known"
        count_all(sums.unpriced, {f"{step.model or 'no model is named'}: {why}": 1})
    if cost.counted is not None:
        sums.counted = sums.counted.plus(cost.counted)
    if cost.counted is not None and cost.sent is not None:
        note = f"{step.model}: {cost.priced.note}"
        if cost.priced.source and note not in sums.notes:
            sums.notes.append(note)
        count_all(sums.sources, {cost.priced.source: 1})
    if cost.billed is not None:
        sums.billed = sums.billed.plus(cost.billed)
    if cost.believed is not None and cost.counted is not None:
        billed, counted = sums.compared
        sums.compared = (billed + cost.believed.total, counted + cost.counted.total)
    if not cost.is_sized:
        sums.unsized += 1
        sums.unsized_tokens += cost.sent_tokens.context
    else:
        sums.sent_tokens = sums.sent_tokens.plus(cost.sent_tokens)
    if cost.sent is not None and cost.is_sized:
        sums.sent = sums.sent.plus(cost.sent)
        sums.unbilled += cost.sent.total if cost.billed_tokens is None else ZERO
    if cost.broken is not None:
        sums.broken += cost.broken
        sums.breaks += 1
    if step.cache.miss is not None:
        sums.misses.add(step.cache.miss.cause, step.cache.miss.tokens, cost.missed)
    sums.saved += cost.saved or ZERO


def _add_partial(sums: PartialOutputs, cost: StepCost) -> None:
    if cost.billed_tokens is None or cost.believed_tokens is None:
        return
    sums.tokens = sums.tokens.plus(cost.believed_tokens)
    if cost.believed is not None:
        sums.money = sums.money.plus(cost.believed)
    if cost.step.has_partial_output:
        sums.requests += 1
        sums.reported += cost.billed_tokens.answer
        sums.counted += cost.believed_tokens.answer


def _add_stated(sums: StatedSums, cost: StepCost) -> None:
    step = cost.step
    stated = stated_of(step)
    if stated is None:
        return
    sums.requests += 1
    sums.usd += stated
    if cost.billed is None:
        sums.unpriced += 1
    else:
        sums.table += cost.billed.total


def cost_of(step: Step, book: RateBook) -> StepCost:
    """Return the cost of one request."""
    bill = bill_of(step, book)
    believed, rates = bill.believed_tokens, bill.priced.rates
    answer = answer_of(step.usage) if believed is None else believed.answer
    counted_tokens = _like(believed, step.window.recorded)
    sent_tokens = Tokens(step.window.used, output=answer) if believed is None else believed
    return StepCost(
        step,
        bill.tokens,
        counted_tokens,
        bill.priced,
        bill.money,
        priced(counted_tokens, rates),
        _break(step, rates),
        _saved(step, rates),
        bill.assumed,
        believed,
        bill.believed,
        miss_price(step.cache.miss, bill.tokens, rates),
        sent_tokens,
        priced(sent_tokens, rates) if believed is None else bill.believed,
        bill.units,
        bill.not_priced,
        bill.passes,
        totals_by_table(step, book),
    )


def _like(billed: Tokens | None, used: int) -> Tokens:
    """Return the counted tokens, with the bill's cached shares and its answer."""
    if billed is None:
        return Tokens(used)
    whole = billed.context
    if not whole:
        return billed._replace(input=used)
    share = {name: used * getattr(billed, name) // whole for name in CONTEXT if name != "input"}
    return billed._replace(**share, input=used - sum(share.values()))


def _break(step: Step, rates: Rates) -> Decimal | None:
    """Return what a cache break cost: the tokens that it kept from being read, at the difference in price.

    Content that left with the break (what a compaction removed) is not sent and costs nothing. The bill
    decides: of its uncached tokens, the new ones count first, and only the rest was lost.
    """
    lost, dearer = broken_tokens(step), write_rate(step.cache, rates)
    if lost is None or dearer is None or rates.cache_read is None:
        return None
    return (dearer - rates.cache_read) * lost / MILLION


def broken_tokens(step: Step) -> int | None:
    """Return the tokens after a prefix break that a cache could have served and did not; None without any, or
    without cache figures."""
    cache, ledger = step.cache, step.ledger
    if cache.broken_by is None or cache.possible_prefix is None or cache.reported_cached is None:
        return None
    lost = ledger.window_before - ledger.freed - cache.possible_prefix
    billed = None if step.usage is None or "simulated" in step.flags else step.usage.reported_input
    if billed is not None:
        lost = min(lost, billed - cache.reported_cached - ledger.new)
    return lost if lost > 0 else None


def _saved(step: Step, rates: Rates) -> Decimal | None:
    if not step.ledger.saved or rates.input is None:
        return None
    return rates.input * step.ledger.saved / MILLION


def step_costs(
    inspector: Inspector,
    costs: Costs,
    progress: Progress | None = None,
    only: Callable[[Step], bool] | None = None,
    see: Callable[[StepAt], None] = lambda at: None,
) -> Iterable[StepCost]:
    """Yield each step of a trace with its cost, in order; afterwards `costs` has the sums.

    `only` selects the steps that are counted. `see` is called with each step before its cost is computed.
    """
    for one in walked(inspector, progress):
        see(one.at)
        if only is None:
            yield costs.add(one.at.step, one.at.placements, one.delta)
        elif only(one.at.step):  # the previous step may be left out, so the difference does not apply
            yield costs.add(one.at.step, one.at.placements)


def stated_of(step: Step) -> Decimal | None:
    """Return the stated cost of a request; None without one."""
    said = step.usage.terms.stated_usd if step.usage is not None else None
    return None if said is None else Decimal(said)

"""What one request cost, from its step alone, and adding that to sums.

It loads nothing of the engine: a step may come from a replay, or from a capture's bills alone.  Figures are
explained in `analysis.costs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from ctxctl.model.cost_sums import NO_OUTPUT, CostSums, PartialOutputs, StatedSums, count_all
from ctxctl.model.money import CONTEXT, MILLION, ZERO, Money, Rates, Tokens, priced
from ctxctl.model.results import Step
from ctxctl.model.sizes import only_recorded
from ctxctl.session.priced_bills import answer_of, bill_of, miss_price, totals_by_table, write_rate
from ctxctl.tokens.catalogue.rates import Priced, RateBook


class StepCost(NamedTuple):
    """One request."""

    step: Step
    billed_tokens: Tokens | None
    """None: no usage is reported."""
    counted_tokens: Tokens
    priced: Priced
    billed: Money | None
    """None: no usage, or a rate that it needs is not known."""
    counted: Money | None
    broken: Decimal | None
    """What the step's cache break cost: tokens of both requests that could have been read from a cache and
    were not, at the difference to what they were billed as.  None: nothing was lost, or a rate is unknown."""
    saved: Decimal | None
    """What was not sent because the model had it already, at the rate of input; None: nothing, or unknown."""
    assumed: tuple[str, ...] = ()
    """What the capture does not say of the bill, and how it was priced all the same."""
    believed_tokens: Tokens | None = None
    """`billed_tokens`, with a partial output as counted."""
    believed: Money | None = None
    missed: Decimal | None = None
    """What the step's cache miss cost (`Cache.miss`): its tokens at the difference between what they were
    billed as and a read.  None: no miss, or a rate is unknown."""
    sent_tokens: Tokens = Tokens()
    """`believed_tokens`; of a request that nobody billed, its expected size as plain input; where not
    `is_sized`, what is recorded of it."""
    sent: Money | None = None
    units: Mapping[str, int] = {}
    """Calls of the provider's own tools that were billed, by tool."""
    not_priced: Mapping[str, int] = {}
    """What was billed and no rate is known for, by what it is: calls, samplings, tokens.  Where there is
    something, all sums are lower bounds."""
    passes: tuple[tuple[Tokens, Rates], ...] = ()
    """As `Bill.passes`."""
    totals: tuple[Decimal | None, ...] = ()
    """The table's price for each total that is stated with the request."""

    @property
    def is_sized(self) -> bool:
        """Whether a bill tells how large the request was: its own, or one that it can be expected from."""
        window = self.step.window
        return self.billed_tokens is not None or not only_recorded(window.used_method, window.unrecorded)


def add_cost(sums: CostSums, cost: StepCost, totals: StatedSums | None = None) -> None:
    """Add what one request cost.  Totals that are stated with it go to `totals`, by default to the sums."""
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
    """What one request cost."""
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
    """Our count with the same share from the cache and into it as the bill has, and the bill's answer."""
    if billed is None:
        return Tokens(used)
    whole = billed.context
    if not whole:
        return billed._replace(input=used)
    share = {name: used * getattr(billed, name) // whole for name in CONTEXT if name != "input"}
    return billed._replace(**share, input=used - sum(share.values()))


def _break(step: Step, rates: Rates) -> Decimal | None:
    """What would have been read from a cache had nothing broken it, at what it was billed more.

    What left the window with the break (all that a compaction took out) is not sent and costs nothing.  The
    bill has the last word: what it has beside the cache is the new tokens first, and only the rest was lost.
    """
    lost, dearer = broken_tokens(step), write_rate(step.cache, rates)
    if lost is None or dearer is None or rates.cache_read is None:
        return None
    return (dearer - rates.cache_read) * lost / MILLION


def broken_tokens(step: Step) -> int | None:
    """Tokens behind a break of the prefix that could have been read from a cache and were not; None: none, or
    the bill has no cache figures.
    """
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


def stated_of(step: Step) -> Decimal | None:
    """What a request is said to have cost; None where nothing says it."""
    said = step.usage.terms.stated_usd if step.usage is not None else None
    return None if said is None else Decimal(said)

"""What a session cost: by step, and by what its context was spent on.

Three figures stand apart.  *Billed* is what the provider reported, priced.  *Counted* is our count of the
same context at the same rates and with the same share read from and written to a cache.  What is spent on an
item is its part of the counted one, in the order in which providers place it: what comes first was cached
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from ctxctl.engine.prefix import provider_order
from ctxctl.inspector.doubted import DoubtedSums, believed_tokens
from ctxctl.inspector.facade import Inspector, Progress
from ctxctl.model.money import MILLION, ZERO, Money, Rates, Tokens, priced
from ctxctl.model.results import Placement, Step
from ctxctl.model.vocab import rank_of
from ctxctl.tokens.catalogue.rates import Priced, RateBook

NO_CACHE: Final = "no cache figures are recorded: all of it priced as plain input"
NO_OUTPUT: Final = "no output is recorded: none priced"
NO_TIME: Final = "no time is recorded: priced as of today"
CONTRADICTED: Final = "the cache figures exceed the input: all of it priced as plain input"


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
    reckoned_tokens: Tokens | None = None
    """The recorded content in the model's tokens, as a calibration has it; None without one."""
    reckoned: Money | None = None
    believed_tokens: Tokens | None = None
    """The bill with the parts that cannot be true as counted (`inspector.doubted`); else `billed_tokens`."""
    believed: Money | None = None


class Spent(NamedTuple):
    """What went on one thing over a session."""

    name: str
    steps: int
    tokens: int
    """Over all requests."""
    money: Decimal
    unpriced: int
    """Tokens of requests whose price is not known."""


class Costs:
    """Sums over the steps of a session; feed it with `add`.

    Args:
        book: Where rates are from.
        by: What an expense is put down to: a name for each placement; None: items are not looked at.
    """

    def __init__(self, book: RateBook, by: Callable[[Placement], str] | None = None) -> None:
        self._book = book
        self._by = by
        self.steps = 0
        self.billed, self.counted = Money(), Money()
        self.billed_tokens, self.counted_tokens = Tokens(), Tokens()
        self.reckoned, self.reckoned_tokens, self.reckoned_steps = Money(), Tokens(), 0
        """Of the steps that a calibration says something of."""
        self.reckoned_like = ZERO
        """Counted, over the same steps."""
        self.unreported = 0
        """Steps without usage."""
        self.unpriced: dict[str, int] = {}
        """Steps without a price, by why."""
        self.compared = (ZERO, ZERO)
        """Billed, doubted parts as counted, and counted, over the steps that have both."""
        self.doubted = DoubtedSums()
        self.broken = self.saved = ZERO
        self.breaks = 0
        self.sources: dict[str, int] = {}
        """Steps by where their rates are from."""
        self.assumed: dict[str, int] = {}
        """Steps by what was assumed of their bill."""
        self.notes: dict[str, None] = {}
        """Whose prices they are."""
        self._spent: dict[str, list[object]] = {}

    def add(self, step: Step, placements: Sequence[Placement]) -> StepCost:
        """Take in one step with its frame."""
        cost = cost_of(step, self._book)
        self.doubted.add(cost)
        self.steps += 1
        self.counted_tokens = _plus(self.counted_tokens, cost.counted_tokens)
        if cost.billed_tokens is None:
            self.unreported += 1
        else:
            self.billed_tokens = _plus(self.billed_tokens, cost.billed_tokens)
        for what in cost.assumed:
            self.assumed[what] = self.assumed.get(what, 0) + 1
        if cost.counted is None:
            why = cost.priced.note if not cost.priced.source else "a rate that it needs is not known"
            name = f"{step.model or 'no model is named'}: {why}"
            self.unpriced[name] = self.unpriced.get(name, 0) + 1
        else:
            self.counted = self.counted.plus(cost.counted)
            self.notes[f"{step.model}: {cost.priced.note}"] = None
            self.sources[cost.priced.source] = self.sources.get(cost.priced.source, 0) + 1
        if cost.billed is not None:
            self.billed = self.billed.plus(cost.billed)
        if cost.believed is not None and cost.counted is not None:
            self.compared = (self.compared[0] + cost.believed.total, self.compared[1] + cost.counted.total)
        if cost.reckoned_tokens is not None:
            self.reckoned_steps += 1
            self.reckoned_tokens = _plus(self.reckoned_tokens, cost.reckoned_tokens)
        if cost.reckoned is not None and cost.counted is not None:
            self.reckoned = self.reckoned.plus(cost.reckoned)
            self.reckoned_like += cost.counted.total
        if cost.broken is not None:
            self.broken += cost.broken
            self.breaks += 1
        self.saved += cost.saved or ZERO
        if self._by is not None:
            self._spend(cost, placements)
        return cost

    def spent(self) -> list[Spent]:
        """By name, the dearest first; among equals by tokens, then by name."""
        found = [Spent(name, *row) for name, row in self._spent.items()]  # type: ignore[arg-type]
        return sorted(found, key=lambda s: (-s.money, -s.tokens, s.name))

    def _spend(self, cost: StepCost, placements: Sequence[Placement]) -> None:
        assert self._by is not None
        rates, rest = cost.priced.rates, rank_of("history")
        ordered = provider_order(list(placements), sum(p.rank < rest for p in placements))
        for name, parts in _parts(self._by, ordered, cost.counted_tokens).items():
            cached, written, plain, count = parts
            row = self._spent.setdefault(name, [0, 0, ZERO, 0])
            row[0] += 1  # type: ignore[operator]
            row[1] += count  # type: ignore[operator]
            if cost.counted is None:
                row[3] += count  # type: ignore[operator]
                continue
            money = (
                (rates.cache_read or ZERO) * cached
                + (rates.cache_write or ZERO) * written
                + (rates.input or ZERO) * plain
            )
            row[2] += money / MILLION  # type: ignore[operator]


def cost_of(step: Step, book: RateBook) -> StepCost:
    """What one request cost."""
    usage, cache = step.usage, step.cache
    billed_tokens = None
    cached, written, output = cache.reported_cached or 0, cache.reported_cache_write or 0, 0
    assumed: list[str] = []
    if usage is not None and usage.reported_input is not None:
        plain = usage.reported_input - cached - written
        output = usage.reported_output or 0
        if plain < 0:  # figures that contradict one another: the whole is what is sure
            cached = written = 0
            plain = usage.reported_input
            assumed.append(CONTRADICTED)
        elif cache.reported_cached is None:
            assumed.append(NO_CACHE)
        if usage.reported_output is None:
            assumed.append(NO_OUTPUT)
        billed_tokens = Tokens(plain, cached, written, output)
    if step.time is None:
        assumed.append(NO_TIME)
    believed = believed_tokens(step, billed_tokens)
    output = output if believed is None else believed.output
    size = step.window.used if believed is None else sum(believed[:3])
    found = book.rates(step.model, usage.provider if usage is not None else None, step.time, size)
    counted_tokens = _like(believed, step.window.used, output)
    content = reckoned_content(step)
    reckoned = None if content is None else _like(believed, content, output)
    return StepCost(
        step,
        billed_tokens,
        counted_tokens,
        found,
        None if billed_tokens is None else priced(billed_tokens, found.rates),
        priced(counted_tokens, found.rates),
        _break(step, found.rates),
        _saved(step, found.rates),
        tuple(assumed),
        reckoned,
        None if reckoned is None else priced(reckoned, found.rates),
        believed,
        None if believed is None else priced(believed, found.rates),
    )


def reckoned_content(step: Step) -> int | None:
    """Tokens that the model makes of what is recorded, where a calibration for it is in force."""
    view = step.stages.get("evidence")
    told = view.facts.get("calibration") if view is not None else None
    if not isinstance(told, dict) or "digest" not in told:
        return None
    content = told["content"]
    return max(0, content) if isinstance(content, int) else None


def _like(billed: Tokens | None, used: int, output: int) -> Tokens:
    """Our count with the same share from the cache and into it as the bill has."""
    if billed is None or not sum(billed[:3]):
        return Tokens(used, 0, 0, output)
    whole = sum(billed[:3])
    cached = used * billed.cached // whole
    written = used * billed.written // whole
    return Tokens(used - cached - written, cached, written, output)


def _break(step: Step, rates: Rates) -> Decimal | None:
    """What would have been read from a cache had nothing broken it, at what it was billed more.

    What left the window with the break (all that a compaction took out) is not sent and costs nothing.  The
    bill has the last word: what it has beside the cache is the new tokens first, and only the rest was lost.
    """
    cache, ledger = step.cache, step.ledger
    if cache.broken_by is None or cache.possible_prefix is None or cache.reported_cached is None:
        return None
    lost = ledger.window_before - ledger.freed - cache.possible_prefix
    billed = None if step.usage is None or "simulated" in step.flags else step.usage.reported_input
    if billed is not None:
        lost = min(lost, billed - cache.reported_cached - ledger.new)
    dearer = rates.cache_write if cache.reported_cache_write else rates.input
    if lost <= 0 or dearer is None or rates.cache_read is None:
        return None
    return (dearer - rates.cache_read) * lost / MILLION


def _saved(step: Step, rates: Rates) -> Decimal | None:
    if not step.ledger.saved or rates.input is None:
        return None
    return rates.input * step.ledger.saved / MILLION


def _parts(by: Callable[[Placement], str], ordered: list[Placement], tokens: Tokens) -> dict[str, list[int]]:
    """By name, tokens read from the cache, written to it and plain, and all of them.  Whole numbers, for a
    long session has as many placements as it has steps times items.

    What comes first in the provider's order was read from the cache, the next ones were written to it, the
    rest is plain input.
    """
    left = [tokens.cached, tokens.written, tokens.input]
    at = 0
    found: dict[str, list[int]] = {}
    for placement in ordered:
        name, weight = by(placement), placement.tokens
        row = found.get(name)
        if row is None:
            row = found[name] = [0, 0, 0, 0]
        row[3] += weight
        while weight and at < 3:
            taken = weight if weight < left[at] else left[at]
            row[at] += taken
            left[at] -= taken
            weight -= taken
            if not left[at]:
                at += 1
    return found


def _plus(a: Tokens, b: Tokens) -> Tokens:
    return Tokens(*(x + y for x, y in zip(a, b, strict=True)))


def walk(inspector: Inspector, costs: Costs, progress: Progress | None = None) -> Iterable[StepCost]:
    """Every step of a trace with its cost, in their order; `costs` has the sums when it is over."""
    for at, _ in inspector.walk(progress):
        yield costs.add(at.step, at.placements)

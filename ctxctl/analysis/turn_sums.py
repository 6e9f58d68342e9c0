"""The turns of a replay, one row each: what was sent, entered and left, the cost, and what happened."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from ctxctl.analysis.compacting import Compacting, compacting
from ctxctl.analysis.costs import Costs
from ctxctl.analysis.request_cost import StepCost
from ctxctl.engine.sizes.prefix import breaks_cache
from ctxctl.model.cost_sums import NO_OUTPUT, Paid, StatedTotal
from ctxctl.model.money import ZERO
from ctxctl.model.results import Cut, Step, Turn, Window
from ctxctl.tokens.catalogue.rates import RateBook

TOLD_APART: Final = frozenset({"compacted", "simulated"})
"""Flags of a step that its row shows differently."""

ThreadName = tuple[str | None, str]
"""A thread's session and its own name."""


@dataclass
class TurnSum:
    """One turn."""

    session: str | None
    thread: str
    turn: int
    title: str | None = None
    """The first words of its prompt."""
    steps: int = 0
    window: Window | None = None
    """The window of its last step."""
    new: int = 0
    freed: int = 0
    reweighed: int = 0
    cost: Decimal = ZERO
    """Cost of the requests with a known price."""
    unpriced: int = 0
    """Number of requests without a known price or size."""
    is_counted: bool = False
    """Whether part of the cost is for counted, not billed, tokens."""
    is_least: bool = False
    """Whether the cost is a lower bound: a price is unknown, or an answer not recorded."""
    is_known: bool = False
    """Whether any request has a bill or recorded content."""
    breaks: int = 0
    """Number of requests that could reuse less than nine tenths of the previous one."""
    misses: int = 0
    """Number of cache misses that no record explains."""
    stated: StatedTotal | None = None
    """The total that the runtime states for the turn."""
    over: int = 0
    """Number of requests over their limit."""
    flags: dict[str, int] = field(default_factory=dict)
    """Number of steps by flag, without those of `TOLD_APART`."""
    compactions: list[Compacting] = field(default_factory=list)
    cut: tuple[int, Cut] | None = None
    """The first cut without a record, and its step."""


class TurnSums:
    """Sums up the steps and turns of a replay, in order. It holds no step longer than its turn.

    Args:
        book: The source of prices.
    """

    def __init__(self, book: RateBook) -> None:
        self.turns: list[TurnSum] = []
        """The turns in the order in which they ended."""
        self.costs = Costs(book)
        self.compared = 0
        """Number of requests with a previous one to compare: only they can break a cache."""
        self.reported = 0
        """Number of requests whose bill has cache reads."""
        self.first_time: str | None = None
        self.last_time: str | None = None
        """The earliest and the latest recorded time of the steps."""
        self._open: dict[ThreadName, TurnSum] = {}

    def step(self, step: Step) -> None:
        """Add a step."""
        key = (step.session, step.thread)
        row = self._open.get(key)
        if row is None or row.turn != step.turn:
            row = self._open[key] = TurnSum(step.session, step.thread, step.turn)
        paid = paid_for(self.costs.add(step, []))
        if any(one.scope == "turn" for one in step.stated):
            totals = reversed(self.costs.stated.totals.values())
            row.stated = next(one for one in totals if one.total.scope == "turn")
        row.steps += 1
        row.window = step.window
        row.new += step.ledger.new
        row.freed += step.ledger.freed
        row.reweighed += step.ledger.reweighed
        row.cost += paid.cost
        row.unpriced += paid.unpriced
        row.is_counted |= paid.is_counted
        row.is_least |= paid.is_least
        row.is_known |= paid.is_known
        row.breaks += breaks_cache(step)
        row.misses += step.cache.miss is not None
        row.over += bool(step.window.over)
        for flag in sorted(set(step.flags) - TOLD_APART):
            row.flags[flag] = row.flags.get(flag, 0) + 1
        if "compacted" in step.flags or step.annotations.compactions:
            row.compactions.append(compacting(step))
        if step.cut is not None and row.cut is None:
            row.cut = (step.step, step.cut)
        self.compared += step.cache.possible_prefix is not None
        self.reported += step.cache.reported_cached is not None
        if step.time is not None:
            self.first_time = min(self.first_time or step.time, step.time)
            self.last_time = max(self.last_time or step.time, step.time)

    def turn(self, turn: Turn) -> None:
        """Add a finished turn."""
        row = self._open.pop((turn.session, turn.thread), None)
        if row is not None:
            row.title = turn.title
            self.turns.append(row)

    @property
    def compactions(self) -> Iterator[tuple[TurnSum, Compacting]]:
        """Yield all compactions with their turns."""
        return ((row, one) for row in self.turns for one in row.compactions)


def paid_for(cost: StepCost) -> Paid:
    """Return one request's cost in the form for lists of turns and steps."""
    least = bool(cost.not_priced) or NO_OUTPUT in cost.assumed
    if cost.sent is None or not cost.is_sized:
        return Paid(1, unpriced=1, is_least=least)
    counted = cost.billed_tokens is None or cost.believed_tokens != cost.billed_tokens
    empty = cost.billed_tokens is None and not cost.sent_tokens.context
    return Paid(1, cost.sent.total, is_counted=counted, is_least=least, is_known=not empty)

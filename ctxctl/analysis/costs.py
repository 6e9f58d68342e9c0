"""What a session cost: by step, and by what its context was spent on.

There are three separate figures.  *Billed* is what the provider reported, priced.  *Sent* counts the outputs
that
the client logged before an answer's end, and takes requests without a bill at their expected size; the cost
of
a request of unknown size is not known.
*Counted* is the recorded content alone, at the same rates and with the same share read from and written to a
cache.  What is spent on an item is its part of what was sent, in the order in which providers place it: what
is not recorded, then tools, system and the rest; what comes first was cached first.  Of a request of unknown
size it is its recorded tokens at the price of input.

Beside these stands what a runtime, a router or a tracing service says that requests cost (`StatedSums`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ctxctl.analysis.request_cost import StepCost, add_cost, cost_of
from ctxctl.analysis.spending import NamedFrame
from ctxctl.analysis.spent import Spent, SpentOn
from ctxctl.model.cost_sums import CostSums
from ctxctl.model.results import Placement, Step
from ctxctl.session.facade import Inspector, Progress
from ctxctl.session.walked import walked
from ctxctl.tokens.catalogue.rates import RateBook

if TYPE_CHECKING:
    from ctxctl.engine.replay.cursor import StepAt
    from ctxctl.engine.replay.frames import FrameDelta


class Costs(CostSums):
    """Sums over the steps of a session; feed it with `add`.

    Args:
        book: Where rates are from.
        by: What an expense is put down to: a name for each placement; None: items are not looked at.
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
        """Take in one step with its frame; `delta`, how that differs from the thread's step before."""
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
        """YYYY-MM-DD: whose day's prices a request without a time has."""
        return self._book.as_of

    def spent(self) -> list[SpentOn]:
        """By name, the dearest first; among equals by tokens, then by name."""
        for frame in self._frames.values():
            frame.settle()
        return self._spent.found(self._uncounted)


def step_costs(
    inspector: Inspector,
    costs: Costs,
    progress: Progress | None = None,
    only: Callable[[Step], bool] | None = None,
    see: Callable[[StepAt], None] = lambda at: None,
) -> Iterable[StepCost]:
    """Every step of a trace with its cost, in their order; `costs` has the sums when it is over.

    `only`: which steps; the others are in no sum.  `see` is told of each step, before its cost is worked out.
    """
    for one in walked(inspector, progress):
        see(one.at)
        if only is None:
            yield costs.add(one.at.step, one.at.placements, one.delta)
        elif only(one.at.step):  # the step before it may be left out: a difference says nothing
            yield costs.add(one.at.step, one.at.placements)

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

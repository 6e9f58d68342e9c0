"""A session's total cost, its breakdown, and its costliest cache breaks; the answer is cached."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from ctxctl.analysis.costs import Costs, step_costs
from ctxctl.analysis.request_cost import StepCost
from ctxctl.analysis.spent import SpentOn
from ctxctl.fleet.surroundings import surroundings
from ctxctl.model.cost_sums import CostSums
from ctxctl.session.answer_cache import answers_of
from ctxctl.session.item_words import ItemWords, broken_name
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from ctxctl.model.results import Placement
    from ctxctl.session.facade import Inspector, Progress

TOP_BREAKS: Final = 5
GROUPINGS: Final[dict[str, Callable[[Placement], str]]] = {
    "kind": lambda p: p.kind,
    "item": lambda p: p.item,
    "source": lambda p: p.source or "(no source)",
    "segment": lambda p: p.segment,
}
"""The name that a placement's cost is assigned to."""


class CostQuestion(NamedTuple):
    """The parameters of a cost overview."""

    by: str
    """One of `GROUPINGS`."""
    models: dict[str, Any]
    """The user's own prices, as in the settings."""
    provider: str | None
    """The provider whose prices apply if the trace does not say."""
    as_of: str | None
    """YYYY-MM-DD: the day whose prices apply to requests without a time; None: that of the package."""

    @property
    def words(self) -> str:
        """All that the answer depends on besides the trace and its replay parameters."""
        models = sorted(self.models.items())
        return f"costs {self.by} {models} {self.provider} {self.as_of} {surroundings(())}"

    def costs(self) -> Costs:
        """Return empty sums."""
        return Costs(RateBook(self.models, self.provider, self.as_of), GROUPINGS[self.by])


class CostOverview(msgspec.Struct, frozen=True, array_like=True):
    """The answer."""

    sums: CostSums
    spent: list[SpentOn]
    """See `Costs.spent`."""
    breaks: list[StepCost]
    """The costliest cache breaks, the costliest first."""
    broken_by: list[str]
    """What broke each of them, by its name in lists."""


def cost_overview(
    inspector: Inspector, asked: CostQuestion, progress: Progress | None = None
) -> CostOverview:
    """Return the answer from the cache, or by a walk through the trace."""
    question = asked.words
    answers, kept = answers_of(inspector), inspector.kept_replay()
    data = answers.find(question) if answers is not None else None
    if data is not None and kept is not None:
        try:
            found = from_msgpack(data, CostOverview)
        except msgspec.MsgspecError:
            pass
        else:
            inspector.take_over(kept, settle=False)
            return found
    costs, words = asked.costs(), ItemWords(inspector)
    breaks = costliest_breaks(step_costs(inspector, costs, progress, see=words.see))
    sums = CostSums(**{field.name: getattr(costs, field.name) for field in fields(CostSums)})
    names = words.names()
    broken_by = [broken_name(cost.step, names) for cost in breaks]
    found = CostOverview(sums, costs.spent(), breaks, broken_by)
    if answers is not None:
        answers.keep(question, msgspec.msgpack.encode(found))
    return found


def costliest_breaks(steps: Iterable[StepCost]) -> list[StepCost]:
    """Return the few steps with the most expensive cache breaks; needs all steps."""
    return nsmallest(TOP_BREAKS, (cost for cost in steps if cost.broken), key=lambda c: -(c.broken or 0))

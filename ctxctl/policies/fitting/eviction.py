"""`fifo` and `priority`: whole units leave in a fixed order until the rest fits.

Rules (ctxctl's own; what most chat runtimes do in some form):

- Nothing is done while the window is within its cap.
- Units (a tool call with its results is one) leave in order until no more than `target` of the cap is used.
- What is protected never leaves; if that alone is too much, the window is still over.
- `sticky`: what left stays away for as long as the window would not fit with it, as a runtime does that
  cuts its history for good.  It comes back when everything fits again (another model, a new root).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from msgspec import Meta

from ctxctl.model.fitting import Candidate, Fit, Keeper, Room, Verdict
from ctxctl.policies.fitting.grouping import Unit
from ctxctl.policies.fitting.incremental_eviction import IncrementalEviction
from ctxctl.policies.fitting.units import (
    Protection,
    drops_in_order,
    protected_indexes,
    removable_units,
    tokens_of,
)

Order = Callable[[Sequence[Candidate], tuple[int, ...]], Any]


class Leaving(Protection, frozen=True, kw_only=True):
    """Parameters of both."""

    target: Annotated[
        float, Meta(description="share of the cap to go down to once it is exceeded", gt=0, le=1)
    ] = 1.0
    sticky: Annotated[bool, Meta(description="what left stays away while it would not fit")] = True


class Fifo(Leaving, frozen=True, kw_only=True):
    """The oldest leave first."""

    name = "fifo"

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Linear in the candidates."""
        return leave(self, candidates, room, state, lambda _, unit: unit[0])

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return _leaver(self, lambda unit: (unit.first,))


class Priority(Leaving, frozen=True, kw_only=True):
    """The lowest priority leaves first; among equals the lowest score, then the oldest.

    An item without a recorded priority has `default`; without a score it is as if its score were 0.
    """

    name = "priority"
    default: Annotated[float, Meta(description="priority of items that have none recorded")] = 0.0

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """O(n log n) in the candidates; a unit has the highest priority of its members."""
        return leave(self, candidates, room, state, self._rank)

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy incrementally from step to step."""
        return _leaver(self, lambda unit: (*self._worth([s.candidate for s in unit.seats]), unit.first))

    def _rank(self, candidates: Sequence[Candidate], unit: tuple[int, ...]) -> tuple[float, float, int]:
        return *self._worth([candidates[at] for at in unit]), unit[0]

    def _worth(self, of: Sequence[Candidate]) -> tuple[float, float]:
        priority = max(self.default if c.priority is None else c.priority for c in of)
        return priority, max(c.score or 0.0 for c in of)


def _leaver(rules: Leaving, rank: Callable[[Unit], tuple[float, ...]]) -> Keeper:
    return IncrementalEviction(rules, rank, "budget_limit", target=rules.target, sticky=rules.sticky)


def leave(rules: Leaving, candidates: Sequence[Candidate], room: Room, state: Any, order: Order) -> Fit:
    """Take units out in `order`, the lowest first."""
    total = tokens_of(candidates)
    if total <= room.cap:
        return Fit("fits")
    before: frozenset[str] = state if rules.sticky and state is not None else frozenset()
    kept = protected_indexes(candidates, rules)
    waiting = sorted(removable_units(candidates, kept), key=lambda unit: order(candidates, unit))
    gone: set[int] = set()
    for unit in waiting:
        if any(candidates[at].name in before for at in unit):
            gone.update(unit)
    total -= tokens_of(candidates, gone)
    if total > room.cap:
        bound = int(room.cap * rules.target)
        for unit in waiting:
            if total <= bound:
                break
            if unit[0] not in gone:
                gone.update(unit)
                total -= tokens_of(candidates, unit)
    left = frozenset(candidates[at].name for at in gone)
    verdict: Verdict = "fitted" if total <= room.cap else "still_over"
    return Fit(verdict, drops_in_order(gone, "budget_limit"), state=left)

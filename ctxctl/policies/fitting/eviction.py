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
from typing import Annotated

from msgspec import Meta

from ctxctl.model.fitting import Candidate, Keeper
from ctxctl.policies.fitting.grouping import Unit
from ctxctl.policies.fitting.incremental_eviction import IncrementalEviction
from ctxctl.policies.fitting.protection import Protection
from ctxctl.policies.fitting.stepwise import StepwisePolicy


class Leaving(Protection, frozen=True, kw_only=True):
    """Parameters of both."""

    target: Annotated[
        float, Meta(description="share of the cap to go down to once it is exceeded", gt=0, le=1)
    ] = 1.0
    sticky: Annotated[bool, Meta(description="what left stays away while it would not fit")] = True


class Fifo(Leaving, StepwisePolicy, frozen=True, kw_only=True):
    """The oldest leave first."""

    name = "fifo"

    def keeper(self) -> Keeper:
        """Make a keeper that takes units out by their place."""
        return _leaver(self, lambda unit: (unit.first,))


class Priority(Leaving, StepwisePolicy, frozen=True, kw_only=True):
    """The lowest priority leaves first; among equals the lowest score, then the oldest.

    An item without a recorded priority has `default`; without a score it is as if its score were 0.
    """

    name = "priority"
    default: Annotated[float, Meta(description="priority of items that have none recorded")] = 0.0

    def keeper(self) -> Keeper:
        """Make a keeper that takes units out by their worth, which is the highest of their members."""
        return _leaver(self, lambda unit: (*self._worth([s.candidate for s in unit.seats]), unit.first))

    def _worth(self, of: Sequence[Candidate]) -> tuple[float, float]:
        priority = max(self.default if c.priority is None else c.priority for c in of)
        return priority, max(c.score or 0.0 for c in of)


def _leaver(rules: Leaving, rank: Callable[[Unit], tuple[float, ...]]) -> Keeper:
    return IncrementalEviction(rules, rank, "budget_limit", target=rules.target, sticky=rules.sticky)

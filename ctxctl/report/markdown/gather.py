"""What a markdown report says, gathered in one walk: sums, and the few turns and steps that stand out."""

from __future__ import annotations

import heapq
from typing import Any, Final, NamedTuple

from ctxctl.analysis.costs import Costs, StepCost
from ctxctl.model.addresses import prefix
from ctxctl.model.results import Step, Turn, Window
from ctxctl.report.totals import Totals

TURNS: Final = 10
COMPACTIONS: Final = 20
BREAKS: Final = 10


class Where(NamedTuple):
    """A place in the trace."""

    session: str | None
    thread: str
    turn: int
    step: int | None


class Gathered:
    """What stands out so far."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.totals = Totals()
        self.peak: tuple[Window, Where] | None = None
        self.compacted = 0
        self.broken = 0
        self.compactions: list[tuple[Where, Step]] = []
        self._turns: list[tuple[int, int, Turn]] = []
        self._breaks: list[tuple[Any, int, StepCost]] = []
        self._count = 0

    def step(self, step: Step, cost: StepCost, broken: bool) -> None:
        """Take in a step."""
        self.totals.add(step)
        here = Where(step.session, step.thread, step.turn, step.step)
        if self.peak is None or step.window.used > self.peak[0].used:
            self.peak = (step.window, here)
        if step.told.compactions or "compacted" in step.flags:
            self.compacted += 1
            if len(self.compactions) < COMPACTIONS:
                self.compactions.append((here, step))
        self.broken += broken
        self._count += 1
        if cost.broken:
            _keep(self._breaks, (cost.broken, -self._count, cost), BREAKS)

    def turn(self, turn: Turn) -> None:
        """Take in a turn."""
        size = turn.ledger.new + turn.ledger.freed
        if size or turn.changes:
            _keep(self._turns, (size, -self._count, turn), TURNS)

    @property
    def turns(self) -> list[Turn]:
        """Those with the most change, the greatest first."""
        return [turn for _, _, turn in sorted(self._turns, key=lambda one: one[:2], reverse=True)]

    @property
    def breaks(self) -> list[StepCost]:
        """The dearest cache breaks."""
        return [cost for _, _, cost in sorted(self._breaks, key=lambda one: one[:2], reverse=True)]


def _keep(heap: list[Any], one: tuple[Any, ...], most: int) -> None:
    if len(heap) < most:
        heapq.heappush(heap, one)
    elif one > heap[0]:
        heapq.heapreplace(heap, one)


def address(where: Where | Step | Turn) -> str:
    """`TURN.STEP`, with the thread where that is not the main one."""
    step = getattr(where, "step", None)
    return f"{prefix(where.thread)}{where.turn}" + (f".{step}" if step is not None else "")

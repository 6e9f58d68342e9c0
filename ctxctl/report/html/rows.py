"""One small row for each step of a page: what its list and its chart show without opening anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ctxctl.analysis.costs import StepCost
from ctxctl.labels import dollars
from ctxctl.model.results import Step
from ctxctl.model.vocab import WARNINGS, UsedMethod
from ctxctl.report.html.pack import dumped, packed
from ctxctl.session.survey import row_of

_BLOCK: Final = 4096
COLUMNS: Final = (
    "thread", "turn", "step", "used", "new", "freed", "cap", "limit", "stale", "added", "updated",
    "removed", "skipped", "omitted", "marks", "reported", "cached", "answered", "uncounted", "billed",
    "counted", "model", "time", "recorded", "method", "threshold",
)  # fmt: skip
"""What the places of a row say.  Money in millionths of a US dollar; `model` by its place in the list,
`method` by that in `METHODS`."""
METHODS: Final[tuple[UsedMethod, ...]] = ("reported", "expected", "recorded")
"""How it is known what a step sent."""

COMPACTED, BROKEN, OVER, WARNED, SIMULATED, DOUBTED, MISSED = 1, 2, 4, 8, 16, 32, 64
"""Marks of a row, added up.  DOUBTED: a part of its bill cannot be true; `answered` and `billed` have it as
counted."""


class Rows:
    """Packs rows as they come.

    Args:
        emit: Takes each finished block.
    """

    def __init__(self, emit: Callable[[bytes], None]) -> None:
        self._emit = emit
        self._open: list[list[Any]] = []
        self._models: dict[str, int] = {}
        self.count = 0
        self.blocks = 0

    @property
    def models(self) -> list[str]:
        """Names of the models, in the order in which they are met."""
        return list(self._models)

    def add(self, thread: int, step: Step, cost: StepCost) -> None:
        """The next step."""
        row = row_of(self.count, step)
        counts = row.counts
        marks = (
            COMPACTED * row.compacted
            | BROKEN * row.broken
            | OVER * bool(step.window.over)
            | WARNED * (not WARNINGS.isdisjoint(row.flags))
            | SIMULATED * ("simulated" in row.flags)
            | DOUBTED * bool(row.doubted)
            | MISSED * (row.missed > 0)
        )
        model = None if row.model is None else self._models.setdefault(row.model, len(self._models))
        self._open.append(
            [
                thread, row.turn, row.step, row.used, row.new, row.freed, row.cap, row.limit, row.stale,
                counts.added, counts.updated, counts.removed, counts.skipped, counts.omitted, marks,
                row.reported, row.cached, row.answered, row.uncounted, _dollars(cost.believed),
                _dollars(cost.counted), model, row.time, step.window.recorded,
                METHODS.index(step.window.used_method), step.window.threshold,
            ]
        )  # fmt: skip
        self.count += 1
        if len(self._open) >= _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Close the open block."""
        if self._open:
            self._emit(packed(f"r{self.blocks}", dumped(self._open)))
            self.blocks += 1
            self._open = []


def _dollars(money: Any) -> str | None:
    return None if money is None else dollars(money.total)

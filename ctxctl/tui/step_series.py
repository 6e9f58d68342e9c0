"""The steps of a thread as a series: what a chart shows where turns are too few for it.  Plain Python."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from ctxctl.model.outline import Row
from ctxctl.model.vocab import warns
from ctxctl.tui.series import BROKEN, COMPACTED, FLAGGED, OMITTED, Figures, Series

MOST_TURNS: Final = 200
"""Turns of a thread up to which its steps are kept: with more, no chart shows them."""
_SPARSE: Final = 3
"""Turns that would fill less than one in so many cells leave the chart to the steps."""


class StepSeries:
    """Figures of a thread's steps, in their order."""

    def __init__(self) -> None:
        self.ordinals = array("L")
        """Ordinals of the steps, ascending."""
        self.series = Series()

    def take(self, ordinals: array[int], count: int, rows: Sequence[Row]) -> None:
        """Take in the first `count` steps of a turn, of which those that are known already come first."""
        start = bisect_right(ordinals, self.ordinals[-1], 0, count) if self.ordinals else 0
        fresh = ordinals[start:count]
        self.ordinals.extend(fresh)
        self.series.extend([_figures(rows[ordinal]) for ordinal in fresh])

    def cut(self, ordinal: int) -> None:
        """Forget the steps from an ordinal on."""
        count = bisect_left(self.ordinals, ordinal)
        if count < len(self.ordinals):
            del self.ordinals[count:]
            self.series.cut(count)

    def at(self, ordinal: int) -> int:
        """The place of a step in the series; of one that is not in it, that of the next one before."""
        return max(bisect_right(self.ordinals, ordinal) - 1, 0)


def wants_steps(turns: int, steps: int, room: int) -> bool:
    """Whether a chart of so many cells is drawn by step: the turns would fill less than a third of it."""
    return turns < steps and turns * _SPARSE < room


def _figures(row: Row) -> Figures:
    """A step in a chart."""
    marks = (
        COMPACTED * row.compacted
        | BROKEN * (row.broken or row.missed > 0)
        | FLAGGED * warns(row.flags, over=row.over)
        | OMITTED * (row.counts.omitted > 0)
    )
    return Figures(
        row.used,
        row.cap or 0,
        row.limit or 0,
        marks,
        row.threshold or 0,
        expected=row.used if row.method == "expected" else 0,
        content=row.used if row.method == "recorded" else 0,
    )

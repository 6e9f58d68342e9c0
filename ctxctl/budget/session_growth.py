"""How the window of a recorded session grew, request by request, and what of it is still there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctxctl.budget.beside import COLUMN, SentBesideRecord, scaled_arrivals
from ctxctl.budget.plan import Arrival
from ctxctl.model.results import Placement, Step
from ctxctl.model.vocab import rank_of

BEGINNING: Final = 0.1
"""Share of a session that is its beginning."""
COMMON: Final = 0.95
"""Share of the units that count as they were; larger ones count as large as the largest of these.
A file of 40,000 tokens that was read once says little of what comes."""


class SessionGrowth:
    """One thread of one session; feed it its steps in their order."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        """What each request had that none before it had, by the provider's count where it was billed."""
        self.sent = SentBesideRecord()
        self.units: list[int] = []
        """By request, the unit that it belongs to."""
        self._came: dict[str, int] = {}
        """By item, the unit in which it came."""

    def add(self, step: Step, unit: int) -> None:
        """Take in one step; units count from 1 and never fall."""
        sums = [0, 0, 0, 0]
        for change in step.changes:
            column = COLUMN.get(change.kind)
            if column is None:
                continue
            if change.status == "added" and change.item not in self._came:
                # What comes back after it had left is in no unit's growth.
                self._came[change.item] = unit
                sums[column] += change.new
            elif change.status == "updated":
                sums[column] += max(0, change.new - change.freed)
        self.arrivals.append(scaled_arrivals(sums, self.sent.grown(step, sum(sums))))
        self.units.append(unit)

    def seen(self) -> list[tuple[Arrival, ...]]:
        """The units, each with its requests; without the first tenth of them, at least the first.

        What a session begins with does not come again: a task is given, and the place is looked over.  Units
        above the `COMMON` size are made as large as that.
        """
        found: list[list[Arrival]] = []
        for number, (unit, arrival) in enumerate(zip(self.units, self.arrivals, strict=True)):
            if number == 0 or unit != self.units[number - 1]:
                found.append([])
            found[-1].append(arrival)
        kept = found[max(1, round(len(found) * BEGINNING)) :] or found
        sizes = sorted(sum(map(sum, arrivals)) for arrivals in kept)
        most = sizes[min(len(sizes) - 1, int(len(sizes) * COMMON))]
        return [_cut(arrivals, most) for arrivals in kept]

    def history(self, placements: Sequence[Placement], most: int) -> tuple[list[Arrival], int]:
        """What is in a window of each unit, the oldest first, and tokens of what stands for older messages.

        Args:
            placements: The window.
            most: Rows; where there are more units, some in a row share one.
        """
        held: dict[int, list[int]] = {}
        other = 0
        for placement in placements:
            if rank_of(placement.segment) != 2:
                continue
            column = COLUMN.get(placement.kind)
            if column is not None:
                row = held.setdefault(self._came.get(placement.item, 0), [0, 0, 0, 0])
                row[column] += placement.tokens
            elif placement.kind in STANDS_FOR_OLDER:
                other += placement.tokens
        rows = [held[unit] for unit in sorted(held) if any(held[unit])]
        together = max(1, -(-len(rows) // most))
        merged = (rows[at : at + together] for at in range(0, len(rows), together))
        sums = ([sum(column) for column in zip(*some, strict=True)] for some in merged)
        return [(a, b, c, d) for a, b, c, d in sums], other


STANDS_FOR_OLDER: Final = frozenset(("thread_summary", "session_history"))
"""Kinds of what stands for messages that were counted when they came."""


def _cut(arrivals: Sequence[Arrival], most: int) -> tuple[Arrival, ...]:
    """A unit of no more than so many tokens, each of its requests made smaller by the same share."""
    size = sum(map(sum, arrivals))
    if size <= most:
        return tuple(arrivals)
    return tuple(scaled_arrivals(arrival, sum(arrival) * most // size) for arrival in arrivals)

"""The keeper of `truncate_tail` and `truncate_middle`: what may go, in order, with its sums."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from ctxctl.model.fitting import Cut, Drop, Fate, Moves, Outcome, Room, Seat
from ctxctl.policies.fitting.grouping import Unit, UnitTable
from ctxctl.policies.fitting.protection import Protection

_GONE = Drop(0, "budget_limit")


class Truncator:
    """Takes the end or the middle out of the units that may go."""

    def __init__(self, rules: Protection, *, middle: bool) -> None:
        self._ground = UnitTable(rules)
        self._middle = middle
        self._units: list[Unit] = []
        """What may go, in order, and beside it the places of the first seats and the sums up to each."""
        self._firsts: list[int] = []
        self._sums: list[int] = []
        self._counts: list[int] = []
        self._out: tuple[int, int] | None = None
        """Places of the first and the last unit that was not kept whole."""
        self._start: Moves | None = None

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Take them in; nothing is remembered."""
        self._start = Moves(seats, (), seats, ())

    def state(self) -> Any:
        """It has none."""
        return None

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step."""
        if self._start is not None:
            moves, self._start = self._start, None
        changed = self._ground.move(moves)
        self._list(changed)
        turned: dict[Seat, None] = {}
        loose = self._sums[-1] if self._sums else 0
        if room is None or self._ground.tokens <= room.cap:
            self._turn(0, 0, {}, changed, turned)
            self._out = None
            return Outcome("fits", turned)
        space = room.cap - self._ground.tokens + loose
        start, end, cuts = self._stretch(space)
        self._turn(start, end, cuts, changed, turned)
        self._out = (self._firsts[start], self._firsts[end - 1]) if start < end else None
        seats = (self._counts[end - 1] - (self._counts[start - 1] if start else 0)) if start < end else 0
        verdict = "fitted" if space >= 0 else "still_over"
        return Outcome(verdict, turned, seats - len(cuts), len(cuts))  # type: ignore[arg-type]

    def _list(self, changed: dict[Unit, None]) -> None:
        """Put the units that changed where they are now, or out of the list."""
        places = [unit.mark for unit in changed if unit.mark is not None]
        places += [unit.first for unit in changed if unit.loose]
        if not places:
            return
        at = bisect_left(self._firsts, min(places))
        units = [unit for unit in self._units[at:] if unit not in changed]
        units += [unit for unit in changed if unit.loose]
        units.sort(key=lambda unit: unit.first)
        for unit in changed:
            unit.mark = unit.first if unit.loose else None
        self._units[at:] = units
        self._firsts[at:] = [unit.first for unit in units]
        self._sums[at:] = _sums(self._sums[at - 1] if at else 0, (unit.tokens for unit in units))
        self._counts[at:] = _sums(self._counts[at - 1] if at else 0, (len(unit.seats) for unit in units))

    def _stretch(self, space: int) -> tuple[int, int, dict[Unit, Cut]]:
        """What is not kept whole: from which unit to which, and of which a part stays."""
        back = space // 2 if self._middle else 0
        front, sums, end = space - back, self._sums, len(self._units)
        start = bisect_right(sums, front) if front >= 0 else 0
        cuts: dict[Unit, Cut] = {}
        if start < end:
            self._cut(self._units[start], front - (sums[start - 1] if start else 0), "head", cuts)
        if self._middle and back >= 0:
            # The last units that go into the other half together; with none that may go there were no space.
            end = max(start, bisect_left(sums, sums[-1] - back) + 1)
            if end - start > 1:
                self._cut(self._units[end - 1], back - (sums[-1] - sums[end - 1]), "tail", cuts)
        return start, end, cuts

    def _cut(self, unit: Unit, space: int, side: str, cuts: dict[Unit, Cut]) -> None:
        if len(unit.seats) == 1 and space > 0:
            cuts[unit] = Cut(0, space, side)  # type: ignore[arg-type]

    def _turn(
        self, start: int, end: int, cuts: dict[Unit, Cut], changed: Iterable[Unit], turned: dict[Seat, None]
    ) -> None:
        """Give the units their fates that have another one than before."""
        firsts, units = self._firsts, self._units
        look = list(changed)
        if self._out is not None:
            low, high = bisect_left(firsts, self._out[0]), bisect_right(firsts, self._out[1])
            if start < end:
                look += units[min(low, start) : max(low, start) + 1]
                look += units[max(0, min(high, end) - 1) : max(high, end)]
            else:
                look += units[low:high]
        else:
            look += units[start:end]
        for unit in look:
            at = bisect_left(firsts, unit.first) if unit.loose else -1
            fate: Fate = cuts.get(unit) or (_GONE if start <= at < end else None)
            for seat in unit.seats:
                if seat.fate != fate:
                    seat.fate = fate
                    turned[seat] = None


def _sums(before: int, values: Iterable[int]) -> list[int]:
    return [before + value for value in accumulate(values)]

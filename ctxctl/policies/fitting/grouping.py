"""The units of a window, and which of them may go, kept from step to step."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from ctxctl.model.fitting import Moves, Seat
from ctxctl.policies.fitting.protection import HEAD_SEGMENTS, PROMPTS, Protection

by_place = attrgetter("place")
_NOWHERE: Final = 1 << 200
"""Behind every seat."""


class Unit:
    """Seats that stay or go together."""

    __slots__ = ("first", "fixed", "last", "loose", "mark", "seats", "tokens")

    def __init__(self) -> None:
        self.seats: list[Seat] = []
        """In order."""
        self.tokens = 0
        self.fixed = 0
        """How many of its seats stay wherever they are."""
        self.first = self.last = 0
        """Places of its first and its last seat."""
        self.loose = False
        """It may go."""
        self.mark: Any = None
        """The keeper's own."""


class UnitTable:
    """The units of one thread's window, and which of them may go."""

    def __init__(self, rules: Protection, *, paired: bool = True) -> None:
        """`paired`: a tool call and its results are one unit."""
        self._rules = rules
        self._paired = paired
        self.tokens = 0
        """Of all seats."""
        self._pairs: dict[str, Unit] = {}
        self._prompts: list[int] = []
        """Places of the user's messages, in order."""
        self._named: dict[str, dict[Seat, None]] = {}
        self._bound = _NOWHERE
        """Place from which on all stays."""

    def move(self, moves: Moves, named: Iterable[str] = ()) -> dict[Unit, None]:
        """Follow a window; the units that changed, those that are empty now included.

        `named`: units with copies of these are among them, too.
        """
        changed: dict[Unit, None] = {}
        for name in named:
            copies = self._named.get(name, ())
            if len(copies) > 1:
                changed.update((seat.unit, None) for seat in copies)
        for seat in moves.left:
            unit: Unit = seat.unit
            unit.seats.remove(seat)
            changed[unit] = None
            self._account(unit, seat, -1)
            pairs = seat.candidate.pairs
            if pairs and self._paired and not unit.seats:
                self._pairs.pop(pairs[0], None)
        for seat in moves.came:
            changed[self._seated(seat)] = None
        for seat in moves.altered:
            changed[seat.unit] = None
        self._rebound(moves.seats, changed)
        for unit in changed:
            seats = unit.seats
            if seats:
                unit.first, unit.last = seats[0].place, seats[-1].place
            unit.loose = bool(seats) and not unit.fixed and unit.last < self._bound
        return changed

    def _seated(self, seat: Seat) -> Unit:
        pairs = seat.candidate.pairs if self._paired else ()
        unit = self._pairs.get(pairs[0]) if pairs else None
        if unit is None:
            unit = Unit()
            if pairs:
                self._pairs[pairs[0]] = unit
        seat.unit = unit
        insort(unit.seats, seat, key=by_place)
        self._account(unit, seat, 1)
        return unit

    def _account(self, unit: Unit, seat: Seat, sign: int) -> None:
        candidate, rules = seat.candidate, self._rules
        if sign > 0:
            self._named.setdefault(candidate.name, {})[seat] = None
        else:
            copies = self._named[candidate.name]
            del copies[seat]
            if not copies:
                del self._named[candidate.name]
        unit.tokens += sign * candidate.tokens
        self.tokens += sign * candidate.tokens
        head = rules.protect_head and candidate.segment in HEAD_SEGMENTS
        if head or candidate.kind in rules.protect_kinds:
            unit.fixed += sign
        if candidate.kind in PROMPTS:
            at = bisect_left(self._prompts, seat.place)
            if sign > 0:
                self._prompts.insert(at, seat.place)
            else:
                del self._prompts[at]

    def _rebound(self, seats: Sequence[Seat], changed: dict[Unit, None]) -> None:
        """Find where what stays begins, and the units that this moved past."""
        recent = self._rules.protect_recent
        bound = self._prompts[-recent:][0] if recent > 0 and self._prompts else _NOWHERE
        low, high = sorted((bound, self._bound))
        if low != high:
            at, end = bisect_left(seats, low, key=by_place), bisect_left(seats, high, key=by_place)
            changed.update((seat.unit, None) for seat in seats[at:end])
        self._bound = bound

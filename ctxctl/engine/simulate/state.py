"""The window that a fitting policy is given, as seats. A step changes only the seats that changed."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from operator import attrgetter
from typing import Final, Generic, TypeVar

from ctxctl.listdiff import Splice, splices
from ctxctl.model.fitting import Candidate, Moves, Seat
from ctxctl.model.results import Placement

P = TypeVar("P", Placement, Candidate)
"""A seat's value. In a plan, only candidates have seats."""
Make = Callable[[P], Candidate]

_APPEND_GAP: Final = 1 << 40
"""Distance between the places of two seats that were appended one after the other."""
_INSERT_GAP: Final = 1 << 20
"""Largest distance between the places of inserted seats, so that more may be inserted there later."""
_PLACE_UNIT: Final = 4
"""Places are multiples of this, so that each has free places for notes."""
by_place = attrgetter("place")


class SeatList(Generic[P]):
    """The seats of one thread's window, in order."""

    def __init__(self) -> None:
        self.seats: list[Seat] = []
        self.window: list[P] = []
        """The placements or candidates of the seats."""
        self._of: dict[str, list[Seat]] = {}

    def of(self, item: str) -> list[Seat]:
        """Return all seats of an item's copies, in order."""
        return self._of.get(item, [])

    def move_to(self, window: list[P], make: Make[P], grown: tuple[list[P], int] = ([], 0)) -> Moves | None:
        """Take a window; return None if the places had no room, so that all seats are new.

        `grown` may give another window, and the length of the head that this one shares with it.
        """
        known = grown[1] if grown[0] is self.window else 0
        found = splices(self.window, window, head=known)
        left: list[Seat] = []
        came: list[Seat] = []
        for splice in reversed(found):
            fresh = self._seated(splice, make)
            if fresh is None:
                self._anew(window, make)
                return None
            end = splice.at + splice.removed
            left[:0] = self.seats[splice.at : end]
            came[:0] = fresh
            self.seats[splice.at : end] = fresh
        self.window = window
        for seat in left:
            copies = self._of[seat.placement.item]
            del copies[bisect_left(copies, seat.place, key=by_place)]
            if not copies:
                del self._of[seat.placement.item]
        for seat in came:
            insort(self._of.setdefault(seat.placement.item, []), seat, key=by_place)
        return Moves(self.seats, left, came, ())

    def _seated(self, splice: Splice[P], make: Make[P]) -> list[Seat] | None:
        """Return seats for inserted values, between the seats on either side; None without room."""
        if not splice.inserted:
            return []
        seats = self.seats
        low = seats[splice.at - 1].place if splice.at else 0
        end = splice.at + splice.removed
        if end == len(seats):
            step = _APPEND_GAP
        else:
            room = (seats[end].place - low) // (len(splice.inserted) + 1)
            step = min(room // _PLACE_UNIT * _PLACE_UNIT, _INSERT_GAP)
            if not step:
                return None
        return [Seat(make(p), low + step * number, p) for number, p in enumerate(splice.inserted, 1)]

    def _anew(self, window: list[P], make: Make[P]) -> None:
        self.seats = [Seat(make(p), _APPEND_GAP * number, p) for number, p in enumerate(window, 1)]
        self.window = window
        self._of = {}
        for seat in self.seats:
            self._of.setdefault(seat.placement.item, []).append(seat)

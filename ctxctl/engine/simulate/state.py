"""The window that a fitting policy is given, as seats: kept from step to step, changed where it changed."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from operator import attrgetter
from typing import Final, Generic, TypeVar

from ctxctl.listdiff import Splice, splices
from ctxctl.model.fitting import Candidate, Moves, Seat
from ctxctl.model.results import Placement

P = TypeVar("P", Placement, Candidate)
"""What has a seat: of a plan there are candidates alone."""
Make = Callable[[P], Candidate]

_BEHIND: Final = 1 << 40
"""Between the places of two seats that came one behind the other at the end."""
_BETWEEN: Final = 1 << 20
"""Between the places of seats put in among others, as far as there is room: more may come in front of a seat
that stays."""
_LEAST: Final = 4
"""Places are multiples of it, so that a note has one beside each."""
by_place = attrgetter("place")


class SeatList(Generic[P]):
    """The seats of one thread's window, in order."""

    def __init__(self) -> None:
        self.seats: list[Seat] = []
        self.window: list[P] = []
        """What sits there."""
        self._of: dict[str, list[Seat]] = {}

    def of(self, item: str) -> list[Seat]:
        """All seats of an item's copies, in order."""
        return self._of.get(item, [])

    def move_to(self, window: list[P], make: Make[P], grown: tuple[list[P], int] = ([], 0)) -> Moves | None:
        """Take a window; None if there was no room for places in between, and all seats are new.

        `grown` may tell with how much of another window it begins.
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
        """Seats for what is fresh, between those that stay on either side."""
        if not splice.inserted:
            return []
        seats = self.seats
        low = seats[splice.at - 1].place if splice.at else 0
        end = splice.at + splice.removed
        if end == len(seats):
            step = _BEHIND
        else:
            room = (seats[end].place - low) // (len(splice.inserted) + 1)
            step = min(room // _LEAST * _LEAST, _BETWEEN)
            if not step:
                return None
        return [Seat(make(p), low + step * number, p) for number, p in enumerate(splice.inserted, 1)]

    def _anew(self, window: list[P], make: Make[P]) -> None:
        self.seats = [Seat(make(p), _BEHIND * number, p) for number, p in enumerate(window, 1)]
        self.window = window
        self._of = {}
        for seat in self.seats:
            self._of.setdefault(seat.placement.item, []).append(seat)

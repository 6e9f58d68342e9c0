"""The window that a fitting policy is given, as seats: kept from step to step, changed where it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from ctxctl.engine.frames import common_prefix, common_suffix
from ctxctl.model.fitting import Candidate, Moves, Seat
from ctxctl.model.results import Placement

Make = Callable[[Placement], Candidate]

_BEHIND: Final = 1 << 40
"""Between the places of two seats that came one behind the other at the end."""
_BETWEEN: Final = 1 << 20
"""The same in between, as far as there is room: what comes in front of a seat that stays may come again."""
_LEAST: Final = 4
"""Places are multiples of it, so that a note has one beside each."""
_STRIDE: Final = 512
by_place = attrgetter("place")


class Hunk(NamedTuple):
    """A stretch of the window that was another stretch."""

    start: int
    """In the window before."""
    stop: int
    fresh: list[Placement]


class Scene:
    """The seats of one thread's window, in order."""

    def __init__(self) -> None:
        self.seats: list[Seat] = []
        self.window: list[Placement] = []
        """What sits there."""
        self._of: dict[str, list[Seat]] = {}

    def of(self, item: str) -> list[Seat]:
        """All seats of an item's copies."""
        return self._of.get(item, [])

    def move_to(
        self, window: list[Placement], make: Make, grown: tuple[list[Placement], int] = ([], 0)
    ) -> Moves | None:
        """Take a window; None if there was no room for places in between, and all seats are new.

        `grown` may tell with how much of another window it begins.
        """
        found = list(hunks(self.window, window, grown[1] if grown[0] is self.window else 0))
        left: list[Seat] = []
        came: list[Seat] = []
        for hunk in reversed(found):
            fresh = self._seated(hunk, make)
            if fresh is None:
                self._anew(window, make)
                return None
            left[:0] = self.seats[hunk.start : hunk.stop]
            came[:0] = fresh
            self.seats[hunk.start : hunk.stop] = fresh
        self.window = window
        for seat in left:
            copies = self._of[seat.placement.item]
            copies.remove(seat)
            if not copies:
                del self._of[seat.placement.item]
        for seat in came:
            self._of.setdefault(seat.placement.item, []).append(seat)
        return Moves(self.seats, left, came, ())

    def _seated(self, hunk: Hunk, make: Make) -> list[Seat] | None:
        """Seats for what is fresh, between those that stay on either side."""
        if not hunk.fresh:
            return []
        seats = self.seats
        low = seats[hunk.start - 1].place if hunk.start else 0
        if hunk.stop == len(seats):
            step = _BEHIND
        else:
            room = (seats[hunk.stop].place - low) // (len(hunk.fresh) + 1)
            step = min(room // _LEAST * _LEAST, _BETWEEN)
            if not step:
                return None
        return [Seat(make(p), low + step * number, p) for number, p in enumerate(hunk.fresh, 1)]

    def _anew(self, window: list[Placement], make: Make) -> None:
        self.seats = [Seat(make(p), _BEHIND * number, p) for number, p in enumerate(window, 1)]
        self.window = window
        self._of = {}
        for seat in self.seats:
            self._of.setdefault(seat.placement.item, []).append(seat)


def hunks(before: list[Placement], after: list[Placement], head: int = 0) -> Iterator[Hunk]:
    """How one window becomes another: in order, and few where little changed.

    What is in both and in another order, or several times, is in one stretch.  They surely begin with the
    same `head`.
    """
    limit = min(len(before), len(after))
    prefix = common_prefix(before, after, limit, head)
    suffix = common_suffix(before, after, limit - prefix)
    end, stop = len(before) - suffix, len(after) - suffix
    old, new = before[prefix:end], after[prefix:stop]
    if not old and not new:
        return
    gone, fresh = set(old), set(new)
    plain = bool(old and new) and len(gone) == len(old) and len(fresh) == len(new)
    both = gone & fresh
    if not plain or not both or [p for p in old if p in both] != [p for p in new if p in both]:
        yield Hunk(prefix, end, new)
        return
    at, to = prefix, prefix
    while at < end or to < stop:
        start, begin = at, to
        while at < end and before[at] not in both:
            at += 1
        while to < stop and after[to] not in both:
            to += 1
        if at > start or to > begin:
            yield Hunk(start, at, after[begin:to])
        while (
            at + _STRIDE <= end
            and to + _STRIDE <= stop
            and before[at : at + _STRIDE] == after[to : to + _STRIDE]
        ):
            at, to = at + _STRIDE, to + _STRIDE
        while at < end and to < stop and before[at] is after[to]:
            at, to = at + 1, to + 1

"""A thread's window as stays: which go on, which end and which begin with a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.listdiff import longest, same, same_end
from ctxctl.model.results import Placement

GAP: Final = 1 << 36
"""What lies between the positions of two placements that were appended one after the other."""
_NEAR: Final = 1 << 16
"""What lies between a placement that was put in between others and its newer neighbour.  Clients put new
messages before the same last block again and again: so there is room for a million of them."""


class Stay:
    """One placement in a window, from the step that put it in."""

    __slots__ = ("first", "number", "placement", "pos")

    def __init__(self, placement: Placement, number: int, first: int, pos: int | None = None) -> None:
        self.placement = placement
        self.number = number
        """The placement's row."""
        self.first = first
        self.pos = pos
        """Its place among all stays of the thread; None until it has one."""


class Copies(NamedTuple):
    """The copies of an item in a window."""

    current: int
    stale: int
    tokens: int
    """What all of them hold."""


NO_COPIES: Final = Copies(0, 0, 0)


class Move(NamedTuple):
    """How the stays of a thread go from one step to the next."""

    head: int
    """How many placements both windows begin with."""
    tail: int
    """How many both end with."""
    ended: list[Stay]
    begun: list[Stay]
    before: dict[str, Copies]
    """By item that has a stay among these, its copies in the window before."""


class OpenStays:
    """The stays of one thread that have not ended, in the order of its window."""

    def __init__(self, thread: int) -> None:
        self.thread = thread
        """The thread's row."""
        self.nth = 0
        """How many steps the thread has had."""
        self.stays: list[Stay] = []
        self.placements: list[Placement] = []
        """The window: the placements of `stays`."""
        self.copies: dict[str, Copies] = {}
        """By item, its copies in the window."""

    def restore(self, nth: int, stays: list[Stay]) -> None:
        """Be as after a step of the thread, with the stays that had not ended then."""
        self.nth, self.stays, self.placements = nth, stays, [stay.placement for stay in stays]
        for stay in stays:
            self._count(stay.placement, 1)

    def _count(self, placement: Placement, more: int) -> None:
        current, stale, tokens = self.copies.get(placement.item, NO_COPIES)
        current, stale = (current, stale + more) if placement.stale else (current + more, stale)
        if current or stale:
            self.copies[placement.item] = Copies(current, stale, tokens + more * placement.tokens)
        else:
            del self.copies[placement.item]

    def move_to(self, now: list[Placement], delta: FrameDelta, number: Callable[[Placement], int]) -> Move:
        """Take the next step's window.

        Args:
            now: The window.
            delta: How it differs from the one before, as the replay says.
            number: Gives a placement's row.

        Stays that begin have no position yet.
        """
        before = self.placements
        self.nth += 1
        limit = min(len(before), len(now))
        # What the replay says of both windows is not compared again: most steps touch few places.
        own = delta.before is before and delta.after is now
        head, tail = (delta.prefix, delta.suffix) if own else (0, 0)
        head += same(before, now, head, head, limit - head)
        tail = same_end(before, now, limit - head, tail)
        old, new = self.stays[head : len(before) - tail], now[head : len(now) - tail]
        made: list[Stay | None] = [None] * len(new)
        ended: list[Stay | None] = list(old)
        for there, here in longest([stay.placement for stay in old], new):
            made[here], ended[there] = old[there], None
        begun = [
            Stay(placement, number(placement), self.nth)
            for stay, placement in zip(made, new, strict=True)
            if stay is None
        ]
        coming = iter(begun)
        self.stays[head : len(before) - tail] = [next(coming) if stay is None else stay for stay in made]
        self.placements = now
        move = Move(head, tail, [stay for stay in ended if stay is not None], begun, {})
        for stays, more in ((move.ended, -1), (begun, 1)):
            for stay in stays:
                item = stay.placement.item
                move.before.setdefault(item, self.copies.get(item, NO_COPIES))
                self._count(stay.placement, more)
        return move

    def place(self, head: int, tail: int) -> list[Stay]:
        """Give a position to the stays between a head and a tail that have none.

        If there is no room for some, these and all stays after them end and begin anew.  Returns the stays
        that ended.
        """
        stays = self.stays
        at, end = head, len(stays) - tail
        while at < end:
            if stays[at].pos is not None:
                at += 1
                continue
            until = at + 1
            while until < end and stays[until].pos is None:
                until += 1
            places = self._between(at, until)
            if places is None:
                return self._begun_anew(at)
            for stay, pos in zip(stays[at:until], places, strict=True):
                stay.pos = pos
            at = until
        return []

    def _begun_anew(self, at: int) -> list[Stay]:
        """Let all stays from one on begin with this step; returns those that had begun before it."""
        old, stays = self.stays[at:], self.stays
        stays[at:] = [Stay(stay.placement, stay.number, self.nth) for stay in old]
        for stay, pos in zip(stays[at:], self._between(at, len(stays)) or (), strict=True):
            stay.pos = pos
        return [stay for stay in old if stay.first < self.nth]

    def _between(self, at: int, until: int) -> range | None:
        """Positions for the stays from `at` to `until`; None where their neighbours leave no room."""
        stays, count = self.stays, until - at
        low = (stays[at - 1].pos or 0) if at else 0
        if until == len(stays):
            return range(low + GAP, low + GAP * count + 1, GAP)
        high = stays[until].pos or 0
        room = high - low - 1
        if room < count:
            return None
        before, after = stays[at - 1].first if at else 0, stays[until].first
        step = max(1, room // (count + 1))
        if before != after:
            step = min(step, _NEAR)
        if before >= after:
            return range(low + step, low + step * count + 1, step)
        return range(high - step * count, high, step)

"""When each copy in a frame came in: a small log of what entered and left, kept beside a replay.

An entry is a dozen bytes, and there is one for each placement that a step put in or took out, so the log is
small beside the rows of the steps.  Nothing is replayed to answer: the log is read backwards from the step
that is asked for, until every copy of its frame is explained.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.model.results import Placement


class PresentSince(NamedTuple):
    """Since which step a copy is in the window, by ordinals."""

    copy: int
    """This copy: there have been as many of its key ever since, without a break."""
    item: int
    """Any copy of its item: the window has held one ever since."""


class EntryLog:
    """What entered and left the frames of one thread, in order; one thread of control writes, any read."""

    def __init__(self) -> None:
        self._ordinals = array("l")
        self._keys = array("i")
        """Of an entry: the placement's key, negative where it left."""
        self._items = array("i")
        self._numbers: dict[str, int] = {}
        """Of items, in the order of their first entry."""
        self.steps = 0
        """One more than the ordinal of the last step noted."""

    def note(self, ordinal: int, delta: FrameDelta) -> None:
        """Take in the next step of the thread."""
        for placement in delta.inserted:
            self._add(ordinal, placement, 1)
        for placement in delta.removed:  # behind what came, so that an exchange is no gap when read backwards
            self._add(ordinal, placement, -1)
        self.steps = ordinal + 1

    def _add(self, ordinal: int, placement: Placement, sign: int) -> None:
        number = self._numbers.setdefault(placement.item, len(self._numbers))
        self._keys.append(placement.key * sign)
        self._items.append(number)
        self._ordinals.append(ordinal)

    def cut(self, steps: int) -> EntryLog:
        """The log as it was before the step of ordinal `steps`; this one stays for those who read it."""
        twin = EntryLog()
        end = bisect_left(self._ordinals, steps)
        twin._ordinals, twin._keys = self._ordinals[:end], self._keys[:end]
        twin._items, twin._numbers = self._items[:end], dict(self._numbers)
        twin.steps = min(self.steps, steps)
        return twin

    def since(
        self, ordinal: int, frame: Sequence[Placement], later: Iterable[tuple[int, FrameDelta]] = ()
    ) -> list[PresentSince]:
        """For each placement of a step's frame, since when it is there.

        `later`: steps that are not in the log, the last one first, down to the one behind the log's end; the
        frame is that of the first of them.
        """
        back = _Back(frame)
        for at, delta in later:
            for placement in delta.removed:
                back.left(placement.key, placement.item)
            for placement in delta.inserted:
                back.came(at, placement.key, placement.item)
        names = {number: name for name, number in list(self._numbers.items()) if name in back.items}
        ordinals, keys, items = self._ordinals, self._keys, self._items
        for n in range(bisect_right(ordinals, ordinal) - 1, -1, -1):
            key = keys[n]
            item = names.get(items[n])
            if key < 0:
                back.left(-key, item)
            elif back.came(ordinals[n], key, item):
                break
        return back.found()


class _Back:
    """Counts copies from a frame backwards; the nth of a key came when there were fewer than n before."""

    def __init__(self, frame: Sequence[Placement]) -> None:
        self._frame = frame
        self._copies = Counter(p.key for p in frame)
        self._wanted = dict(self._copies)
        """By key, how many copies are not explained: the last ones of the frame are explained first."""
        self.items = Counter(p.item for p in frame)
        """By item, the copies held at the place that was reached."""
        self._open = set(self.items)
        self._left = len(frame) + len(self._open)
        self._since: dict[tuple[int, int], int] = {}
        self._entered: dict[str, int] = {}

    def left(self, key: int, item: str | None) -> None:
        """Go back before a copy left."""
        if key in self._wanted:
            self._copies[key] += 1
        if item is not None:
            self.items[item] += 1

    def came(self, ordinal: int, key: int, item: str | None) -> bool:
        """Go back before a copy came; whether all is explained."""
        wanted = self._wanted.get(key)
        if wanted is not None:
            count = self._copies[key]
            self._copies[key] = count - 1
            if count == wanted:
                self._since[key, count] = ordinal
                self._wanted[key] = count - 1
                self._left -= 1
        if item is not None:
            self.items[item] -= 1
            if not self.items[item] and item in self._open:
                self._open.discard(item)
                self._entered[item] = ordinal
                self._left -= 1
        return not self._left

    def found(self) -> list[PresentSince]:
        nth: Counter[int] = Counter()
        found = []
        for placement in self._frame:
            nth[placement.key] += 1
            copy = self._since.get((placement.key, nth[placement.key]), 0)
            found.append(PresentSince(copy, self._entered.get(placement.item, 0)))
        return found

"""A log of when each copy entered and left a thread's frames, kept beside a replay.

An entry takes a dozen bytes, and there is one for each placement that a step adds or removes. An answer reads
the log backwards from a step until each copy of its frame is explained; nothing is replayed.
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
    """Ordinals of the steps since which a copy and its item are in the window."""

    copy: int
    """Since when this copy is there: as many copies of its key have been there without a break."""
    item: int
    """Since when any copy of its item is there, without a break."""


class EntryLog:
    """What entered and left the frames of one thread, in order. Only the controlling thread writes."""

    def __init__(self) -> None:
        self._ordinals = array("l")
        self._keys = array("i")
        """Placement key of each entry; negative if it left."""
        self._items = array("i")
        self._numbers: dict[str, int] = {}
        """Numbers of items, in the order of first entry."""
        self.steps = 0
        """One more than the ordinal of the last logged step."""

    def note(self, ordinal: int, delta: FrameDelta) -> None:
        """Add the next step of the thread."""
        for placement in delta.inserted:
            self._add(ordinal, placement, 1)
        for placement in delta.removed:  # removals follow entries, so an exchange is no gap
            self._add(ordinal, placement, -1)
        self.steps = ordinal + 1

    def _add(self, ordinal: int, placement: Placement, sign: int) -> None:
        number = self._numbers.setdefault(placement.item, len(self._numbers))
        self._keys.append(placement.key * sign)
        self._items.append(number)
        self._ordinals.append(ordinal)

    def cut(self, steps: int) -> EntryLog:
        """Return the log as of before step `steps`. This log does not change for its readers."""
        twin = EntryLog()
        end = bisect_left(self._ordinals, steps)
        twin._ordinals, twin._keys = self._ordinals[:end], self._keys[:end]
        twin._items, twin._numbers = self._items[:end], dict(self._numbers)
        twin.steps = min(self.steps, steps)
        return twin

    def since(
        self, ordinal: int, frame: Sequence[Placement], later: Iterable[tuple[int, FrameDelta]] = ()
    ) -> list[PresentSince]:
        """Return since when each placement of a step's frame is there.

        `later` holds steps after the log's end, the last one first. The frame is that of the first of them.
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
    """Counts copies backwards from a frame. The nth copy of a key entered when there were fewer than n."""

    def __init__(self, frame: Sequence[Placement]) -> None:
        self._frame = frame
        self._copies = Counter(p.key for p in frame)
        self._wanted = dict(self._copies)
        """Number of unexplained copies by key. The last copies in the frame are explained first."""
        self.items = Counter(p.item for p in frame)
        """Number of copies held at the current position, by item."""
        self._open = set(self.items)
        self._left = len(frame) + len(self._open)
        self._since: dict[tuple[int, int], int] = {}
        self._entered: dict[str, int] = {}

    def left(self, key: int, item: str | None) -> None:
        """Undo that a copy left."""
        if key in self._wanted:
            self._copies[key] += 1
        if item is not None:
            self.items[item] += 1

    def came(self, ordinal: int, key: int, item: str | None) -> bool:
        """Undo that a copy entered. Return whether all copies are explained."""
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

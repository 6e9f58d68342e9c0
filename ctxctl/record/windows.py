"""The last window of each thread: what makes the next assembly cost what changed."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final, NamedTuple

_THREADS: Final = 1024


class Splice(NamedTuple):
    """Replace `removed` blocks at `at` of the base by `inserted`."""

    at: int
    removed: int
    inserted: list[bytes]


class Window(NamedTuple):
    """The blocks of an assembly, each as JSON."""

    assembly_id: str
    blocks: list[bytes]
    generation: int


class Windows:
    """The last assembly of each thread and target; of the threads used last, the rest is told whole again."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str], Window] = OrderedDict()

    def base(self, key: tuple[str, str], generation: int) -> Window | None:
        """What the next assembly can build on."""
        found = self._last.get(key)
        return found if found is not None and found.generation == generation else None

    def last(self, key: tuple[str, str]) -> str | None:
        """Id of the last assembly."""
        found = self._last.get(key)
        return found.assembly_id if found is not None else None

    def keep(self, key: tuple[str, str], window: Window) -> None:
        """This one was written."""
        self._last[key] = window
        self._last.move_to_end(key)
        if len(self._last) > _THREADS:
            self._last.popitem(last=False)


def splices(old: list[bytes], new: list[bytes]) -> list[Splice]:
    """Ascending splices that make `new` of `old`; linear time, no more blocks than needed in the usual cases.

    What is kept is found from the front: a block is matched with its next occurrence in the old window.
    """
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first, last = head, len(old) - tail
    middle = new[head : len(new) - tail]
    whole = Splice(first, last - first, middle)
    if not whole.removed and not middle:
        return []
    found = _matched(old, first, last, middle)
    if sum(len(one.inserted) for one in found) < len(middle):
        return found
    return [whole]


def _matched(old: list[bytes], first: int, last: int, new: list[bytes]) -> list[Splice]:
    places: dict[bytes, deque[int]] = {}
    for at in range(first, last):
        places.setdefault(old[at], deque()).append(at)
    made: list[Splice] = []
    at, inserted = first, []
    for block in new:
        queue = places.get(block)
        while queue and queue[0] < at:
            queue.popleft()
        if not queue:
            inserted.append(block)
            continue
        found = queue.popleft()
        if inserted or found > at:
            made.append(Splice(at, found - at, inserted))
        at, inserted = found + 1, []
    if inserted or last > at:
        made.append(Splice(at, last - at, inserted))
    return _joined(made)


def _joined(made: list[Splice]) -> list[Splice]:
    """Splices that touch made one, as they must not share a position."""
    joined: list[Splice] = []
    for one in made:
        if joined and joined[-1].at + joined[-1].removed == one.at:
            before = joined.pop()
            one = Splice(before.at, before.removed + one.removed, before.inserted + one.inserted)
        joined.append(one)
    return joined

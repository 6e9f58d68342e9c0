"""Which item of one window is which of another, across runs of a program that gives its items new ids."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import Final

from ctxctl.engine.changes import longest_increasing
from ctxctl.testing.kept import Kept

_ROUNDS: Final[tuple[Callable[[Kept], Hashable | None], ...]] = (
    lambda k: (k.kind, k.digest, k.item, k.stale) if k.digest else None,
    lambda k: (k.kind, k.digest, k.stale) if k.digest else None,
    lambda k: (k.kind, k.item, k.stale),
    lambda k: (k.kind, k.segment, k.source, k.title) if k.title else None,
)
"""What two copies have in common to be one item, the surest first; None: nothing to go by."""


def matched(before: Sequence[Kept], after: Sequence[Kept]) -> dict[int, int]:
    """Places in `before` by places in `after`, one to one.

    The same text wins over the same id, because runtimes that number their items give a number to another
    item in each run; what is left over pairs by kind between the same neighbours.
    """
    pairs: dict[int, int] = {}
    for key in _ROUNDS:
        taken = set(pairs.values())
        waiting: dict[Hashable, list[int]] = {}
        for place in reversed([at for at in range(len(before)) if at not in taken]):
            found = key(before[place])
            if found is not None:
                waiting.setdefault(found, []).append(place)
        for place, kept in enumerate(after):
            found = key(kept) if place not in pairs else None
            if found is not None and waiting.get(found):
                pairs[place] = waiting[found].pop()
    return _between(before, after, pairs)


def _between(before: Sequence[Kept], after: Sequence[Kept], pairs: dict[int, int]) -> dict[int, int]:
    """Those left over that have the same kind and role and follow the same item."""
    anchors = sorted(pairs.values())
    taken = set(anchors)

    def follows(place: int) -> int:
        """The nearest matched place of `before` in front of a place of it."""
        at = bisect_right(anchors, place)
        return anchors[at - 1] if at else -1

    waiting: dict[Hashable, list[int]] = {}
    for place in reversed([at for at in range(len(before)) if at not in taken]):
        kept = before[place]
        waiting.setdefault((follows(place), kept.kind, kept.role, kept.stale), []).append(place)
    made, last = dict(pairs), -1
    for place, kept in enumerate(after):
        if place in pairs:
            last = pairs[place]
        elif found := waiting.get((last, kept.kind, kept.role, kept.stale)):
            made[place] = found.pop()
    return made


def moved(pairs: dict[int, int]) -> set[int]:
    """Places in `after` that are not in the order of `before`: outside the longest run that is."""
    places = sorted(pairs)
    kept = longest_increasing([pairs[place] for place in places])
    return {place for at, place in enumerate(places) if at not in kept}

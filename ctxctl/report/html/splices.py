"""The difference of two lists of objects, in time that does not grow with the square of their length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

_BLOCK: Final = 256


class Splice(NamedTuple):
    """From `at` on, `removed` objects of the old list give way to the new one's from `start` to `end`."""

    at: int
    removed: int
    start: int
    end: int


def splices(old: Sequence[object], new: Sequence[object]) -> list[Splice]:
    """How to make the new list of the old one, in the old one's order.  Objects are compared by identity.

    Not always the shortest way: an object that stands in the list twice is found again once.
    """
    head = _common(old, new)
    tail = 0
    most = min(len(old), len(new)) - head
    while tail < most and old[-1 - tail] is new[-1 - tail]:
        tail += 1
    end_old, end_new = len(old) - tail, len(new) - tail
    if head == end_old and head == end_new:
        return []
    found: list[Splice] = []
    at, start = head, head
    for there, here in [*_kept(old, new, head, end_old, end_new), (end_old, end_new)]:
        if there > at or here > start:
            found.append(Splice(at, there - at, start, here))
        at, start = there + 1, here + 1
    return found


def _common(old: Sequence[object], new: Sequence[object]) -> int:
    """Length of the beginning that both share."""
    most = min(len(old), len(new))
    n = 0
    # Objects that define no equality: slices are equal if they hold the same ones, compared at C speed.
    while n + _BLOCK <= most and old[n : n + _BLOCK] == new[n : n + _BLOCK]:
        n += _BLOCK
    while n < most and old[n] is new[n]:
        n += 1
    return n


def _kept(
    old: Sequence[object], new: Sequence[object], head: int, end_old: int, end_new: int
) -> list[tuple[int, int]]:
    """Places (old, new) of a longest run of objects that keep their order: longest increasing subsequence."""
    where = {id(old[n]): n for n in range(head, end_old)}
    tops: list[int] = []
    chain: list[tuple[int, int, int]] = []
    ends: list[int] = []
    for here in range(head, end_new):
        there = where.get(id(new[here]))
        if there is None:
            continue
        rank = bisect_left(tops, there)
        chain.append((there, here, ends[rank - 1] if rank else -1))
        if rank == len(tops):
            tops.append(there)
            ends.append(len(chain) - 1)
        else:
            tops[rank], ends[rank] = there, len(chain) - 1
    made: list[tuple[int, int]] = []
    link = ends[-1] if ends else -1
    while link >= 0:
        there, here, link = chain[link]
        made.append((there, here))
    return made[::-1]

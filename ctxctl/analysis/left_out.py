"""What a supposed policy has left out of a window: how much, which kinds, and the largest items."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest
from typing import NamedTuple

from ctxctl.analysis.compacting import LARGEST, Taken
from ctxctl.model.results import Change, Step

Thread = tuple[str | None, str]


class LeftOut(NamedTuple):
    """What is left out of a thread's last frame although the session had it."""

    items: int
    tokens: int
    kinds: tuple[tuple[str, int, int], ...]
    """Kind, items and tokens, the largest first."""
    largest: tuple[Taken, ...]
    """At most `LARGEST` items with a title, the largest first."""


class LeftOutItems:
    """Tracks what is left out of each thread. Call `step` for each step, in order."""

    def __init__(self) -> None:
        self._out: dict[Thread, dict[str, Change]] = {}

    def step(self, step: Step) -> None:
        """Process a step."""
        out = self._out.setdefault((step.session, step.thread), {})
        for change in step.changes:
            if change.status in ("removed", "omitted"):
                if change.provenance == "simulated":
                    out[change.item] = change
            elif change.status in ("added", "updated"):
                out.pop(change.item, None)

    def after(self, step: Step) -> LeftOut:
        """Return what is left out after a thread's last step."""
        return _summed(self._out.get((step.session, step.thread), {}).values())


def _summed(changes: Iterable[Change]) -> LeftOut:
    out = list(changes)
    kinds: dict[str, list[int]] = {}
    for change in out:
        held = kinds.setdefault(change.kind, [0, 0])
        held[0] += 1
        held[1] += _size(change)
    by_size = sorted(kinds.items(), key=lambda row: (-row[1][1], row[0]))
    titled = [change for change in out if change.title and _size(change)]
    return LeftOut(
        len(out),
        sum(map(_size, out)),
        tuple((kind, items, tokens) for kind, (items, tokens) in by_size),
        tuple(
            Taken(change.item, change.kind, change.title, _size(change))
            for change in nlargest(LARGEST, titled, key=_size)
        ),
    )


def _size(change: Change) -> int:
    return change.freed or change.tokens or 0

"""What the compactions of one step took out of the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Final, NamedTuple

from ctxctl.model.results import Change, Step

LARGEST: Final = 5
"""How many of the items that a compaction took are named."""


class Taken(NamedTuple):
    """One item that a compaction took out."""

    item: str
    kind: str
    title: str | None
    tokens: int


class Compacting(NamedTuple):
    """What one step's compactions took out of the window, as its changes record it."""

    turn: int
    step: int
    items: int
    tokens: int
    kinds: tuple[tuple[str, int, int], ...]
    """Kind, items, tokens; the largest first."""
    largest: tuple[Taken, ...]
    """At most `LARGEST`, the largest first."""
    triggers: tuple[str, ...]
    """What set them off, where that is recorded; untrusted text."""


def compacting(step: Step) -> Compacting:
    """What a step's compactions took, by its changes."""
    taken = [change for change in step.changes if change.status == "removed" and change.cause == "compacted"]
    kinds: dict[str, list[int]] = {}
    for change in taken:
        held = kinds.setdefault(change.kind, [0, 0])
        held[0] += 1
        held[1] += change.freed
    by_size = sorted(kinds.items(), key=lambda row: (-row[1][1], row[0]))
    return Compacting(
        step.turn, step.step, len(taken), sum(change.freed for change in taken),
        tuple((kind, items, tokens) for kind, (items, tokens) in by_size),
        tuple(_largest(taken)),
        tuple(dict.fromkeys(one.trigger for one in step.annotations.compactions if one.trigger)),
    )  # fmt: skip


def _largest(taken: Iterable[Change]) -> Iterator[Taken]:
    for change in nlargest(LARGEST, taken, key=lambda change: change.freed):
        if change.freed:
            yield Taken(change.item, change.kind, change.title, change.freed)

"""What the compactions of one step removed from the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import Final, NamedTuple

from ctxctl.model.results import Change, Step

LARGEST: Final = 5
"""Number of the largest removed items that are named."""


class Taken(NamedTuple):
    """One item that a compaction removed."""

    item: str
    kind: str
    title: str | None
    tokens: int


class Compacting(NamedTuple):
    """What one step's compactions removed from the window, by its recorded changes."""

    turn: int
    step: int
    items: int
    tokens: int
    kinds: tuple[tuple[str, int, int], ...]
    """Kind, items and tokens, the largest first."""
    largest: tuple[Taken, ...]
    """At most `LARGEST` items, the largest first."""
    triggers: tuple[str, ...]
    """The recorded triggers; untrusted text."""
    named: int = 0
    """Number of items that the compactions' own records name."""


def compacting(step: Step) -> Compacting:
    """Sum up what a step's compactions removed: items of the previous window, and newer ones."""
    taken = [change for change in step.changes if _is_taken(change)]
    kinds: dict[str, list[int]] = {}
    for change in taken:
        held = kinds.setdefault(change.kind, [0, 0])
        held[0] += 1
        held[1] += _size(change)
    by_size = sorted(kinds.items(), key=lambda row: (-row[1][1], row[0]))
    return Compacting(
        step.turn, step.step, len(taken), sum(map(_size, taken)),
        tuple((kind, items, tokens) for kind, (items, tokens) in by_size),
        tuple(_largest(taken)),
        tuple(dict.fromkeys(one.trigger for one in step.annotations.compactions if one.trigger)),
        len({ref for one in step.annotations.compactions for ref in one.source_item_refs}),
    )  # fmt: skip


def _largest(taken: Iterable[Change]) -> Iterator[Taken]:
    for change in nlargest(LARGEST, taken, key=_size):
        if _size(change):
            yield Taken(change.item, change.kind, change.title, _size(change))


def _is_taken(change: Change) -> bool:
    if change.status == "omitted":  # only the request that wrote the summary carried it
        return change.reason == "superseded_by_summary"
    return change.status == "removed" and change.cause == "compacted"


def _size(change: Change) -> int:
    return change.freed or change.tokens

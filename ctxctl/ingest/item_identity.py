"""Decides which items of a request are those of the one before: the one rule for all importers (DESIGN
section 2).

An id of the runtime is the identity, and so is a source; where several pieces share one, and where a piece
has neither, what stands verbatim on both sides (the same role and digest) in the same order is the same item:
a longest common subsequence of the two windows.  Of the rest, a request that goes on with its history may
have moved something; after a compaction, or at a new root, the rest is new, however much a text looks like an
old one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from ctxctl.listdiff import Run, Work, solve

_FORMS: Final = frozenset(
    ("image", "reasoning", "system_prompt", "tool_call", "tool_definition", "tool_result")
)
"""Kinds that make two pieces different items even if their texts are equal. The other kinds are readings of a
message's text, which may change when more is known of it (a prompt that turns out to be a summary)."""

_Key = tuple[str, ...]


class PlacedItem(NamedTuple):
    """What is at one place of a window, as far as it tells identity."""

    role: str
    kind: str
    mark: str
    """Its version (a digest); empty where its content is not known."""
    name: str
    """Its id or source, which others may have too; empty where it has none."""
    item: str = ""
    """Its identity; empty where that is to be found."""


def aligned_identities(
    before: Sequence[PlacedItem], after: Sequence[PlacedItem], *, afresh: bool
) -> dict[int, str]:
    """The identities of what is in `after`, by its index, as far as they are those of `before`; each once.

    Work is bounded (`ctxctl.listdiff`); in histories too long for it, fewer pieces may be recognised.

    Args:
        before: The window of the request before, with identities.
        after: That of this one.
        afresh: A compaction or a new root lies between: of what has no name only what stands in order stays.
    """
    shared = {one.name for one in after if one.name}.intersection(one.name for one in before)
    found = _match_in_order(before, after, shared)
    given = set(found.values())
    if shared:
        named = [(one.name,) if one.name in shared else None for one in before]
        _match_by_key(before, named, [(one.name,) if one.name else None for one in after], found, given)
    if not afresh:
        held = [(one.role, one.kind, one.mark) if one.name not in shared else None for one in before]
        moved = [(one.role, one.kind, one.mark) if not one.name else None for one in after]
        _match_by_key(before, held, moved, found, given)
    return found


def _match_by_key(
    before: Sequence[PlacedItem],
    held: Iterable[_Key | None],
    wanted: Iterable[_Key | None],
    found: dict[int, str],
    given: set[str],
) -> None:
    """Give each piece without an identity one that is left under the same key, oldest first."""
    left: dict[_Key, deque[str]] = {}
    for one, key in zip(before, held, strict=True):
        if key is not None and one.item not in given:
            left.setdefault(key, deque()).append(one.item)
    for at, key in enumerate(wanted):
        queue = left.get(key) if key is not None else None
        while queue and at not in found:
            item = queue.popleft()
            if item not in given:
                given.add(item)
                found[at] = item


def _match_in_order(
    before: Sequence[PlacedItem], after: Sequence[PlacedItem], shared: set[str]
) -> dict[int, str]:
    """The identities of what stands in both windows verbatim and in order."""
    old: list[Hashable] = [_key(one, shared) or f"<{at}" for at, one in enumerate(before)]
    new: list[Hashable] = [
        (_key(one, shared) if not one.name or one.name in shared else None) or f">{at}"
        for at, one in enumerate(after)
    ]
    runs: list[Run] = []
    solve(old, new, 0, 0, Work(), runs, 0)
    found: dict[int, str] = {}
    given: set[str] = set()
    for run in runs:
        for a, b in zip(range(run.a, run.a + run.size), range(run.b, run.b + run.size), strict=True):
            item = before[a].item
            if item not in given:
                given.add(item)
                found[b] = item
    return found


def _key(one: PlacedItem, shared: set[str]) -> _Key | None:
    """The key by which a piece is compared; None for one that is like no other, as its content is not known.

    A piece whose name both sides have is only like one with that name.
    """
    if not one.mark:
        return None
    form = one.kind if one.kind in _FORMS else ""
    return (one.role, form, one.mark, one.name if one.name in shared else "")

"""The possible prefix: how much of a request a provider's prompt cache could reuse (DESIGN section 3).

It compares placements in the provider's order (tools, system, then the rest); what the provider reported as
cached is another number, shown beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from ctxctl.model.results import Placement

_rank = attrgetter("rank")
_tokens: Callable[[Placement], int] = attrgetter("tokens")


class Prefix(NamedTuple):
    """The longest common run of two requests."""

    tokens: int
    length: int
    """Placements in the run."""
    breaker: Placement | None
    """The placement whose change ended the run; None if the whole previous request was kept."""
    status: str
    """What happened to the breaker: `added`, `updated`, `removed`, `moved`; empty without one."""


def is_provider_order(frame: list[Placement], head: int) -> bool:
    """Whether the `head` tools and system placements come first, tools before system."""
    last = 0
    for placement in frame[:head]:
        rank = placement.rank
        if rank < last or rank == 2:
            return False
        last = rank
    return True


def provider_order(frame: list[Placement], head: int) -> list[Placement]:
    """The frame as a provider lays it out; the frame itself where it already is."""
    if is_provider_order(frame, head):
        return frame
    return sorted(frame, key=_rank)


def possible_prefix(
    first: list[Placement],
    second: list[Placement],
    used_before: int,
    same: int = 0,
    held: Callable[[str], bool] | None = None,
) -> Prefix:
    """Compare two requests, both in the provider's order.

    `used_before` are the tokens of `first`, and `same` is a number of leading placements known to be the
    same objects in both.  `held` tells whether `second` holds any copy of an item, where that is known.
    """
    at = same
    limit = min(len(first), len(second))
    while at < limit and (first[at] is second[at] or first[at].key == second[at].key):
        at += 1
    tokens = _head_tokens(first, at, used_before)
    if at == len(first):
        return Prefix(tokens, at, None, "")
    if held is not None and not held(first[at].item):
        return Prefix(tokens, at, first[at], "removed")
    return Prefix(tokens, at, *_breaker(first, second, at))


def _head_tokens(frame: list[Placement], length: int, used: int) -> int:
    if length * 2 < len(frame):
        return sum(map(_tokens, frame[:length]))
    return used - sum(map(_tokens, frame[length:]))


def _breaker(before: list[Placement], after: list[Placement], at: int) -> tuple[Placement, str]:
    """The first placement that breaks the run, and the change that did it."""
    left = before[at]
    if at == len(after):
        return left, "removed"
    came = after[at]
    if came.item == left.item and came.key != left.key:
        return came, "updated"
    rest = after[at:]
    if left.key not in [p.key for p in rest]:
        still = any(p.item == left.item and not p.stale for p in rest)
        return left, "updated" if still else "removed"
    if came.key in [p.key for p in before[at:]]:
        return came, "moved"
    updated = any(p.item == came.item for p in before[at:])
    return came, "updated" if updated else "added"

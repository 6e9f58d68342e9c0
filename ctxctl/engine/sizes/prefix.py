"""The possible prefix: how much of a request a provider's prompt cache could reuse (DESIGN section 3).

It compares placements in the provider's order (tools, system, then the rest), and the parameters that
providers document as breaking their caches (`settings`). The reported cached tokens are a separate number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from ctxctl.engine.sizes.cache_settings import BrokenSetting
from ctxctl.listdiff import place_of
from ctxctl.listdiff import same as same_objects
from ctxctl.model.results import Placement, Step

_rank = attrgetter("rank")
_tokens: Callable[[Placement], int] = attrgetter("tokens")
_key: Callable[[Placement], int] = attrgetter("key")
_MAX_SEARCHED = 64
"""Up to this many tools and system placements are searched one by one."""
Holds = Callable[[str], bool]
"""Tells whether a request holds any copy of an item."""


class CommonPrefix(NamedTuple):
    """The longest common run of two requests."""

    tokens: int
    length: int
    """Number of placements in the run."""
    breaker: Placement | None
    """The placement whose change ended the run; None if the whole previous request was kept."""
    status: str
    """What happened to the breaker: `added`, `updated`, `removed`, `moved`; empty without one."""
    was: Placement | None = None
    """The breaker's copy in the previous request, if both hold it."""
    setting: BrokenSetting | None = None
    """The parameter whose change ended the run; if set, there is no breaker."""
    shared: int = 0
    """Tokens that the run would have if both requests were to one model."""


def breaks_cache(step: Step) -> bool:
    """Return whether less than nine tenths of the previous request could come from a prompt cache.

    Nearly every request changes something at its end, such as a restated state. That costs little and is no
    break.
    """
    prefix = step.cache.possible_prefix
    return (
        step.cache.broken_by is not None
        and prefix is not None
        and prefix * 10 < step.ledger.window_before * 9
    )


def is_provider_order(frame: list[Placement], head: int) -> bool:
    """Return whether the `head` tools and system placements come first, tools before system."""
    last = 0
    for placement in frame[:head]:
        rank = placement.rank
        if rank < last or rank == 2:
            return False
        last = rank
    return True


def provider_order(
    frame: list[Placement], head: int, first: Mapping[Placement, int] | None = None
) -> list[Placement]:
    """Return the frame in the provider's order; the frame itself if it already is.

    `first` holds the frame's tools and system placements with their copies, if known. Then a few misplaced
    ones cost no scan of the rest.
    """
    if is_provider_order(frame, head):
        return frame
    if first is None or len(first) != head or head > _MAX_SEARCHED:
        return sorted(frame, key=_rank)
    places = [(placement.rank, at) for placement in first if (at := place_of(placement, frame)) is not None]
    made = [frame[at] for _, at in sorted(places)]
    stood = 0
    for at in sorted(at for _, at in places):
        made += frame[stood:at]
        stood = at + 1
    return made + frame[stood:]


def possible_prefix(
    first: list[Placement],
    second: list[Placement],
    used_before: int,
    same: int = 0,
    held: tuple[Holds, Holds] | None = None,
    setting: BrokenSetting | None = None,
) -> CommonPrefix:
    """Compare two requests, both in the provider's order.

    `used_before` is the tokens of `first`, and `same` a number of leading placements known to be identical in
    both. `held` tells for `first` and for `second` which items they hold, if known. `setting` is a changed
    parameter: it ends the run where its rank begins, if nothing did before.
    """
    found = _run(first, second, used_before, same, held)
    if setting is None:
        return found._replace(shared=found.tokens)
    most = bisect_left(first, setting.rank, key=_rank)
    if most > found.length or most == len(first):
        return found._replace(shared=found.tokens)
    tokens = _head_tokens(first, most, used_before)
    shared = found.tokens if setting.name == "model" else tokens
    return CommonPrefix(tokens, most, None, "updated", None, setting, shared)


def _run(
    first: list[Placement],
    second: list[Placement],
    used_before: int,
    same: int,
    held: tuple[Holds, Holds] | None,
) -> CommonPrefix:
    at = same
    limit = min(len(first), len(second))
    while at < limit:
        if first[at] is second[at]:
            at += same_objects(first, second, at, at, limit - at)
        elif first[at].key == second[at].key:
            at += 1
        else:
            break
    tokens = _head_tokens(first, at, used_before)
    if at == len(first):
        return CommonPrefix(tokens, at, None, "")
    if held is not None and not held[1](first[at].item):
        return CommonPrefix(tokens, at, first[at], "removed")
    new = held is not None and at < len(second) and not held[0](second[at].item)
    return CommonPrefix(tokens, at, *_breaker(first, second, at, new=new))


def _head_tokens(frame: list[Placement], length: int, used: int) -> int:
    if length * 2 < len(frame):
        return sum(map(_tokens, frame[:length]))
    return used - sum(map(_tokens, frame[length:]))


def _breaker(
    before: list[Placement], after: list[Placement], at: int, *, new: bool
) -> tuple[Placement, str, Placement | None]:
    """Return the first placement that breaks the run, its change, and its previous copy.

    `new`: the new placement is known to be of an item that the previous request lacked.
    """
    left = before[at]
    if at == len(after):
        return left, "removed", None
    came = after[at]
    if came.item == left.item and came.key != left.key:
        return came, "updated", left
    if left.key not in map(_key, islice(after, at, None)):
        still = any(p.item == left.item and not p.stale for p in islice(after, at, None))
        return left, "updated" if still else "removed", None
    if new:
        return came, "added", None
    if came.key in map(_key, islice(before, at, None)):
        return came, "moved", None
    updated = any(p.item == came.item for p in islice(before, at, None))
    return came, "updated" if updated else "added", None

"""The possible prefix."""

from __future__ import annotations

from ctxctl.engine.sizes.prefix import possible_prefix, provider_order
from tests.unit.engine.making import placement

TOOL = placement("tool", 1, tokens=10, segment="tools")
SYSTEM = placement("system", 2, tokens=20, segment="system")
A, B, C = (placement(name, n, tokens=n) for name, n in (("a", 3), ("b", 4), ("c", 5)))


def prefix(before: list, after: list) -> tuple[int, str | None, str]:
    laid_out = [provider_order(f, sum(p.rank < 2 for p in f)) for f in (before, after)]
    found = possible_prefix(laid_out[0], laid_out[1], sum(p.tokens for p in before))
    return found.tokens, found.breaker.item if found.breaker else None, found.status


def test_a_grown_request_keeps_all_of_the_last_one() -> None:
    assert prefix([TOOL, SYSTEM, A], [TOOL, SYSTEM, A, B]) == (33, None, "")


def test_tools_and_system_come_first_wherever_they_stand() -> None:
    assert prefix([A, TOOL, B], [TOOL, A, B, SYSTEM]) == (10, "system", "added")


def test_what_broke_it() -> None:
    other = placement("a", 9)
    assert prefix([SYSTEM, A, B], [SYSTEM, other, B]) == (20, "a", "updated")
    assert prefix([SYSTEM, A, B], [SYSTEM, B]) == (20, "a", "removed")
    assert prefix([SYSTEM, A, B], [SYSTEM, C, A, B]) == (20, "c", "added")
    assert prefix([SYSTEM, A, B], [SYSTEM, B, A]) == (20, "b", "moved")
    assert prefix([SYSTEM, A, B], [SYSTEM, A]) == (23, "b", "removed")


def test_a_copy_that_became_stale_is_still_the_same_text() -> None:
    stale = placement("a", 3, tokens=3, stale=True)
    assert prefix([SYSTEM, A], [SYSTEM, stale, B]) == (23, None, "")

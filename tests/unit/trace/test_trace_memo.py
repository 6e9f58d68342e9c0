"""The bounded memory of decoded records."""

from __future__ import annotations

from ctxctl.trace.memo import Memo

HELD = 32_768
"""Entries of one generation, as the class promises."""


def keys(first: int, count: int) -> list[bytes]:
    return [number.to_bytes(4, "big") for number in range(first, first + count)]


def test_what_is_remembered_is_had_again_and_the_first_of_a_race_stays() -> None:
    memo: Memo[list[str]] = Memo()
    first = memo.put(b"k", ["a"])
    assert memo.get(b"k") is first
    assert memo.put(b"k", ["a"]) is first
    assert memo.get(b"other") is None


def test_two_generations_are_held_and_what_is_used_outlives_them() -> None:
    memo: Memo[int] = Memo()
    young = memo.young
    used, idle = keys(0, 2)
    memo.put(used, -1)
    memo.put(idle, -2)
    for number, key in enumerate(keys(2, 4 * HELD)):
        memo.put(key, number)
        if number % 1000 == 0:
            assert memo.get(used) == -1
    assert memo.get(idle) is None
    assert memo.get(used) == -1
    assert memo.young is young, "its `get` is held across calls"


def test_a_generation_is_as_large_as_it_is_called() -> None:
    memo: Memo[int] = Memo()
    made = keys(0, 2 * HELD + 1)
    for key in made[:-1]:
        memo.put(key, 7)
    assert all(key in memo.young or key in memo.old for key in made[:-1])
    assert (len(memo.young), len(memo.old)) == (HELD, HELD)
    memo.put(made[-1], 7)
    assert (len(memo.young), len(memo.old)) == (1, HELD)
    assert memo.get(made[0]) is None

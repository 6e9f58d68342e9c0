"""Which turns of two sessions belong together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.textdiff.turn_alignment import AlignedTurns, align_turns

PROMPTS = st.lists(st.sampled_from(["a", "b", "c", "d", None]), max_size=12)


def test_a_turn_that_one_side_has_more_has_no_partner() -> None:
    assert align_turns(["a", "b", "c"], ["a", "c"])[0] == [
        AlignedTurns(0, 0, True), AlignedTurns(1, None, False), AlignedTurns(2, 1, True),
    ]  # fmt: skip


def test_between_equal_prompts_turns_are_paired_in_order() -> None:
    assert align_turns(["a", "x", "y", "c"], ["a", "z", "c"])[0] == [
        AlignedTurns(0, 0, True), AlignedTurns(1, 1, False),
        AlignedTurns(2, None, False), AlignedTurns(3, 2, True),
    ]  # fmt: skip


def test_prompts_that_are_not_known_are_equal_to_none() -> None:
    assert align_turns([None, None], [None])[0] == [AlignedTurns(0, 0, False), AlignedTurns(1, None, False)]


def test_long_sessions_are_aligned_in_bounded_work() -> None:
    a = [f"prompt {n}" for n in range(20_000)]
    b = [*a[:5_000], *(f"other {n}" for n in range(3_000)), *a[7_000:]]
    pairs, minimal = align_turns(a, b)
    assert minimal
    assert sum(pair.equal for pair in pairs) == 18_000


def longest(a: list[str | None], b: list[str | None]) -> int:
    rows = [0] * (len(b) + 1)
    for one in a:
        last = 0
        for n, other in enumerate(b, 1):
            same = last + 1 if one is not None and one == other else max(rows[n], rows[n - 1])
            last, rows[n] = rows[n], same
    return rows[-1]


@given(PROMPTS, PROMPTS)
def test_every_turn_is_there_once_in_order_and_as_many_are_equal_as_can_be(
    a: list[str | None], b: list[str | None]
) -> None:
    pairs, minimal = align_turns(a, b)
    assert [pair.a for pair in pairs if pair.a is not None] == list(range(len(a)))
    assert [pair.b for pair in pairs if pair.b is not None] == list(range(len(b)))
    for pair in pairs:
        if pair.a is not None and pair.b is not None:
            same = a[pair.a] is not None and a[pair.a] == b[pair.b]
            assert same or not pair.equal
        else:
            assert not pair.equal
    assert minimal
    assert sum(pair.equal for pair in pairs) == longest(a, b)

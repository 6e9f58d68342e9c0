"""Statuses, moves and token flows by themselves."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.engine.replay.changes import (
    ChangeContext,
    changes_of,
    compare_frames,
    longest_increasing,
    no_cause,
    standing_copies,
)
from ctxctl.engine.replay.frames import FrameState, delta_of, flow_of
from ctxctl.engine.replay.renderings import _texts, json_in
from tests.oracle.ref_changes import longest
from tests.unit.engine.making import Json, add, assembly, event, inject, placement, steps, turns

CONTEXT = ChangeContext(no_cause)
POOL = [placement(f"i{n // 2}", n, tokens=n + 1) for n in range(12)]
FRAMES = st.lists(st.sampled_from(POOL), max_size=14)


def brute_force(rows: list[int]) -> int:
    best = 0
    for mask in range(1 << len(rows)):
        chosen = [row for at, row in enumerate(rows) if mask >> at & 1]
        if all(a < b for a, b in pairwise(chosen)):
            best = max(best, len(chosen))
    return best


@given(st.permutations(range(8)))
def test_longest_increasing_is_longest_and_increasing(rows: list[int]) -> None:
    stay = sorted(longest_increasing(rows))
    chosen = [rows[at] for at in stay]
    assert chosen == sorted(chosen)
    assert len(chosen) == brute_force(rows)


@given(FRAMES, FRAMES)
def test_the_flow_is_the_multiset_difference(before: list, after: list) -> None:
    new, old = Counter(after), Counter(before)
    flow = flow_of(delta_of(before, after))
    assert flow.new == sum(p.tokens * n for p, n in (new - old).items())
    assert flow.freed == sum(p.tokens * n for p, n in (old - new).items())


@given(FRAMES, FRAMES)
def test_the_kept_sums_equal_those_taken_afresh(before: list, after: list) -> None:
    moved, fresh = FrameState(), FrameState()
    moved.move_to(before, delta_of([], before))
    moved.move_to(after, delta_of(before, after))
    fresh.move_to(after, delta_of([], after))
    for name in ("used", "stale", "uncounted", "by_method", "segments", "current", "held", "head"):
        left, right = getattr(moved, name), getattr(fresh, name)
        if isinstance(left, dict):
            left, right = ({k: v for k, v in d.items() if v} for d in (left, right))
        assert left == right, name


@given(FRAMES, FRAMES)
def test_each_item_has_exactly_one_status(before: list, after: list) -> None:
    result = compare_frames(before, after, CONTEXT)
    items = {p.item for p in before} | {p.item for p in after}
    counts = result.counts
    assert counts.added + counts.updated + counts.removed + counts.skipped == len(items)
    listed = [c.item for c in result.changes]
    assert len(listed) == len(set(listed))


ENTERING = st.lists(
    st.sampled_from(
        POOL
        + [msgspec.structs.replace(one, stale=True) for one in POOL[:2]]
        + [msgspec.structs.replace(placement(f"c{n}", 20 + n), carried=True, derived=n > 0) for n in range(3)]
    ),
    max_size=6,
)


@given(FRAMES, ENTERING, st.integers(0, 14), st.sampled_from([frozenset(), frozenset({"i1", "c0"})]))
def test_what_only_comes_in_is_told_as_any_change_is(
    before: list, entering: list, at: int, cut: frozenset[str]
) -> None:
    after = [*before[:at], *entering, *before[at:]]
    context = ChangeContext(no_cause, truncated=cut)
    state, delta = FrameState(), delta_of(before, after)
    state.move_to(before, delta_of([], before))
    was = standing_copies(state, delta, ())
    state.move_to(after, delta)
    assert changes_of(before, was, state, delta, context) == compare_frames(before, after, context)


def test_one_item_moved_over_others_is_the_one_that_moved() -> None:
    a, b, c, d = POOL[0], POOL[2], POOL[4], POOL[6]
    assert compare_frames([a, b, c, d], [b, c, d, a], CONTEXT).moved == {a.item}
    assert compare_frames([a, b, c, d], [a, b, c, d], CONTEXT).moved == frozenset()
    assert compare_frames([b, c, d], [a, b, c, d], CONTEXT).moved == frozenset()


def test_which_of_several_copies_left_is_the_one_that_leaves_most_in_order() -> None:
    a, b, c, d = POOL[0], POOL[2], POOL[4], POOL[6]
    assert compare_frames([b, a, b], [a, b], CONTEXT).moved == frozenset()
    assert compare_frames([b, c, a, b, c], [a, b, d], CONTEXT).moved == frozenset()
    assert compare_frames([a, b, d], [b, c, a, b, c], CONTEXT).moved == frozenset()
    assert compare_frames([b, c, b, a], [a, b, c, b], CONTEXT).moved == {a.item}


@given(FRAMES, FRAMES)
def test_what_moved_is_outside_a_longest_common_subsequence(before: list, after: list) -> None:
    kept = Counter(before) & Counter(after)
    runs = longest(tuple(before), tuple(after))
    assert compare_frames(before, after, CONTEXT).moved in [
        {p.item for p in kept - Counter(run)} for run in runs
    ]


def test_a_copy_less_in_one_segment_is_no_move_to_another() -> None:
    here, there = placement("x", 1), msgspec.structs.replace(placement("x", 1), segment="elsewhere")
    a, b = POOL[0], POOL[2]
    assert compare_frames([here, a, there], [a, there], CONTEXT).moved == frozenset()
    assert compare_frames([here, a, there, b], [a, there], CONTEXT).moved == frozenset()
    assert compare_frames([there, a, here, b], [a, there], CONTEXT).moved in ({"x"}, {a.item})


def test_another_rendering_of_the_same_version_is_an_update() -> None:
    before, after = placement("x", 1), placement("x", 2)
    assert [c.status for c in compare_frames([before], [after], CONTEXT).changes] == ["updated"]


def test_a_stale_copy_is_no_current_one() -> None:
    now, then = placement("x", 1), placement("x", 1, stale=True)
    change = compare_frames([now], [then], CONTEXT).changes[0]
    assert (change.status, change.new, change.freed, change.in_window) == ("removed", 0, 0, 1)
    assert "stale" in change.flags


def test_an_item_in_another_segment_has_moved() -> None:
    was, now = placement("x", 1), msgspec.structs.replace(placement("x", 1), segment="elsewhere")
    (kept,) = compare_frames([was], [now], CONTEXT).changes
    assert (kept.status, kept.flags) == ("skipped", ("moved",))
    newer = msgspec.structs.replace(placement("x", 2), segment="elsewhere")
    (updated,) = compare_frames([was], [newer], CONTEXT).changes
    assert (updated.status, updated.flags) == ("updated", ("moved",))


def test_a_turn_says_what_any_of_its_steps_cut() -> None:
    """The budget of the first step cut one item, that of the second another."""

    def cut(item: str, step: str) -> list[Json]:
        ids = {"turn": "2", "step": step}
        records = [{"item_ref": item, "action": "truncated", "kept_tokens": 1}]
        return [
            add(item, "short", update=True, **ids),
            event("budget.applied", {"target": "model", "truncation_records": records}, **ids),
            assembly(f"m{step}", "A", "B", "C", **ids),
            inject(f"m{step}", **ids),
        ]

    ids = {"turn": "1", "step": "0"}
    whole = [add(item, f"a text of {item} that is long", **ids) for item in "ABC"]
    events = [
        *whole,
        assembly("m0", "A", "B", "C", **ids),
        inject("m0", **ids),
        *cut("A", "1"),
        *cut("B", "2"),
    ]
    assert [{c.item: c.flags for c in step.changes} for step in steps(events)[1:]] == [
        {"A": ("truncated",)},
        {"B": ("truncated",)},
    ]
    assert {c.item: c.flags for c in turns(events)[1].changes} == {"A": ("truncated",), "B": ("truncated",)}


def test_json_in_a_text_is_that_of_its_beginning_or_behind_its_first_word() -> None:
    assert json_in('{"a": 1}') == (0, {"a": 1})
    assert json_in('read {"a": 1}') == (5, {"a": 1})
    assert json_in('{torn {"a": 1}') == (6, {"a": 1})
    assert json_in("{torn") is None


@pytest.mark.parametrize(("depth", "told"), [(0, "key order"), (3, "key order in a.a.a"), (70, "spacing")])
def test_how_deep_keys_are_compared(depth: int, told: str) -> None:
    texts: list[Any] = [{"x": 1, "y": 2}, {"y": 2, "x": 1}]
    for _ in range(depth):
        texts = [{"a": text} for text in texts]
    assert _texts(*(json.dumps(text) for text in texts)) == told


def test_key_order_is_looked_for_sixty_levels_down() -> None:
    told = []
    for depth in (60, 61):
        texts: list[Any] = [{"x": 1, "y": 2}, {"y": 2, "x": 1}]
        for _ in range(depth):
            texts = [{"a": text} for text in texts]
        told.append(_texts(*(json.dumps(text) for text in texts)))
    assert told == ["key order in " + ".".join("a" * 60), "spacing"]

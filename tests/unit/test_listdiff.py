"""Splices of one list into another, by each way of saying what stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.listdiff import Splice, forward, joined, longest, same_end, same_start, splices, trimmed

LISTS = st.lists(st.integers(0, 9), max_size=30)
DISTINCT = st.lists(st.integers(0, 30), max_size=20, unique=True)
MATCHERS = [longest, forward]


def applied(old: Sequence[Any], found: Sequence[Splice[Any]]) -> list[Any]:
    """Return the list that splices make; they ascend, and between each two something stays."""
    made: list[Any] = []
    at, last = 0, -1
    for start, removed, inserted in found:
        assert start > last
        made += [*old[at:start], *inserted]
        at = last = start + removed
    return [*made, *old[at:]]


def common(old: Sequence[int], new: Sequence[int]) -> int:
    """Return the length of a longest common subsequence, by the table."""
    row = [0] * (len(new) + 1)
    for one in old:
        before = row
        row = [0]
        for at, other in enumerate(new):
            row.append(before[at] + 1 if one == other else max(before[at + 1], row[-1]))
    return row[-1]


def inserted(found: Sequence[Splice[Any]]) -> int:
    return sum(len(one.inserted) for one in found)


@pytest.mark.parametrize("stays", MATCHERS)
@given(old=LISTS, new=LISTS)
def test_splices_make_the_new_list_of_the_old(stays: Any, old: list[int], new: list[int]) -> None:
    found = splices(old, new, stays)
    assert applied(old, found) == new
    assert (found == []) == (old == new)


@given(DISTINCT, DISTINCT)
def test_where_nothing_stands_twice_the_longest_run_stays(old: list[int], new: list[int]) -> None:
    assert len(new) - inserted(splices(old, new)) == common(old, new)


@pytest.mark.parametrize("stays", MATCHERS)
@given(old=DISTINCT, gone=st.sets(st.integers(0, 30)), fresh=st.lists(st.integers(0, 20), max_size=5))
def test_what_keeps_its_order_stays(stays: Any, old: list[int], gone: set[int], fresh: list[int]) -> None:
    new: list[int] = [one for one in old if one not in gone]
    for number, place in enumerate(fresh, 100):
        new.insert(place, number)
    assert inserted(splices(old, new, stays)) == len(fresh)


@given(LISTS, LISTS)
def test_from_the_front_each_takes_the_next_copy(old: list[int], new: list[int]) -> None:
    pairs = list(forward(old, new))
    at = 0
    for here, item in enumerate(new):
        there = next((n for n in range(at, len(old)) if old[n] == item), None)
        assert ((there, here) in pairs) == (there is not None)
        at = at if there is None else there + 1


@given(LISTS, LISTS, LISTS, st.integers(0, 40))
def test_what_is_known_of_the_head_changes_nothing(
    head: list[int], old: list[int], new: list[int], known: int
) -> None:
    one, two = head + old, head + new
    assert splices(one, two, head=min(known, len(head))) == splices(one, two)


@given(LISTS, LISTS, LISTS)
def test_both_ends_are_found(head: list[int], old: list[int], new: list[int]) -> None:
    assert same_start(head + old, head + new) == len(head) + same_start(old, new)
    limit = min(len(old), len(new)) + len(head)
    whole = same_end(old + head, new + head, limit)
    assert whole >= len(head)
    assert same_end(old + head, new + head, limit, len(head)) == whole


@given(st.integers(0, 5), LISTS, LISTS)
def test_one_splice_is_the_smallest_at_its_place(at: int, old: list[int], new: list[int]) -> None:
    found = trimmed(at, old, new)
    if found is None:
        assert old == new
        return
    start = found.at - at
    assert applied(old, [found._replace(at=start)]) == new
    left = old[start : start + found.removed]
    if left and found.inserted:
        assert left[0] != found.inserted[0]
        assert left[-1] != found.inserted[-1]


def test_splices_that_touch_become_one() -> None:
    found = joined([Splice(0, 1, [7]), Splice(1, 2, []), Splice(4, 0, [8])])
    assert found == [Splice(0, 3, [7]), Splice(4, 0, [8])]


def test_an_exchange_at_both_ends_leaves_the_middle_alone() -> None:
    middle = list(range(1000))
    old, new = [-1, *middle, -2], [-3, *middle, -4, -5]
    assert splices(old, new) == [Splice(0, 1, [-3]), Splice(1001, 1, [-4, -5])]


def test_one_that_moved_to_the_front_is_told_again_by_the_longest_only() -> None:
    old, new = [1, 2, 3, 4, 9], [9, 1, 2, 3, 4]
    assert inserted(splices(old, new)) == 1
    assert inserted(splices(old, new, forward)) == 4


@pytest.mark.parametrize("size", [1, 7, 9, 300, 5000])
def test_long_lists_begin_and_end_alike_up_to_the_item_that_differs(size: int) -> None:
    """Stretches are compared at once, of doubling size: each place where one can end is tried."""
    old = list(range(size))
    assert same_start(old, list(old)) == size
    for at in sorted({0, 1, 7, 8, 9, 23, 24, 25, 255, 256, 257, size // 2, size - 2, size - 1} & set(old)):
        new = [*old[:at], -1, *old[at + 1 :]]
        assert same_start(old, new) == at
        assert same_end(old, new, size) == size - at - 1
        assert applied(old, splices(old, new, forward)) == new
        assert [(one.at, one.removed, one.inserted) for one in splices(old, new, forward)] == [(at, 1, [-1])]

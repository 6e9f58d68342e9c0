"""The list of turns: which steps make a turn, and which line stands for what.  No event loop."""

from __future__ import annotations

import msgspec
import pytest
from fake import FakeInspector, Request, Thing, notes_agent
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.outline import Row
from ctxctl.tui.folding import Folding
from ctxctl.tui.outline import Grouping, Turns
from ctxctl.tui.thread_tree import Place

ASK = Thing("a", "a text")


def turns_of(requests: list[Request]) -> Turns:
    return Turns.of(FakeInspector(requests).outline().rows)


def test_turns_collect_their_steps_and_sum_their_ledgers() -> None:
    turns = turns_of(notes_agent())
    assert [entry.turn for entry in turns.entries] == [1, 2, 3]
    assert [list(entry.ordinals) for entry in turns.entries] == [[0, 1], [2], [3]]
    first, rows = turns.entries[0], turns.rows
    assert first.new == rows[0].new + rows[1].new
    assert first.used == rows[1].used
    assert first.title == "Rewrite this note"
    assert turns.peak == max(row.used for row in rows)


def test_steps_of_interleaved_threads_stay_with_their_turns() -> None:
    turns = turns_of(
        [
            Request(1, (ASK,)),
            Request(1, (ASK,), thread="explorer"),
            Request(1, (ASK,)),
            Request(2, (ASK,)),
            Request(1, (ASK,), thread="explorer"),
        ]
    )
    assert [(e.thread, e.turn, list(e.ordinals)) for e in turns.entries] == [
        ("main", 1, [0, 2]),
        ("explorer", 1, [1, 4]),
        ("main", 2, [3]),
    ]
    assert turns.several
    assert turns.total(turns.entries[0]) == 2
    assert turns.total(turns.entries[1]) == 1


def test_reading_the_outline_can_be_stopped() -> None:
    class EnoughError(Exception):
        pass

    def pause() -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        Grouping().take(FakeInspector(notes_agent()).outline().rows, pause)


def facts(turns: Turns) -> list[tuple[object, ...]]:
    return [
        (e.session, e.thread, e.turn, e.title, list(e.ordinals[: e.steps]), e.used, e.new, e.freed, e.whole)
        for e in turns.entries
    ]


@given(
    st.lists(st.tuples(st.sampled_from(["main", "explorer"]), st.booleans()), min_size=1, max_size=14),
    st.lists(st.integers(1, 5), min_size=14, max_size=14),
)
def test_turns_that_come_in_pieces_are_those_that_come_at_once(
    steps: list[tuple[str, bool]], sizes: list[int]
) -> None:
    turn = {"main": 1, "explorer": 1}
    requests = []
    for thread, begins in steps:
        turn[thread] += begins
        requests.append(Request(turn[thread], (ASK,), thread=thread, title=f"{thread} {turn[thread]}"))
    rows = FakeInspector(requests).outline().rows
    known: list[Row] = []
    grouping, turns = Grouping(), Turns()
    for size in sizes:
        known += rows[len(known) : len(known) + size]
        turns.grow(grouping.take(known))
        assert sum(entry.steps for entry in turns.entries) == len(known)
    turns.grow(grouping.take(rows, complete=True))
    assert facts(turns) == facts(Turns.of(rows))
    assert turns.totals == Turns.of(rows).totals
    assert all(entry.whole for entry in turns.entries)


def test_only_what_changed_is_told_again() -> None:
    rows = FakeInspector([Request(n + 1, (ASK,)) for n in range(50)]).outline().rows
    grouping = Grouping()
    assert len(grouping.take(rows[:40]).entries) == 40
    assert [index for index, _ in grouping.take(rows[:41]).entries] == [39, 40]
    assert grouping.take(rows[:41]).entries == []


def test_a_title_that_comes_after_its_turn_is_taken_up() -> None:
    titled = FakeInspector([Request(1, (ASK,), title="late")]).outline().rows
    known = [msgspec.structs.replace(titled[0], title=None)]
    grouping, turns = Grouping(), Turns()
    turns.grow(grouping.take(known))
    assert turns.entries[0].title is None
    known[0] = titled[0]
    turns.grow(grouping.take(known))
    assert turns.entries[0].title == "late"


def test_what_was_told_is_not_changed_by_what_comes_later() -> None:
    rows = FakeInspector([Request(1, (ASK,)), Request(1, (ASK,))]).outline().rows
    grouping = Grouping()
    ((_, early),) = grouping.take(rows[:1]).entries
    grouping.take(rows)
    assert (early.steps, early.last, early.whole) == (1, 0, False)


def test_an_unfolded_turn_lists_its_steps_below_it() -> None:
    folding = Folding(turns_of(notes_agent()))
    assert folding.count == 3
    unfolded = folding.toggled(0)
    assert unfolded.count == 5
    places = [unfolded.at(line) for line in range(5)]
    assert places == [Place(0, None), Place(0, 0), Place(0, 1), Place(1, None), Place(2, None)]
    assert unfolded.toggled(0).count == 3


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12), st.sets(st.integers(0, 11)))
def test_lines_and_places_are_each_others_inverse(steps: list[int], unfolded: set[int]) -> None:
    requests = [Request(turn + 1, (ASK,)) for turn, count in enumerate(steps) for _ in range(count)]
    folding = Folding(turns_of(requests)).with_turns(turn for turn in unfolded if turn < len(steps))
    plain = []
    for turn, count in enumerate(steps):
        plain.append(Place(turn, None))
        if turn in unfolded:
            plain += [Place(turn, step) for step in range(count)]
    assert folding.count == len(plain)
    assert [folding.at(line) for line in range(folding.count)] == plain
    assert [folding.line(place) for place in plain] == list(range(folding.count))


def test_a_step_of_a_folded_turn_is_on_its_turns_line() -> None:
    folding = Folding(turns_of(notes_agent()))
    assert folding.line(Place(0, 1)) == 0

"""The list of turns: which steps make a turn, and which line stands for what.  No event loop."""

from __future__ import annotations

import pytest
from fake import FakeInspector, Request, Thing, notes_agent
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.tui.outline import Folding, Place, Turns

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
        Turns.of(FakeInspector(notes_agent()).outline().rows, pause)


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

"""Threads below the turns that set them off, sessions, and what is folded.  No event loop."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest
from fake import FakeInspector, Request, Thing

from ctxctl.model.annotations import Origin
from ctxctl.model.outline import Row
from ctxctl.tui.folding import Folding
from ctxctl.tui.outline import Grouping, Growth, Turns
from ctxctl.tui.screens.turns import navigation
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.state import State, Trace
from ctxctl.tui.thread_tree import HEADING, Place

ASK = Thing("a", "a text")


def row(
    n: int, thread: str, turn: int, step: int, line: int, parent: str | None = None, **given: object
) -> Row:
    session = given.pop("session", "s")
    made = FakeInspector([Request(turn, (ASK,), thread=thread, session=str(session))]).outline().rows[0]
    origin = None if parent is None else Origin(parent, None, None)
    return msgspec.structs.replace(made, ordinal=n, step=step, first_line=line, origin=origin, **given)  # type: ignore[arg-type]


def listed(turns: Turns, **folded: object) -> list[tuple[str, int, int | None, int]]:
    folding = Folding(turns, **folded)  # type: ignore[arg-type]
    found = []
    for line in range(folding.count):
        place = folding.at(line)
        entry = turns.entries[place.turn]
        found.append((entry.thread, entry.turn, place.step, turns.tree.depth(place.turn)))
        assert folding.line(place) == line
    return found


ROWS = [
    row(0, "main", 1, 1, 1),
    row(1, "scout", 1, 1, 12, "main"),  # its parent's step, from line 10 on, is told after it
    row(2, "scout", 2, 1, 14),
    row(3, "main", 1, 2, 10),
    row(4, "main", 2, 1, 20),
    row(5, "main", 3, 1, 30),
]


def test_a_thread_stands_below_the_turn_that_set_it_off_wherever_its_rows_come() -> None:
    turns = Turns.of(ROWS)
    assert listed(turns) == [
        ("main", 1, None, 0),
        ("scout", 1, None, 1),
        ("scout", 2, None, 1),
        ("main", 2, None, 0),
        ("main", 3, None, 0),
    ]
    scout = turns.tree.threads["s", "scout"]
    assert (scout.at, scout.recorded) == (Place(0, 1), True)


def test_with_its_steps_listed_the_thread_stands_below_the_step() -> None:
    assert [(thread, step) for thread, _, step, _ in listed(Turns.of(ROWS), unfolded=[0])][:5] == [
        ("main", None),
        ("main", 0),
        ("main", 1),
        ("scout", None),
        ("scout", None),
    ]


def test_where_nothing_is_recorded_the_place_is_derived_and_says_so() -> None:
    turns = Turns.of([msgspec.structs.replace(r, origin=None) for r in ROWS])
    assert turns.tree.threads["s", "scout"].at == Place(0, 1)
    assert not turns.tree.threads["s", "scout"].recorded


def test_a_folded_thread_keeps_its_first_line() -> None:
    turns = Turns.of(ROWS)
    assert [thread for thread, *_ in listed(turns, shut=frozenset({("s", "scout")}))] == [
        "main", "scout", "main", "main",
    ]  # fmt: skip


def test_sessions_have_headings_and_their_turns_stay_together() -> None:
    rows = [
        row(0, "main", 1, 1, 1, session="a"),
        row(1, "main", 1, 1, 2, session="b"),
        row(2, "main", 2, 1, 3, session="a"),
    ]
    turns = Turns.of(rows)
    folding = Folding(turns)
    found = [(turns.entries[p.turn].session, p.step) for p in map(folding.at, range(folding.count))]
    assert found == [("a", HEADING), ("a", None), ("a", None), ("b", HEADING), ("b", None)]
    closed = folding.toggled_session("a")
    assert closed.count == 3
    assert closed.line(Place(2, None)) == 0


def test_a_session_that_another_one_set_off_stands_below_it() -> None:
    rows = [
        row(0, "main", 1, 1, 1, session="a"),
        row(1, "main", 1, 1, 2, "a", session="b"),
        row(2, "main", 2, 1, 3, session="a"),
    ]
    turns = Turns.of(rows)
    assert list(turns.tree.sessions) == ["a"]
    assert [depth for *_, depth in listed(turns)] == [0, 1, 0]


@pytest.mark.parametrize("parent", ["scout", "b"])
def test_threads_that_name_each_other_or_nobody_stand_at_the_top(parent: str) -> None:
    rows = [row(0, "scout", 1, 1, 1, parent), row(1, "b", 1, 1, 2, "scout")]
    assert len(listed(Turns.of(rows))) == 2


def made_up(rng: random.Random) -> list[Row]:
    threads = {"main": 0}
    rows = []
    steps: dict[tuple[str, int], int] = {}
    for n in range(rng.randint(1, 40)):
        thread = rng.choice([*threads, f"t{len(threads)}"])
        parent = None
        if thread not in threads:
            parent = rng.choice([None, *threads, "nobody"])
            threads[thread] = 0
        if not threads[thread] or rng.random() < 0.5:
            threads[thread] += 1
        key = (thread, threads[thread])
        steps[key] = steps.get(key, 0) + 1
        rows.append(
            row(n, thread, key[1], steps[key], rng.randint(1, 400), parent, compacted=rng.random() < 0.3)
        )
    return rows


def shape(turns: Turns) -> object:
    tree = turns.tree
    return (
        listed(turns, unfolded=range(0, len(turns.entries), 2)),
        {name: (t.new, t.steps, t.compactions, len(t.series)) for name, t in tree.threads.items()},
        {name: s.notable for name, s in tree.sessions.items()},
    )


def test_what_comes_in_pieces_and_is_taken_back_ends_as_what_comes_at_once() -> None:
    rng = random.Random(7)
    for _ in range(60):
        rows = made_up(rng)
        entries = Grouping().take(rows, complete=True).entries
        turns, known = Turns(), 0
        folding = Folding(turns)
        while known < len(entries):
            back = rng.randint(0, min(known, 3))
            more = rng.randint(1, 5)
            known = known - back
            kept, known = known, min(known + more, len(entries))
            turns.grow(Growth(entries[kept:known], rows, 0, kept))
            folding = folding.grown()
            assert [folding.at(n) for n in range(folding.count)] == [
                Folding(turns).at(n) for n in range(Folding(turns).count)
            ]
        turns.grow(Growth([], rows, 0, known))
        assert {i for s in turns.tree.sessions.values() for i in s.roots} == {
            i for i in range(known) if turns.tree.depth(i) == 0
        }
        for name, session in turns.tree.sessions.items():
            assert session.roots == sorted(session.roots), name
            below = {turns.tree.root(n) for n, entry in enumerate(turns.entries) if entry.notable}
            assert set(session.notable) == below & set(session.roots)
        assert len(set(map(folding.at, range(folding.count)))) == folding.count


def at(turns: Turns, line: int = 0) -> State:
    state = State(Trace("t"), list=Folding(turns), phase="ready")
    return moves.to_line(state, line)


def test_keys_fold_threads_and_lead_out_of_them() -> None:
    state = at(Turns.of(ROWS), 1)
    shut = moves.toggle_steps(state, False)
    assert shut.list.count == 4
    assert moves.toggle_steps(shut, True).list.count == 5
    out = moves.toggle_steps(shut, False)
    assert out.place == Place(0, None)
    everything = moves.toggle_threads(at(Turns.of(ROWS), 3))
    assert everything.list.count == 4
    assert everything.place == Place(3, None)
    assert moves.toggle_threads(everything).list.count == 5


def test_brackets_walk_the_list_as_it_is_shown() -> None:
    state = at(Turns.of(ROWS))
    places = []
    for _ in range(5):
        places.append(state.place.turn if state.place else None)
        state = moves.next_turn(state, 1)
    assert places == [0, 1, 2, 3, 4]
    assert moves.next_turn(state, -2).place == Place(2, None)


def noted(*turns: int) -> State:
    rows = [row(n, "main", n + 1, 1, n + 1, compacted=n in turns) for n in range(9)]
    return at(Turns.of(rows))


def test_braces_lead_to_what_is_of_note() -> None:
    state = noted(2, 5)
    first = navigation.next_notable(state, 1)
    second = navigation.next_notable(first, 1)
    assert (first.cursor, second.cursor) == (2, 5)
    assert navigation.next_notable(second, 1).cursor == 5
    assert navigation.next_notable(second, -1).cursor == 2
    assert navigation.next_notable(first, -1).cursor == 2
    assert navigation.next_notable(State(Trace("t")), 1).cursor == 0


def test_braces_find_what_is_of_note_inside_threads() -> None:
    rows = [msgspec.structs.replace(r, compacted=r.ordinal == 2) for r in ROWS]
    state = navigation.next_notable(at(Turns.of(rows)), 1)
    assert state.place == Place(2, None)
    assert navigation.next_notable(at(Turns.of(rows), 4), -1).place == Place(2, None)


def test_a_jump_unfolds_what_it_must_and_can_be_gone_back() -> None:
    state = moves.toggle_threads(at(Turns.of(ROWS), 3))
    gone = navigation.jump(state, 2, "an-item")
    assert gone.place == Place(2, None)
    assert (gone.pane, gone.item, gone.seeking) == ("changes", "an-item", True)
    step = navigation.jump(gone, 3)
    assert step.place == Place(0, 1)
    back = navigation.jump_back(navigation.jump_back(step))
    assert (back.place, back.pane) == (Place(3, None), "turns")
    assert navigation.jump_back(back).place == back.place
    assert navigation.jump(state, 99) is state


def test_following_goes_with_the_newest_turn_until_one_moves() -> None:
    turns = Turns()
    state = moves.opened(State(Trace("t"), list=Folding(turns)), Trace("t", live=True))
    assert state.following
    grouping = Grouping()
    state = moves.grown(state, grouping.take(ROWS[:1]))
    state = moves.grown(state, grouping.take(ROWS))
    assert state.place == Place(4, None)
    assert state.newer == 0
    moved = moves.to_line(state, 0)
    assert not moved.following
    more = moves.grown(moved, grouping.take([*ROWS, row(6, "main", 4, 1, 40)]))
    assert (more.cursor, more.newer) == (0, 1)
    again = moves.followed(more)
    assert (again.place, again.newer, again.following) == (Place(5, None), 0, True)


def test_a_turn_that_is_taken_back_from_under_the_cursor_leaves_it_in_the_list() -> None:
    entries = Grouping().take(ROWS, complete=True).entries
    state = moves.grown(State(Trace("t")), Growth(entries, ROWS, 0))
    state = moves.to_line(state, 4)
    state = moves.grown(replace(state, pane="changes"), Growth([], ROWS, 0, 2))
    assert state.cursor == state.list.count - 1
    assert state.target is not None

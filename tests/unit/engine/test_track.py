"""Which step an event belongs to."""

from __future__ import annotations

import pytest

from ctxctl.engine.replay.step_tracker import Cursor, ThreadKey
from tests.unit.engine.making import (
    Json,
    add,
    assembly,
    event,
    inject,
    inspect,
    statuses,
    steps,
    usage,
)


def numbers(events: list[dict]) -> list[tuple[int, int, str | None, str | None]]:
    return [(s.turn, s.step, s.turn_id, s.step_id) for s in steps(events)]


def test_what_comes_before_the_first_ids_belongs_to_the_first_turn_and_step() -> None:
    found = numbers([add("tools", "t"), add("a", "x", turn="t1"), inject(turn="t1", step="s1")])
    assert found == [(1, 1, "t1", "s1")]


def test_events_without_ids_take_the_current_ones() -> None:
    found = numbers(
        [add("a", "x", turn="t1", step="s1"), add("b", "y"), add("c", "z", turn="t2"), add("d", "w")]
    )
    assert found == [(1, 1, "t1", "s1"), (2, 1, "t2", None)]


def test_a_second_model_assembly_without_step_id_opens_a_step() -> None:
    found = numbers(
        [add("a", "x"), assembly("1", "a"), assembly("2", "a"), assembly("t", "a", target="tool")]
    )
    assert found == [(1, 1, None, None), (1, 2, None, None)]


def test_two_injection_points_of_one_assembly_are_one_request() -> None:
    one = [add("a", "x"), assembly("1", "a"), inject("1", "system_prompt"), inject("1", "message_history")]
    assert len(steps(one)) == 1


def test_an_injection_of_another_assembly_is_another_request() -> None:
    assert len(steps([add("a", "x"), inject("1"), add("b", "y"), inject("2")])) == 2


def test_an_injection_that_names_no_assembly_is_another_request_where_something_came_since() -> None:
    two_points = [add("a", "x"), inject(point="system_prompt"), inject(point="message_history")]
    assert len(steps(two_points)) == 1
    assert len(steps([*two_points, add("b", "y")])) == 1, "it is for a request that is not recorded yet"
    first, second = steps([*two_points, add("b", "y"), inject()])
    assert ([c.item for c in first.changes], statuses(second)) == (["a"], {"b": "added"})


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ({}, [(1, 1), (1, 2)]),
        ({"turn": "t1"}, [(1, 1), (1, 2)]),
        ({"turn": "t2"}, [(1, 1), (2, 1)]),
        ({"step": "s2"}, [(1, 1)]),
    ],
)
def test_another_attempt_is_another_step_of_the_turn_that_is_open(
    later: dict[str, str], expected: list[tuple[int, int]]
) -> None:
    """Where it names a turn or a step, that says where it belongs: here to the step that had no id yet."""
    first = {**add("a", "x", turn="t1"), "attempt_id": "one"}
    second: Json = {**add("b", "y"), "attempt_id": "two"}
    second |= {f"{name}_id": value for name, value in later.items()}
    assert [number[:2] for number in numbers([first, second])] == expected


def test_step_ids_are_counted_within_their_turn() -> None:
    found = numbers([add("a", "x", turn="t1", step="1"), add("b", "y", turn="t2", step="1")])
    assert found == [(1, 1, "t1", "1"), (2, 1, "t2", "1")]


def test_an_event_for_a_finished_step_counts_for_the_next_frame_and_is_reported() -> None:
    events = [
        add("a", "x", turn="t1", step="s1"),
        inject(turn="t1", step="s1"),
        add("b", "y", turn="t1", step="s2"),
        add("late", "z", turn="t1", step="s1"),
        inject("2", turn="t1", step="s2"),
    ]
    inspector = inspect(events)
    first, second = (r for r in inspector.replay() if hasattr(r, "step_id"))
    assert [c.item for c in first.changes] == ["a"]
    assert {c.item for c in second.changes} == {"b", "late"}
    assert [(p.slug, p.line) for p in inspector.problems] == [("late-event", 4)]


def test_usage_belongs_to_the_step_that_was_sealed() -> None:
    events = [
        add("a", "x", turn="t1", step="s1"),
        inject("1", turn="t1", step="s1"),
        usage(50, turn="t1", step="s1"),
        add("b", "y", turn="t2", step="s2"),
        inject("2", turn="t2", step="s2"),
    ]
    first, second = steps(events)
    assert first.usage is not None
    assert (first.usage.reported_input, first.usage.difference) == (50, first.window.recorded - 50)
    assert second.usage is None


def test_late_usage_is_reported_and_billed_to_no_other_step() -> None:
    events = [
        add("a", "x", turn="t1", step="s1"),
        inject("1", turn="t1", step="s1"),
        add("b", "y", turn="t1", step="s2"),
        usage(50, turn="t1", step="s1"),
    ]
    inspector = inspect(events)
    assert all(getattr(r, "usage", None) is None for r in inspector.replay())
    assert [p.slug for p in inspector.problems] == ["late-usage"]


def test_threads_and_sessions_are_apart() -> None:
    events = [
        add("a", "x", session="s", turn="t1"),
        add("a", "y", session="s", thread="sub", turn="t1"),
        add("b", "z", session="u", turn="t1"),
    ]
    found = [(s.session, s.thread, s.counts.added, s.ledger.window_before) for s in steps(events)]
    assert sorted(found) == [("s", "main", 1, 0), ("s", "sub", 1, 0), ("u", "main", 1, 0)]


def test_an_unknown_event_type_changes_nothing() -> None:
    assert len(steps([add("a", "x", turn="t1"), event("weather.changed", turn="t1")])) == 1


def test_a_cursor_comes_back_as_it_was() -> None:
    cursor = Cursor(ThreadKey("s", "main"), 4)
    state = [
        "s", "main", 3, "t3", 2, "s2", ["t1", "t3"], ["s1"], True, False, True,
        ["a1", "a2"], ["i1"], ["e1"], "attempt", "task",
    ]  # fmt: skip
    again = Cursor.restored(state, 4)
    assert again.state() == state
    assert (again.asm_ids, again.inj_ids, again.seen) == ({"a1", "a2"}, {"i1"}, {"e1"})
    assert Cursor.restored(cursor.state(), 4).state() == cursor.state()

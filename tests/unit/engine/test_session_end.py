"""`ctxctl.session.ended`, and the order of steps: that in which they begin, whoever ends first."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ctxctl.engine.replay.step_tracker import StepTracker
from ctxctl.model.results import Step, Turn
from ctxctl.session import Inspector
from ctxctl.session.places import step_index, step_places
from tests.unit.engine.making import Json, add, assembly, event, inject, inspect, usage

Name = tuple[str | None, str, int, int]


def ended(session: str | None = None, thread: str | None = None, **more: str) -> Json:
    """The event; what it does not name is left out."""
    ids = {"session": session, "thread": thread, **more}
    made = event("x", **{name: value for name, value in ids.items() if value is not None})
    return {**made, "event_type": "ctxctl.session.ended"}


def request(session: str, turn: str, *, thread: str | None = None, step: str | None = None) -> list[Json]:
    ids = {"session": session, "turn": turn, "thread": thread, "step": step}
    ids = {name: value for name, value in ids.items() if value is not None}
    return [add(f"{turn}{step or ''}", f"text of {turn}", **ids), inject(**ids)]


def finished(inspector: Inspector) -> list[str]:
    """Steps as SESSION/THREAD:TURN.STEP and turns without the step, as a replay finishes them."""
    return [
        f"{r.session}/{r.thread}:{r.turn}" + (f".{r.step}" if isinstance(r, Step) else "")
        for r in inspector.replay()
    ]


def everywhere(events: list[Json]) -> list[str]:
    """What a replay finishes, held against the index, the outline and each step by itself."""
    inspector = inspect(events)
    results = list(inspector.replay())
    said = [r for r in results if isinstance(r, Step)]
    turns = {(r.session, r.thread, r.turn): r for r in results if isinstance(r, Turn)}
    names = [(s.session, s.thread, s.turn, s.step) for s in said]
    assert [(s.session, s.thread, s.turn, s.step) for s in inspector.places().spans] == names
    fresh = inspect(events)
    for ordinal in reversed(range(len(said))):
        assert fresh.step(ordinal) == inspector.step(ordinal) == said[ordinal]
        at = fresh.at(ordinal)
        assert sum(p.tokens for p in at.placements) == said[ordinal].window.recorded
        span = names[ordinal]
        assert fresh.turn(ordinal) == turns[span[:3]]
    rows = inspector.outline().rows
    assert [(r.session, r.thread, r.turn, r.step) for r in rows] == names
    # By way of the snapshots that the outline left.
    for ordinal in reversed(range(len(said))):
        assert inspector.step(ordinal) == said[ordinal]
    return finished(inspector)


def test_without_it_a_thread_ends_with_its_last_event() -> None:
    events = request("A", "1") + request("B", "1") + request("B", "2")
    assert everywhere(events) == [f"{name}{end}" for name in ("A/main:1", "B/main:1", "B/main:2")
                                  for end in (".1", "")]  # fmt: skip


def test_a_sub_agents_last_step_comes_before_what_its_caller_asks_next() -> None:
    sub = {"session": "A", "thread": "sub"}
    events = [
        *request("A", "1", step="a"),
        *request("A", "1", thread="sub", step="x"),
        *request("A", "1", thread="sub", step="y"),
        usage(50, session="A", thread="sub", turn="1", step="y"),
        add("found", "by the sub-agent", session="A", turn="1", step="b"),
        inject(session="A", turn="1", step="b"),
        *request("A", "2", step="c"),
    ]
    names = ["A/main:1.1", "A/sub:1.1", "A/sub:1.2", "A/sub:1", "A/main:1.2", "A/main:1", "A/main:2.1"]
    assert everywhere(events) == [*names, "A/main:2"]
    last = [r for r in inspect(events).replay() if isinstance(r, Step) and r.thread == sub["thread"]][-1]
    assert last.usage is not None
    assert last.usage.reported_input == 50


def test_what_begins_later_waits_for_a_bill_that_comes_late() -> None:
    a, b = ({"session": s, "turn": "1", "step": "s"} for s in "AB")
    events = [
        *request("A", "1", step="s"),
        *request("B", "1", step="s"),
        usage(10, **b),
        *request("B", "2", step="t"),
        usage(20, **a),
        *request("C", "1"),
    ]
    assert everywhere(events) == [f"{name}{end}" for name in ("A/main:1", "B/main:1", "B/main:2", "C/main:1")
                                  for end in (".1", "")]  # fmt: skip
    bills = [r.usage and r.usage.reported_input for r in inspect(events).replay() if isinstance(r, Step)]
    assert bills == [20, 10, None, None]


def test_what_walks_see_of_a_step_stands_between_its_neighbours() -> None:
    """Lint puts what records show to the step that they are of, also where they were held."""
    events = [
        *request("A", "1", step="s"),
        *request("B", "1", step="s"),
        usage(20, session="A", turn="1", step="s"),
    ]
    heard: list[str] = []
    walk = inspect(events).walk(seen=lambda e, engine: heard.append(f"{engine.current.key.session}{e.line}"))
    for at, _ in walk:
        heard.append(str(at.step.session))
    assert heard == ["A1", "A2", "A5", "A", "B3", "B4", "B"]


def test_a_session_is_finished_where_it_ends() -> None:
    events = [*request("A", "1"), ended("A"), *request("B", "1"), *request("B", "2"), ended("B")]
    assert everywhere(events) == [
        "A/main:1.1",
        "A/main:1",
        "B/main:1.1",
        "B/main:1",
        "B/main:2.1",
        "B/main:2",
    ]


def test_its_threads_steps_stand_as_they_began() -> None:
    events = [
        *request("A", "1"),
        *request("B", "1"),
        *request("A", "1", thread="z"),
        *request("A", "1", thread="b"),
        *request("A", "2"),
        ended("A"),
    ]
    steps = ("A/main:1", "B/main:1", "A/z:1", "A/b:1", "A/main:2")
    assert everywhere(events) == [f"{name}{end}" for name in steps for end in (".1", "")]


def test_two_ends_in_a_row_go_by_the_beginnings_and_not_by_the_ends() -> None:
    events = [*request("A", "1"), *request("B", "1"), ended("B"), ended("A"), *request("C", "1")]
    assert everywhere(events) == [f"{s}/main:1{end}" for s in "ABC" for end in (".1", "")]


def test_one_thread_may_end_by_itself() -> None:
    events = [
        *request("A", "1", step="first"),
        *request("A", "1", thread="sub"),
        ended("A", "sub"),
        *request("A", "1", step="later"),
    ]
    assert everywhere(events) == ["A/main:1.1", "A/sub:1.1", "A/sub:1", "A/main:1.2", "A/main:1"]


def test_without_a_session_it_speaks_of_the_current_one() -> None:
    events = [*request("A", "1"), *request("B", "1"), *request("A", "2"), ended(), *request("B", "2")]
    both = [*events, add("more", "text", session="A"), inject(session="A")]
    assert everywhere(both)[-2:] == ["A/main:3.1", "A/main:3"], "turn 2 had ended"
    named = [*request("A", "1", thread="sub"), *request("B", "1"), ended(thread="sub"), *request("B", "2")]
    again = [*named, add("more", "text", session="A", thread="sub")]
    assert everywhere(again)[-2:] == ["A/sub:2.1", "A/sub:2"]


@pytest.mark.parametrize("end", [ended("nobody"), ended("A", "nobody"), ended(thread="nobody")])
def test_an_end_of_what_never_was_does_nothing(end: Json) -> None:
    events = request("A", "1") + request("A", "2")
    assert everywhere([end, *events[:2], end, *events[2:], end]) == everywhere(events)


def test_an_end_is_of_no_step_and_makes_no_session_current() -> None:
    events = [*request("A", "1"), *request("B", "1"), ended("A"), add("more", "x"), ended("A"), ended("A")]
    assert everywhere(events) == ["A/main:1.1", "A/main:1", "B/main:1.1", "B/main:1"]
    assert [s.first_line for s in inspect([ended("A"), *events]).replay() if isinstance(s, Step)] == [2, 4]


def test_a_session_that_goes_on_begins_another_turn_with_the_window_that_it_had() -> None:
    events = [*request("A", "1", step="a"), ended("A"), add("new", "text", session="A"), inject(session="A")]
    assert everywhere(events) == ["A/main:1.1", "A/main:1", "A/main:2.1", "A/main:2"]
    first, second = (r for r in inspect(events).replay() if isinstance(r, Step))
    assert second.ledger.window_before == first.ledger.window_after > 0
    assert (second.turn_id, second.step_id) == (None, None)


def test_the_same_turn_goes_on_as_another_turn_of_that_name() -> None:
    events = [*request("A", "1", step="a"), ended("A"), *request("A", "1", step="b"), ended("A")]
    assert everywhere(events) == ["A/main:1.1", "A/main:1", "A/main:2.1", "A/main:2"]
    assert [s.turn_id for s in inspect(events).replay() if isinstance(s, Step)] == ["1", "1"]


@pytest.mark.parametrize(
    ("late", "slug"),
    [
        (add("late", "x", session="A", turn="1", step="a"), "late-event"),
        (add("late", "x", session="A", turn="1"), "late-event"),
        (add("late", "x", session="A", step="a"), "late-event"),
        (inject(session="A", turn="1", step="a"), "late-event"),
        (usage(9, session="A", turn="1", step="a"), "late-usage"),
        (usage(9, session="A"), "late-usage"),
    ],
)
def test_what_names_its_steps_comes_too_late(late: Json, slug: str) -> None:
    before = request("A", "1", step="a")
    inspector = inspect([*before, ended("A"), late])
    assert finished(inspector) == ["A/main:1.1", "A/main:1"]
    assert [p.slug for p in inspector.problems] == [slug]
    everywhere([*before, ended("A"), late, *request("A", "2")])


def test_what_came_too_late_is_in_the_next_frame() -> None:
    late = add("late", "x", session="A", turn="1", step="a")
    events = [*request("A", "1", step="a"), ended("A"), late, *request("A", "2")]
    last = [s for s in inspect(events).replay() if isinstance(s, Step)][-1]
    assert {c.item for c in last.changes if c.status == "added"} == {"late", "2"}


def test_a_step_without_a_request_is_finished_as_at_the_end_of_the_trace() -> None:
    events = [add("a", "x", session="A"), event("compaction.completed", {"compaction_id": "c"}, session="A")]
    (by_end,) = (r for r in inspect([*events, ended("A")]).replay() if isinstance(r, Step))
    (at_end,) = (r for r in inspect(events).replay() if isinstance(r, Step))
    assert by_end == at_end


def test_assemblies_of_a_session_that_goes_on_without_ids() -> None:
    one = [add("a", "x", session="A"), assembly("1", "a", session="A"), inject("1", session="A")]
    two = [assembly("2", "a", session="A"), inject("2", session="A")]
    assert everywhere([*one, ended("A"), *two])[2:] == ["A/main:2.1", "A/main:2"]


def test_a_turn_id_finds_the_turn_that_came_after_an_end() -> None:
    events = [*request("A", "1"), ended("A"), *request("A", "2")]
    inspector = inspect(events)
    assert inspector.step(inspector.resolve("2")).turn == 2
    again = inspect([*request("A", "1", step="a"), ended("A"), *request("A", "1", step="b")])
    assert again.step(again.resolve("b")).turn == 2


def test_a_repeated_end_is_ignored() -> None:
    one = ended("A", event_id="same")
    events = [*request("A", "1"), one, *request("A", "2"), one, *request("B", "1"), *request("B", "2")]
    assert everywhere(events) == everywhere([e for n, e in enumerate(events) if n != 5])


def test_snapshots_share_what_has_ended_and_sessions_go_on_by_themselves() -> None:
    events = []
    for turn in "abc":
        for number in range(30):
            session = f"s{number}"
            events += [*request(session, turn), add("same", turn, session=session), ended(session)]
            if turn == "b":
                events.append(add(f"late{number}", "x", session=session, turn=turn))
    found = everywhere(events)
    assert found[:4] == ["s0/main:1.1", "s0/main:1", "s1/main:1.1", "s1/main:1"]
    assert len(found) == 180


def test_a_tracker_keeps_what_has_ended() -> None:
    inspector = inspect([*request("A", "1", step="a"), ended("A"), *request("A", "1", step="a")])
    events = list(inspector.trace.events())
    tracker = StepTracker()
    for one in events[:2]:
        tracker.place(one)
    assert [c.key.session for c in tracker.ended(events[2])] == ["A"]
    for twin in (tracker.copy(), StepTracker.restored(orjson.loads(orjson.dumps(tracker.state())))):
        assert twin.ended(events[2]) == []
        assert [twin.place(one).late for one in events[3:]] == [True, True]


@pytest.mark.parametrize("at", range(12))
def test_an_index_is_extended_across_an_end(tmp_path: Path, at: int) -> None:
    events = [
        *request("A", "1"),
        *request("B", "1"),
        *request("A", "1", thread="sub"),
        ended("A"),
        *request("B", "2"),
        ended("B"),
        *request("A", "2"),
    ]
    lines = [orjson.dumps({"event_id": f"e{n}", **e}) + b"\n" for n, e in enumerate(events)]
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines[: at + 1]))
    with Inspector.open(path) as inspector:
        inspector.places()
    path.write_bytes(b"".join(lines))
    whole = step_places(step_index(inspect(events).trace))
    with Inspector.open(path) as inspector:
        assert inspector.places() == whole

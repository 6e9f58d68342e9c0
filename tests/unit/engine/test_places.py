"""The index agrees with the replay about which steps there are, in which order, and where."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings

from ctxctl.engine.replay.step_tracker import StepTracker
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.places import step_index, step_places
from ctxctl.trace.index import StepIndex
from ctxctl.trace.source import open_source
from tests.unit.engine.making import Json, add, assembly, event, inject, inspect
from tests.unit.engine.test_cursor import traces


def names(inspector: Inspector) -> list[tuple[str | None, str, int, int]]:
    return [(s.session, s.thread, s.turn, s.step) for s in inspector.places().spans]


def replayed(inspector: Inspector) -> list[tuple[str | None, str, int, int]]:
    return [(r.session, r.thread, r.turn, r.step) for r in inspector.replay() if isinstance(r, Step)]


@settings(max_examples=60, deadline=None)
@given(traces())
def test_the_index_lists_the_steps_that_a_replay_gives_in_its_order(events: list[Json]) -> None:
    inspector = inspect(events)
    assert names(inspector) == replayed(inspector)
    rows = inspector.outline().rows
    assert [(r.offset, r.first_line) for r in rows] == [(s.start, s.line) for s in inspector.places().spans]


@settings(max_examples=40, deadline=None)
@given(traces())
def test_a_tracker_goes_on_from_its_state(events: list[Json]) -> None:
    inspector = inspect(events)
    whole, half = StepTracker(), StepTracker()
    for number, event_ in enumerate(inspector.trace.events()):
        if number == len(events) // 2:
            half = StepTracker.restored(orjson.loads(orjson.dumps(half.state())))
        expected, found = whole.place(event_), half.place(event_)
        assert (expected.opened, expected.new_turn, expected.late) == (
            found.opened,
            found.new_turn,
            found.late,
        )
        assert (expected.cursor.turn, expected.cursor.step) == (found.cursor.turn, found.cursor.step)


def write(path: Path, events: list[Json], *, end: bool = True) -> None:
    lines = b"\n".join(orjson.dumps({"event_id": f"e{n}", **e}) for n, e in enumerate(events))
    path.write_bytes(lines + (b"\n" if end else b""))


def session(turns: int) -> list[Json]:
    return [
        e
        for n in range(turns)
        for e in (add(f"i{n}", f"text {n}", turn=f"t{n}"), inject(f"a{n}", turn=f"t{n}"))
    ]


@pytest.mark.parametrize("ended", [True, False])
def test_an_index_is_kept_and_extended_when_the_file_only_grew(tmp_path: Path, ended: bool) -> None:
    path = tmp_path / "t.jsonl"
    write(path, session(5), end=ended)
    with Inspector.open(path) as inspector:
        assert len(inspector.places().spans) == 5
    saved = StepIndex.load(open_source(path))
    assert saved is not None
    assert len(saved) == 5
    write(path, session(9))
    grown = StepIndex.load(open_source(path))
    assert grown is not None
    assert grown.covered < path.stat().st_size
    with Inspector.open(path) as inspector:
        assert names(inspector) == replayed(inspector)
        assert len(inspector.places().spans) == 9
    fresh = tmp_path / "fresh.jsonl"
    write(fresh, session(9))
    with Inspector.open(fresh) as whole, Inspector.open(path) as extended:
        assert step_places(step_index(whole.trace)) == step_places(step_index(extended.trace))


def test_another_file_of_the_same_name_is_indexed_anew(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write(path, session(5))
    with Inspector.open(path) as inspector:
        assert len(inspector.places().spans) == 5
    write(path, [add("other", "x" * 4000, turn="t")])
    with Inspector.open(path) as inspector:
        assert len(inspector.places().spans) == 1


def test_repeated_events_open_no_step_of_their_own() -> None:
    events = [
        add("a", "x"),
        assembly("1", "a", event_id="same"),
        assembly("2", "a", event_id="same"),
        inject("1"),
    ]
    inspector = inspect(events)
    assert names(inspector) == replayed(inspector) == [(None, "main", 1, 1)]
    assert [p.slug for p in inspector.problems] == ["duplicate-event"]


def test_repeats_stay_out_however_a_step_is_reached() -> None:
    events = [add(f"i{n}", f"text {n}", turn=f"t{n}") | {"event_id": f"same{n % 40}"} for n in range(80)] + [
        event("missing.detected", {"missing_id": "m"}, turn="end")
    ]
    inspector = inspect(events)
    steps = [r for r in inspector.replay() if isinstance(r, Step)]
    rows = inspector.outline().rows
    assert len(rows) == len(steps) == len(inspector.places().spans) == 41
    for ordinal in reversed(range(len(rows))):
        assert inspector.step(ordinal) == steps[ordinal]

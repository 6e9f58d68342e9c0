"""The index agrees with the replay about which steps there are, in which order, and where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.engine.replay.step_tracker import StepTracker
from ctxctl.model.event import Event
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.session.places import StepPlaces, step_index, step_places
from ctxctl.trace.index import Span, StepIndex
from ctxctl.trace.reader import Trace
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


def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From which byte on each index that is made from here on reads its trace."""
    found: list[int] = []
    headers = Trace.headers

    def told(self: Trace, start: int = 0, first_line: int = 1, stop: int | None = None) -> Iterator[Event]:
        found.append(start)
        return headers(self, start, first_line, stop)

    monkeypatch.setattr(Trace, "headers", told)
    return found


def indexed(path: Path) -> tuple[list[Span], StepPlaces]:
    with Inspector.open(path) as inspector:
        index = step_index(inspector.trace)
        return list(index), step_places(index)


def written_anew(path: Path, events: list[Json]) -> None:
    """Another file under that name."""
    write(path.with_suffix(".new"), events)
    path.with_suffix(".new").replace(path)


def test_a_trace_written_anew_that_begins_as_before_is_indexed_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, fresh = tmp_path / "t.jsonl", tmp_path / "fresh.jsonl"
    write(path, session(40))
    indexed(path)
    began = begun(monkeypatch)
    written_anew(path, [*session(40)[:-1], add("late", "x", turn="t39"), *session(44)[80:]])
    found = indexed(path)
    assert 0 < began[0] < path.stat().st_size
    assert indexed(path) == found
    assert len(began) == 1, "it is kept"
    fresh.write_bytes(path.read_bytes())
    assert indexed(fresh) == found
    assert began[1:] == [0]


def test_a_trace_written_anew_that_begins_otherwise_is_indexed_from_its_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"
    write(path, session(40))
    indexed(path)
    began = begun(monkeypatch)
    written_anew(path, [add("i0", "text 9", turn="other"), *session(44)[1:]])
    assert names(Inspector.open(path)) == replayed(Inspector.open(path))
    assert began[0] == 0


@settings(max_examples=60, deadline=None)
@given(traces(), traces(), st.floats(0, 1))
def test_an_index_is_taken_back_to_all_that_it_was(
    events: list[Json], others: list[Json], share: float
) -> None:
    """Wherever the two traces part, and whatever came behind that at first."""
    kept = events[: int(len(events) * share)]
    with TemporaryDirectory() as folder:
        path, fresh = Path(folder, "t.jsonl"), Path(folder, "fresh.jsonl")
        write(path, [*kept, *others])
        if not path.stat().st_size:
            return
        indexed(path)
        written_anew(path, events)
        fresh.write_bytes(path.read_bytes())
        assert indexed(path) == indexed(fresh)


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

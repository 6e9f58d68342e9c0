"""The end of a session changes nothing but the order of the results, and the order is the same everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxctl.model.results import Step, Turn
from ctxctl.session import Inspector
from tests.oracle.build import TIME, VERSION, Event
from tests.oracle.random_traces import traces
from tests.oracle.real import opened

EXAMPLES = settings.default.max_examples if settings.default else 100
FEWER = settings(max_examples=EXAMPLES // 2)
Key = tuple[str, str | None]


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ends") / "trace.jsonl"


def mark(kind: str, session: str, thread: str | None = None) -> Event:
    """An event of no step; those of both kinds are equally long, so the other lines keep their places."""
    made = {"schema_version": VERSION, "event_type": f"ctxctl.{kind}", "source": "test", "time": TIME}
    made |= {"session_id": session} | ({"thread_id": thread} if thread else {})
    return {**made, "data": {}}


def put(events: list[Event], marks: Iterable[tuple[int, str, str | None]], kind: str) -> list[Event]:
    """The events with a mark behind some of them, by index."""
    behind: dict[int, list[Event]] = {}
    for at, session, thread in marks:
        behind.setdefault(at, []).append(mark(kind, session, thread))
    return [one for at, event in enumerate(events) for one in (event, *behind.get(at, ()))]


def last_events(events: list[Event]) -> list[tuple[int, str, str | None]]:
    """Behind which event each session, and each thread by itself, has no more."""
    threads = {(e["session_id"], e.get("thread_id", "main")): at for at, e in enumerate(events)}
    sessions = {e["session_id"]: at for at, e in enumerate(events)}
    return [(at, *key) for key, at in threads.items()] + [(at, name, None) for name, at in sessions.items()]


def results(where: Path, events: list[Event]) -> list[Step | Turn]:
    with opened(where, events) as inspector:
        return list(inspector.replay(skipped=True))


def key_of(result: Step | Turn) -> tuple[Any, ...]:
    step = result.step if isinstance(result, Step) else 0
    return result.session, result.thread, result.turn, step


@given(data=st.data(), named=st.booleans())
def test_an_end_after_which_nothing_comes_changes_the_order_only(
    where: Path, data: st.DataObject, named: bool
) -> None:
    events = data.draw(traces(named=named))
    marks = data.draw(st.lists(st.sampled_from(last_events(events)), unique=True))
    plain = results(where, put(events, marks, "source.opened"))
    written = put(events, marks, "session.ended")
    ended = results(where, written)
    assert sorted(plain, key=key_of) == sorted(ended, key=key_of)
    for session in {session for _, session, thread in marks if thread is None}:
        line = 1 + written.index(mark("session.ended", session))
        done = max(at for at, one in enumerate(ended) if one.session == session)
        assert all(one.first_line < line for one in ended[:done] if isinstance(one, Step))


def everywhere(inspector: Inspector) -> None:
    said = list(inspector.replay())
    steps = [r for r in said if isinstance(r, Step)]
    # Opened before the outline is made, and with its snapshots afterwards.
    middle = len(steps) // 2
    assert inspector.step(middle) == steps[middle]
    rows = inspector.outline().rows
    spans = inspector.places().spans
    names = [key_of(step) for step in steps]
    assert len(set(names)) == len(names)
    assert [(r.session, r.thread, r.turn, r.step) for r in rows] == names
    assert [(s.session, s.thread, s.turn, s.step) for s in spans] == names
    assert [(r.offset, r.first_line) for r in rows] == [(s.start, s.line) for s in spans]
    turns = {key_of(r)[:3]: r for r in said if isinstance(r, Turn)}
    for ordinal in reversed(range(len(steps))):
        assert inspector.step(ordinal) == steps[ordinal]
        assert sum(p.tokens for p in inspector.frame(ordinal).placements) == steps[ordinal].window.recorded
        assert inspector.turn(ordinal) == turns[names[ordinal][:3]]


@FEWER
@given(data=st.data(), named=st.booleans())
def test_wherever_sessions_end_the_order_is_the_same_everywhere(
    where: Path, data: st.DataObject, named: bool
) -> None:
    events = data.draw(traces(named=named))
    keys = sorted({key[1:] for key in last_events(events)}, key=str)
    behind = st.tuples(st.integers(0, len(events) - 1), st.sampled_from(keys))
    marks = [(at, *key) for at, key in data.draw(st.lists(behind, max_size=6))]
    with opened(where, put(events, marks, "session.ended")) as inspector:
        everywhere(inspector)


@FEWER
@given(data=st.data())
def test_a_session_that_goes_on_keeps_its_ledger(where: Path, data: st.DataObject) -> None:
    events = data.draw(traces())
    places = st.lists(st.integers(0, len(events) - 1), max_size=6)
    marks = [(at, events[at]["session_id"], None) for at in data.draw(places)]
    last: dict[tuple[Any, ...], int] = {}
    for result in results(where, put(events, marks, "session.ended")):
        if isinstance(result, Step):
            key = key_of(result)[:2]
            assert result.ledger.window_before == last.get(key, 0)
            last[key] = result.ledger.window_after

"""How importers end the sessions of a capture that holds several."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxctl.ingest.build import Maker, Place
from ctxctl.ingest.folder import Folder, read_several
from ctxctl.ingest.parts import Part
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.validate import validate_event

Json = dict[str, Any]
FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"


def ends(events: list[Json]) -> list[str | None]:
    found = [e for e in events if e["event_type"] == vocab.SESSION_ENDED]
    assert [problem for e in found for problem in validate_event(e)] == []
    return [e.get("session_id") for e in found]


def test_a_session_is_closed_told_to_be_over_and_forgotten() -> None:
    run = Run("test", lambda problem: None)
    for run.session in ("A", "B"):
        window = run.thread()
        window.append(Part("user_message", "hi", "user"))
        window.request()
        window.append(Part("assistant_message", "hello", "assistant"))
    events = list(run.end_session())
    assert ends(events) == ["B"]
    texts = [(e["session_id"], e["data"].get("content")) for e in events if ".item." in e["event_type"]]
    assert texts == [("A", "hi"), ("B", "hi"), ("B", "hello")]
    assert events[-1]["event_type"] == vocab.SESSION_ENDED
    assert [session for session, _ in run.threads] == ["A"]
    assert list(run.end_session()) == []


def test_records_without_a_session_after_a_named_one_are_of_the_session_without_a_name(
    tmp_path: Path,
) -> None:
    run = Run("test", lambda problem: None)
    windows = {}
    for number, run.session in enumerate([None, "A", None, "A", None]):
        window = windows[run.session] = run.thread()
        window.append(Part("user_message", f"{number}", "user"))
        window.request()
    told = [*run.end_session()]
    assert ends(told) == [""]
    run.session = "A"
    windows["A"].append(Part("assistant_message", "to A", "assistant"))
    told += run.end_session()
    texts = [(e.get("session_id"), e["data"]["content"]) for e in told if ".item.added" in e["event_type"]]
    assert texts == [(None, "0"), ("A", "1"), ("", "2"), ("A", "3"), ("", "4"), ("A", "to A")]
    path = tmp_path / "made.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in told))
    with Inspector.open(path) as inspector:
        steps = [r for r in inspector.replay() if isinstance(r, Step)]
        assert not inspector.problems
        frames = {(step.session, step.step): inspector.frame(n) for n, step in enumerate(steps)}
    items = {at: sum(p.kind == "user_message" for p in frame.placements) for at, frame in frames.items()}
    assert items == {(None, 1): 1, ("A", 1): 1, (None, 2): 2, ("A", 2): 2, (None, 3): 3}


class _Sessions:
    """Each line of a capture names the session that it is of; the last one may end it."""

    def events(self, source: Any, report: Any) -> Iterator[Json]:
        make = Maker("lines", "lines-")
        for line in source.read(0, 1000).decode().split():
            session, _, end = line.partition("!")
            kind = vocab.SESSION_ENDED if end else "acme.said"
            yield make.event(kind, {}, Place(session or None))


def test_the_sessions_of_a_file_end_with_it(tmp_path: Path) -> None:
    for name, text in {"a": "x\ny", "b": "x\nx!end", "c": "z", "d": ""}.items():
        (tmp_path / name).write_text(text)
    folder = Folder("dir", tmp_path)
    events = list(read_several(folder, [(name, _Sessions()) for name in folder.files], lambda problem: None))
    told = [(e["event_type"].rpartition(".")[2], e["session_id"]) for e in events]
    assert told == [
        ("said", "x"), ("said", "y"), ("ended", "x"), ("ended", "y"),
        ("said", "x~2"), ("ended", "x~2"),
        ("said", "z"), ("ended", "z"),
    ]  # fmt: skip
    assert len({e["event_id"] for e in events}) == len(events)
    assert {e["metadata"]["ctxctl"]["source_file"] for e in events if e["session_id"] == "x~2"} == {"b"}
    assert len(ends(events)) == 4


def test_a_directory_of_captures_is_replayed_capture_by_capture(tmp_path: Path) -> None:
    text = (FIXTURES / "chat_messages" / "tides.json").read_bytes()
    for name in ("a.json", "b.json", "c.json"):
        (tmp_path / name).write_bytes(text)
    with Inspector.open(tmp_path) as inspector:
        steps = [r for r in inspector.replay() if isinstance(r, Step)]
        sessions = [step.session for step in steps]
        assert sessions == sorted(sessions, key=str)
        assert len(set(sessions)) == 3
        spans = inspector.places().spans
        assert [(s.session, s.turn, s.step) for s in spans] == [(s.session, s.turn, s.step) for s in steps]


def test_the_tasks_of_a_results_file_are_replayed_one_after_the_other(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ]
    task = {"reward": 1.0, "info": {}, "traj": messages}
    path = tmp_path / "results.json"
    path.write_text(json.dumps([{"task_id": number, **task} for number in range(3)]))
    with Inspector.open(path, format="tau-bench") as inspector:
        names = [(type(r).__name__, r.session) for r in inspector.replay()]
    assert names == [(kind, f"task-{n}") for n in range(3) for kind in ("Step", "Turn")]

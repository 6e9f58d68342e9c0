"""A database of opencode 1.18.33 beside what it sent: a sub-agent, a way back, plan mode, compactions."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from ctxctl.importers import registry
from ctxctl.model.problem import Problem
from ctxctl.model.vocab import ASSEMBLY_CREATED
from ctxctl.trace.source import Source, open_source
from tests.unit.importers.agent_help import Window, imported, windows
from tests.unit.importers.recorded_help import Json, Sent, database, held, recorded, sent

NAME = "opencode"
_TITLE = "Generate a title for this conversation:\n"
_HISTORY = "Here is the conversation so far:"


@pytest.fixture(scope="module")
def run() -> Json:
    return recorded("opencode.json")


def requests(run: Json) -> list[tuple[list[Sent], Json]]:
    """The requests but for the one that asks for a title, each with what was billed."""
    found = [(sent(one["messages"]), one["usage"]) for one in run["wire"]]
    assert [said for said, _ in found if said[0] == ("user", _TITLE)]
    return [one for one in found if one[0][0] != ("user", _TITLE)]


def by_thread(found: list[Window], run: Json) -> list[tuple[Window, list[Sent], Json]]:
    """Each step with its request: those of the sub-agent begin with what it was asked."""
    bodies = requests(run)
    main = [one for one in bodies if one[0][0] != ("user", "Read notes.txt")]
    child = [one for one in bodies if one[0][0] == ("user", "Read notes.txt")]
    steps = [w for w in found if w.thread == "main"] + [w for w in found if w.thread != "main"]
    assert (len(main), len(child), len(steps)) == (15, 2, 17)
    return [(window, *body) for window, body in zip(steps, main + child, strict=True)]


def test_frames_are_what_was_sent_in_order(tmp_path: Path, run: Json) -> None:
    unknown = set()
    for window, body, _ in by_thread(windows(database(tmp_path / "opencode.db", run), NAME), run):
        frame = held(window)
        assert len(frame) == len(body)
        for (kind, text), (what, said) in zip(frame, body, strict=True):
            if text is None:
                unknown.add(said.splitlines()[0] + said.splitlines()[1])
            elif said.startswith(_HISTORY):
                assert said.startswith(f"{text}\n\n")
            else:
                assert text == said
                assert kind == what or (kind, what) == ("user", "assistant")
    assert unknown == {
        "<system-reminder># Plan Mode - System Reminder",
        "<system-reminder>Your operational mode has changed from plan to build.",
    }


def test_bills_are_those_of_the_requests(tmp_path: Path, run: Json) -> None:
    for window, _, bill in by_thread(windows(database(tmp_path / "opencode.db", run), NAME), run):
        usage = window.step.usage
        assert usage is not None
        read, written = bill["cache_read_input_tokens"], bill["cache_creation_input_tokens"]
        assert usage.reported_input == bill["input_tokens"] + read + written
        assert usage.reported_output == bill["output_tokens"]
        assert window.step.cache.reported_cached == read


def test_a_child_session_is_a_thread_and_what_was_taken_back_leaves_by_a_branch(
    tmp_path: Path, run: Json
) -> None:
    found = windows(database(tmp_path / "opencode.db", run), NAME)
    assert len({window.thread for window in found}) == 2
    long = [at for at, window in enumerate(found) if "Take the long way" in window.texts()]
    short = [at for at, window in enumerate(found) if "Take the short way" in window.texts()]
    assert len(long) == 2
    assert max(long) < min(short)
    before, after = set(found[max(long)].texts()), set(found[min(short)].texts())
    assert "wrong way\n" in before - after
    events, _ = imported(NAME, (tmp_path / "opencode.db").read_bytes())
    assert "branched" in repr([event["data"] for event in events if event["event_type"] == ASSEMBLY_CREATED])


@pytest.mark.parametrize("filler", [0, 300])
def test_a_database_is_known_by_its_tables_wherever_they_stand(
    tmp_path: Path, run: Json, filler: int
) -> None:
    path = database(tmp_path / "any-name", run, filler=filler)
    data = path.read_bytes()
    if filler:
        assert b"CREATE TABLE `session`" not in data[: registry.HEAD]
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(data))
    for one in (path, packed):
        with open_source(one) as source:
            form = registry.detect(source)
        assert form is not None
        assert form.name == NAME
    held_in_memory = registry.detect(Source.from_bytes("x", data))
    assert held_in_memory is not None
    assert held_in_memory.name == NAME


def test_another_database_with_the_same_words_is_not_opencodes(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE sessions (id TEXT, project_id TEXT)")
        made.execute("CREATE TABLE messages (id TEXT, session_id TEXT, parts TEXT, time_created INTEGER)")
        made.execute("CREATE TABLE notes (text TEXT)")
        made.execute("INSERT INTO notes VALUES (?)", ("message_id session_id project_id time_created",))
    made.close()
    with open_source(path) as source:
        assert registry.detect(source) is None


def test_what_a_session_took_over_from_another_is_no_request_of_its_own(tmp_path: Path, run: Json) -> None:
    told = windows(database(tmp_path / "whole.db", run), NAME)
    rows = run["rows"]["session"]
    began = rows["columns"].index("time_created")
    main = next(row for row in rows["values"] if row[rows["columns"].index("parent_id")] is None)
    turns = sorted({str(window.step.time) for window in told if window.thread == "main"})
    message = run["rows"]["message"]
    last = max(row[message["columns"].index("time_created")] for row in message["values"])
    branched = json.loads(json.dumps(run))
    for row in branched["rows"]["session"]["values"]:
        if row[0] == main[0]:
            row[began] = last
    found = [one for one in windows(database(tmp_path / "branch.db", branched), NAME) if one.thread == "main"]
    assert len(turns) == 15
    assert len(found) == 1
    assert found[0].texts() == [one for one in told if one.thread == "main"][-1].texts()


def test_what_is_not_known_is_counted_and_told(tmp_path: Path, run: Json) -> None:
    later = json.loads(json.dumps(run))
    parts = later["rows"]["part"]
    data = parts["columns"].index("data")
    parts["values"][0][data] = json.dumps({"type": "hologram", "text": "x"})
    session = later["rows"]["session"]
    for row in session["values"]:
        row[session["columns"].index("version")] = "9.1.0"
    columns = ["id", "session_id", "type", "seq", "time_created", "time_updated", "data"]
    row = ["m", session["values"][0][0], "user", 1, 1, 1, "{}"]
    later["rows"]["session_message"] = {"columns": columns, "values": [row]}
    problems: list[Problem] = []
    with open_source(database(tmp_path / "later.db", later)) as source:
        *_, last = registry.capture_events(registry.by_name(NAME), source, problems.append)
    assert {problem.slug for problem in problems} == {"unknown-type", "newer-version"}
    told = last["data"]["understood"]
    assert told["unknown_records"] == {"hologram": 1, "session_message": 1}
    assert told["newer_version"] == "9.1.0"

"""Claude Code's directories, and the lines of transcripts that hold no message of their own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson

from ctxctl.importers.claude_code import FORMAT
from ctxctl.ingest.folder import Folder
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source
from tests.unit.importers.claude_code_help import (
    call,
    events,
    frames,
    line,
    of_type,
    result,
    said,
    text,
    user,
)

Json = dict[str, Any]
AGENTS = Path(__file__).resolve().parents[3] / "fixtures" / "claude_code" / "agents"
SESSION = "5e550000-0000-4000-8000-000000000001"
ADDED = "context.item.added"
ASSEMBLED = "context.assembly.created"


def written(path: Path, *lines: Json) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(one) + b"\n" for one in lines))


def folder_events(path: Path) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    return list(FORMAT.folder_events(Folder("d", path), problems.append)), problems


def steps(found: list[Json]) -> list[tuple[Any, Any, Any]]:
    return [(e["session_id"], e["thread_id"], e["step_id"]) for e in of_type(found, ASSEMBLED)]


def talk(session: str, *names: str) -> list[Json]:
    """A prompt and its answer for each name, one after the other."""
    made: list[Json] = []
    parent = None
    for name in names:
        made.append(user(f"u-{name}", parent, f"Ask {name}", sessionId=session))
        made.append(said(f"a-{name}", f"u-{name}", f"m-{name}", text(f"Say {name}"), sessionId=session))
        parent = f"a-{name}"
    return made


def test_a_projects_directory_is_its_sessions_with_their_sub_agents(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(AGENTS, project)
    written(project / "b.jsonl", *talk("b", "1", "2"))
    (project / "memory").mkdir()
    (project / "memory" / "MEMORY.md").write_text("remember")
    assert FORMAT.detect_folder(Folder("p", project)) >= 90
    found, _ = folder_events(project)
    made = steps(found)
    assert len(set(made)) == len(made)
    assert {session for session, _, _ in made} == {SESSION, "b"}
    assert {thread for session, thread, _ in made if session == SESSION} >= {"main", "agent-a1", "agent-n1"}
    assert len({event["event_id"] for event in found}) == len(found)
    files = {e["metadata"]["ctxctl"]["source_file"] for e in found if e.get("thread_id") == "agent-a1"}
    assert files == {f"{SESSION}/subagents/agent-a1.jsonl"}


def test_a_sessions_own_directory_is_its_sub_agents(tmp_path: Path) -> None:
    own = tmp_path / SESSION
    shutil.copytree(AGENTS / SESSION, own)
    assert FORMAT.detect_folder(Folder("d", own)) >= 90
    found, _ = folder_events(own)
    assert {thread for _, thread, _ in steps(found)} >= {"agent-a1", "agent-n1"}


def test_other_directories_are_not_claimed(tmp_path: Path) -> None:
    assert FORMAT.detect_folder(Folder("d", tmp_path)) == 0
    written(tmp_path / "a.jsonl", *talk("a", "1"))
    (tmp_path / "b.jsonl").write_text('{"type":"session","id":"x"}\n')
    assert FORMAT.detect_folder(Folder("d", tmp_path)) == 0


def test_a_resumed_session_repeats_the_lines_of_another_and_is_one_of_its_own(tmp_path: Path) -> None:
    written(tmp_path / "1.jsonl", *talk("first", "1"))
    written(tmp_path / "2.jsonl", *talk("second", "1", "2"))
    written(tmp_path / "3.jsonl", *talk("first", "1", "3"))
    found, problems = folder_events(tmp_path)
    assert steps(found) == [
        ("first", "main", "m-1"), ("second", "main", "m-1"), ("second", "main", "m-2"),
        ("first~3", "main", "m-1"), ("first~3", "main", "m-3"),
    ]  # fmt: skip
    assert not problems


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_told(tmp_path: Path) -> None:
    written(tmp_path / "1.jsonl", *talk("first", "1"))
    written(tmp_path / "2.jsonl", *talk("second", "2"))
    folder = Folder("d", tmp_path)
    (tmp_path / "1.jsonl").unlink()
    problems: list[Problem] = []
    found = list(FORMAT.folder_events(folder, problems.append))
    assert steps(found) == [("second", "main", "m-2")]
    assert [problem.slug for problem in problems] == ["no-such-file"]


def test_a_sub_agents_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    """A run that was killed at its start leaves an empty file: the session is told without it."""
    project = tmp_path / "project"
    shutil.copytree(AGENTS, project)
    (project / SESSION / "subagents" / "agent-a1.jsonl").write_bytes(b"")
    found, problems = folder_events(project)
    assert (SESSION, "main") in {(session, thread) for session, thread, _ in steps(found)}
    (told,) = [problem for problem in problems if problem.slug == "empty-file"]
    assert "agent-a1.jsonl" in told.message


def test_a_workflows_journal_holds_no_message(tmp_path: Path) -> None:
    written(tmp_path / "s.jsonl", *talk("s", "1"))
    journal = tmp_path / "s" / "subagents" / "workflows" / "wf_1" / "journal.jsonl"
    written(
        journal,
        {"type": "started", "key": "plan", "agentId": "q1"},
        {"type": "result", "key": "plan", "agentId": "q1", "result": "Fire at noon."},
    )
    written(
        journal.with_name("agent-q1.jsonl"),
        user("w1", None, "Plan.", sessionId="s", isSidechain=True, agentId="q1"),
        said("w2", "w1", "m-w", text("Fire at noon."), sessionId="s", isSidechain=True, agentId="q1"),
    )
    found, problems = folder_events(tmp_path)
    assert steps(found) == [("s", "main", "m-1"), ("s", "agent-q1", "m-w")]
    assert not problems
    assert FORMAT.detect(journal.read_bytes()) >= 50
    alone = list(FORMAT.events(Source.from_bytes("journal.jsonl", journal.read_bytes()), print))
    assert [event["event_type"] for event in alone] == ["ctxctl.source.opened"]


def progress(uuid: str, parent: str | None, inner: Json, **fields: Any) -> Json:
    """As versions 2.1.12 to 2.1.81 write them: these fields, in this order."""
    return {
        "parentUuid": parent, "isSidechain": False, "userType": "external", "sessionId": "s1",
        "type": "progress", "data": {"type": "agent_progress", "message": inner}, "toolUseID": "t",
        **fields, "uuid": uuid, "timestamp": "2026-01-02T03:04:05.000Z",
    }  # fmt: skip


def test_progress_repeats_a_sub_agents_messages_and_adds_nothing() -> None:
    inner = {"type": "user", "uuid": "x1", "message": {"role": "user", "content": "Look."}}
    found, problems = events(
        progress("p0", None, inner),
        user("u1", "p0", "Hello"),
        said("a1", "u1", "m1", call("t")),
        progress("p1", "a1", inner),
        progress("p2", "p1", {**inner, "type": "assistant"}),
        result("r1", "p2", "t", "seen"),
        said("a2", "r1", "m2", text("Done")),
        progress("p3", "nowhere", inner),
        progress("p1", "a1", inner),
    )
    assert [e["data"]["item_id"] for e in of_type(found, ADDED)] == ["u1", "t", "t/result", "a2"]
    assert [item for items in frames(found).values() for item in items] == ["u1", "u1", "t", "t/result"]
    assert not [problem for problem in problems if "p1" in problem.message]


def test_a_record_glued_to_progress_is_read() -> None:
    data = b"\n".join(
        [
            orjson.dumps(user("u1", None, "Hello")),
            orjson.dumps(progress("p1", "u1", {})) + orjson.dumps(user("u2", "p1", "And more")),
            orjson.dumps(progress("p2", "u2", {}))[:-20],
            orjson.dumps(said("a1", "u2", "m1", text("Yes"))),
        ]
    )
    problems: list[Problem] = []
    found = list(FORMAT.events(Source.from_bytes("x.jsonl", data), problems.append))
    assert [e["data"]["item_id"] for e in of_type(found, ADDED)] == ["u1", "u2", "a1"]
    assert [problem.slug for problem in problems][:1] == ["glued-lines"]


def test_a_result_that_was_moved_to_a_file_is_what_the_model_got() -> None:
    moved = "<persisted-output>\nOutput too large. Full output saved to: /t/x.txt\n</persisted-output>"
    found, _ = events(
        user("u1", None, "Hello"),
        said("a1", "u1", "m1", call("t")),
        result("r1", "a1", "t", moved, toolUseResult={"stdout": "a" * 500}),
        said("a2", "r1", "m2", text("Done")),
    )
    items = [e["data"] for e in of_type(found, ADDED) if e["data"]["context_kind"] == "tool_result"]
    assert [item["content"] for item in items] == [moved]


def test_a_hooks_message_for_the_person_is_no_system_prompt() -> None:
    """What a hook printed as `systemMessage` is shown and not sent; it is nothing that was left unread."""
    hook = {
        "type": "hook_success",
        "hookName": "SessionStart:startup",
        "hookEvent": "SessionStart",
        "content": "",
        "stdout": '{"systemMessage": "The kiln logger links this conversation to your next commit."}\n',
        "exitCode": 0,
    }
    bill = {"input_tokens": 9, "output_tokens": 2}
    _, problems = events(
        user("u1", None, "How hot?"),
        line("attachment", "k1", "u1", attachment=hook),
        said("a1", "k1", "m1", text("1180"), usage=bill),
    )
    assert [problem.message for problem in problems] == []


def test_attachments_of_a_kind_that_is_not_known_are_kept() -> None:
    found, _ = events(
        user("u1", None, "Hello"),
        line("attachment", "k1", "u1", attachment={"type": "ultra_effort_v9", "content": "Try harder."}),
        line("attachment", "k2", "k1", attachment={"type": "brand_new", "levels": [1, 2]}),
        said("a1", "k2", "m1", text("Yes")),
    )
    items = [e["data"] for e in of_type(found, ADDED)]
    assert [(item["content_mode"], item.get("content")) for item in items[1:3]] == [
        ("inline", "Try harder."),
        ("opaque", None),
    ]
    assert items[2]["metadata"]["native"]["type"] == "brand_new"

"""When a runtime's log says that its turn is over, record by record."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.turn_ends import is_over
from ctxctl.trace.source import Source, open_source

Json = dict[str, Any]


def over(name: str, *records: Json | str) -> bool:
    text = "".join(f"{record if isinstance(record, str) else json.dumps(record)}\n" for record in records)
    return is_over(name, Source.from_bytes("log", text.encode()))


def claude(kind: str, *blocks: str, stop: str | None = None, **more: Any) -> Json:
    content = [{"type": block, "text": "…"} for block in blocks]
    return {"type": kind, "message": {"role": kind, "content": content, "stop_reason": stop}, **more}


ASKED = claude("user", "text")
CALLED = claude("assistant", "tool_use", stop="tool_use")
RESULT = claude("user", "tool_result")
THOUGHT = claude("assistant", "thinking", stop="end_turn")
SAID = claude("assistant", "text", stop="end_turn")
CUT = {"type": "user", "message": {"role": "user", "content": "[Request interrupted by user for tool use]"}}
CUT_TOO = {
    "type": "user",
    "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]},
}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], False),
        ([ASKED], False),
        ([ASKED, CALLED], False),
        ([ASKED, CALLED, RESULT], False),
        ([ASKED, CALLED, RESULT, THOUGHT], False),
        ([ASKED, CALLED, RESULT, THOUGHT, SAID], True),
        ([ASKED, SAID, {"type": "last-prompt"}, {"type": "cost-state"}], True),
        ([ASKED, SAID, {"type": "attachment"}, ASKED], False),
        ([ASKED, SAID, ASKED, {"type": "api-request"}], False),
        ([ASKED, claude("assistant", "text"), {"type": "system", "subtype": "turn_duration"}], True),
        ([ASKED, claude("assistant", "text")], False),
        ([ASKED, CALLED, CUT], True),
        ([ASKED, CALLED, CUT_TOO], True),
        ([ASKED, CALLED, claude("assistant", "text", stop="end_turn", isSidechain=True)], False),
        ([ASKED, claude("assistant", "text", stop="max_tokens")], True),
        ([ASKED, SAID, '{"type":"user","mess'], True),
        ([ASKED, SAID, "[]", "7", ""], True),
        ([{"type": "assistant", "message": 7}, {"type": "user", "message": None}], False),
        ([{"type": "assistant", "message": {"stop_reason": [], "content": [{"type": {}}, 7]}}], False),
        ([{"type": [], "message": {"content": [[]]}}], False),
    ],
)
def test_claude_code(records: list[Json | str], expected: bool) -> None:
    assert over("claude-code", *records) is expected


def event(kind: str) -> Json:
    return {"type": "event_msg", "payload": {"type": kind}}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([event("task_started"), {"type": "response_item", "payload": {"type": "message"}}], False),
        ([event("task_started"), event("token_count")], False),
        ([event("task_started"), event("task_complete"), {"type": "world_state"}], True),
        ([event("turn_complete"), event("token_count")], True),
        ([event("task_started"), event("turn_aborted")], True),
        ([event("task_complete"), event("task_started")], False),
        ([event("task_complete"), {"type": "turn_context", "payload": {}}], False),
        ([{"type": "event_msg", "payload": []}], False),
    ],
)
def test_codex(records: list[Json | str], expected: bool) -> None:
    assert over("codex", *records) is expected


def copilot(kind: str, **data: Any) -> Json:
    return {"type": kind, "data": data}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([copilot("user.message"), copilot("assistant.turn_start")], False),
        ([copilot("assistant.message", toolRequests=[{}]), copilot("assistant.turn_end")], False),
        ([copilot("tool.execution_complete"), copilot("assistant.turn_end")], False),
        ([copilot("assistant.message", toolRequests=[]), copilot("assistant.turn_end")], True),
        ([copilot("assistant.message", chunkIndex=0, chunkCount=2)], False),
        ([copilot("assistant.message", chunkIndex=1, chunkCount=2)], True),
        ([copilot("assistant.message", parentToolCallId="c")], False),
        ([copilot("tool.execution_start"), copilot("abort")], True),
        ([copilot("assistant.message"), copilot("session.shutdown"), copilot("session.resume")], True),
    ],
)
def test_copilot_cli(records: list[Json | str], expected: bool) -> None:
    assert over("copilot-cli", *records) is expected


@pytest.mark.parametrize(
    ("stop", "expected"),
    [("stop", True), ("length", True), ("aborted", True), ("toolUse", False), ("error", False)],
)
def test_pi(stop: str, expected: bool) -> None:
    said = {"type": "message", "message": {"role": "assistant", "stopReason": stop}}
    assert over("pi", said, {"type": "model_change"}) is expected
    assert not over("pi", said, {"type": "message", "message": {"role": "user"}})


def test_streams_of_headless_runs() -> None:
    assert over("claude-stream-json", {"type": "assistant"}, {"type": "result"})
    assert not over("claude-stream-json", {"type": "result"}, {"type": "assistant"})
    assert over("codex-exec", {"type": "item.completed"}, {"type": "turn.completed"})
    assert not over("codex-exec", {"type": "turn.completed"}, {"type": "turn.started"})


@pytest.mark.parametrize("kind", ["turn.started", "item.started", "item.updated", "item.completed"])
def test_codex_exec_works_until_it_says_that_the_turn_is_over(kind: str) -> None:
    assert not over("codex-exec", {"type": "turn.completed"}, {"type": kind})
    assert over("codex-exec", {"type": kind}, {"type": "turn.failed"})


@pytest.mark.parametrize(
    "kind",
    [
        "user.message", "assistant.turn_start", "tool.execution_start", "tool.execution_complete",
        "subagent.started", "subagent.completed",
    ],
)  # fmt: skip
def test_copilot_works_until_it_says_that_it_is_idle(kind: str) -> None:
    assert not over("copilot-cli", copilot("session.idle"), copilot(kind))
    for end in ("session.idle", "session.shutdown", "abort"):
        assert over("copilot-cli", copilot(kind), copilot(end))


def test_what_has_no_mark_is_never_over() -> None:
    assert not over("gemini-cli", {"type": "gemini", "content": "Done."})


def test_only_the_end_of_a_large_log_is_looked_at() -> None:
    filler = json.dumps({"type": "last-prompt", "x": "y" * 1000})
    assert over("claude-code", *([filler] * 2000), SAID)
    assert not over("claude-code", SAID, *([filler] * 2000))


OPEN = {"role": "assistant", "time": {"created": 3}}
DONE = {"role": "assistant", "time": {"created": 3, "completed": 4}}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "time": {"created": 3}}, False),
        (OPEN, False),
        ({**OPEN, "finish": "stop"}, False),
        ({**DONE, "finish": "tool-calls"}, False),
        ({**DONE, "finish": "stop"}, True),
        ({**DONE, "finish": "length"}, True),
        ({**DONE, "error": {"name": "MessageAbortedError"}}, True),
        (DONE, False),
        ([], False),
    ],
)
def test_opencodes_database(tmp_path: Path, message: Any, expected: bool) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT)")
        database.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)")
        database.executemany("INSERT INTO session VALUES (?, ?)", [("main", None), ("child", "main")])
        rows = [
            ("m1", "main", 1, json.dumps({"role": "user"})), ("m2", "main", 3, json.dumps(message)),
            ("m3", "child", 4, json.dumps({**DONE, "finish": "stop" if not expected else "tool-calls"})),
        ]  # fmt: skip
        database.executemany("INSERT INTO message VALUES (?, ?, ?, ?)", rows)
        database.commit()
        # Its log is not moved into the file while it is open.
        with open_source(path) as source:
            assert is_over("opencode", source) is expected


@pytest.mark.parametrize("text", ["not JSON", b"\xff", None, 7])
def test_a_database_whose_messages_are_anything(tmp_path: Path, text: Any) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE session (id TEXT, parent_id TEXT)")
        database.execute("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data)")
        database.execute("INSERT INTO session VALUES ('s', NULL)")
        database.execute("INSERT INTO message VALUES ('m', 's', 1, ?)", (text,))
        database.commit()
    with open_source(path) as source:
        assert not is_over("opencode", source)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE something (id TEXT)")
        database.commit()
    with open_source(other) as source:
        assert not is_over("opencode", source)

"""goose's sessions: files, exports, the database."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.goose import FORMAT
from tests.unit.importers.agent_help import FIXTURES, Json, imported, jsonl, of_type, windows

NAME = "goose"
FILE = FIXTURES / "goose" / "session.jsonl"
EXPORT = FIXTURES / "goose" / "export.json"
HEAD = {"working_dir": "/w", "description": "d", "message_count": 1}


def said(role: str, *content: Json, **fields: Any) -> Json:
    return {"role": role, "created": 1750000000, "content": [*content], **fields}


def text(value: str) -> Json:
    return {"type": "text", "text": value}


def database(path: Path, *, wal: bool = False) -> bytes:
    """The exported session as goose stores it."""
    session = json.loads(EXPORT.read_bytes())
    with sqlite3.connect(path) as made:
        if wal:
            made.execute("PRAGMA journal_mode = WAL")
        made.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, created_at TIMESTAMP, "
            "total_tokens INTEGER, model_config_json TEXT)"
        )
        made.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, "
            "role TEXT, content_json TEXT, created_timestamp INTEGER, timestamp TIMESTAMP, tokens INTEGER, "
            "metadata_json TEXT)"
        )
        for native in (session["id"], "20260201_4"):
            row = (native, "n", "/home/ada/bees", "2026-02-01", 700, json.dumps(session["model_config"]))
            made.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", row)
        for message in session["conversation"]:
            for native in (session["id"], "20260201_4"):
                made.execute(
                    "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, "
                    "metadata_json) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        message["id"],
                        native,
                        message["role"],
                        json.dumps(message["content"]),
                        message["created"],
                        json.dumps(message["metadata"]),
                    ),
                )
    made.close()
    return path.read_bytes()


def test_answers_in_a_row_are_one_request() -> None:
    found = windows(FILE, NAME)
    assert [w.turn for w in found] == ["turn-1", "turn-1", "turn-2", "turn-3", "turn-3"]
    assert found[1].items == [
        ("user_message", "How many hives are there?"),
        ("assistant_message", "I count them."),
        ("tool_call", 'developer__shell {"command":"ls hives"}'),
        ("tool_result", "north south"),
    ]


def test_what_is_for_people_is_not_sent() -> None:
    texts = [text or "" for w in windows(FILE, NAME) for text in w.texts()]
    assert not any("for people" in text or text == "note" for text in texts)


def test_totals_are_no_bills() -> None:
    assert [w.billed() for w in windows(FILE, NAME)] == [None] * 5


def test_calls_that_failed_are_told() -> None:
    assert windows(FILE, NAME)[4].items[-1] == ("tool_result", "no such tool")


def test_tools_of_the_head_stand_in_front() -> None:
    tool = {"name": "look", "description": "Looks.", "input_schema": {"properties": {}}}
    found, _ = imported(NAME, jsonl({"tools": [tool]}, said("user", text("x")), said("assistant", text("y"))))
    [assembly] = of_type(found, "context.assembly.created")
    assert next(block["block_id"] for block in assembly["ordered_blocks"]) == "tool/look"


def test_what_the_agent_no_longer_sees_left_when_the_summary_came() -> None:
    found = windows(EXPORT, NAME)
    assert found[1].texts() == ["Is there honey?", 'look {"in":"hive"}', "three jars"]
    assert found[2].items == [
        ("thread_summary", "Summary: three jars of honey."),
        ("user_message", "Sell one."),
    ]
    assert {w.step.model for w in found} == {"gpt-5.1"}


OLD = {"metadata": {"userVisible": True, "agentVisible": False}}
AGENT = {"metadata": {"userVisible": False, "agentVisible": True}}


def exported(path: Path, *messages: Json) -> Path:
    path.write_text(json.dumps({"id": "s", "working_dir": "/w", "conversation": messages}))
    return path


def test_what_goose_adds_to_a_summary_is_no_answer_and_no_turn(tmp_path: Path) -> None:
    messages = [
        said("user", text("one"), id="m1", **OLD),
        said("assistant", call("c1"), id="m2", **OLD),
        said("user", result("c1"), id="m3", **OLD),
        said("user", text("Summary."), id="m4", **AGENT),
        said("assistant", text("Your context was compacted."), id="m5", **AGENT),
        said("user", text("one"), id="m6"),
        said("assistant", text("Done."), id="m7"),
        said("user", text("two"), id="m8"),
        said("assistant", text("Again."), id="m9"),
    ]
    found = windows(exported(tmp_path / "s.json", *messages), NAME)
    assert [w.turn for w in found] == ["m1", "m1", "m8"]
    assert found[1].items == [
        ("thread_summary", "Summary."),
        ("policy_note", "Your context was compacted."),
        ("user_message", "one"),
    ]


def test_notices_and_commands_are_no_history(tmp_path: Path) -> None:
    error = {"type": "error", "kind": "authentication", "message": "No key."}
    messages = [
        said("user", text("/compact"), **OLD),
        said("user", text("one"), **OLD),
        said("assistant", text("yes"), **OLD),
        said("user", text("Summary."), **AGENT),
        said("user", text("two")),
        said("assistant", error, **OLD),
        said("user", text("three")),
        said("assistant", text("no")),
    ]
    found = windows(exported(tmp_path / "s.json", *messages), NAME)
    assert [w.texts() for w in found] == [["one"], ["Summary.", "two", "three"]]


def test_calls_made_at_once_are_one_request(tmp_path: Path) -> None:
    messages = [
        said("user", text("one")),
        said("assistant", {"type": "reasoning", "text": "Both."}, call("c1")),
        said("user", result("c1")) | {"created": 1750000003},
        said("assistant", {"type": "reasoning", "text": "Both."}, call("c2")),
        said("user", result("c2")) | {"created": 1750000003},
        said("assistant", call("c3")) | {"created": 1750000005},
        said("user", result("c3")) | {"created": 1750000005},
        said("assistant", text("Done.")) | {"created": 1750000009},
    ]
    found = windows(exported(tmp_path / "s.json", *messages), NAME)
    assert [len(w.items) for w in found] == [1, 7, 9]


def call(native: str) -> Json:
    value = {"status": "success", "value": {"name": "look", "arguments": {"at": native}}}
    return {"type": "toolRequest", "id": native, "toolCall": value}


def result(native: str) -> Json:
    value = {"status": "success", "value": [text("seen")]}
    return {"type": "toolResponse", "id": native, "toolResult": value}


@pytest.mark.parametrize("wal", [False, True])
def test_the_database_gives_what_the_export_gives(tmp_path: Path, wal: bool) -> None:
    path = tmp_path / "sessions.db"
    data = database(path, wal=wal)
    assert FORMAT.detect(data[: 64 * 1024]) >= 90
    found = windows(path, NAME)
    wanted = [w.items for w in windows(EXPORT, NAME)]
    for session in ("20260201_3", "20260201_4"):
        assert [w.items for w in found if w.step.session == session] == wanted


def test_a_database_that_is_damaged_or_lacks_its_tables_is_told_of(tmp_path: Path) -> None:
    data = database(tmp_path / "sessions.db")
    for broken in (
        data[:2000],
        data[:5000],
        data[:4096] + b"\xff" * 4096,
        b"SQLite format 3\0" + b"\0" * 100,
    ):
        _, problems = imported(NAME, broken)
        assert {p.slug for p in problems} <= {"bad-database", "not-a-record"}
    _, problems = imported(NAME, data[:2000])
    assert problems


def test_a_view_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxctl.ingest.database.STEPS", 10_000)
    path = tmp_path / "bomb.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE sessions (id TEXT, created_at TEXT)")
        made.execute(
            "CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
            "SELECT id, 's' AS session_id, 'user' AS role, '[]' AS content_json FROM n"
        )
    made.close()
    _, problems = imported(NAME, path.read_bytes())
    assert [p.slug for p in problems] == ["bad-database"]


@pytest.mark.parametrize(
    "first",
    [
        HEAD,
        said("assistant", {"type": "toolRequest", "id": "1", "toolCall": {"status": "success", "value": {}}}),
        said("user", text("x")),
    ],
)
def test_sessions_are_known(first: Json) -> None:
    assert FORMAT.detect(b'\xef\xbb\xbf\n{"torn\n' + jsonl(first)) >= 50


@pytest.mark.parametrize(
    "other",
    [
        {"role": "user", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]},
        {"a" * 64: {"input": {}, "output": {}}},
    ],
)
def test_other_captures_are_left_alone(other: Json) -> None:
    assert FORMAT.detect(jsonl(other)) == 0
    assert FORMAT.detect(b"SQLite format 3\0" + b"CREATE TABLE ItemTable (key TEXT)") == 0


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [1, None, {"type": 3}]])
def test_fields_of_any_type_do_no_harm(odd: Any) -> None:
    kinds = ("text", "toolRequest", "toolResponse", "image", "thinking", "redactedThinking", odd)
    fields = dict.fromkeys(("text", "id", "toolCall", "toolResult", "data", "thinking", "mimeType"), odd)
    for role in ("user", "assistant", odd):
        for kind in kinds:
            message = said(role, {**fields, "type": kind}, metadata=odd, id=odd)
            imported(NAME, jsonl(HEAD, message, {**message, "content": odd, "created": odd}))
            imported(NAME, json.dumps({**HEAD, "conversation": [message, odd], "model_config": odd}).encode())
    imported(NAME, jsonl({"tools": odd}, odd))


@pytest.mark.parametrize("odd", [None, 1, [], {}, [1, None, {"type": 3}]])
def test_detection_takes_fields_of_any_type(odd: Any) -> None:
    names = ("type", "role", "content", "message", "method", "response", "id", "sessionId", "parts", "info")
    for name in names:
        record = {"type": "message", "role": "user", "content": [], "message": {"role": odd}, name: odd}
        assert 0 <= FORMAT.detect(jsonl(record, odd, [odd])) <= 100
        assert 0 <= FORMAT.detect(json.dumps({name: [{"type": odd}]}, indent=1).encode()) <= 100

"""ctxdiff's traces, against one that ctxdiff 0.5.1 wrote of the clients of OpenAI, Anthropic and Google."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.ctxdiff import reader
from ctxctl.importers.ctxdiff.reader import is_prompt, part
from ctxctl.model.results import Step
from ctxctl.providers.dialects.base import CallTitles
from ctxctl.session import Inspector
from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

PATH = FIXTURES / "ctxdiff/tides.ctrace"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / "copy.ctrace"
    path.write_bytes(PATH.read_bytes())
    return path


def changed(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
    return path


def test_every_call_is_a_step_with_its_blocks_and_its_bill() -> None:
    assert detected(PATH.read_bytes()) == "ctxdiff"
    steps, problems = seen("ctxdiff/tides.ctrace")
    assert not problems
    assert [(step.turn, step.model, step.billed) for step in steps] == [
        (1, "gpt-4o", 28), (1, "gpt-4o", 28), (2, "gpt-4o", 28),
        (1, "claude-sonnet-5", 31), (1, "claude-sonnet-5", 31), (2, "gemini-2.5-flash", 41),
    ]  # fmt: skip
    assert steps[2].kinds() == [
        "tool_definition", "system_prompt", "user_message", "tool_call", "tool_result", "assistant_message",
        "user_message", "image",
    ]  # fmt: skip
    assert steps[2].texts()[3:7] == [
        'read_tide {"harbour":"Norddeich"}', "11:42", "High water is at 11:42.", "And this?",
    ]  # fmt: skip
    assert steps[4].kinds()[-3:] == ["assistant_message", "tool_call", "tool_result"]
    assert steps[4].texts()[-2:] == ['read_tide {"harbour":"Baltrum"}', "11:58"]


def test_each_window_is_what_the_database_says_of_the_call() -> None:
    # Immutable: files beside it for a moment would be in the way of other tests.
    with closing(sqlite3.connect(f"file:{PATH}?immutable=1", uri=True)) as database:
        database.row_factory = sqlite3.Row
        rows = database.execute(
            "SELECT c.id FROM call c JOIN run r ON r.id = c.run_id ORDER BY r.rowid, c.seq"
        )
        held = [
            database.execute("SELECT COUNT(*) FROM call_block WHERE call_id = ?", (row["id"],)).fetchone()[0]
            for row in rows
        ]
    assert [len(step.window) for step in seen("ctxdiff/tides.ctrace")[0]] == held


def test_runs_are_sessions_that_tell_their_version() -> None:
    found, _ = events("ctxdiff", PATH.read_bytes())
    told = [e["data"] for e in found if e["event_type"] == "ctxctl.source.opened"]
    assert [(one["project"], one["version"]) for one in told] == [("tides", "0.5.1")] * 2
    assert len({one["session"] for one in told}) == 2
    with Inspector.open(PATH) as inspector:
        sessions = {result.session for result in inspector.replay() if isinstance(result, Step)}
    assert sessions == {one["session"] for one in told}


def test_a_bill_without_its_cached_part_is_left_out(copy: Path) -> None:
    text = json.dumps({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}, sort_keys=True)
    digest = hashlib.sha256(f"user\0content_part\0{text}".encode()).hexdigest()
    changed(
        copy,
        f"INSERT INTO block VALUES ('{digest}', 'user', 'content_part', '{text}', 1, 'estimate')",
        f"INSERT INTO call_block SELECT id, '{digest}', 99, 'user', 'heuristic' FROM call",
    )
    steps, problems = seen(copy)
    assert [step.billed for step in steps] == [28, 28, 28, None, None, 41]
    assert not problems


def test_agents_are_threads_and_redacted_blocks_are_told(copy: Path) -> None:
    changed(
        copy,
        "UPDATE call SET agent = 'pilot' WHERE seq = 2",
        "UPDATE block SET text = '[redacted]' WHERE text LIKE 'When is high water at%'",
    )
    steps, problems = seen(copy)
    assert [step.thread for step in steps] == ["main", "pilot", "main", "main", "pilot", "main"]
    assert slugs(problems) == ["redacted-blocks"]


def test_a_block_that_calls_name_again_and_again_is_read_once(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    own = reader._digest
    monkeypatch.setattr(reader, "_digest", lambda block: read.append(block["content_hash"]) or own(block))
    # No call begins as the one before, so that each lists its whole window.
    changed(
        copy,
        "INSERT INTO call_block (call_id, block_id, position, label, label_source)"
        " SELECT id, 'none' || seq, -1, '', '' FROM call",
    )
    assert len(events("ctxdiff", copy.read_bytes())[0]) > 0
    assert len(read) == len(set(read)) > 0


def test_the_first_schema_has_no_agents(copy: Path) -> None:
    changed(copy, *(f"ALTER TABLE call DROP COLUMN {name}" for name in ("agent", "step", "provider")),
            "UPDATE run SET schema_version = 1")  # fmt: skip
    steps, problems = seen(copy)
    assert len(steps) == 6
    assert not problems


def test_a_newer_schema_and_missing_blocks_are_told(copy: Path) -> None:
    changed(copy, "UPDATE run SET schema_version = 3", "DELETE FROM block WHERE role = 'assistant'")
    steps, problems = seen(copy)
    assert len(steps) == 6
    assert sorted(slugs(problems)) == ["missing-block", "newer-version", "newer-version"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE call SET params = 'x', usage = '[1]', error = 7",
        "UPDATE call SET usage = '{\"prompt_tokens\": -1}'",
        "UPDATE block SET text = x'ff00', role = 7, kind = NULL",
        "UPDATE call_block SET block_id = NULL WHERE position = 1",
        "DROP TABLE block",
        "UPDATE run SET id = NULL, started_at = 7",
    ],
)
def test_nothing_in_a_database_raises(copy: Path, statement: str) -> None:
    try:
        changed(copy, statement)
    except sqlite3.IntegrityError:
        copy.write_bytes(PATH.read_bytes()[:4096])
    events("ctxdiff", copy.read_bytes())


def block(role: str, value: Any, kind: str = "content_part") -> dict[str, Any]:
    return {"role": role, "kind": kind, "text": value if isinstance(value, str) else json.dumps(value)}


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        (block("user", "plain", "message"), "user_message", "plain"),
        (block("model", "said", "message"), "assistant_message", "said"),
        (block("user", {"type": "text", "text": "t"}), "user_message", "t"),
        (block("assistant", {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}),
         "tool_call", 'f {"x":1}'),
        (block("assistant", {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'}),
         "tool_call", 'f {"x":1}'),
        (block("tool", {"type": "function_call_output", "call_id": "a", "output": "o"}), "tool_result", "o"),
        (block("assistant", {"function_call": {"name": "f", "args": {"x": 1}}}), "tool_call", 'f {"x":1}'),
        (block("assistant", {"name": "f", "arguments": '{"x":1}'}), "tool_call", 'f {"x":1}'),
        (block("assistant", {"toolUse": {"toolUseId": "a", "name": "f", "input": {"x": 1}}}),
         "tool_call", 'f {"x":1}'),
        (block("user", {"toolResult": {"toolUseId": "a", "content": [{"text": "o"}]}}),
         "tool_result", '[{"text":"o"}]'),
        (block("user", {"type": "strange", "x": 1}), "custom", '{"type":"strange","x":1}'),
        (block("user", "{ torn"), "user_message", "{ torn"),
    ],
)  # fmt: skip
def test_blocks(given: dict[str, Any], kind: str, text: str) -> None:
    made = part(given, CallTitles())
    assert (made.kind, made.text) == (kind, text)


def test_a_tools_result_is_no_prompt() -> None:
    assert is_prompt(block("user", "hi", "message"))
    assert not is_prompt(block("user", {"type": "tool_result", "content": "x"}))
    assert not is_prompt(block("tool", "x", "message"))


def test_a_block_that_a_call_names_again_and_again_is_bounded(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_ROOM", 1000)
    size = copy.stat().st_size
    with closing(sqlite3.connect(copy)) as opened, opened as database:
        (call,) = database.execute("SELECT id FROM call ORDER BY seq DESC LIMIT 1").fetchone()
        (block,) = database.execute("SELECT content_hash FROM block LIMIT 1").fetchone()
        database.execute("UPDATE block SET text = ? WHERE content_hash = ?", ("word " * 10_000, block))
        rows = [(call, block, at, "a", "b") for at in range(1000, 1100)]
        database.executemany("INSERT INTO call_block VALUES (?, ?, ?, ?, ?)", rows)
    found, problems = events("ctxdiff", copy.read_bytes())
    (cut,) = [problem for problem in problems if problem.slug == "windows-too-large"]
    assert "are left out" in cut.message
    assert len(json.dumps(found)) < 20 * size + 100 * 1000

"""Crush's database: sessions, answers, summaries, sub-agents."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxctl.cli.main import run
from ctxctl.errors import Exit
from ctxctl.importers import registry
from ctxctl.importers.crush import reader
from ctxctl.ingest.parents import Lineage
from tests.unit.importers.agent_help import Json, imported, of_type, windows

NAME = "crush"
SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
    message_count INTEGER NOT NULL DEFAULT 0 CHECK (message_count >= 0),
    prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL NOT NULL DEFAULT 0.0, updated_at INTEGER NOT NULL, created_at INTEGER NOT NULL,
    summary_message_id TEXT, todos TEXT);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL default '[]',
    model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER,
    provider TEXT, is_summary_message INTEGER DEFAULT 0 NOT NULL);
"""


def part(kind: str, **data: Any) -> Json:
    return {"type": kind, "data": data}


def said(text: str) -> Json:
    return part("text", text=text)


def made(folder: Path, sessions: list[tuple[Any, ...]], messages: list[tuple[Any, ...]]) -> Path:
    """A database; sessions as (id, parent, last summary), messages as (session, id, role, parts, summary)."""
    path = folder / "crush.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SCHEMA)
        for at, (native, parent, summary) in enumerate(sessions):
            database.execute(
                "INSERT INTO sessions VALUES (?, ?, 'Kiln', 1, 900, 40, 0.25, 0, ?, ?, NULL)",
                (native, parent, 1_770_000_000 + at, summary),
            )
        for at, (session, native, role, parts, summary) in enumerate(messages):
            model = "claude-sonnet-4-5" if role == "assistant" else ""
            text = parts if isinstance(parts, str) else json.dumps(parts)
            row = (native, session, role, text, model, 1_770_000_000 + at, 0, None, "anthropic", summary)
            database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        database.commit()
    return path


CALL = part("tool_call", id="c1", name="view", input='{"file_path":"kiln.txt"}', finished=True)
RESULT = part("tool_result", tool_call_id="c1", name="view", content="1180", is_error=False)
ASKED = [
    ("s1", "u1", "user", [said(" How hot? "), part("finish", reason="stop", time=0)], 0),
    ("s1", "a1", "assistant", [part("reasoning", thinking="Look."), said("I look."), CALL], 0),
    ("s1", "t1", "tool", [RESULT], 0),
    ("s1", "a2", "assistant", [said("1180."), part("finish", reason="end_turn", time=0)], 0),
]


def test_an_answer_is_a_request_of_what_stands_before_it(tmp_path: Path) -> None:
    path = made(tmp_path, [("s1", None, None)], ASKED)
    assert registry.of_file(path, path.read_bytes()[:65536]) is registry.by_name(NAME)
    first, second = windows(path, NAME)
    assert first.texts() == ["How hot?"]
    assert second.texts() == ["How hot?", "I look.", "Look.", 'view {"file_path":"kiln.txt"}', "1180"]
    assert second.kinds()[1:] == ["assistant_message", "reasoning", "tool_call", "tool_result"]
    assert {first.turn, second.turn} == {"u1"}


def test_a_databases_tables_tell_whose_it_is(tmp_path: Path) -> None:
    path = made(tmp_path, [("s1", None, None)], ASKED)
    events, problems = imported(NAME, path.read_bytes())
    assert not problems, "the sums of a session are known to be no bill of a request"
    models = {event["data"].get("model") for event in events if event["event_type"] == "context.assembled"}
    assert models <= {"claude-sonnet-4-5", None}


def test_a_summary_takes_the_place_of_what_was_before_it(tmp_path: Path) -> None:
    goes_on = (
        "The previous session was interrupted because it got too long, the initial user request was: `x`"
    )
    thought = part("reasoning", thinking="Sum it up.")
    path = made(
        tmp_path,
        [("s1", None, "a3")],
        [
            *ASKED,
            ("s1", "a3", "assistant", [thought, said("The kiln is at 1180.")], 1),
            ("s1", "u2", "user", [said(goes_on)], 0),
            ("s1", "a4", "assistant", [said("Done.")], 0),
        ],
    )
    found = windows(path, NAME)
    assert len(found) == 4
    assert found[2].texts()[-1] == "1180.", "the summary is asked for with the whole history"
    assert found[3].texts() == ["The kiln is at 1180.", goes_on]
    assert found[3].turn == "u1", "Crush goes on by itself"
    assert len(of_type(imported(NAME, path.read_bytes())[0], "context.compaction.completed")) == 1


def test_an_answer_that_failed_was_a_request_and_is_not_sent_again(tmp_path: Path) -> None:
    failed = [part("finish", reason="error", message="Provider Error", details="500")]
    path = made(
        tmp_path,
        [("s1", None, None)],
        [
            ("s1", "u1", "user", [said("8 + 8")], 0),
            ("s1", "a1", "assistant", failed, 0),
            ("s1", "u2", "user", [said("9 + 9")], 0),
            ("s1", "a2", "assistant", [said("18")], 0),
        ],
    )
    first, second = windows(path, NAME)
    assert (first.texts(), second.texts()) == (["8 + 8"], ["8 + 8", "9 + 9"])


def test_a_sub_agents_session_is_a_thread(tmp_path: Path) -> None:
    path = made(
        tmp_path,
        [("s1", None, None), ("a1$$c1", "s1", None), ("round", "round", None)],
        [
            *ASKED,
            ("a1$$c1", "x1", "user", [said("Read the gauge.")], 0),
            ("a1$$c1", "x2", "assistant", [said("1180")], 0),
            ("round", "y1", "user", "no JSON", 0),
        ],
    )
    assert [w.thread for w in windows(path, NAME)].count("a1$$c1") == 1
    problems = imported(NAME, path.read_bytes())[1]
    assert [problem.slug for problem in problems] == ["not-a-record"]


def test_sessions_in_a_circle_are_told_and_read(tmp_path: Path) -> None:
    answers = [(name, f"m{name}", "assistant", [said(name)], 0) for name in "abc"]
    path = made(tmp_path, [("a", "c", None), ("b", "a", None), ("c", "b", None)], answers)
    events, problems = imported(NAME, path.read_bytes())
    assert [problem.message for problem in problems if problem.slug == "circular-parents"] == [
        "session c follows session b, which follows from it: it is taken to begin a conversation"
    ]
    opened = [one for one in events if one["event_type"] == "context.assembly.created"]
    assert [(one["session_id"], one.get("thread_id")) for one in opened] == [
        ("c", "a"),
        ("c", "b"),
        ("c", None),
    ]


def test_a_chain_of_sessions_is_walked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    class Counted(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            nonlocal steps
            steps += 1
            return super().get(key, default)

    class Counting(Lineage[str]):
        def __init__(self) -> None:
            super().__init__()
            self._parents = Counted()

    monkeypatch.setattr(reader, "Lineage", Counting)
    n = 400
    chain = [("s0", None, None), *((f"s{i}", f"s{i - 1}", None) for i in range(1, n))]
    path = made(tmp_path, chain, [(f"s{n - 1}", "a1", "assistant", [said("ho")], 0)])
    assert [w.thread for w in windows(path, NAME)] == [f"s{n - 1}"]
    assert 0 < steps <= 4 * n


def test_turns_of_several_sessions_keep_their_numbers_on_a_narrow_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session's id is long, and the turn stands behind it: the id gives way."""
    first, second = ("48e26ce0-1da8-4d31-a170-29b39cb250d1", "5a787a10-af19-4355-a6fd-7e7fe24260d7")
    path = made(
        tmp_path,
        [(first, None, None), (second, None, None)],
        [
            (session, f"{kind}{at}{session}", "user" if kind == "u" else "assistant", [said(kind * 60)], 0)
            for session in (first, second)
            for at in (1, 2)
            for kind in "ua"
        ],
    )
    monkeypatch.setenv("COLUMNS", "70")
    assert run(["replay", str(path)]) == Exit.OK
    turns = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:4] in ("48e2", "5a78")]
    assert [turn.rpartition("/")[2] for turn in turns] == ["1", "2", "1", "2"]
    assert all("…/" in turn for turn in turns)


@pytest.mark.parametrize("kind", [["text"], {"a": 1}, None, 7])
def test_a_part_whose_type_is_no_name_is_told_and_passed_over(tmp_path: Path, kind: Any) -> None:
    odd = {"type": kind, "data": {"text": "never shown"}}
    rows = [("s", "m1", "user", [said("How hot?"), odd], 0), ("s", "m2", "assistant", [said("Hot.")], 0)]
    (window,) = windows(made(tmp_path, [("s", None, None)], rows), NAME)
    assert window.texts() == ["How hot?"]

"""Totals of several requests that a runtime states: read as that, never a bill, and shown where none is."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any, Final

import pytest

from ctxctl.cli.main import run

Json = dict[str, Any]


def _lines(*records: Json) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def _codex(*usages: Json) -> str:
    turns: list[Json] = [{"type": "thread.started", "thread_id": "t-1"}]
    for number, usage in enumerate(usages):
        item = {"id": f"item_{number}", "type": "agent_message", "text": "Done."}
        turns += [{"type": "turn.started"}, {"type": "item.completed", "item": item}]
        turns.append({"type": "turn.completed", "usage": usage})
    return _lines(*turns)


AIDER: Final = """
# aider chat started at 2026-03-01 09:00:00

> Aider v0.86.2
> Main model: gpt-4.1 with diff edit format

#### name the gate

North gate.

> Tokens: 2.3k sent, 1.1k cache hit, 214 received. Cost: $0.01 request, $0.02 session.

#### and the key?

Under the mat.

> Tokens: 4k sent, 300 received.
Cost: $0.03 request, $0.05 session.
"""
RESULT: Final = {
    "type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "Open.",
    "session_id": "s-1", "total_cost_usd": 0.03,
    "usage": {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900,
              "output_tokens": 20},
    "modelUsage": {
        "claude-sonnet-4-5": {"inputTokens": 5, "outputTokens": 20, "cacheReadInputTokens": 900,
                              "cacheCreationInputTokens": 100, "costUSD": 0.02},
        "claude-haiku-4-5": {"inputTokens": 400, "outputTokens": 8, "cacheReadInputTokens": 0,
                             "cacheCreationInputTokens": 0, "costUSD": 0.01},
    },
}  # fmt: skip
COPILOT: Final = _lines(
    {"type": "session.start", "id": "1", "data": {"sessionId": "c-1", "copilotVersion": "1.0.102"},
     "timestamp": "2026-03-01T09:00:00Z", "parentId": None},
    {"type": "user.message", "id": "2", "data": {"content": "Open?"}, "parentId": "1"},
    {"type": "assistant.turn_start", "id": "3", "data": {"turnId": "0"}, "parentId": "2"},
    {"type": "assistant.message", "id": "4", "data": {"messageId": "m", "content": "Yes."}, "parentId": "3"},
    {"type": "session.shutdown", "id": "5", "parentId": "4", "data": {
        "shutdownType": "routine", "totalPremiumRequests": 1, "totalApiDurationMs": 9, "modelMetrics": {
            "gpt-4.1": {"requests": {"count": 2, "cost": 1}, "usage": {
                "inputTokens": 1000, "outputTokens": 50, "cacheReadTokens": 800, "cacheWriteTokens": 0}}}}},
)  # fmt: skip
GEMINI: Final = _lines(
    {"type": "init", "session_id": "g-1", "model": "gemini-2.5-pro", "timestamp": "2026-03-01T09:00:00Z"},
    {"type": "message", "role": "user", "content": "Open?", "timestamp": "2026-03-01T09:00:00Z"},
    {"type": "message", "role": "assistant", "content": "Yes.", "timestamp": "2026-03-01T09:00:01Z"},
    {"type": "result", "status": "success", "timestamp": "2026-03-01T09:00:01Z", "stats": {
        "total_tokens": 900, "input_tokens": 850, "output_tokens": 50, "cached": 100, "input": 750}},
)  # fmt: skip
GOOSE: Final = _lines(
    {"working_dir": "/home/ada", "description": "Gate", "message_count": 2, "total_tokens": 210,
     "input_tokens": 200, "output_tokens": 10, "accumulated_input_tokens": 390,
     "accumulated_output_tokens": 20},
    {"role": "user", "created": 1750000000, "content": [{"type": "text", "text": "Open?"}]},
    {"role": "assistant", "created": 1750000005, "content": [{"type": "text", "text": "Yes."}]},
)  # fmt: skip
SWE: Final = json.dumps({
    "history": [{"role": "system", "content": "Fix it.", "agent": "main"},
                {"role": "user", "content": "The gate is shut.", "agent": "main"},
                {"role": "assistant", "content": "ls", "action": "ls", "agent": "main"}],
    "trajectory": [{"action": "ls", "observation": "gate", "response": "ls"}],
    "info": {"model_stats": {
        "instance_cost": 0.2, "tokens_sent": 900, "tokens_received": 60, "api_calls": 1}},
})  # fmt: skip


def _crush(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE sessions (id TEXT, parent_session_id TEXT, title TEXT, message_count INTEGER,"
            " prompt_tokens INTEGER, completion_tokens INTEGER, cost REAL, updated_at INTEGER,"
            " created_at INTEGER, summary_message_id TEXT);"
            "CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, model TEXT,"
            " created_at INTEGER, updated_at INTEGER, finished_at INTEGER);"
        )
        database.execute("INSERT INTO sessions VALUES ('s', NULL, 'Gate', 2, 1200, 80, 0.05, 2, 1, NULL)")
        for name, role, text in (("a", "user", "Open?"), ("b", "assistant", "Yes.")):
            parts = json.dumps([{"type": "text", "data": {"text": text}}])
            row = (name, role, parts, "claude-3.5-sonnet" if role == "assistant" else None)
            database.execute("INSERT INTO messages VALUES (?, 's', ?, ?, ?, 1, 1, 1)", row)


TABLE: Final = [
    # name of the file, what it holds, totals as (scope, usd, input, cached, written, output), cost in a list
    ("one.jsonl", _codex({"input_tokens": 900, "cached_input_tokens": 700, "output_tokens": 9}),
     [("session", None, 900, 700, None, 9)], None),
    ("running.jsonl", _codex({"input_tokens": 900, "cached_input_tokens": 700, "output_tokens": 9},
                             {"input_tokens": 2000, "cached_input_tokens": 1500, "output_tokens": 30}),
     [("session", None, 2000, 1500, None, 30)], None),
    (".aider.chat.history.md", AIDER,
     [("turn", "0.01", 2300, 1100, None, 214), ("turn", "0.03", 4000, None, None, 300),
      ("session", "0.05", None, None, None, None)], "0.05"),
    ("result.json", json.dumps(RESULT), [("turn", "0.03", 1405, 900, 100, 28)], "0.03"),
    ("results.jsonl", _lines(RESULT, {**RESULT, "total_cost_usd": 0.05, "modelUsage": {}}),
     [("turn", "0.03", 1405, 900, 100, 28), ("turn", None, 1005, 900, 100, 20),
      ("session", "0.05", None, None, None, None)], "0.05"),
    ("again.jsonl", _lines(RESULT, RESULT | {"total_cost_usd": 0.04}, RESULT | {"total_cost_usd": 0.01}),
     [("turn", "0.03", 1405, 900, 100, 28), ("turn", None, 1005, 900, 100, 20),
      ("session", "0.04", 1405, 900, 100, 28), ("turn", None, 1005, 900, 100, 20),
      ("session", "0.01", 1405, 900, 100, 28)], "0.05"),
    ("events.jsonl", COPILOT, [("session", None, 1000, 800, 0, 50)], "0.0012"),
    ("stream.jsonl", GEMINI, [("turn", None, 850, 100, None, 50)], "0.00145"),
    ("goose.jsonl", GOOSE,
     [("session", None, 390, None, None, 20), ("request", None, 200, None, None, 10)], None),
    ("run.traj", SWE, [("session", "0.2", 900, None, None, 60)], "0.2"),
    ("crush.db", _crush,
     [("session", "0.05", None, None, None, None), ("request", None, 1200, None, None, 80)], "0.05"),
]  # fmt: skip


def _told(capsys: pytest.CaptureFixture[str], *command: str) -> list[Json]:
    assert run([*command, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def _figures(total: Json) -> tuple[Any, ...]:
    counts = [total[f"{name}_tokens"] for name in ("input", "cached", "cache_write", "output")]
    return (total["scope"], total["usd"], *counts)


@pytest.mark.parametrize(("name", "held", "totals", "usd"), TABLE, ids=[row[0] for row in TABLE])
def test_what_a_file_states_of_several_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, held: Any, totals: Any, usd: str | None
) -> None:
    path = tmp_path / name
    if callable(held):
        held(path)
    else:
        path.write_text(held)
    steps = [one for one in _told(capsys, "replay", str(path)) if one["type"] == "step"]
    stated = [_figures(total) for step in steps for total in step.get("stated", ())]
    assert all(one in stated for one in totals)
    assert all(step["usage"] is None or step["usage"]["reported_input"] is None for step in steps)
    (cost,) = [one for one in _told(capsys, "cost", str(path)) if one["type"] == "cost"]
    assert sorted(map(str, map(_figures, cost["stated"]["runs"]))) == sorted(map(str, totals))
    assert (cost["stated"]["total_usd"], cost["billed_tokens"]["input"]) == (usd, 0)
    assert not cost["stated"]["total_is_least"]
    (row,) = [one for one in _told(capsys, "ls", str(path)) if one["type"] == "listed_session"]
    assert row["stated"] == cost["stated"]
    assert row["cost"] is None
    assert run(["ls", str(path)]) == 0
    assert ("†" in capsys.readouterr().out) is (usd is not None)
    (whole,) = [one for one in _told(capsys, "cost", str(tmp_path)) if one["type"] == "cost"]
    assert whole["stated"]["total_usd"] == usd


def test_requests_that_no_total_holds_make_a_sum_a_lower_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".aider.chat.history.md").write_text(AIDER + "\n#### and now?\n\nNothing.\n")
    (row,) = [one for one in _told(capsys, "ls", str(tmp_path)) if one["type"] == "listed_session"]
    assert (row["stated"]["total_usd"], row["stated"]["total_is_least"]) == ("0.05", True)
    assert run(["ls", str(tmp_path)]) == 0
    assert "≥$0.0500†" in capsys.readouterr().out


def test_a_total_stands_beside_the_bills_of_its_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1,000 tokens in and 20 out of claude-sonnet-4-5 are $0.0033 by the table: $0.00363 is a tenth more."""
    message = {
        "id": "msg_1", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 1000, "output_tokens": 20},
    }  # fmt: skip
    path = tmp_path / "run.jsonl"
    path.write_text(
        _lines(
            {"type": "assistant", "session_id": "s", "parent_tool_use_id": None, "message": message},
            {"type": "result", "subtype": "success", "session_id": "s", "total_cost_usd": 0.00363,
             "num_turns": 1, "usage": message["usage"]},
        )
    )  # fmt: skip
    (cost,) = [one for one in _told(capsys, "cost", str(path)) if one["type"] == "cost"]
    (total,) = cost["stated"]["runs"]
    assert (cost["billed"]["total"], total["usd"], total["billed_usd"]) == ("0.0033", "0.00363", "0.0033")
    assert run(["cost", str(path)]) == 0
    assert "(stated +10.0%)" in " ".join(capsys.readouterr().out.split())


def test_an_end_without_figures_states_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "result.json"
    kept = {name: RESULT[name] for name in ("type", "subtype", "session_id", "num_turns")}
    path.write_text(json.dumps(kept))
    run(["cost", str(path), "--json"])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["stated"], one["steps"]) for one in told if one["type"] == "cost"] == [(None, 0)]


def test_a_result_by_itself_says_how_large_the_models_window_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "result.json"
    usage = {"claude-sonnet-4-5": {"inputTokens": 5, "outputTokens": 20, "contextWindow": 123_000}}
    path.write_text(json.dumps({**RESULT, "modelUsage": usage}))
    assert run(["replay", str(path), "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    held = [(one["window"]["limit"], one["window"]["limit_source"]) for one in told if one["type"] == "step"]
    assert held == [(123_000, "runtime")]

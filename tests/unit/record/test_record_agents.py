"""Sub-agents by what clients say of them: Claude Code's and Codex's headers, OpenCode's sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from exchange_help import CHAT, JSON, MESSAGES, Wire, chat
from record_help import data, replayed

from ctxctl.record.http import Agent, caller_of

Json = dict[str, Any]
TOOLS = [{"name": "bash", "input_schema": {"type": "object", "properties": {}}}]


def ask(wire: Wire, headers: dict[str, str], text: str, said: Json | None = None) -> None:
    body = {"model": "m", "tools": TOOLS, "messages": [{"role": "user", "content": text}]}
    content = [said or {"type": "text", "text": f"An answer to {text}."}]
    usage = {"input_tokens": 9, "output_tokens": 2}
    wire.ask(
        body, {"type": "message", "content": content, "usage": usage}, MESSAGES, [*JSON, *headers.items()]
    )


def test_opencode_s_sub_agents_are_threads_of_the_session_that_began_them(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "run.jsonl")
    task = "Look at all the files that are in here, please."
    arguments = {"description": "look", "prompt": task, "subagent_type": "explore"}
    ask(wire, {"x-session-id": "ses_root", "x-session-affinity": "ses_root"}, "Explain it.",
        {"type": "tool_use", "id": "t1", "name": "task", "input": arguments})  # fmt: skip
    ask(wire, {"x-session-id": "ses_child", "x-parent-session-id": "ses_root"}, task)
    # One that was begun by that one, with nothing that says which call it was.
    ask(wire, {"x-session-id": "ses_deep", "x-parent-session-id": "ses_child"}, "Count them.")
    ask(wire, {"x-session-id": "ses_child", "x-parent-session-id": "ses_root"}, "And again.")
    ask(wire, {"x-session-id": "ses_root"}, "Thanks.")
    wire.close()
    steps = replayed(wire.path)
    assert {step["session"] for step in steps} == {"ses_root"}
    threads = [step["thread"] for step in steps]
    assert threads[:4] == ["main", "agent-explore", "agent", "agent-explore"]
    origins = [one["metadata"]["ctxctl"] for one in data(wire.path, "context.assembly.created")]
    assert (origins[1]["parent_thread"], origins[1]["parent_tool_call"]) == ("main", "t1")
    assert origins[2]["parent_thread"] == "agent-explore"


def test_claude_code_s_agents_by_their_ids_though_they_begin_alike(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "run.jsonl")
    session = {"X-Claude-Code-Session-Id": "360b9fda-e625-4adb-afa4-b23dc9131574"}
    ask(wire, session, "Explain it.")
    for _ in range(2):
        for agent in ("a1", "a2"):
            ask(wire, {**session, "x-claude-code-agent-id": agent}, "The same words for both of them.")
    ask(wire, {**session, "x-claude-code-agent-id": "a3", "x-claude-code-parent-agent-id": "a1"}, "Deeper.")
    wire.close()
    assert [step["thread"] for step in replayed(wire.path)] == [
        "main", "agent", "agent-2", "agent", "agent-2", "agent-3",
    ]  # fmt: skip
    last = data(wire.path, "context.assembly.created")[-1]["metadata"]["ctxctl"]
    assert last["parent_thread"] == "agent"


def test_codex_names_a_thread_in_headers_or_in_the_body() -> None:
    turn = json.dumps(
        {"session_id": "s", "thread_id": "t", "parent_thread_id": "p", "agent_name": "/top/look"}
    )
    agent = Agent("t", "p", "look")
    headers = {"session-id": "s", "thread-id": "t", "x-codex-turn-metadata": turn}
    assert caller_of(headers, {}) == ("s", agent)
    told = {"session_id": "s", "thread_id": "t", "x-codex-turn-metadata": turn}
    assert caller_of({}, {"client_metadata": told}) == ("s", agent)
    assert caller_of({"session-id": "s", "thread-id": "s", "x-codex-turn-metadata": turn}, {})[1] is None
    # Only Codex means by it what Codex means.
    assert caller_of({"session-id": "s", "thread-id": "t"}, {}) == ("s", None)
    for broken in ("{", "[]", "7"):
        assert caller_of({"session-id": "s", "x-codex-turn-metadata": broken}, {}) == ("s", None)


def test_a_session_that_the_program_gave_stays(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "run.jsonl", session="mine")
    ask(wire, {"x-session-id": "ses_root"}, "Explain it.")
    ask(wire, {"x-session-id": "ses_child", "x-parent-session-id": "ses_root"}, "Look.")
    wire.close()
    assert [(step["session"], step["thread"]) for step in replayed(wire.path)] == [
        ("mine", "main"), ("mine", "agent"),
    ]  # fmt: skip


def test_a_title_that_an_agent_asks_for_is_not_its_conversation(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "run.jsonl")
    headers = {"x-session-id": "c", "x-parent-session-id": "r"}
    ask(wire, {"x-session-id": "r"}, "Explain it.")
    ask(wire, headers, "Look at it.")
    body = {"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "A title, please."}]}
    wire.ask(body, chat("Looking"), CHAT, [*JSON, *headers.items()])
    wire.close()
    assert [step["thread"] for step in replayed(wire.path)][1] == "agent"
    assert replayed(wire.path)[2]["thread"].startswith("side")

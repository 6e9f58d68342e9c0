"""SWE-agent trajectories: histories, lists that were sent, attempts, agents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.importers.trajectories import detected, read

Json = dict[str, Any]


def test_text_history_is_one_turn_with_a_step_for_each_answer() -> None:
    found = read(Path("swe_agent/text.traj"))
    assert found.format == "swe-agent"
    assert [(r.turn, r.step) for r in found.requests()] == [("run", "step-1"), ("run", "step-2")]
    assert found.kinds(0) == ["system_prompt", "external_resource", "user_message"]
    assert found.kinds(1)[3:] == ["assistant_message", "tool_result"]
    assert all(r.derived for r in found.requests())
    assert found.items()["message-1"]["title"] == "demonstration"


def test_totals_of_a_run_are_no_usage_of_its_steps() -> None:
    assert read(Path("swe_agent/text.traj")).usage() == []


def test_list_stored_after_a_step_is_what_the_next_one_sent() -> None:
    found = read(Path("swe_agent/calls.traj"))
    first, second, third = found.requests()
    assert (first.derived, second.derived, third.derived) == (True, False, False)
    assert second.items == ["message-0", "message-1", "message-2", "call_one", "call_one/result"]
    assert third.items[:5] == second.items
    elided = found.items()["call_one/result"]
    assert elided["content"] == "Old environment output: (2 lines omitted)"
    assert elided["metadata"]["ctxctl"]["truncated"] is True
    assert third.model == "claude-sonnet-4-20250514"


def test_thinking_blocks_are_reasoning() -> None:
    kinds = [item["context_kind"] for item in read(Path("swe_agent/calls.traj")).items().values()]
    assert kinds.count("reasoning") == 1


def test_query_is_what_the_step_itself_sent() -> None:
    found = read(Path("swe_agent/attempts.traj"))
    assert [(r.session, r.derived) for r in found.requests()] == [("attempt-1", False), ("attempt-2", True)]


def test_marks_for_the_cache_are_no_cut() -> None:
    history: list[Json] = [
        {"role": "user", "content": "task"},
        {"role": "assistant", "content": "look"},
        {"role": "user", "content": "long output"},
        {"role": "assistant", "content": "done"},
    ]
    marked = {"type": "text", "text": "task", "cache_control": {"type": "ephemeral"}}
    query = [{"role": "user", "content": [marked]}, history[1], {"role": "user", "content": "Old output."}]
    steps = [
        {"query": history[:1], "response": "look", "action": "look", "observation": "long output"},
        {"query": query, "response": "done", "action": "", "observation": ""},
    ]
    found = read({"history": history, "trajectory": steps, "info": {}})
    cut = {
        name: item["metadata"]["ctxctl"].get("truncated", False)
        for name, item in found.items().items()
        if item["context_kind"] in ("user_message", "tool_result")
    }
    assert cut == {"message-0": False, "message-2": True}


def test_an_output_goes_by_the_action_before_it() -> None:
    history: list[Json] = [
        {"role": "user", "content": "task", "agent": "primary"},
        {"role": "assistant", "content": "I look.\n```\nls -F\n```", "action": "ls -F\n", "agent": "primary"},
        {"role": "user", "content": "a b", "agent": "primary"},
        {"role": "assistant", "content": "done", "agent": "primary"},
    ]
    assert read({"history": history}).items()["message-2"]["title"] == "ls -F"


def test_agents_of_one_history_are_threads() -> None:
    history: list[Json] = [
        {"role": "system", "content": "main system", "agent": "primary"},
        {"role": "user", "content": "task", "agent": "primary"},
        {"role": "assistant", "content": "call the other", "agent": "primary"},
        {"role": "system", "content": "sub system", "agent": "sub"},
        {"role": "user", "content": "sub task", "agent": "sub"},
        {"role": "assistant", "content": "sub answer", "agent": "sub"},
    ]
    found = read({"history": history})
    assert [r.thread for r in found.requests()] == ["main", "sub"]
    origin = found.requests()[1].data["metadata"]["ctxctl"]
    assert origin["agent_type"] == "sub"


def test_history_made_of_steps_where_there_is_none() -> None:
    step = {"action": "ls", "observation": "a", "response": "look", "thought": "look", "state": {}}
    found = read({"trajectory": [step, {**step, "response": "again"}], "info": {}})
    assert len(found.requests()) == 2
    assert found.kinds(1) == ["assistant_message", "tool_result"]


def test_detection_wants_actions_with_observations_or_agents() -> None:
    assert detected({"history": [{"role": "user", "content": "x", "agent": "main"}]}) == "swe-agent"
    assert detected({"trajectory": [{"from": "human", "value": "x"}]}) is None
    assert detected({"history": [{"role": "user", "content": "x"}]}) is None


def test_wrong_types_everywhere_do_no_harm() -> None:
    history: list[Any] = [
        {"role": 7, "content": {"a": 1}, "agent": []},
        None,
        "x",
        {
            "role": "assistant",
            "content": None,
            "agent": "main",
            "tool_calls": [{"function": 3}, 4],
            "message_type": "action",
        },
        {
            "role": "tool",
            "content": [None, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}],
            "tool_call_ids": [None],
        },
    ]
    found = read(
        {
            "trajectory": [3, {"action": 1, "observation": [], "response": {}, "messages": "x"}],
            "history": history,
        }
    )
    assert len(found.requests()) == 1

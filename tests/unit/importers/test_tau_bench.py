"""tau-bench and tau2-bench results, and LiveMCPBench runs: arrays of tasks, each a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.importers.trajectories import FIXTURES, detected, read

Json = dict[str, Any]


def test_each_task_is_a_session_and_each_message_of_the_user_a_turn() -> None:
    found = read(Path("tau_bench/tasks.json"))
    assert [(r.session, r.turn) for r in found.requests()] == [
        ("task-0.trial-0", "turn-1"),
        ("task-0.trial-0", "turn-1"),
        ("task-0.trial-0", "turn-2"),
        ("task-0.trial-0", "turn-2"),
        ("task-1.trial-0", "turn-1"),
        ("task-1.trial-0", "turn-1"),
    ]


def test_call_id_that_comes_again_is_another_call() -> None:
    items = read(Path("tau_bench/tasks.json")).items()
    assert items["call_1"]["title"] == "get_user_details: ann_1"
    assert items["call_1~2"]["title"] == "update_seat: 12A"
    assert items["call_1~2/result"]["content"] == "ok"


def test_output_told_in_text_is_a_tool_s() -> None:
    found = read(Path("tau_bench/tasks.json"))
    assert found.kinds(5)[-1] == "tool_result"


def test_message_that_ends_a_task_sets_off_no_turn() -> None:
    found = read(Path("tau_bench/tasks.json"))
    turns = {e.get("turn_id") for e in found.events if e.get("session_id") == "task-0.trial-0"}
    assert turns - {None} == {"turn-1", "turn-2"}


def test_tau2_greeting_is_no_request_and_the_user_s_tools_are_not_seen() -> None:
    found = read(Path("tau_bench/tau2.json"))
    assert [r.model for r in found.requests()] == ["acme/agent", "acme/agent"]
    assert found.kinds(0) == ["system_prompt", "assistant_message", "user_message"]
    assert found.items()["system_prompt-1"]["metadata"]["ctxctl"]["derived"] is True
    assert not [name for name in found.items() if name.startswith("u_1")]
    assert found.usage() == [(120, None, 11), (140, None, 7)]


def test_live_mcp_bench_runs() -> None:
    found = read(Path("live_mcp_bench/runs.json"))
    assert found.format == "live-mcp-bench"
    assert [r.session for r in found.requests()] == ["task-aaaa-1", "task-aaaa-1", "task-aaaa-2"]
    assert found.items()["toolu_1/result"]["title"] == "route: planets"


def test_detection_of_cut_heads() -> None:
    head = b'[{"task_id": 4, "reward": 0.5, "info": {"task": {"user_id": "x", "instruction": "' + b"y" * 200
    assert detected(head) == "tau-bench"
    assert detected([{"task_id": 1, "answer": 2}]) is None
    assert detected([{"task_id": "1", "question": "?", "messages": [{"role": "user"}]}]) == "live-mcp-bench"


def test_wrong_types_everywhere_do_no_harm() -> None:
    tasks: list[Any] = [
        7,
        {"task_id": None, "reward": 1, "traj": "x"},
        {"task_id": {}, "reward": 1, "traj": [None, 3, {"role": []}]},
        {"task_id": 1, "reward": 1, "traj": [{"role": "assistant", "content": 5, "tool_calls": {"a": 1}}]},
        {"task_id": 1, "reward": 1, "traj": [{"role": "tool", "tool_messages": [1, {"role": "tool"}]}]},
    ]
    found = read(tasks)
    assert len(found.requests()) == 1
    assert [p.slug for p in found.problems] == ["not-a-record"]


def test_one_task_alone_is_read_as_it_is_among_others() -> None:
    alone, all_ = read(Path("tau_bench/task.json")), read(Path("tau_bench/tasks.json"))
    whole = [r for r in all_.requests() if r.session == "task-0.trial-0"]
    assert [(r.session, r.turn) for r in alone.requests()] == [(r.session, r.turn) for r in whole]
    assert [alone.kinds(at) for at in range(4)] == [all_.kinds(at) for at in range(4)]
    assert detected((FIXTURES / "tau_bench" / "task.json").read_bytes()) == "tau-bench"

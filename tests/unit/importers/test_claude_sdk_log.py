from __future__ import annotations

import json

from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

PATH = "claude_sdk_log/tides.json"
DATA = (FIXTURES / PATH).read_bytes()


def test_each_message_of_the_model_is_a_step_however_many_lines_tell_it() -> None:
    steps, problems = seen(PATH)
    assert sorted((step.thread, step.turn, step.billed) for step in steps) == [
        ("agent-toolu_1", 1, 903), ("main", 1, 903), ("main", 1, 903), ("main", 2, 903),
    ]  # fmt: skip
    assert not problems


def test_windows_hold_what_the_stream_shows() -> None:
    steps, _ = seen(PATH)
    main = [step for step in steps if step.thread == "main"]
    assert main[0].window == [("user_message", "When is high tide on Monday?")]
    assert main[1].kinds() == ["user_message", "reasoning", "tool_call", "tool_result"]
    assert main[2].texts()[-2:] == ["At 06:12.", "Thanks."]


def test_output_counts_of_an_answer_that_has_not_ended_are_not_told() -> None:
    found, _ = events("claude-sdk-log", DATA)
    bills = [e["data"] for e in found if "usage" in e["event_type"]]
    assert [bill["cached_tokens"] for bill in bills] == [800] * 4
    assert not any("output_tokens" in bill for bill in bills)


def test_sub_agents_and_sessions() -> None:
    found, _ = events("claude-sdk-log", DATA)
    sessions = {e.get("session_id") for e in found if e["event_type"] == "context.injection.applied"}
    assert sessions == {"0f0f0f0f-1111-4222-8333-555555555555"}
    origins = [
        e["data"]["metadata"]["ctxctl"] for e in found if e["event_type"] == "context.assembly.created"
    ]
    assert [o.get("agent_type") for o in origins if "parent_tool_call" in o] == ["explore"]


def test_detection_layouts_and_damage() -> None:
    log = json.loads(DATA)
    assert detected(DATA) == "claude-sdk-log"
    assert detected(json.dumps(log).encode()) == "claude-sdk-log"
    lines = "".join(json.dumps(record) + "\n" for record in log["messages"]).encode()
    assert detected(lines) == "claude-sdk-log"
    plain, _ = events("claude-sdk-log", DATA)
    assert len(events("claude-sdk-log", lines)[0]) == len(plain)
    wrong = [
        {"direction": "recv", "message": {"type": "assistant", "message": value}}
        for value in (5, {}, {"content": 7})
    ]
    _, problems = events("claude-sdk-log", json.dumps({"messages": [5, {"message": 7}, *wrong]}).encode())
    assert slugs(problems) == ["not-a-record", "not-a-record"]

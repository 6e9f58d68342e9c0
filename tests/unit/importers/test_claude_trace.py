from __future__ import annotations

import json

from tests.unit.importers.calls_help import FIXTURES, detected, events, no_secrets, seen, slugs

PATH = "claude_trace/session.jsonl"
DATA = (FIXTURES / PATH).read_bytes()
LINES = DATA.splitlines(keepends=True)


def test_each_pair_is_a_step_and_side_calls_are_threads_of_their_own() -> None:
    steps, problems = seen(PATH)
    assert [step.billed for step in steps if step.thread == "main"] == [304, 346, 366, None]
    assert [step.billed for step in steps if step.thread != "main"] == [8]
    assert not problems


def test_a_window_is_what_the_body_holds_in_the_providers_order() -> None:
    steps, _ = seen(PATH)
    main = [step for step in steps if step.thread == "main"][1]
    assert main.kinds() == [
        "tool_definition", "tool_definition", "system_prompt", "policy_note", "user_message",
        "assistant_message", "tool_call", "tool_result",
    ]  # fmt: skip
    assert main.texts()[-3:] == ["I look it up.", 'read_tide {"day":"monday"}', "high 06:12 and 18:40"]


def test_an_answer_that_was_streamed_is_what_the_next_request_repeats() -> None:
    found, _ = events("claude-trace", DATA)
    items = [e["data"] for e in found if e["event_type"] == "context.item.added"]
    assert sum(item.get("content") == "I look it up." for item in items) == 1
    assert [item["item_id"] for item in items].count("toolu_tide1") == 1
    assert any(item.get("content") == "Written down." for item in items), "the last answer is announced"


def test_a_new_prompt_begins_a_turn_and_a_tool_result_does_not() -> None:
    steps, _ = seen(PATH)
    assert [step.turn for step in steps if step.thread == "main"][:3] == [1, 1, 2]


def test_the_session_is_the_one_that_the_request_names() -> None:
    found, _ = events("claude-trace", DATA)
    sessions = {e.get("session_id") for e in found if e["event_type"] == "context.injection.applied"}
    assert sessions == {"0f0f0f0f-1111-4222-8333-444444444444"}


def test_keys_never_reach_the_trace() -> None:
    no_secrets("claude-trace", PATH)


def test_a_pair_without_a_request_is_reported() -> None:
    _, problems = events("claude-trace", b'{"request":5,"response":{},"logged_at":"x"}\n' + LINES[1])
    assert slugs(problems) == ["unknown-record"]


def test_a_log_without_model_calls_says_so() -> None:
    pair = json.loads(LINES[0])
    pair["request"] |= {"url": "https://statsig.test/v1/telemetry", "body": {"events": []}}
    found, problems = events("claude-trace", json.dumps(pair).encode())
    assert slugs(problems) == ["no-model-calls"]
    said, looked, *_ = problems[0].message.split("; ")
    assert said == "no request to a model in it: telemetry (1)"
    assert looked == "looked at 1 record (keys request, response, logged_at)"
    assert not [e for e in found if e["event_type"] == "context.injection.applied"]


def test_detection() -> None:
    assert detected(DATA) == "claude-trace"
    assert detected(b"\xef\xbb\xbf\n\n" + DATA) == "claude-trace"
    assert detected(b"{damaged\n" + LINES[1]) == "claude-trace"
    assert detected(json.dumps(json.loads(LINES[0]), indent=2).encode()) == "claude-trace"
    assert detected(LINES[1][:400]) == "claude-trace", "a first line that is longer than the head"
    assert detected(b'{"request":{"method":"GET"}}\n') is None

from __future__ import annotations

import json

from tests.unit.formats.calls_help import FIXTURES, detected, events, seen, slugs

PATH = "chat_messages/tides.json"
DATA = (FIXTURES / PATH).read_bytes()


def test_each_answer_was_given_to_what_stands_before_it() -> None:
    steps, problems = seen(PATH)
    assert [step.kinds() for step in steps[:2]] == [
        ["system_prompt", "user_message"],
        ["system_prompt", "user_message", "assistant_message", "tool_call", "tool_result"],
    ]
    assert len(steps) == 2, "what nothing answers is no request"
    assert not problems
    found, _ = events("chat-messages", DATA)
    assert all(
        e["data"]["metadata"]["ctxctl"]["derived"]
        for e in found
        if e["event_type"] == "context.assembly.created"
    )


def test_a_list_without_an_answer_is_one_request() -> None:
    found, _ = events("chat-messages", json.dumps(json.loads(DATA)[:2]).encode())
    assert len([e for e in found if e["event_type"] == "context.injection.applied"]) == 1


def test_detection_and_damage() -> None:
    assert detected(DATA) == "chat-messages"
    assert detected(json.dumps(json.loads(DATA)).encode()) == "chat-messages"
    assert detected(b'[{"role":"user","parts":[],"content":"x"}]') != "chat-messages"
    assert detected(b'[{"name":"x"}]') is None
    _, problems = events("chat-messages", b'[5,{"role":7,"content":{}},{"role":"assistant","content":[7]}]')
    assert slugs(problems) == ["not-a-record"]

from __future__ import annotations

import json

from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

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


def test_messages_one_a_line_are_a_list_whatever_else_they_have() -> None:
    data = (FIXTURES / "chat_messages/lines.jsonl").read_bytes()
    assert detected(data) == "chat-messages"
    bare = b"".join(
        json.dumps({name: value for name, value in json.loads(line).items() if name != "timestamp"}).encode()
        + b"\n"
        for line in data.splitlines()
    )
    assert detected(bare) == "chat-messages"
    steps, problems = seen("chat_messages/lines.jsonl")
    assert [(step.turn, step.kinds()) for step in steps] == [
        (1, ["system_prompt", "user_message"]),
        (2, ["system_prompt", "user_message", "assistant_message", "user_message"]),
    ]
    assert not problems
    found, _ = events("chat-messages", data)
    assert {e["time"] for e in found if e["event_type"] == "context.injection.applied"} == {
        "2026-03-01T10:00:02.000Z", "2026-03-01T10:00:04.000Z"
    }  # fmt: skip


def test_each_conversation_of_a_dataset_is_a_session() -> None:
    data = (FIXTURES / "chat_messages/dataset.jsonl").read_bytes()
    assert detected(data) == "chat-messages"
    found, problems = events("chat-messages", data)
    assert not problems
    asked = [e for e in found if e["event_type"] == "context.injection.applied"]
    lines = [(e["session_id"], e["metadata"]["ctxctl"]["source_line"]) for e in asked]
    assert lines == [
        ("conversation-1", 1), ("conversation-2", 2), ("conversation-2", 2), ("conversation-3", 3)
    ]  # fmt: skip
    steps, _ = seen("chat_messages/dataset.jsonl")
    assert steps[2].kinds() == ["tool_definition", "user_message", "tool_call", "tool_result"]
    one, _ = events("chat-messages", data.splitlines()[0])
    assert all("session_id" not in e or e["session_id"] is None for e in one), "one alone needs no session"


def test_share_gpt() -> None:
    data = (FIXTURES / "chat_messages/sharegpt.json").read_bytes()
    lines = b"".join(json.dumps(entry).encode() + b"\n" for entry in json.loads(data))
    assert detected(data) == detected(lines) == "chat-messages"
    steps, problems = seen("chat_messages/sharegpt.json")
    assert not problems
    assert [step.texts()[-1] for step in steps] == [
        "What is a spring tide?", "And a neap tide?", "High water at Norddeich?", "11:42"
    ]  # fmt: skip
    assert steps[3].window[0] == ("system_prompt", "You read tide tables.")
    assert steps[3].window[2] == ("tool_call", 'read_tide {"harbour":"Norddeich"}')


def test_fields_that_are_not_read_are_told_and_ids_are_told_apart() -> None:
    talk = {"id": 7, "messages": json.loads(DATA), "score": 3, "source": "x"}
    found, problems = events("chat-messages", json.dumps([talk, talk]).encode())
    assert [(p.slug, p.message.partition(": ")[2]) for p in problems] == [
        ("unread-fields", "score (2), source (2)")
    ]  # fmt: skip
    assert {e["session_id"] for e in found if e["event_type"] == "context.injection.applied"} == {"7", "7~2"}


def test_blocks_of_anthropic_in_a_list() -> None:
    talk = [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"a": 1}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}]},
        {"role": "assistant", "content": "It is 42."},
    ]
    found, _ = events("chat-messages", json.dumps({"messages": talk}).encode())
    asked = [e for e in found if e["event_type"] == "context.injection.applied"]
    assert len(asked) == 2
    assert len({e["turn_id"] for e in asked}) == 1, "a tool's result begins no turn"
    kinds = [e["data"]["context_kind"] for e in found if e["event_type"] == "context.item.added"]
    assert kinds[1:3] == ["tool_call", "tool_result"]


def test_messages_that_name_their_conversations_are_kept_apart() -> None:
    rows = [
        {"session_id": s, "role": r, "content": f"{s} {r}"} for r in ("user", "assistant") for s in ("a", "b")
    ]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    assert detected(data) == "chat-messages"
    found, _ = events("chat-messages", data)
    assert [e["session_id"] for e in found if e["event_type"] == "context.injection.applied"] == ["a", "b"]


def test_never_amplifier_for_a_time() -> None:
    rows = [
        {"role": "user", "content": "hi", "timestamp": "2026-03-01T10:00:00Z"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "ho"}],
            "timestamp": "2026-03-01T10:00:01Z",
        },
    ]
    assert detected(b"".join(json.dumps(row).encode() + b"\n" for row in rows)) == "chat-messages"


def test_a_conversation_that_says_when_it_began_has_that_time() -> None:
    talk = {"session_start": "2026-04-18T14:22:00", "messages": json.loads(DATA)[:3]}
    found, problems = events("chat-messages", json.dumps(talk).encode())
    assert {e["time"] for e in found if e["event_type"] == "context.assembly.created"} == {
        "2026-04-18T14:22:00Z"
    }
    assert not problems

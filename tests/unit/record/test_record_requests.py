"""Whole request bodies: the frame is the body, a session costs what changes, streams are joined."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from record_help import SECRET, data, events, replayed

from ctxctl import Recorder
from ctxctl.providers.dialects import base as dialects
from ctxctl.providers.dialects import by_name
from ctxctl.record.bills import bill_of

TOOLS = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
]
BILL = {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 10}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def answer(content: str | None = None, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, **more}
    return {"object": "chat.completion", "model": "m-1", "choices": [{"message": message}], "usage": BILL}


def call(number: int, arguments: str) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": arguments}}


def test_a_session_of_openai_bodies(path: Path) -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    with Recorder(path, strict=True) as recorder:
        for number in range(3):
            messages.append({"role": "user", "content": f"question {number}"})
            with recorder.turn() as turn:
                with turn.step(model="m-1") as step:
                    step.request(messages=messages, tools=TOOLS)
                    made = call(number, json.dumps({"at": number}))
                    step.response(answer(None, tool_calls=[made]))
                messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
                messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number}"})
                with turn.step(model="m-1") as step:
                    step.request(messages=messages, tools=TOOLS)
                    step.response(answer(f"answer {number}"))
                messages.append({"role": "assistant", "content": f"answer {number}"})
    steps = replayed(path)
    assert [step["turn"] for step in steps] == [1, 1, 2, 2, 3, 3]
    assert [step["counts"]["added"] for step in steps] == [3, 2, 2, 2, 2, 2]
    assert all(step["layer"] == "injected" and step["usage"]["reported_cached"] == 10 for step in steps)
    assert all(step["cache"]["broken_by"] is None for step in steps[1:])
    told = [e for e in events(path) if e["event_type"] == "context.assembly.created"]
    assert [len(e["data"]["ordered_blocks"]) for e in told] == [3, 2, 2, 2, 2, 2]


SET_COOKIE = json.dumps({"set-cookie": "sid=abcdefgh12345; Path=/"})
BODIES: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "model": "m", "tools": TOOLS, "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text",
            "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [call(1, '{"a": 1}')]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"},
        ],
    },
    "anthropic": {
        "model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look",
            "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "r"}]},
        ],
    },
    "openai-responses": {
        "model": "m", "instructions": "Be brief.", "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "r"},
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_the_items_of_a_body_are_those_that_an_import_of_it_gives(path: Path, name: str) -> None:
    body = BODIES[name]
    with Recorder(path, strict=True) as recorder:
        recorder.request(json.dumps(body).encode(), native_id="req-1")
    expected = [(part.kind, part.text) for part in by_name(name).cut(body)]
    found = [(record["context_kind"], record.get("content")) for record in data(path, "context.item.added")]
    assert found == expected
    (step,) = replayed(path)
    assert (step["model"], step["counts"]["added"]) == ("m", len(expected))


@pytest.mark.parametrize(
    ("dialect", "response"),
    [
        ("openai-chat", {"model": "m", "usage": BILL}),
        ("openai-chat", {"model": "m", "usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4,
        "completion_tokens": 0}}),
        ("openai-responses", {"model": "m", "usage": {"input_tokens": 70,
        "input_tokens_details": {"cached_tokens": 64},
         "output_tokens": 8, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 78}}),
        ("anthropic", {"model": "m", "usage": {"input_tokens": 10, "cache_read_input_tokens": 28,
         "cache_creation_input_tokens": 4, "output_tokens": 7}}),
        ("anthropic", {"model": "m", "usage": {"input_tokens": 10, "cache_read_input_tokens": 28,
         "cache_creation_input_tokens": 4, "output_tokens": 7,
         "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 3}},
         "diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 9}}}),
        ("anthropic", {"model": "m", "usage": {"input_tokens": 10, "output_tokens": 7}}),
        ("gemini", {"modelVersion": "m", "usageMetadata": {"promptTokenCount": 20,
        "cachedContentTokenCount": 5,
         "candidatesTokenCount": 3, "thoughtsTokenCount": 2}}),
    ],
)  # fmt: skip
def test_bills_are_read_as_the_importers_read_them(dialect: str, response: dict[str, Any]) -> None:
    ours, theirs = bill_of(response), dialects.usage_record_of(dialect, response)
    assert theirs is not None
    for name in (
        "provider",
        "model",
        "input_tokens",
        "cached_tokens",
        "cache_write_tokens",
        "cache_write_1h_tokens",
        "cache_miss_cause",
        "output_tokens",
        "reasoning_tokens",
    ):
        assert (ours.get(name) or 0) == (theirs.get(name) or 0), name


@pytest.mark.parametrize(
    "response", [None, 7, "x", b"{", {}, {"usage": None}, {"usage": {"prompt_tokens": -1}}, [1]]
)
def test_what_bills_nothing_reports_nothing(response: Any) -> None:
    assert bill_of(response) == {}


def test_changes_made_after_the_call_do_not_matter(path: Path) -> None:
    messages = [{"role": "user", "content": "as it was"}]
    with Recorder(path, strict=True) as recorder:
        recorder.request(messages=messages)
        messages[0]["content"] = "changed"
        messages.append({"role": "user", "content": "new"})
        recorder.request(messages=messages)
    one, two = replayed(path)
    assert one["counts"]["added"] == 1
    assert two["counts"]["removed"] + two["counts"]["updated"] >= 1


def test_outside_of_turns_a_prompt_begins_one(path: Path) -> None:
    with Recorder(path, strict=True) as recorder:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "one"}]
        recorder.request(messages=messages).response(answer("", tool_calls=[call(1, "{}")]))
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call(1, "{}")]},
            {"role": "tool", "tool_call_id": "c1", "content": "r"},
        ]
        recorder.request(messages=messages)
        messages.append({"role": "user", "content": "two"})
        recorder.request(messages=messages)
    assert [(step["turn"], step["step"]) for step in replayed(path)] == [(1, 1), (1, 2), (2, 1)]


def test_a_secret_over_two_deltas_of_a_stream_is_joined_before_it_is_looked_for(path: Path) -> None:
    with Recorder(path, strict=True) as recorder, recorder.turn() as turn, turn.step(model="m-1") as step:
        step.request(messages=[{"role": "user", "content": "give me a token"}])
        for at in (0, 7):
            stream = step.stream()
            for piece in ("It is ", SECRET[:at], SECRET[at:20], SECRET[20:], "."):
                stream.text(piece)
            stream.close()
        raw = "".join(
            f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': c}}]})}\n\n" for c in SECRET
        )
        with step.stream() as stream:
            for at in range(0, len(raw), 7):
                stream.feed(raw[at : at + 7].encode())
    text = path.read_text()
    assert all(SECRET[at : at + 12] not in text for at in range(len(SECRET) - 12))
    said = [
        r["content"] for r in data(path, "context.item.added") if r["context_kind"] == "assistant_message"
    ]
    assert len(said) == 3
    assert said[0] == said[1] != said[2]
    assert recorder.redacted == {"github-token": 3}


async def test_chunks_are_handed_on_as_they_are(path: Path) -> None:
    chunks = [
        {
            "type": "message_start",
            "message": {"model": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 4}},
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]

    async def coming() -> Any:
        for chunk in chunks:
            yield chunk

    with Recorder(path, strict=True) as recorder:
        step = recorder.request(BODIES["anthropic"])
        assert list(step.watch(chunks)) == chunks
        assert [chunk async for chunk in step.watch(coming())] == chunks
        for _ in step.watch(iter(chunks)):
            break
    said = [
        r.get("content") for r in data(path, "context.item.added") if r["context_kind"] == "assistant_message"
    ]
    assert said == ["hello", "hello"]
    assert [u["input_tokens"] for u in data(path, "ctxctl.usage.reported")] == [4, 4, 4]


def test_secrets_in_bodies_are_found_by_form_and_by_name(path: Path) -> None:
    body = {
        "model": "m", "tools": [{"type": "function", "function": {"name": "login", "parameters": {
            "type": "object", "properties": {"password": {"type": "string",
            "description": "of the user"}}}}}],
        "messages": [
            {"role": "user", "content": f"use {SECRET}"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "http", "arguments": json.dumps(
                    {"headers": {"X-Api-Key": "plainlookingvalue", "Accept": "text/html"},
                    "password": "correcthorse"})}}]},
            {"role": "tool", "tool_call_id": "c1", "content": SET_COOKIE},
        ],
    }  # fmt: skip
    with Recorder(path, strict=True) as recorder:
        recorder.request(body)
    text = path.read_text()
    for secret in (SECRET, "plainlookingvalue", "correcthorse", "abcdefgh12345"):
        assert secret not in text
    assert "text/html" in text
    assert "of the user" in text
    (step,) = replayed(path)
    assert step["counts"]["added"] == 4
    assert step["window"]["uncounted"] == 0
    marks = [e["metadata"]["ctxctl"].get("redacted", {}).get("secrets", 0) for e in events(path)]
    assert marks[:4] == [0, 1, 2, 1]

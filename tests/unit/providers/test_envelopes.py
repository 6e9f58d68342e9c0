"""Bodies in envelopes, and as an SDK's caller spells them."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import time
from typing import Any

import pytest

from ctxctl.providers.calls import envelopes
from ctxctl.providers.calls.recognise import answer_of, as_sent, is_request, request_of
from tests.unit.importers.calls_help import FIXTURES, detected, events, seen

BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
TEXT = json.dumps(BODY)
ANSWER = {
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ho"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    "value",
    [
        BODY,
        TEXT,
        TEXT.encode(),
        json.dumps(TEXT),
        coded(TEXT.encode()),
        coded(gzip.compress(TEXT.encode())),
        {"data": TEXT},
        {"body": {"content": {"data": BODY}}},
        {"body_segments": [BODY]},
        {"data": coded(TEXT.encode()), "encoding": "base64"},
        {"body": coded(b" " + TEXT.encode()), "isBase64Encoded": True},
        {"base64_string": coded(b"\n" + TEXT.encode())},
        {"payload": [TEXT[:20], TEXT[20:]]},
        {"content": json.dumps({"body": json.dumps(TEXT)})},
    ],
)
def test_a_request_comes_out_of_its_envelopes(value: Any) -> None:
    assert request_of(value) == BODY


@pytest.mark.parametrize(
    "value",
    [
        ANSWER,
        {"content": coded(json.dumps(ANSWER).encode())},
        {"data": {"text": json.dumps(ANSWER)}},
        {"body": {"string": coded(gzip.compress(json.dumps(ANSWER).encode()))}},
    ],
)
def test_an_answer_comes_out_of_its_envelopes(value: Any) -> None:
    assert answer_of(value) == ANSWER


def test_an_answers_own_text_is_no_envelope() -> None:
    for answer in (
        {"message": {"role": "assistant", "content": json.dumps(ANSWER)}, "done": True},
        {"content": "data: all of it", "model": "x"},
        {"text": ": see below"},
        {"error": {"message": json.dumps(ANSWER)}},
    ):
        assert answer_of(answer) == answer


def test_what_is_taken_off_is_bounded() -> None:
    deep: Any = BODY
    for _ in range(envelopes.MAX_DEPTH):
        deep = {"data": deep}
    assert envelopes.enveloped_body(deep, is_request) == BODY
    assert envelopes.enveloped_body({"data": deep}, is_request) is None
    bomb = coded(gzip.compress(b" " * (envelopes.MAX_OPENED + 1)))
    wide: Any = dict.fromkeys(envelopes.FIELDS, bomb)
    for _ in range(3):
        wide = dict.fromkeys(envelopes.FIELDS, wide)
    begun = time.process_time()
    assert envelopes.enveloped_body(wide, is_request) is None
    assert time.process_time() - begun < 20


def test_fixtures_of_envelopes() -> None:
    steps, problems = seen("api/envelopes.jsonl")
    assert [(step.thread, step.billed) for step in steps] == [("main", 21), ("main", 22), ("main", 23)]
    assert steps[2].texts()[-3:] == ["How far from Norden?", "Nine sea miles.", "By ferry?"]
    assert not problems


@pytest.mark.parametrize(
    ("wrapped", "field"),
    list(
        itertools.product((BODY, TEXT, json.dumps(TEXT), coded(TEXT.encode())), ("body", "content", "data"))
    ),
)
def test_logs_of_enveloped_bodies_are_known(wrapped: Any, field: str) -> None:
    record = {"request": {"url": "/v1/chat/completions", field: wrapped}, "response": {"body": ANSWER}}
    assert detected(json.dumps(record).encode()) == "api"
    found, problems = events("api", json.dumps(record).encode())
    assert [e["data"]["input_tokens"] for e in found if "usage" in e["event_type"]] == [3]
    assert not problems


def test_calls_of_google_genai_as_its_callers_write_them() -> None:
    data = (FIXTURES / "api/google_genai.jsonl").read_bytes()
    assert detected(data) == "api"
    steps, problems = seen("api/google_genai.jsonl")
    assert [(step.thread, step.billed, step.model) for step in steps] == [
        ("main", 41, "gemini-2.5-flash"),
        ("main", 61, "gemini-2.5-flash"),
    ]
    assert steps[0].kinds() == ["tool_definition", "system_prompt", "user_message"]
    assert steps[1].kinds() == [*steps[0].kinds(), "tool_call", "tool_result"]
    assert steps[0].texts()[1:] == [
        "You read tide tables, and say no more than what they say.",
        "When is high water at Norddeich?",
    ]
    assert not problems


def test_as_sent_is_what_the_sdk_sent() -> None:
    """The replay file was recorded by the SDK from the very calls that the dump is of."""
    dump = [json.loads(line) for line in (FIXTURES / "api/google_genai.jsonl").read_text().splitlines()]
    replay = json.loads((FIXTURES / "vcr/google_genai.json").read_text())["interactions"]
    for called, recorded in zip(dump, replay, strict=False):
        (sent,) = recorded["request"]["body_segments"]
        made = as_sent(called["request"])
        assert plain(made["contents"]) == plain(sent["contents"])
        assert plain(made["tools"]) == plain(sent["tools"])
        assert made["generationConfig"] == sent["generationConfig"]
        assert made["system_instruction"] == sent["systemInstruction"]["parts"][0]["text"]
        assert set(made) == {"model", "contents", "tools", "system_instruction", "generationConfig"}


def plain(value: Any) -> Any:
    """A value with its fields' names without `_` and in lower case."""
    if isinstance(value, dict):
        return {name.replace("_", "").lower(): plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


def test_spellings_of_contents() -> None:
    user = {"role": "user", "parts": [{"text": "hi"}]}
    for contents in ("hi", ["hi"], {"text": "hi"}, [{"text": "hi"}], [user]):
        assert as_sent({"model": "g", "contents": contents, "config": {}})["contents"] == [user]
    mixed = ["a", {"inlineData": {"data": "eA=="}}, user, "b"]
    assert [len(c["parts"]) for c in as_sent({"contents": mixed})["contents"]] == [2, 1, 1]
    wire = {"contents": [user], "generationConfig": {"temperature": 0}}
    assert as_sent(wire) is wire, "what is as it was sent stays the body that was sent"
    camel = as_sent(
        {"contents": "hi", "config": {"systemInstruction": "be", "tools": [{"functionDeclarations": []}],
                                      "temperature": 0, "httpOptions": {"apiKey": "SECRET"}}}
    )  # fmt: skip
    assert "SECRET" not in repr(camel)
    assert camel["systemInstruction"] == "be"
    assert camel["generationConfig"] == {"temperature": 0}

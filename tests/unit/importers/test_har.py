from __future__ import annotations

import json
from typing import Any

from tests.unit.importers.calls_help import FIXTURES, detected, events, no_secrets, seen, slugs

PATH = "har/chrome.har"
DATA = (FIXTURES / PATH).read_bytes()


def archive(*entries: Any) -> bytes:
    return json.dumps({"log": {"version": "1.2", "creator": {}, "entries": list(entries)}}).encode()


def test_calls_that_ask_a_model_are_steps_in_the_order_of_their_times() -> None:
    steps, problems = seen(PATH)
    assert [step.billed for step in steps] == [70, 95, 11]
    assert [step.kinds()[-1] for step in steps] == ["user_message", "tool_result", "user_message"]
    assert slugs(problems) == ["unread-dialect"]
    assert problems[0].message.startswith("Bedrock Converse: not a dialect that is read")


def test_what_else_a_browser_did_is_counted() -> None:
    found, _ = events("har", DATA)
    (told,) = [e["data"] for e in found if "others" in e["data"]]
    assert told["others"] == {"other requests": 1, "embeddings": 1}
    assert told["requests"] == 3


def test_keys_in_headers_and_addresses_never_reach_the_trace() -> None:
    no_secrets("har", PATH)


def test_an_unread_dialect_alone_is_an_empty_trace_with_its_reason() -> None:
    entry = json.loads(DATA)["log"]["entries"][-1]
    found, problems = events("har", archive(entry, entry))
    assert slugs(problems) == ["unread-dialect"], "said once"
    assert not [e for e in found if e["event_type"] == "context.injection.applied"]


def test_websocket_messages_of_an_entry() -> None:
    sent = {"type": "response.create", "model": "gpt-5", "input": "How is the sea?"}
    answer = {"id": "resp_1", "output": [], "usage": {"input_tokens": 7, "output_tokens": 1}}
    got = [{"type": "response.created", "response": {"id": "resp_1"}},
           {"type": "response.completed", "response": answer}]  # fmt: skip
    entry = {
        "startedDateTime": "2026-04-01T08:00:00Z",
        "request": {"method": "GET", "url": "wss://api.openai.com/v1/responses"},
        "response": {"status": 101},
        "_webSocketMessages": [
            {"type": "send", "data": json.dumps(sent)},
            *({"type": "receive", "data": json.dumps(message)} for message in got),
        ],
    }
    found, problems = events("har", archive(entry))
    assert not problems
    assert [e["data"]["input_tokens"] for e in found if "usage" in e["event_type"]] == [7]


def test_wrong_types_everywhere() -> None:
    request = {"url": 5, "method": [], "postData": {"text": {}}}
    socket = {"request": {"url": "http://[", "postData": {"text": "{}"}}, "_webSocketMessages": [7]}
    late = {"request": {}, "response": 7, "startedDateTime": 9}
    for entry in (5, {}, {"request": []}, late, {"request": request, "response": {"content": []}}, socket):
        events("har", archive(entry))
    assert slugs(events("har", b'{"log":{"entries":5}}')[1]) == ["not-a-record", "no-model-calls"]


def test_detection() -> None:
    assert detected(DATA) == "har"
    assert detected(archive()) == "har"
    assert detected(b'{"log":{"a":1}}') is None

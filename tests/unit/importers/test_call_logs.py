"""Logs of SWE-agent and OpenHands, recordings of pi and goose, documents of requests."""

from __future__ import annotations

import json
from pathlib import Path

from ctxctl.importers.openhands_completions import FORMAT
from ctxctl.ingest.folder import Folder
from tests.unit.importers.calls_help import FIXTURES, Json, detected, events, no_secrets, seen, slugs

# -- SWE-agent -----------------------------------------------------------------------------------------------


def test_swe_agent_pairs_by_order() -> None:
    steps, problems = seen("swe_agent_calls/interactions.jsonl")
    assert [step.billed for step in steps] == [70, None, 95], (
        "a request that was sent again has its own answer"
    )
    assert [step.turn for step in steps] == [1, 1, 1]
    assert not problems
    no_secrets("swe-agent-calls", "swe_agent_calls/interactions.jsonl")


def test_swe_agent_lone_response() -> None:
    lines = (FIXTURES / "swe_agent_calls/interactions.jsonl").read_bytes().splitlines(keepends=True)
    _, problems = events("swe-agent-calls", b"".join(lines[1:]))
    assert slugs(problems) == ["lone-response"]
    assert detected(lines[0]) == "swe-agent-calls"
    assert detected(lines[1]) == "swe-agent-calls"
    assert detected(lines[0][:200]) == "swe-agent-calls"


# -- OpenHands -----------------------------------------------------------------------------------------------


def test_openhands_directory_is_a_session() -> None:
    steps, problems = seen("openhands_completions/session")
    assert [step.billed for step in steps] == [80, 110]
    assert len({step.thread for step in steps}) == 1
    assert steps[1].kinds()[-3:] == ["assistant_message", "tool_call", "tool_result"]
    assert not problems


def test_openhands_prompted_tools_are_in_the_prompt_only() -> None:
    steps, problems = seen("openhands_completions/prompted.json")
    assert steps[0].kinds() == ["system_prompt", "user_message"]
    assert steps[0].billed == 99, "the bill stands with the answer that was turned into calls"
    found, _ = events(
        "openhands-completions", (FIXTURES / "openhands_completions/prompted.json").read_bytes()
    )
    contents = [e["data"].get("content") for e in found if ".item." in e["event_type"]]
    assert any("<function=read_tide>" in str(text) for text in contents), "the answer is what the model wrote"
    assert not problems


def test_openhands_detection(tmp_path: Path) -> None:
    log = (FIXTURES / "openhands_completions/prompted.json").read_bytes()
    assert detected(log) == "openhands-completions"
    assert detected(json.dumps(json.loads(log), indent=2).encode()) == "openhands-completions"
    long = json.loads(log)
    long["messages"][0]["content"] = "You are OpenHands" + "x" * 70_000
    assert detected(json.dumps(long).encode()[: 64 * 1024]) == "openhands-completions"
    assert detected(b'{"messages":[{"role":"user","content":"x"}],"model":"m"}') != "openhands-completions"
    (tmp_path / "a-1.json").write_bytes(log)
    (tmp_path / "b-2.json").write_bytes(b"{}")
    assert FORMAT.detect_folder(Folder("d", tmp_path)) == 0


# -- pi ------------------------------------------------------------------------------------------------------


def test_pi_bodies_are_the_providers() -> None:
    steps, problems = seen("pi_recordings/tides.jsonl")
    assert [step.billed for step in steps] == [304, 346, None]
    assert [step.turn for step in steps] == [1, 1, 2]
    assert steps[1].kinds()[-3:] == ["reasoning", "tool_call", "tool_result"]
    assert not problems
    found, _ = events("pi-recordings", (FIXTURES / "pi_recordings/tides.jsonl").read_bytes())
    limits = [e["data"]["max_tokens"] for e in found if e["event_type"] == "context.budget.applied"]
    assert limits == [1_000_000] * 3


def test_pi_answers_are_the_items_that_the_next_request_repeats() -> None:
    found, _ = events("pi-recordings", (FIXTURES / "pi_recordings/tides.jsonl").read_bytes())
    items = [e["data"] for e in found if ".item." in e["event_type"]]
    assert [i.get("content") for i in items].count("At 06:12.") == 1
    assert [i["item_id"] for i in items].count("toolu_tide1") == 1


def pi_recording(*records: tuple[str, Json]) -> bytes:
    model = {"id": "gpt-5.5", "api": "openai-responses", "baseUrl": "https://api.openai.com/v1"}
    return b"".join(
        json.dumps([1780844428000 + n, event, {"type": event, **payload}, {"model": model}]).encode() + b"\n"
        for n, (event, payload) in enumerate(records)
    )


def pi_asked(*inputs: Json) -> tuple[str, Json]:
    return "before_provider_request", {"payload": {"model": "gpt-5.5", "input": list(inputs)}}


def pi_said(usage: Json, *content: Json, **more: str) -> tuple[str, Json]:
    message = {"role": "assistant", "content": list(content), "api": "openai-responses", "model": "gpt-5.5"}
    return "message_end", {"message": {**message, "usage": usage, **more}}


def test_pi_bills_of_the_responses_api_are_whole_and_a_failed_call_has_none() -> None:
    user = {"role": "user", "content": [{"type": "input_text", "text": "When is high tide?"}]}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At 06:12."}]}
    counted = {"input": 40, "output": 8, "cacheRead": 300, "cacheWrite": 0}
    nothing = dict.fromkeys(counted, 0)
    data = pi_recording(
        pi_asked(user),
        pi_said(nothing, stopReason="error", errorMessage="overloaded"),
        pi_asked(user),
        pi_said(counted, {"type": "text", "text": "At 06:12."}),
        pi_asked(user, text, user),
        pi_said({**counted, "input": 52}, {"type": "text", "text": "Again."}),
    )
    found, problems = events("pi-recordings", data)
    bills = [event["data"] for event in found if event["event_type"] == "ctxctl.usage.reported"]
    assert [(b["input_tokens"], b["cached_tokens"], b["output_tokens"]) for b in bills] == [
        (340, 300, 8), (352, 300, 8),
    ]  # fmt: skip
    assert not problems
    told = [event["data"].get("content") for event in found if ".item." in event["event_type"]]
    assert told.count("At 06:12.") == 1, "the answer is what the next request repeats"


def test_pi_the_answer_of_a_request_is_the_first_after_it() -> None:
    user = {"role": "user", "content": [{"type": "input_text", "text": "When is high tide?"}]}
    data = pi_recording(
        pi_asked(user),
        pi_said({"input": 40, "output": 8}, {"type": "text", "text": "At 06:12."}),
        pi_said({"input": 7, "output": 3}, {"type": "text", "text": "Said by an extension."}),
    )
    found, _ = events("pi-recordings", data)
    bills = [event["data"] for event in found if event["event_type"] == "ctxctl.usage.reported"]
    assert [(b["input_tokens"], b["output_tokens"]) for b in bills] == [(40, 8)]


def test_pi_detection() -> None:
    data = (FIXTURES / "pi_recordings/tides.jsonl").read_bytes()
    assert detected(data) == "pi-recordings"
    numbered = b"".join(b"[7, " + line[1:] + b"\n" for line in data.splitlines())
    assert detected(numbered) == "pi-recordings"
    assert len([e for e in events("pi-recordings", numbered)[0] if "usage" in e["event_type"]]) == 2
    assert detected(b'["event",{"event":{"type":"x"}}]\n') != "pi-recordings"


# -- goose ---------------------------------------------------------------------------------------------------


def test_goose_recordings_in_the_order_of_their_times() -> None:
    steps, problems = seen("goose_recordings/tides.json")
    assert [step.billed for step in steps] == [90, 130]
    assert steps[0].kinds() == ["tool_definition", "system_prompt", "user_message"]
    assert steps[1].kinds()[3:] == ["reasoning", "assistant_message", "tool_call", "tool_result", "image"]
    assert steps[1].texts()[-2] == "high 06:12 and 18:40", "what is for people only is not the model's"
    assert "Compacting history" not in steps[1].texts()
    assert [step.turn for step in steps] == [1, 1]
    assert not problems


def test_goose_detection_and_wrong_types() -> None:
    data = (FIXTURES / "goose_recordings/tides.json").read_bytes()
    assert detected(data) == "goose-recordings"
    assert detected(json.dumps(json.loads(data)).encode()) == "goose-recordings"
    kinds = (3, "toolResponse", "toolRequest", "image", "text", "thinking", "redactedThinking", "other")
    blocks = [7, *({"type": kind} for kind in kinds)]
    message = {"role": [], "content": blocks}
    whole = {
        "input": {"messages": [5, message], "tools": [4]},
        "output": {"usage": {"usage": 4}, "message": 3},
    }
    for value in (5, {}, {"input": 3}, {"input": {"messages": {}}, "output": []}, whole):
        events("goose-recordings", json.dumps({"a" * 64: value}).encode())


# -- documents -----------------------------------------------------------------------------------------------


def test_a_document_of_requests_has_a_thread_for_each_name() -> None:
    steps, problems = seen("http_requests/golden.json")
    assert [step.thread for step in steps] == [
        "anthropic/tools",
        "openai/tools",
        "openai/text",
        "gemini/text",
    ]
    assert slugs(problems) == ["unread-dialect"]
    assert detected((FIXTURES / "http_requests/golden.json").read_bytes()) == "http-requests"
    no_secrets("http-requests", "http_requests/golden.json")

"""Bills, times, models and prompts that stand in a file, in the places where clients put them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.importers.spans_help import bills, items, read, records, requests

Json = dict[str, Any]
ASKED = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "Which tide?"}]}
SAID = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "The low one."}}]}


def jsonl(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def times(data: bytes) -> set[str]:
    """The times of the requests."""
    return {e["time"] for e in read(data).events if e["event_type"].endswith("injection.applied")}


# -- bills ------------------------------------------------------------------------------------------------


def socket_record(received: list[Json]) -> Json:
    body = {
        "type": "response.create",
        "model": "gpt-5.4",
        "input": [{"role": "user", "content": "Which tide?"}],
    }
    return {
        "id": "r1",
        "turn": 1,
        "transport": "websocket",
        "request": {"method": "WEBSOCKET", "path": "/v1/responses", "body": body},
        "response": {"status": 101, "body": None, "ws_events": received},
        "duration_ms": 3,
        "timestamp": "2026-05-06T07:08:09Z",
    }


def test_claude_tap_keeps_the_body_with_the_call_and_the_answer_in_the_events() -> None:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Low."}]}]
    usage = {"input_tokens": 31, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 12}}
    ended = {"id": "resp_1", "object": "response", "model": "gpt-5.4", "output": output, "usage": usage}
    events = [{"type": "response.created", "response": {"id": "resp_1"}}]
    found = read(
        jsonl(socket_record([*events, {"type": "response.completed", "response": ended}])), "claude-tap"
    )
    assert bills(found) == [{"input_tokens": 31, "cached_tokens": 12, "output_tokens": 4}]
    assert ("assistant_message", "Low.") in items(found)


def langfuse(name: str, **more: Any) -> bytes:
    row = {
        "id": "o1",
        "traceId": "t1",
        "type": "GENERATION",
        "startTime": "2026-05-06T07:08:09.000Z",
        "modelParameters": "{}",
        "input": json.dumps(ASKED["messages"]),
        "output": '{"role":"assistant","content":"The low one."}',
        "usageDetails": {"input": 31, "output": 4, "total": 35},
        "costDetails": {},
        name: "gpt-5.4",
        **more,
    }
    return json.dumps({"data": [row], "meta": {"cursor": None}}).encode()


@pytest.mark.parametrize("name", ["model", "providedModelName", "provided_model_name"])
def test_langfuse_names_the_model_in_several_ways(name: str) -> None:
    found = read(langfuse(name, internalModelId="clxyz"), "langfuse")
    assert [e["data"]["model"] for e in found.events if e["event_type"].endswith("usage.reported")] == [
        "gpt-5.4"
    ]


def test_langsmith_exports_the_details_of_a_runs_tokens() -> None:
    run = {
        "id": "r1",
        "trace_id": "r1",
        "run_type": "llm",
        "name": "ChatAnthropic",
        "start_time": "2026-05-06T07:08:09",
        "inputs": {"messages": ASKED["messages"]},
        "outputs": {"output": "Low."},
        "prompt_tokens": 121005,
        "completion_tokens": 57,
        "total_tokens": 121062,
        "prompt_token_details": {"cache_read": 1000, "ephemeral_1h_input_tokens": 120000},
    }
    (bill,) = bills(read(jsonl(run), "langsmith"))
    assert bill == {
        "input_tokens": 121005,
        "cached_tokens": 1000,
        "cache_write_tokens": 120000,
        "output_tokens": 57,
    }


@pytest.mark.parametrize("indent", [None, 2])
def test_litellm_logs_the_request_the_answer_and_the_cost_of_a_call(indent: int | None) -> None:
    usage = {
        "prompt_tokens": 90,
        "completion_tokens": 4,
        "total_tokens": 94,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_creation_tokens": 20},
        "cache_creation_input_tokens": 20,
    }
    logged = {
        "id": "c1",
        "trace_id": "t1",
        "call_type": "acompletion",
        "status": "success",
        "custom_llm_provider": "anthropic",
        "startTime": "2026-05-06 07:08:09.000001",
        "model": "claude-sonnet-4-5",
        "response_cost": 0.25,
        "messages": ASKED["messages"],
        "response": {
            "id": "c1",
            "created": 5,
            "object": "chat.completion",
            "model": "m",
            **SAID,
            "usage": usage,
        },
        "model_parameters": {"temperature": 0},
        "error_str": None,
    }
    found = read(json.dumps(logged, indent=indent).encode(), "api")
    assert bills(found) == [
        {"input_tokens": 90, "cached_tokens": 60, "cache_write_tokens": 20, "output_tokens": 4}
    ]
    assert items(found) == [("user_message", "Which tide?"), ("assistant_message", "The low one.")]
    (told,) = [e for e in found.events if e["event_type"].endswith("usage.reported")]
    assert (told["data"]["stated_usd"], told["time"], told["session_id"]) == (
        "0.25",
        "2026-05-06T07:08:09.000001Z",
        "t1",
    )


# -- times ------------------------------------------------------------------------------------------------

SECONDS, MOMENT = 1_788_256_800, "2026-09-01T10:00:00.000Z"


@pytest.mark.parametrize(
    "answer",
    [
        {"id": "c1", "object": "chat.completion", "created": SECONDS, "model": "gpt-5.4", **SAID},
        {"id": "c1", "object": "chat.completion", "created": SECONDS * 1000, "model": "gpt-5.4", **SAID},
    ],
)
def test_a_completion_says_when_it_was_created(answer: Json) -> None:
    assert times(jsonl({"request": ASKED, "response": answer})) == {MOMENT}


def test_a_response_says_when_it_was_created_and_the_captures_own_time_goes_before() -> None:
    asked = {"model": "gpt-5.4", "input": ASKED["messages"]}
    answer = {"id": "resp_1", "object": "response", "created_at": SECONDS, "model": "gpt-5.4", "output": []}
    assert times(jsonl({"request": asked, "response": answer})) == {MOMENT}
    own = {"timestamp": "2026-09-01T09:59:58Z", "request": asked, "response": answer}
    assert times(jsonl(own)) == {"2026-09-01T09:59:58Z"}


def droid(time: Any) -> bytes:
    said = {"role": "assistant", "content": [{"type": "text", "text": "Low."}]}
    return jsonl(
        {"type": "session_start", "id": "d1", "title": "Tides", "version": 2, "cwd": "/w"},
        {"type": "message", "id": "m1", "timestamp": time, "message": ASKED["messages"][0]},
        {"type": "message", "id": "m2", "timestamp": time, "message": said},
    )


def codex(time: Any) -> bytes:
    def line(kind: str, **payload: Any) -> Json:
        return {"timestamp": time, "type": kind, "payload": payload}

    told = [{"type": "input_text", "text": "Which tide?"}]
    said = [{"type": "output_text", "text": "Low."}]
    return jsonl(
        line("session_meta", id="019f8fd0-27d4-7932-8161-95e20ee92e66", cwd="/w", cli_version="0.160.0"),
        line("turn_context", turn_id="t1", model="gpt-5.4"),
        line("response_item", type="message", role="user", content=told),
        line("response_item", type="message", role="assistant", content=said),
    )


@pytest.mark.parametrize("capture", [droid, codex])
@pytest.mark.parametrize("time", [MOMENT, SECONDS, SECONDS * 1000, float(SECONDS)])
def test_times_are_texts_or_numbers(capture: Any, time: Any) -> None:
    assert times(capture(time)) == {MOMENT}


# -- prompts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "first", "prompts"),
    [
        ({"system_prompt": "You tell tides."}, None, ["You tell tides."]),
        ({"system": "You tell tides."}, None, ["You tell tides."]),
        # Letta's first message is the prompt with the memory behind it.
        (
            {"system": "You tell tides."},
            "You tell tides.\n\nMemory: none.",
            ["You tell tides.\n\nMemory: none."],
        ),
        ({"system": "You tell tides."}, "Be brief.", ["You tell tides.", "Be brief."]),
    ],
)
def test_the_prompt_beside_a_list_of_messages_is_there_once(
    told: Json, first: str | None, prompts: list[str]
) -> None:
    messages = [{"role": "system", "content": first}] if first is not None else []
    messages += [*ASKED["messages"], {"role": "assistant", "content": "Low."}]
    found = read(json.dumps({"session_id": "s", **told, "messages": messages}).encode(), "chat-messages")
    assert [one["content"] for one in records(found, "system_prompt")] == prompts


# -- spans ------------------------------------------------------------------------------------------------


def test_spans_below_trace_are_calls_and_so_is_one_that_set_off_another_agent() -> None:
    def span(name: str, parent: str | None, kind: str, **more: Any) -> Json:
        attributes = {"openinference.span.kind": kind, **more}
        start = f"178152480{'oltai'.index(name[0])}000000000"
        return {
            "trace_id": "t",
            "span_id": name,
            "parent_span_id": parent,
            "name": name,
            "start_time_unix_nano": start,
            "attributes": attributes,
        }

    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5"}
    spans = [
        span("outer", None, "LLM", **chat, **{"gen_ai.output.messages": "Ask the harbour."}),
        span("tool", "outer", "TOOL", **{"gen_ai.operation.name": "execute_tool"}),
        span("agent", "tool", "AGENT", **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "h"}),
        span("inner", "agent", "LLM", **chat, **{"gen_ai.output.messages": "Low."}),
    ]
    found = read(
        json.dumps({"schema_version": "agentv.trace.v1", "trace": {"trace_id": "t", "spans": spans}})
    )
    assert len(requests(found)) == 2
    assert [text for kind, text in items(found) if kind == "assistant_message"] == [
        "Ask the harbour.",
        "Low.",
    ]


# -- what is none -----------------------------------------------------------------------------------------


def test_a_session_of_dsh_is_nobodys() -> None:
    from ctxctl.importers import registry

    lines = (
        {
            "type": "session",
            "version": 0,
            "id": "d1",
            "createdAt": SECONDS,
            "cwd": "/w",
            "delegationDepth": 0,
        },
        {"type": "turn/start", "seq": 0, "time": SECONDS, "data": {"turn": 1}},
    )
    assert registry.of_head(jsonl(*lines)) is None


def opencode(prompted: bool) -> bytes:
    def message(at: int, role: str, **more: Any) -> Json:
        text = {"id": f"p{at}", "type": "text", "text": f"Word {at}."}
        info = {"id": f"m{at}", "sessionID": "s", "role": role, "time": {"created": at}, **more}
        return {"info": info, "parts": [text]}

    billed = {"modelID": "gpt-5.4", "providerID": "openai", "tokens": {"input": 40, "output": 3}, "cost": 0.1}
    messages = [message(1000, "user"), message(1001, "assistant", **billed)]
    if prompted:
        messages += [message(3000, "user"), message(3001, "assistant", **billed)]
    return json.dumps(
        {"info": {"id": "s", "version": "1.18.15", "time": {"created": 2000}}, "messages": messages}
    ).encode()


@pytest.mark.parametrize("prompted", [False, True])
def test_a_fork_of_opencodes_bills_what_was_asked_in_it(prompted: bool) -> None:
    found = read(opencode(prompted), "opencode")
    assert len(requests(found)) == len(bills(found)) == int(prompted)
    assert len(items(found)) == (4 if prompted else 0)
    assert not [problem for problem in found.problems if problem.slug == "not-understood"]

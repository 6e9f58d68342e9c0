"""The four APIs as the stand-in speaks them: what a request holds, and an answer in whole or in a stream."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from tools.clients.script import Ask, Json, Say, Tool, answer

OWN: Final = 7
"""Input tokens of each request that are neither read from the cache nor written to it."""


class Usage(NamedTuple):
    """What the stand-in bills; `total` holds `cached`."""

    total: int
    cached: int
    output: int


class Answered(NamedTuple):
    """An answer on its way: the body's pieces, and their type."""

    content_type: str
    pieces: list[bytes]


class Dialect(NamedTuple):
    """One API."""

    name: str
    path: re.Pattern[str]
    """Of its requests to a model; no other spelling is answered."""
    ask: Callable[[Json], Ask]
    calling: re.Pattern[str]
    """In the JSON of a message: it holds tool calls."""
    whole: Callable[[str, str, Say, Usage], Json]
    stream: Callable[[str, str, Say, Usage, Json], Iterator[tuple[str | None, Json | str]]]


def answered(dialect: Dialect, path: str, body: Json, number: int, usage: Callable[[Say], Usage]) -> Answered:
    """What comes back to a request; streamed where it asks for that."""
    say = answer(dialect.ask(body), dialect.calling)
    bill = usage(say)
    model = body.get("model") or path.rpartition("/")[2].partition(":")[0]
    if not (body.get("stream") or "streamGenerateContent" in path):
        return Answered(
            "application/json", [json.dumps(dialect.whole(f"{number:03}", model, say, bill)).encode()]
        )
    pieces = []
    for event, data in dialect.stream(f"{number:03}", model, say, bill, body):
        name = f"event: {event}\n" if event is not None else ""
        text = data if isinstance(data, str) else json.dumps(data)
        pieces.append(f"{name}data: {text}\n\n".encode())
    return Answered("text/event-stream", pieces)


# -- Anthropic ------------------------------------------------------------------------------------------


def _ask_messages(body: Json) -> Ask:
    tools = [
        Tool(one["name"], one.get("input_schema") or {}) for one in body.get("tools", ()) if "name" in one
    ]
    return Ask(tools, body.get("messages", []))


def _bill_messages(usage: Usage) -> Json:
    return {
        "input_tokens": OWN, "cache_creation_input_tokens": usage.total - usage.cached - OWN,
        "cache_read_input_tokens": usage.cached, "output_tokens": usage.output,
    }  # fmt: skip


def _blocks(number: str, say: Say) -> list[Json]:
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}{n}", "name": name, "input": args}
        for n, (name, args) in enumerate(say.calls)
    ]
    return [{"type": "text", "text": say.text}, *calls]


def _whole_message(number: str, model: str, say: Say, usage: Usage) -> Json:
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": model,
        "content": _blocks(number, say), "stop_reason": "tool_use" if say.calls else "end_turn",
        "stop_sequence": None, "usage": _bill_messages(usage),
    }  # fmt: skip


def _stream_message(
    number: str, model: str, say: Say, usage: Usage, body: Json
) -> Iterator[tuple[str | None, Json | str]]:
    whole = _whole_message(number, model, say, usage)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    events: list[Json] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage.output}})
    events.append({"type": "message_stop"})
    yield from ((event["type"], event) for event in events)


# -- OpenAI: chat ---------------------------------------------------------------------------------------


def _ask_chat(body: Json) -> Ask:
    functions = [one["function"] for one in body.get("tools", ()) if "function" in one]
    return Ask(
        [Tool(one["name"], one.get("parameters") or {}) for one in functions], body.get("messages", [])
    )


def _bill_chat(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.total, "completion_tokens": usage.output,
        "total_tokens": usage.total + usage.output, "prompt_tokens_details": {"cached_tokens": usage.cached},
    }  # fmt: skip


def _chat_message(number: str, say: Say) -> Json:
    message: Json = {"role": "assistant", "content": say.text}
    if say.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}{n}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for n, (name, args) in enumerate(say.calls)
        ]  # fmt: skip
    return message


def _chat(number: str, model: str, kind: str) -> Json:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_700_000_000, "model": model}


def _whole_chat(number: str, model: str, say: Say, usage: Usage) -> Json:
    reason = "tool_calls" if say.calls else "stop"
    choice = {"index": 0, "message": _chat_message(number, say), "finish_reason": reason}
    return {**_chat(number, model, "chat.completion"), "choices": [choice], "usage": _bill_chat(usage)}


def _stream_chat(
    number: str, model: str, say: Say, usage: Usage, body: Json
) -> Iterator[tuple[str | None, Json | str]]:
    head, message = _chat(number, model, "chat.completion.chunk"), _chat_message(number, say)
    deltas: list[Json] = [{"role": "assistant", "content": ""}, {"content": say.text}]
    deltas += [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(message.get("tool_calls", ()))]
    for delta in deltas:
        yield None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "tool_calls" if say.calls else "stop"
    yield None, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield None, {**head, "choices": [], "usage": _bill_chat(usage)}
    yield None, "[DONE]"


# -- OpenAI: responses ----------------------------------------------------------------------------------


def _ask_responses(body: Json) -> Ask:
    tools = [
        Tool(one["name"], one.get("parameters") or {}) for one in body.get("tools", ()) if "parameters" in one
    ]
    given = body.get("input", [])
    return Ask(tools, [given] if isinstance(given, str) else given)


def _whole_response(number: str, model: str, say: Say, usage: Usage) -> Json:
    part = {"type": "output_text", "text": say.text, "annotations": []}
    output: list[Json] = [
        {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    ]
    output += [
        {
            "type": "function_call", "id": f"fc_{number}{n}", "call_id": f"call_{number}{n}", "name": name,
            "arguments": json.dumps(args), "status": "completed",
        }
        for n, (name, args) in enumerate(say.calls)
    ]  # fmt: skip
    bill = {
        "input_tokens": usage.total, "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.total + usage.output,
    }  # fmt: skip
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 1_700_000_000, "status": "completed",
        "model": model, "output": output, "usage": bill, "error": None, "incomplete_details": None,
        "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0, "top_p": 1.0,
        "tool_choice": "auto", "tools": [], "store": False,
    }  # fmt: skip


def _stream_response(
    number: str, model: str, say: Say, usage: Usage, body: Json
) -> Iterator[tuple[str | None, Json | str]]:
    whole = _whole_response(number, model, say, usage)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[Json] = [
        {"type": f"response.{what}", "response": begun} for what in ("created", "in_progress")
    ]
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {
            **item,
            "status": "in_progress",
            **({"content": []} if "content" in item else {"arguments": ""}),
        }
        events.append({"type": "response.output_item.added", "output_index": index, "item": empty})
        if "content" in item:
            events += _text_events({**at, "content_index": 0}, item["content"][0])
        else:
            arguments = "response.function_call_arguments"
            events.append({"type": f"{arguments}.delta", **at, "delta": item["arguments"]})
            events.append({"type": f"{arguments}.done", **at, "arguments": item["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    yield from ((event["type"], {**event, "sequence_number": n}) for n, event in enumerate(events))


def _text_events(at: Json, part: Json) -> list[Json]:
    return [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": part["text"]},
        {"type": "response.output_text.done", **at, "text": part["text"]},
        {"type": "response.content_part.done", **at, "part": part},
    ]


# -- Gemini ---------------------------------------------------------------------------------------------


def _ask_gemini(body: Json) -> Ask:
    functions = [one for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
    return Ask(
        [
            Tool(one["name"], one.get("parametersJsonSchema") or one.get("parameters") or {})
            for one in functions
        ],
        body.get("contents", []),
    )


def _whole_gemini(number: str, model: str, say: Say, usage: Usage) -> Json:
    parts = [
        {"text": say.text},
        *({"functionCall": {"name": name, "args": args}} for name, args in say.calls),
    ]
    bill = {
        "promptTokenCount": usage.total, "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": usage.output, "totalTokenCount": usage.total + usage.output,
    }  # fmt: skip
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": bill,
        "modelVersion": model,
        "responseId": f"r{number}",
    }


def _stream_gemini(
    number: str, model: str, say: Say, usage: Usage, body: Json
) -> Iterator[tuple[str | None, Json | str]]:
    yield None, _whole_gemini(number, model, say, usage)


DIALECTS: Final = (
    Dialect("anthropic", re.compile(r"/v1/messages"), _ask_messages, re.compile(r'"tool_use"'),
            _whole_message, _stream_message),
    Dialect("openai-chat", re.compile(r"/v1/chat/completions"), _ask_chat, re.compile(r'"tool_calls": \['),
            _whole_chat, _stream_chat),
    Dialect("openai-responses", re.compile(r"/v1/responses"), _ask_responses,
            re.compile(r'"type": "function_call"'), _whole_response, _stream_response),
    Dialect("gemini", re.compile(r"/v1(?:beta|alpha)?/models/[^/:]+:(?:streamG|g)enerateContent"),
            _ask_gemini, re.compile(r'"functionCall"'), _whole_gemini, _stream_gemini),
)  # fmt: skip
RESPONSES: Final = next(one for one in DIALECTS if one.name == "openai-responses")

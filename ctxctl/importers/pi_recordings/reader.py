"""Reads what a pi extension recorded: the agent's events, and each body before it went to the provider.

An assistant message of pi becomes a response in the shape of its provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.ingest.build import Json, canonical
from ctxctl.ingest.lines import Report, values
from ctxctl.ingest.parts import count, string
from ctxctl.ingest.run import Run
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.trace.source import Source

NAME: Final = "pi-recordings"
"""As `--read-as` takes it."""
EVENTS: Final = frozenset(
    {
        "session_start", "resources_discover", "input", "before_agent_start", "agent_start", "agent_end",
        "turn_start", "turn_end", "message_start", "message_update", "message_end", "context",
        "before_provider_request", "after_provider_response", "tool_call", "tool_result",
        "tool_execution_start", "tool_execution_update", "tool_execution_end", "session_shutdown",
        "session_before_compact", "session_compact", "model_select",
    }
)  # fmt: skip


class Record(NamedTuple):
    """One line: `[TIME, EVENT, PAYLOAD, CONTEXT]`, or the same after a number of its own."""

    time: Any
    event: str
    payload: Json
    context: Json


def record_of(value: Any) -> Record | None:
    """The record on a line; None if there is none."""
    if not isinstance(value, list):
        return None
    numbers = 0
    while numbers < min(len(value), 2) and isinstance(value[numbers], int | float):
        numbers += 1
    if not numbers or len(value) < numbers + 2 or not isinstance(value[numbers], str):
        return None
    payload = value[numbers + 1]
    if not isinstance(payload, dict):
        return None
    context = value[numbers + 2] if len(value) > numbers + 2 else None
    return Record(value[numbers - 1], value[numbers], payload, context if isinstance(context, dict) else {})


def read(source: Source, report: Report) -> Iterator[Json]:
    """The recording's events; a request is told once its answer came, or the next request, or the end."""
    run = Run(NAME, report)
    calls = Calls(run)
    session = _Session(calls)
    for line, value in values(source, run.report):
        run.line = line
        record = record_of(value)
        if record is None:
            run.problem("not-a-record", "not a recorded event; skipped")
            continue
        session.take(record, line.number)
        yield from run.drain()
    session.flush()
    yield from calls.finish()


class _Session:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._waiting: Call | None = None
        self._prompts = 0
        self._id: str | None = None

    def take(self, record: Record, line: int) -> None:
        """Take the next event."""
        payload = record.payload
        if record.event == "before_agent_start":
            self._prompts += 1
        elif record.event == "before_provider_request":
            self.flush()
            self._waiting = self._request(record, line)
        elif self._waiting is None:
            return
        elif record.event == "after_provider_response":
            self._waiting = self._waiting._replace(
                status=payload.get("status"), headers=payload.get("headers"), error=None
            )
        elif record.event == "message_end":
            message = payload.get("message")
            if isinstance(message, dict) and message.get("role") == "assistant":
                error = string(message.get("errorMessage")) if message.get("stopReason") == "error" else None
                self._waiting = self._waiting._replace(
                    response=answer_of(message), error=error, answer_line=line
                )
                self.flush()

    def flush(self) -> None:
        """Tell the waiting request."""
        if self._waiting is not None:
            self._calls.take(self._waiting)
            self._waiting = None

    def _request(self, record: Record, line: int) -> Call:
        model = record.context.get("model")
        base = string(model.get("baseUrl")) if isinstance(model, dict) else None
        turn = f"turn-{self._prompts}" if self._prompts else None
        return Call(
            url=base,
            request=_with_model(record.payload.get("payload"), model),
            line=line,
            time=record.time,
            turn=turn,
            error="no response recorded",
            limit=model.get("contextWindow") if isinstance(model, dict) else None,
        )


def _with_model(body: Any, model: Any) -> Any:
    """The body with its model: Gemini names it in the address only, which is not recorded."""
    named = string(model.get("id")) if isinstance(model, dict) else None
    if isinstance(body, dict) and "model" not in body and named is not None:
        return {**body, "model": named}
    return body


_RESPONSES: Final = ("openai-responses", "azure-openai-responses", "openai-codex-responses")
_GEMINI: Final = ("google-generative-ai", "google-vertex", "google-gemini-cli", "google-antigravity")


def answer_of(message: Json) -> Json:
    """The response body for which a message stands, so that its parts are those of the next request.

    Pi's `input` leaves cached tokens out; the usage is put back into each provider's own terms.
    """
    content = message.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    usage = message.get("usage")
    counts = _Counts(usage if isinstance(usage, dict) else {})
    api = message.get("api")
    made: Json = {"id": string(message.get("responseId")), "model": string(message.get("model"))}
    if api in _RESPONSES:
        made |= {"object": "response", "output": _items(blocks), "usage": counts.responses()}
    elif api in _GEMINI:
        parts = [_gemini(block) for block in blocks]
        found = [{"content": {"role": "model", "parts": parts}}]
        made |= {"candidates": found, "usageMetadata": counts.gemini()}
    elif api == "openai-completions":
        made |= {"choices": [{"index": 0, "message": _chat(blocks)}], "usage": counts.chat()}
    else:
        blocks = [_anthropic(block) for block in blocks]
        made |= {"type": "message", "role": "assistant", "content": blocks, "usage": counts.anthropic()}
    return {key: value for key, value in made.items() if value is not None}


class _Counts:
    """A message's token counts; a call that failed has zeros, which are no bill."""

    def __init__(self, usage: Json) -> None:
        self.input, self.output = count(usage.get("input")), count(usage.get("output"))
        self.read, self.written = count(usage.get("cacheRead")) or 0, count(usage.get("cacheWrite")) or 0
        self.told = bool(self.input or self.output or self.read or self.written) and self.input is not None

    @property
    def whole(self) -> int:
        return (self.input or 0) + self.read + self.written

    def anthropic(self) -> Json | None:
        if not self.told:
            return None
        return {
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.written,
        }

    def responses(self) -> Json | None:
        if not self.told:
            return None
        details = {"cached_tokens": self.read}
        return {"input_tokens": self.whole, "input_tokens_details": details, "output_tokens": self.output}

    def chat(self) -> Json | None:
        if not self.told:
            return None
        details = {"cached_tokens": self.read}
        return {
            "prompt_tokens": self.whole,
            "prompt_tokens_details": details,
            "completion_tokens": self.output,
        }

    def gemini(self) -> Json | None:
        if not self.told:
            return None
        return {
            "promptTokenCount": self.whole,
            "cachedContentTokenCount": self.read,
            "candidatesTokenCount": self.output,
        }


def _anthropic(block: Json) -> Json:
    kind = block.get("type")
    if kind == "thinking":
        if block.get("redacted"):
            return {"type": "redacted_thinking", "data": block.get("thinkingSignature")}
        return {
            "type": "thinking",
            "thinking": block.get("thinking"),
            "signature": block.get("thinkingSignature"),
        }
    if kind == "toolCall":
        return {
            "type": "tool_use",
            "id": block.get("id"),
            "name": block.get("name"),
            "input": block.get("arguments"),
        }
    return block


def _items(blocks: list[Json]) -> list[Json]:
    made: list[Json] = []
    for block in blocks:
        kind = block.get("type")
        if kind == "text":
            content = [{"type": "output_text", "text": block.get("text")}]
            item: Json = {"type": "message", "role": "assistant", "content": content}
            signature = block.get("textSignature")
            if isinstance(signature, str) and signature.startswith("msg_"):
                item["id"] = signature
            made.append(item)
        elif kind == "toolCall":
            made.append(_function_call(block))
        elif kind == "thinking":
            sealed = _parsed(block.get("thinkingSignature"))
            summary = [{"type": "summary_text", "text": block.get("thinking")}]
            made.append(sealed if sealed else {"type": "reasoning", "summary": summary})
    return made


def _function_call(block: Json) -> Json:
    """The call as an item of the Responses API; pi joins its two ids with a bar."""
    call_id, _, item_id = str(block.get("id") or "").partition("|")
    item: Json = {
        "type": "function_call",
        "call_id": call_id,
        "name": block.get("name"),
        "arguments": canonical(block.get("arguments")),
    }
    if item_id:
        item["id"] = item_id
    return item


def _chat(blocks: list[Json]) -> Json:
    texts = [str(b.get("text") or "") for b in blocks if b.get("type") == "text"]
    thoughts = [str(b.get("thinking") or "") for b in blocks if b.get("type") == "thinking"]
    calls = [
        {
            "id": b.get("id"),
            "type": "function",
            "function": {"name": b.get("name"), "arguments": canonical(b.get("arguments"))},
        }
        for b in blocks
        if b.get("type") == "toolCall"
    ]
    made: Json = {"role": "assistant", "content": "".join(texts) or None}
    if thoughts:
        made["reasoning_content"] = "".join(thoughts)
    if calls:
        made["tool_calls"] = calls
    return made


def _gemini(block: Json) -> Json:
    kind = block.get("type")
    if kind == "thinking":
        return {"text": block.get("thinking"), "thought": True}
    if kind == "toolCall":
        call = {"id": block.get("id"), "name": block.get("name"), "args": block.get("arguments")}
        return {"functionCall": call}
    return {"text": block.get("text")}


def _parsed(text: Any) -> Json | None:
    """The native reasoning item, which pi keeps as the signature of a block."""
    if not isinstance(text, str) or not text.startswith("{"):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None

"""Tells bodies, pairs of them, batches and event streams from other documents, by the names of fields."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from itertools import islice
from typing import Final

from ctxctl.ingest.skim import Layout, layout_of_head
from ctxctl.providers.calls.envelopes import FIELDS

REQUESTS: Final = ("request", "req", "request_body", "requestBody", "raw_request", "body", "input", "payload",
                   "params", "modelInput", "kwargs", "data", "content")  # fmt: skip
"""Fields that a pair may hold its request in."""
RESPONSES: Final = ("response", "res", "resp", "response_body", "responseBody", "raw_response", "output",
                    "reply", "answer", "completion", "result", "modelOutput")  # fmt: skip
"""Fields that a pair may hold its answer in."""
INNER: Final = ("body", "json", "payload", "data", "parsed_body", "content", "message")
"""Fields of such a field that the body itself may be in."""
EITHER: Final = ("body", "payload", "data", "content")
"""Fields that a record without a request may hold an answer in."""
URLS: Final = ("url", "path", "endpoint", "uri")
TIMES: Final = (
    "timestamp", "time", "ts", "created_at", "start_time", "started_at", "logged_at", "date",
    "processed_time", "startTime",
)  # fmt: skip
STATUS: Final = ("status", "status_code", "statusCode", "response_status")
IDS: Final = ("custom_id", "customId", "recordId", "request_id", "requestId", "id", "call_id")
"""Fields of a record's id.  The first ones are a batch's: they tell which answer belongs to which request,
whatever the order."""
OF_BATCHES: Final = ("custom_id", "customId", "recordId")
KEYED: Final = frozenset({"key", "request", "response", "status", "error", "metadata", "processed_time"})
"""All fields of a line of a Gemini batch, whose id is its `key`."""
LITELLM: Final = ("call_type", "startTime", "model")
"""Fields of LiteLLM's log of a call (its `StandardLoggingPayload`)."""
SESSIONS: Final = ("session_id", "sessionId", "session")
THREADS: Final = ("thread_id", "threadId", "thread")
TURNS: Final = ("turn_id", "turnId", "turn")
BESIDE: Final = frozenset(
    {
        *URLS, *TIMES, *STATUS, *IDS, *SESSIONS, *THREADS, *TURNS, *RESPONSES, *EITHER, "error", "method",
        "headers", "type", "kind", "direction", "event", "model", "provider", "duration", "duration_ms",
        "key", "latency", "latency_ms", "elapsed", "elapsed_ms", "seq", "index", "n", "usage",
    }
)  # fmt: skip
"""Fields that a record of an answer alone may have beside it; what has more is another document."""


BARE: Final = 85
WRAPPED: Final = 75
PLAIN: Final = 60
STREAM: Final = 84
ANSWER: Final = 80
_SEVERAL: Final = "requests[]."
"""The document that a batch is made with: requests with their ids."""
_ANSWERED: Final = tuple(
    f"{outer}.{inner}" for outer in RESPONSES for inner in ("", "body.", "json.", "data.", "message.")
)
_MARKS: Final = ("messages[].role", "contents[].parts", "input[].role", "input[].type")
_ENVELOPES: Final = frozenset({*REQUESTS, *INNER, *FIELDS}) - {"params"}
_SSE: Final = re.compile(
    rb"\A(?:\xef\xbb\xbf)?(?:(?:event|id|retry)?+:[^\n]*+\n|\s)*+data:\s*+(\{[^\n]{0,4096})"
)
_EVENT: Final = re.compile(
    rb'"choices"\s*:|"type"\s*:\s*"(?:message_start|content_block_|ping"|response\.)|"candidates"\s*:'
)
_FRAME: Final = re.compile(rb'\s*+\{[^{}\n]{0,200}?"type"\s*+:\s*+"(?:response\.|message_start)')
"""How an answer begins that came over a socket: an event of its stream a line, with nothing in front."""
_HOLDERS: Final = (
    rb'"(?:request|req|request_body|requestBody|body|payload|content|data|params)"\s*+:\s*+"\s*+'
)
_WRITTEN: Final = re.compile(_HOLDERS + rb'(?:\\")?\{(?=([^\n]{0,8000}))')
"""A body that was written down as a string, and how it goes on."""
_QUOTED: Final = re.compile(rb'\\"(?:messages|contents|input)\\++"\s*+:')
_CODED: Final = re.compile(_HOLDERS + rb"(?=((?:eyJ|ewo|ew0|H4sI)[A-Za-z0-9+/=]{0,4096}))")
"""A body that was written down as base64."""
_PLAINLY: Final = re.compile(rb'"(?:messages|contents|input)"\s*+:')
_TRIED: Final = 40
_INFLATED: Final = 1 << 14


def body_score(head: bytes) -> int:
    """How sure the first bytes are a body, a pair of bodies, or an event stream: 0 to 100."""
    stream = _SSE.match(head)
    if stream is not None:
        return STREAM if _EVENT.search(stream.group(1)) else 0
    shown = layout_of_head(head)
    for prefix in ("", "[]."):
        score = _bare_score(shown, prefix) or _fields_score(shown, prefix)
        if score:
            return score
    if _batch(shown, _SEVERAL):
        return WRAPPED
    if _in_strings(head):
        return WRAPPED
    return PLAIN if frame_score(head) else 0


def frame_score(head: bytes) -> int:
    """How sure the first bytes are an answer as it came over a socket."""
    return STREAM if _FRAME.match(head) else 0


def _fields_score(shown: Layout, prefix: str) -> int:
    """How sure the objects at a prefix hold bodies in their fields."""
    answered = any(_is_answer(shown, f"{prefix}{path}") for path in _ANSWERED)
    if answered and _says_no_more(shown, prefix, frozenset(RESPONSES)):
        return WRAPPED
    if _batch(shown, prefix) or shown.has(*(f"{prefix}{name}" for name in LITELLM)):
        return WRAPPED
    for outer in REQUESTS:
        if outer == "params":
            # Many protocols have parameters: a batch's stand beside an id of the request.
            continue
        for path in (f"{prefix}{outer}.", *(f"{prefix}{outer}.{inner}." for inner in INNER)):
            if _is_request(shown, path):
                return WRAPPED
            if _says_no_more(shown, path):
                return WRAPPED if answered else PLAIN
    if any(_is_request(shown, path) for path in _nested_prefixes(shown, prefix)):
        return PLAIN
    alone = answered or any(_is_answer(shown, f"{prefix}{name}.") for name in EITHER)
    return PLAIN if alone and not _fields(shown, prefix) - BESIDE else 0


def _nested_prefixes(shown: Layout, prefix: str) -> set[str]:
    """The prefixes of messages that stand in nested envelopes."""
    found = set()
    for path in shown.paths:
        mark = next((mark for mark in _MARKS if path.endswith(mark)), None)
        if mark is not None and path.startswith(prefix):
            before = path[: -len(mark)]
            names = before[len(prefix) :].removesuffix(".").replace("[]", "").split(".")
            if all(name in _ENVELOPES for name in names):
                found.add(before)
    return found


def _batch(shown: Layout, prefix: str) -> bool:
    """Whether the objects at a prefix are requests or results of a batch."""
    if shown.has(f"{prefix}custom_id") and _fields(shown, prefix) <= BESIDE | set(REQUESTS):
        held = (f"{prefix}{name}." for name in ("params", "body"))
        return any(_is_request(shown, path) or _says_no_more(shown, path) for path in held) or shown.has(
            f"{prefix}result.type"
        )
    return shown.has(f"{prefix}recordId") and _is_request(shown, f"{prefix}modelInput.", named=True)


def _in_strings(head: bytes) -> bool:
    strings = islice(_WRITTEN.finditer(head), _TRIED)
    if any(_QUOTED.search(found[1]) for found in strings):
        return True
    return any(_PLAINLY.search(_decoded(found[1])) for found in islice(_CODED.finditer(head), _TRIED))


def _decoded(text: bytes) -> bytes:
    """Decode the beginning of a base64 text."""
    try:
        data = base64.b64decode(text[: len(text) // 4 * 4])
        return zlib.decompressobj(wbits=31).decompress(data, _INFLATED) if data[:2] == b"\x1f\x8b" else data
    except (binascii.Error, ValueError, zlib.error):
        return b""


def _fields(shown: Layout, prefix: str) -> set[str]:
    """Names of the fields of the object at a prefix."""
    found = set()
    for path in shown.paths:
        if path.startswith(prefix):
            name = path[len(prefix) :]
            if "." not in name and "[" not in name:
                found.add(name)
    return found


def _bare_score(shown: Layout, prefix: str) -> int:
    """How sure the objects at a prefix are bodies, requests or answers, and nothing else."""
    if not shown.paths:
        return 0
    fields = _fields(shown, prefix)
    if _is_request(shown, prefix) and len(fields - REQUEST - RESPONSE - {"config"}) <= 1:
        return BARE
    if _says_no_more(shown, prefix):
        return PLAIN
    return ANSWER if _is_answer(shown, prefix) and not fields - RESPONSE - REQUEST else 0


def _says_no_more(shown: Layout, prefix: str, beside: frozenset[str] = frozenset()) -> bool:
    """Whether the objects at a prefix have a model, messages and nothing that no request has."""
    whole = shown.has(f"{prefix}model", f"{prefix}messages[].role")
    return whole and not _fields(shown, prefix) - REQUEST - beside


def _is_answer(shown: Layout, prefix: str) -> bool:
    return (
        shown.has(f"{prefix}content[].type", f"{prefix}usage.output_tokens", f"{prefix}role")
        or shown.has(f"{prefix}choices[].message.role", f"{prefix}object")
        or shown.has(f"{prefix}choices[].message.role", f"{prefix}usage.prompt_tokens")
        or shown.has(f"{prefix}output[].type", f"{prefix}object")
        or shown.has(f"{prefix}candidates[].content.parts[].text")
        or shown.has(f"{prefix}candidates[].content.parts[].functionCall.name")
    )


def _is_request(shown: Layout, prefix: str, *, named: bool = False) -> bool:
    """Whether the objects at a prefix are requests; `named`: what stands around them names the model."""
    if shown.any(f"{prefix}contents[].parts[].text", f"{prefix}contents[].parts.text") or shown.any(
        f"{prefix}contents[].parts[].functionCall", f"{prefix}contents[].parts[].functionResponse",
        f"{prefix}contents[].parts[].inlineData", f"{prefix}contents[].parts[].function_call",
        f"{prefix}contents[].parts[].function_response",
    ):  # fmt: skip
        return True
    if shown.has(f"{prefix}model", f"{prefix}contents") and _configured(shown, prefix):
        return True
    named = named or shown.any(f"{prefix}model", f"{prefix}anthropic_version")
    if shown.has(f"{prefix}messages[].role"):
        # A transcript has messages too; a request has at least something more to say about the answer.
        return named and bool(_fields(shown, prefix) & ASKS or shown.has(f"{prefix}tools"))
    asked = shown.any(f"{prefix}input[].role", f"{prefix}input[].type") or (
        shown.has(f"{prefix}input")
        and shown.any(*(f"{prefix}{name}" for name in ("instructions", "tools", "previous_response_id",
                                                       "max_output_tokens", "store", "reasoning")))
    )  # fmt: skip
    return named and asked and not shown.any(f"{prefix}encoding_format", f"{prefix}voice", f"{prefix}output")


def _configured(shown: Layout, prefix: str) -> bool:
    """Whether google-genai was called with a text and a config, as its callers write it."""
    names = ("systemInstruction", "system_instruction", "tools", "temperature", "maxOutputTokens",
             "max_output_tokens", "responseMimeType", "response_mime_type", "thinkingConfig",
             "thinking_config", "topP", "top_p")  # fmt: skip
    return shown.any(*(f"{prefix}config.{name}" for name in names))


_REQUEST: Final = (
    "model", "messages", "max_tokens", "system", "tools", "tool_choice", "temperature", "top_p",
    "top_k", "stop", "stop_sequences", "stream", "metadata", "thinking", "betas", "anthropic_version",
    "anthropic_beta", "container", "mcp_servers", "context_management", "service_tier", "output_config",
    "output_format", "inference_geo", "cache_control", "speed", "functions", "function_call",
    "frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "n", "seed",
    "user", "response_format", "stream_options", "max_completion_tokens", "parallel_tool_calls",
    "reasoning_effort", "store", "modalities", "audio", "prediction", "verbosity", "web_search_options",
    "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "reasoning", "provider",
    "transforms", "models", "route", "plugins", "usage", "options", "format", "keep_alive", "input",
    "instructions", "max_output_tokens", "max_tool_calls", "text", "truncation", "include",
    "previous_response_id", "conversation", "background", "prompt", "client_metadata",
    "thinking_budget", "enable_thinking", "extra_body", "contents", "systemInstruction",
    "system_instruction", "generationConfig", "generation_config", "safetySettings", "safety_settings",
    "toolConfig", "tool_config", "cachedContent", "cached_content", "labels",
)  # fmt: skip
_RESPONSE: Final = (
    "id", "type", "role", "content", "model", "stop_reason", "stop_sequence", "stop_details", "usage",
    "container", "context_management", "object", "created", "choices", "system_fingerprint",
    "service_tier", "provider", "x_groq", "timings", "citations", "created_at", "status", "error",
    "incomplete_details", "output", "output_text", "completed_at", "billing", "candidates",
    "usageMetadata", "usage_metadata", "modelVersion", "model_version", "responseId", "response_id",
    "promptFeedback", "prompt_feedback", "createTime", "create_time",
)  # fmt: skip
REQUEST: Final = frozenset(_REQUEST)
"""Fields of requests, in all dialects."""
RESPONSE: Final = frozenset(_RESPONSE)
"""Fields of answers, in all dialects."""
ASKS: Final = REQUEST - {
    "model", "messages", "metadata", "input", "text", "user", "usage", "prompt", "format", "provider",
    "labels",
    "options",
}  # fmt: skip
"""Fields of requests that a transcript has no use for."""

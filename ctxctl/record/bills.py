"""Reads what a response bills into the shape of the trace; fast, as a traced program waits for it.

`providers.usage` gives the same numbers, but asks a package that takes half a second to import.
"""

from __future__ import annotations

from typing import Any

import orjson

from ctxctl.model.billed import fields_of
from ctxctl.record import values

Json = dict[str, Any]


def bill_of(response: Any) -> Json:
    """Return the record of `ctxctl.usage.reported` for a response or its `usage`; empty without a bill."""
    body = (
        orjson.loads(values.encoded(response)) if not isinstance(response, bytes | str) else _parsed(response)
    )
    if not isinstance(body, dict):
        return {}
    usage = next(
        (body[n] for n in ("usage", "usageMetadata", "usage_metadata") if isinstance(body.get(n), dict)), None
    )
    if usage is None:
        usage = body
    made = _anthropic(usage) or _openai_chat(usage) or _responses(usage) or _gemini(usage)
    if not made:
        return {}
    model = next(
        (body[n] for n in ("model", "modelVersion", "model_version") if isinstance(body.get(n), str)), None
    )
    if model:
        made["model"] = model
    cause = _object(_object(body, "diagnostics"), "cache_miss_reason").get("type")
    if isinstance(cause, str) and cause not in ("", "none"):
        made["cache_miss_cause"] = cause
    made |= fields_of(usage, body)
    made["metadata"] = {"native": {n: v for n, v in usage.items() if v not in (None, 0, {}, [])}}
    return made


def _parsed(text: bytes | str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _anthropic(usage: Json) -> Json:
    """Anthropic's counts: `input_tokens` leaves cache reads and writes out."""
    cached = ("cache_read_input_tokens", "cache_creation_input_tokens", "cache_creation")
    others = "input_tokens_details" in usage or "total_tokens" in usage
    if others and not any(name in usage for name in cached):
        return {}
    count = _count(usage, "input_tokens")
    if count is None:
        return {}
    read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
    if written is None and isinstance(parts := usage.get("cache_creation"), dict):
        written = sum(filter(None, (_count(parts, name) for name in parts)))
    made = _made(
        "anthropic", count + (read or 0) + (written or 0), read, written, _count(usage, "output_tokens"), None
    )
    hour = _count(_object(usage, "cache_creation"), "ephemeral_1h_input_tokens")
    if written is not None and hour is not None:
        made["cache_write_1h_tokens"] = hour
    return made


def _openai_chat(usage: Json) -> Json:
    count = _count(usage, "prompt_tokens")
    if count is None:
        return {}
    parts, out = _object(usage, "prompt_tokens_details"), _object(usage, "completion_tokens_details")
    read = _count(parts, "cached_tokens")
    if read is None:
        read = _count(usage, "prompt_cache_hit_tokens")
    written = _count(parts, "cache_write_tokens")
    return _made(
        "openai", count, read, written, _count(usage, "completion_tokens"), _count(out, "reasoning_tokens")
    )


def _responses(usage: Json) -> Json:
    count = _count(usage, "input_tokens")
    if count is None:
        return {}
    parts, out = _object(usage, "input_tokens_details"), _object(usage, "output_tokens_details")
    return _made(
        "openai", count, _count(parts, "cached_tokens"), _count(parts, "cache_write_tokens"),
        _count(usage, "output_tokens"), _count(out, "reasoning_tokens"),
    )  # fmt: skip


def _gemini(usage: Json) -> Json:
    def of(name: str) -> int | None:
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
        found = _count(usage, name)
        return found if found is not None else _count(usage, snake)

    count = of("promptTokenCount")
    if count is None:
        return {}
    thought, said, tools = of("thoughtsTokenCount"), of("candidatesTokenCount"), of("toolUsePromptTokenCount")
    out = None if thought is None and said is None else (thought or 0) + (said or 0)
    return _made("google", count + (tools or 0), of("cachedContentTokenCount"), None, out, thought)


def _made(
    provider: str, count: int, read: int | None, written: int | None, out: int | None, thought: int | None
) -> Json:
    made = {
        "provider": provider, "input_tokens": count, "cached_tokens": read, "cache_write_tokens": written,
        "output_tokens": out, "reasoning_tokens": thought,
    }  # fmt: skip
    return {name: value for name, value in made.items() if value is not None}


def _object(usage: Json, name: str) -> Json:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _count(usage: Json, name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None

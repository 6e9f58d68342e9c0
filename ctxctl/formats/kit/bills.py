"""Usage as chat and responses APIs report it, and as routers (litellm, openrouter) pass it on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ctxctl.formats.build import Json
from ctxctl.formats.kit.usage import usage_record


def chat_usage(usage: Any, *, provider: str | None = None, model: str | None = None) -> Json | None:
    """The bill of a chat completion or of a response; input includes what came from the cache, as billed.

    litellm adds Anthropic's `cache_read_input_tokens` and `cache_creation_input_tokens`, both of them counted
    in `prompt_tokens`.
    """
    if not isinstance(usage, dict):
        return None
    asked = _inner(usage, "prompt_tokens_details") or _inner(usage, "input_tokens_details")
    made = _inner(usage, "completion_tokens_details") or _inner(usage, "output_tokens_details")
    return usage_record(
        input_tokens=_first(usage, "prompt_tokens", "input_tokens"),
        output_tokens=_first(usage, "completion_tokens", "output_tokens"),
        cached=_first(asked, "cached_tokens", "cached", "cache_read") if asked else _read(usage),
        cache_write=_first(usage, "cache_creation_input_tokens", "cache_write_tokens"),
        reasoning=made.get("reasoning_tokens"),
        provider=provider,
        model=model,
        bill=usage,
    )


def _read(usage: Json) -> Any:
    return _first(usage, "cache_read_input_tokens", "cache_read_tokens", "cached_tokens")


def _inner(usage: Json, name: str) -> Json:
    found = usage.get(name)
    return found if isinstance(found, dict) else {}


def _first(fields: Json, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def clock(seconds: Any) -> str | None:
    """Seconds since 1970 as a native timestamp; None for what is no time."""
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 < seconds < 2**33:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat()

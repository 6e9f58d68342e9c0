"""What a provider billed, from whichever of Amplifier's records tells it first."""

from __future__ import annotations

import re
from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import count
from ctxctl.formats.kit.usage import usage_record

_REPR: Final = re.compile(r"\b([a-z_]+)=(\d{1,15})\b")


def reported(usage: Any, provider: str | None, model: str | None) -> Json | None:
    """A usage record of Amplifier's own: `llm:response`, `content_block:end` or `provider:response`.

    Two generations: `input_tokens` holds cache reads and not cache writes; `input` is the provider's own
    number, which leaves both out where the provider is Anthropic.
    """
    if isinstance(usage, str):
        # loop-basic logs the printed form of the record.
        usage = {name: int(number) for name, number in _REPR.findall(usage[:2000])}
    if not isinstance(usage, dict):
        return None
    if "input_tokens" not in usage:
        return usage_record(
            input_tokens=usage.get("input"),
            output_tokens=usage.get("output"),
            cached=usage.get("cache_read"),
            cache_write=usage.get("cache_write"),
            excludes_cache=_anthropic(provider, model),
            provider=provider,
            model=model,
            native=usage,
        )
    billed, read, written = (
        count(usage.get(name)) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens")
    )
    if billed is not None and read is not None and read > billed:
        # A provider module that passed Anthropic's number on unchanged.
        billed += read
    if billed is not None and written is not None and _anthropic(provider, model):
        billed += written
    return usage_record(
        input_tokens=billed,
        output_tokens=usage.get("output_tokens"),
        cached=read,
        cache_write=written,
        reasoning=usage.get("reasoning_tokens"),
        provider=provider,
        model=model,
        native=usage,
    )


def _anthropic(provider: str | None, model: str | None) -> bool:
    """Whether cache writes are billed beside the input, as Anthropic's API has it."""
    return "anthropic" in (provider or "").lower() or "claude" in (model or "").lower()

"""What a provider billed, in one shape: `input_tokens` is the whole context, cached tokens included."""

from __future__ import annotations

from typing import Any

from ctxctl.formats.build import Json
from ctxctl.formats.kit.parts import count
from ctxctl.formats.kit.shallow import shallow
from ctxctl.model.billed import dollars, fields_of


def usage_record(
    *,
    input_tokens: Any,
    output_tokens: Any = None,
    cached: Any = None,
    cache_write: Any = None,
    cache_write_1h: Any = None,
    reasoning: Any = None,
    excludes_cache: bool = False,
    provider: str | None = None,
    model: str | None = None,
    native: Json | None = None,
    miss_cause: str | None = None,
    bill: Any = None,
    response: Any = None,
    stated: Any = None,
) -> Json | None:
    """The record of `ctxctl.usage.reported`; None where no input count is reported.

    Args:
        input_tokens: The runtime's count of input tokens.
        output_tokens: Of output tokens, reasoning included.
        cached: Of input tokens read from the provider's cache.
        cache_write: Of input tokens written to it.
        cache_write_1h: Of these, the ones that are kept for an hour.
        reasoning: Of output tokens that were reasoning.
        excludes_cache: True where `input_tokens` leaves cache reads and writes out (Anthropic's convention).
        provider: Whose bill it is.
        model: The model that answered.
        native: The runtime's own usage fields; kept under `metadata.native`.
        miss_cause: Why the cache was not read, as the provider or the client says.
        bill: The usage as the provider wrote it, for what it bills apart (`model.billed`); default: `native`.
        response: The response that it stands in, where tier and calls of tools stand beside it.
        stated: US dollars that the runtime says the request cost, where that stands elsewhere.

    Values that are no counts are taken as not reported.
    """
    billed = count(input_tokens)
    if billed is None:
        return None
    read, written = count(cached), count(cache_write)
    if excludes_cache:
        billed += (read or 0) + (written or 0)
    told = {
        "provider": provider,
        "model": model,
        "input_tokens": billed,
        "cached_tokens": read,
        "cache_write_tokens": written,
        "cache_write_1h_tokens": count(cache_write_1h) if written is not None else None,
        "cache_miss_cause": miss_cause,
        "output_tokens": count(output_tokens),
        "reasoning_tokens": count(reasoning),
        **fields_of(native if bill is None else bill, response),
    }
    told["stated_usd"] = dollars(stated) or told.get("stated_usd")
    made: Json = {name: value for name, value in told.items() if value is not None}
    if native:
        made["metadata"] = {"native": shallow(native)}
    return made

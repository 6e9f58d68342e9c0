"""What spans, observations and runs bill, in one shape: the input is the whole context, caches included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import count, mapping, string
from ctxctl.providers.usage import usage_record, writes_of

_INPUT: Final = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens",
    "llm.token_count.prompt", "ai.usage.inputTokens", "ai.usage.promptTokens",
)  # fmt: skip
_OUTPUT: Final = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens",
    "llm.token_count.completion", "ai.usage.outputTokens", "ai.usage.completionTokens",
)  # fmt: skip
_READ: Final = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read", "ai.usage.cachedInputTokens",
    "ai.usage.inputTokenDetails.cacheReadTokens", "gen_ai.usage.details.cache_read_tokens",
    "gen_ai.usage.details.cached_tokens", "gen_ai.usage.input_tokens.cached",
)  # fmt: skip
_WRITTEN: Final = (
    "gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens", "llm.token_count.prompt_details.cache_write",
    "ai.usage.inputTokenDetails.cacheWriteTokens", "gen_ai.usage.details.cache_write_tokens",
)  # fmt: skip
_REASONED: Final = (
    "gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens",
    "llm.token_count.completion_details.reasoning", "ai.usage.reasoningTokens",
    "gen_ai.usage.details.reasoning_tokens",
)  # fmt: skip
_TOTAL: Final = (
    "gen_ai.usage.total_tokens", "llm.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens",
    "ai.usage.tokens",
)  # fmt: skip
_STATED: Final = (
    "gen_ai.usage.cost",
    "gen_ai.cost.total_cost",
    "operation.cost",
    "llm.cost.total",
    "ai.usage.cost",
)
"""US dollars: OpenLIT, Traceloop, pydantic-ai, OpenInference."""
_PREFIXES: Final = ("gen_ai.usage.", "llm.usage.", "llm.token_count.", "ai.usage.")


def of_span(attributes: Json, provider: str | None, model: str | None) -> Json | None:
    """The bill of an inference span, in any of the conventions."""
    native = {n: v for n, v in attributes.items() if n.startswith(_PREFIXES) and _whole(v) is not None}
    written, hour = writes_of(native, _first(attributes, _WRITTEN))
    return usage_record(
        input_tokens=_first(attributes, _INPUT),
        output_tokens=_first(attributes, _OUTPUT),
        cached=_first(attributes, _READ),
        cache_write=written,
        cache_write_1h=hour,
        reasoning=_first(attributes, _REASONED),
        total=_first(attributes, _TOTAL),
        provider=provider,
        model=model,
        native=native,
        stated=next((attributes[name] for name in _STATED if name in attributes), None),
    )


_LF_READ: Final = (
    "input_cache_read", "input_cached_tokens", "cache_read_input_tokens", "input_cache_read_tokens",
    "prompt_details.cache_read", "cache_read.input_tokens", "prompt_tokens_details.cached_tokens",
    "details.cache_read_tokens", "cache_read_tokens",
)  # fmt: skip
_LF_WRITTEN: Final = (
    "input_cache_creation", "cache_creation_input_tokens", "input_cache_write", "cache_creation.input_tokens",
    "cache_write.input_tokens", "prompt_details.cache_write", "details.cache_write_tokens",
    "prompt_tokens_details.cache_creation_tokens", "cache_write_tokens",
)  # fmt: skip
_LF_TOTAL: Final = ("total", "totalTokens", "total_tokens")
_LF_REASONED: Final = (
    "output_reasoning", "output_reasoning_tokens", "completion_details.reasoning", "reasoning_tokens",
    "reasoning.output_tokens", "completion_tokens_details.reasoning_tokens", "details.reasoning_tokens",
)  # fmt: skip


def of_details(details: Any, model: str | None, stated: Any = None) -> Json | None:
    """The bill of a Langfuse observation: `usageDetails`, or the older `usage`; `stated` is its cost.

    Langfuse's buckets are disjoint where they add up to the total, as its LangChain callback sends them; the
    details of OpenTelemetry's (with a dot in the name) are parts of input and output.
    """
    if not isinstance(details, dict):
        return None
    told = {name: n for name, value in details.items() if (n := _whole(value)) is not None}
    billed = _first(told, ("input", "promptTokens", "input_tokens", "prompt_tokens"))
    made = _first(told, ("output", "completionTokens", "output_tokens", "completion_tokens"))
    if billed is None or (billed == 0 and not made):
        return None
    read, written = _first(told, _LF_READ), _first(told, _LF_WRITTEN)
    total = _first(told, _LF_TOTAL) or 0
    known = {*_LF_READ, *_LF_WRITTEN, "input_tokens"}
    known.update(name for name in told if "1h" in name or "5m" in name)
    more = sum(n for name, n in told.items() if name.startswith("input_") and name not in known) + (read or 0)
    rest = sum(n for name, n in told.items() if name.startswith("output_") and name != "output_tokens")
    beside = total - billed - (made or 0)
    """Tokens of the total that are neither input nor output."""
    wrote, hour = writes_of(told, written)
    both = writes_of(told, written, apart=True)[0] or 0
    if written and both != 2 * written and both + more in (beside, beside - rest):
        wrote = both
    held = more + (wrote or 0)
    if (held or rest) and (beside in (held, held + rest) or billed < (read or 0) + (wrote or 0)):
        rest = 0 if beside == held else rest
        # LangChain's callback subtracts counts that are there twice, down to 0.
        cut = billed == 0 and held < beside - rest and 2 * total != sum(told.values())
        billed = beside - rest if cut else billed + held
        made = None if made is None else made + rest
    return usage_record(
        input_tokens=billed, output_tokens=made, cached=read, cache_write=wrote, cache_write_1h=hour,
        reasoning=_first(told, _LF_REASONED), total=billed + (made or 0), model=model,
        native={name: n for name, n in told.items() if n}, bill=details, stated=stated,
    )  # fmt: skip


def of_metadata(usage: Any, model: str | None) -> Json | None:
    """The bill of a LangChain message (`usage_metadata`): input includes the cache, output the reasoning."""
    if not isinstance(usage, dict):
        return None
    asked, made = mapping(usage.get("input_token_details")), mapping(usage.get("output_token_details"))
    written, hour = writes_of(
        {name: _whole(value) for name, value in asked.items()}, _whole(asked.get("cache_creation"))
    )
    return usage_record(
        input_tokens=_whole(usage.get("input_tokens")),
        output_tokens=_whole(usage.get("output_tokens")),
        cached=_whole(asked.get("cache_read")),
        cache_write=written,
        cache_write_1h=hour,
        reasoning=_whole(made.get("reasoning")),
        model=model,
        bill=usage,
        native={name: value for name, value in usage.items() if value},
    )


def of_tokens(usage: Any, model: str | None) -> Json | None:
    """The bill of a chat completion as LangChain passes it on (`token_usage`, `tokenUsage`)."""
    from ctxctl.providers.usage import chat_usage

    if isinstance(usage, dict) and "promptTokens" in usage:
        usage = {"prompt_tokens": usage["promptTokens"], "completion_tokens": usage.get("completionTokens")}
    return chat_usage(usage, model=model)


def of_response(value: Any, model: str | None) -> Json | None:
    """The bill in a provider's own response body."""
    from ctxctl.providers import dialects

    if not isinstance(value, dict):
        return None
    dialect = dialects.of_response(value)
    return dialect.usage(value, model) if dialect is not None else None


def _first(values: Json, names: Iterable[str]) -> int | None:
    return next((found for name in names if (found := _whole(values.get(name))) is not None), None)


def _whole(value: Any) -> int | None:
    """A count; exporters may write it as text, or as a float."""
    if isinstance(value, str) and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return count(value)


def provider_of(attributes: Json) -> str | None:
    """Whose model it is, as a span says it."""
    names = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider")
    return next((value for name in names if (value := string(attributes.get(name))) is not None), None)

"""What a response bills, in one shape for every provider: the input is the whole context, caches included.

The counting conventions are genai-prices'; what it does not tell (the provider's own fields) is kept beside.
"""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json
from ctxctl.formats.kit.caches import miss_cause
from ctxctl.formats.kit.parts import string
from ctxctl.formats.kit.usage import usage_record

_RULES: Final = {
    "anthropic": ("anthropic", "default", "usage"),
    "openai-chat": ("openai", "chat", "usage"),
    "openai-responses": ("openai", "responses", "usage"),
    "gemini": ("google", "default", "usageMetadata"),
}
"""By dialect: genai-prices' provider and flavour, and the field of the response that bills."""
_PASSED: Final = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
)  # fmt: skip
_SPELLED: Final = {
    "prompt_token_count": "promptTokenCount",
    "candidates_token_count": "candidatesTokenCount",
    "thoughts_token_count": "thoughtsTokenCount",
    "cached_content_token_count": "cachedContentTokenCount",
    "tool_use_prompt_token_count": "toolUsePromptTokenCount",
    "total_token_count": "totalTokenCount",
}


def record(dialect: str, response: Json, model: str | None = None) -> Json | None:
    """The record of `ctxctl.usage.reported`; None where the response bills no input.

    Args:
        dialect: Name of the dialect.
        response: The response body, with the final totals of a stream.
        model: The model asked for, where the response does not name the one that answered.
    """
    provider, flavour, field = _RULES[dialect]
    bill = response.get(field)
    if dialect == "gemini" and not isinstance(bill, dict):
        bill = response.get("usage_metadata")
    if not isinstance(bill, dict):
        return None
    whole = _passes(bill) if dialect == "anthropic" else bill
    counted = _counts(dialect, whole)
    if not counted:
        return None
    named = string(response.get("model")) or string(response.get("modelVersion"))
    found = _extracted({field: counted}, provider, flavour)
    if found is None:
        return None
    return usage_record(
        provider=provider,
        model=named or string(response.get("model_version")) or model,
        native=_kept(bill),
        bill=whole,
        response=response,
        miss_cause=miss_cause(response) if dialect == "anthropic" else None,
        **found,
    )


def _extracted(response: Json, provider: str, flavour: str) -> dict[str, Any] | None:
    # Slow to import, and needed only where a capture bills something.
    from genai_prices import extract_usage

    try:
        usage = extract_usage(response, provider_id=provider, api_flavor=flavour).usage
    except (ValueError, TypeError, LookupError):
        return None
    # Its attributes are 0 for what was not reported; only what it holds was.
    held = vars(usage)
    return {
        "input_tokens": _whole(held.get("input_tokens")),
        "output_tokens": _whole(held.get("output_tokens")),
        "cached": _whole(held.get("cache_read_tokens")),
        "cache_write": _whole(held.get("cache_write_tokens")),
        "cache_write_1h": _whole(held.get("cache_write_1h_tokens")),
        "reasoning": _whole(held.get("output_reasoning_tokens")),
    }


def _whole(value: Any) -> int | None:
    return None if value is None or isinstance(value, bool) else int(value)


def _passes(bill: Json) -> Json:
    """A bill of several passes in sum, where one of them made a compaction.

    Anthropic bills every one of its `iterations`, and leaves the compaction's out of the counts beside them
    (platform.claude.com, *Compaction*, "Understanding usage").
    """
    passes = bill.get("iterations")
    made = [one for one in passes if isinstance(one, dict)] if isinstance(passes, list) else []
    if not any(one.get("type") == "compaction" for one in made):
        return bill
    whole = dict(bill)
    for name in _PASSED:
        whole[name] = sum(_count(one.get(name)) for one in made)
    parts = [one["cache_creation"] for one in made if isinstance(one.get("cache_creation"), dict)]
    if parts:
        names = {name: None for part in parts for name in part}
        whole["cache_creation"] = {n: sum(_count(part.get(n)) for part in parts) for n in names}
    return whole


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _counts(dialect: str, bill: Json) -> Json:
    """The fields that bill, without what is no count, and in the spelling that genai-prices knows."""
    made: Json = {}
    for name, value in bill.items():
        name = _SPELLED.get(name, name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
            made[name] = value
        elif isinstance(value, dict):
            made[name] = {
                key: inner for key, inner in value.items()
                if isinstance(inner, int) and not isinstance(inner, bool) and 0 <= inner < 2**53
            }  # fmt: skip
    told = made.get("prompt_tokens_details")
    details: Json = told if isinstance(told, dict) else {}
    if dialect == "openai-chat" and "cached_tokens" not in details:
        # DeepSeek's spelling; a part of the prompt's tokens as well.
        hit = made.get("prompt_cache_hit_tokens")
        if isinstance(hit, int):
            made["prompt_tokens_details"] = {**details, "cached_tokens": hit}
    return made


def _kept(bill: Json) -> Json:
    """The provider's own fields, less what says nothing."""
    return {name: value for name, value in bill.items() if value not in (None, 0, {}, [])}

"""Bills: the totals of each provider's convention, computed here by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.providers.dialects import by_name


def bill(name: str, usage: dict[str, Any], **fields: Any) -> tuple[Any, ...] | None:
    field = "usageMetadata" if name == "gemini" else "usage"
    found = by_name(name).usage({field: usage, **fields})
    if found is None:
        return None
    parts = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
    return tuple(found.get(part) for part in parts)


@pytest.mark.parametrize(
    ("name", "usage", "expected"),
    [
        # Anthropic leaves reads and writes out of its input: 10 + 28 + 4.
        (
            "anthropic",
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 28,
                "cache_creation_input_tokens": 4,
                "cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 3},
                "output_tokens": 7,
                "service_tier": "standard",
            },
            (42, 28, 4, 7, None),
        ),
        (
            "anthropic",
            {"input_tokens": 10, "output_tokens": 0, "cache_read_input_tokens": None},
            (10, None, None, 0, None),
        ),
        # OpenAI counts cached tokens in.
        (
            "openai-chat",
            {
                "prompt_tokens": 42,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 28},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            (42, 28, None, 9, 5),
        ),
        (
            "openai-chat",
            {"prompt_tokens": 42, "completion_tokens": 9, "prompt_tokens_details": None},
            (42, None, None, 9, None),
        ),
        (
            "openai-chat",
            {"prompt_tokens": 42, "completion_tokens": 9, "prompt_cache_hit_tokens": 30},
            (42, 30, None, 9, None),
        ),
        (
            "openai-responses",
            {
                "input_tokens": 42,
                "output_tokens": 9,
                "input_tokens_details": {"cached_tokens": 28},
                "output_tokens_details": {"reasoning_tokens": 5},
            },
            (42, 28, None, 9, 5),
        ),
        # Gemini: cached is in the prompt, thoughts are beside the candidates, tool prompts beside the prompt.
        (
            "gemini",
            {
                "promptTokenCount": 42,
                "cachedContentTokenCount": 28,
                "candidatesTokenCount": 4,
                "thoughtsTokenCount": 5,
                "toolUsePromptTokenCount": 3,
                "totalTokenCount": 54,
            },
            (45, 28, None, 9, 5),
        ),
        ("gemini", {"prompt_token_count": 42, "candidates_token_count": 4}, (42, None, None, 4, None)),
    ],
)
def test_the_input_is_the_whole_context(name: str, usage: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert bill(name, usage) == expected


@pytest.mark.parametrize("usage", [None, {}, [], {"input_tokens": "[REDACTED]"}, {"input_tokens": None}])
def test_what_bills_nothing_is_not_reported(usage: Any) -> None:
    for name in ("anthropic", "openai-chat", "openai-responses", "gemini"):
        assert bill(name, usage) is None


def test_the_model_that_answered_is_named_and_the_providers_own_fields_are_kept() -> None:
    dialect = by_name("anthropic")
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_creation": {"ephemeral_1h_input_tokens": 3}}
    found = dialect.usage({"model": "claude-x-1", "usage": usage}, "claude-x")
    assert found is not None
    assert (found["provider"], found["model"]) == ("anthropic", "claude-x-1")
    assert found["metadata"]["native"] == usage
    assert (dialect.usage({"usage": usage}, "claude-x") or {})["model"] == "claude-x"


def test_anthropic_tells_hours_apart_and_why_it_read_nothing() -> None:
    kinds = {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 3}
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 4,
        "output_tokens": 7,
        "cache_creation": kinds,
    }
    reason = {"type": "system_changed", "cache_missed_input_tokens": 28}
    found = by_name("anthropic").usage({"usage": usage, "diagnostics": {"cache_miss_reason": reason}})
    assert found is not None
    assert (found["cache_write_tokens"], found["cache_write_1h_tokens"]) == (4, 3)
    assert found["cache_miss_cause"] == "system_changed"
    for nothing in (None, {}, {"cache_miss_reason": None}, {"cache_miss_reason": {"type": "none"}}, "x"):
        found = by_name("anthropic").usage({"usage": usage, "diagnostics": nothing})
        assert found is not None
        assert "cache_miss_cause" not in found


def test_all_passes_of_a_request_with_a_compaction_are_billed() -> None:
    """The counts beside the passes leave the compaction's out; a stream begins with those of its first."""
    passes = [
        {"type": "compaction", "input_tokens": 100, "cache_read_input_tokens": 55_096,
         "output_tokens": 83, "cache_creation_input_tokens": 0,
         "cache_creation": {"ephemeral_1h_input_tokens": 0}},
        {"type": "message", "input_tokens": 181, "cache_read_input_tokens": 0, "output_tokens": 8,
         "cache_creation_input_tokens": 40, "cache_creation": {"ephemeral_1h_input_tokens": 40}},
    ]  # fmt: skip
    beside = {"input_tokens": 181, "cache_read_input_tokens": 55_096, "output_tokens": 8}
    whole = (100 + 55_096 + 181 + 40, 55_096, 40, 91, None)
    assert bill("anthropic", {**beside, "iterations": passes}) == whole
    # Without a compaction what stands beside them is the whole already.
    alone = (181 + 55_096, 55_096, None, 8, None)
    assert bill("anthropic", {**beside, "iterations": passes[1:]}) == alone

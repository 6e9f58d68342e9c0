"""Usage is read as its own total says: what the input holds of the cache, and how long a write is kept."""

from __future__ import annotations

from typing import Any

import pytest

from ctxctl.providers.dialects import by_name
from ctxctl.providers.spans.billing import of_details, of_metadata, of_span
from ctxctl.providers.usage import chat_usage

Json = dict[str, Any]


def counts(bill: Json | None) -> tuple[int | None, ...] | None:
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens", "output_tokens")
    return None if bill is None else tuple(bill.get(name) for name in names)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        # The total is that of input and output: the cache is in the input.
        (
            {"prompt_tokens": 42, "completion_tokens": 9, "total_tokens": 51, "cached_tokens": 28},
            (42, 28, None, None, 9),
        ),
        # A gateway's total has the cache beside them.
        (
            {
                "prompt_tokens": 14,
                "completion_tokens": 9,
                "total_tokens": 51,
                "prompt_tokens_details": {"cached_tokens": 28},
            },
            (42, 28, None, None, 9),
        ),
        (
            {
                "input_tokens": 100,
                "output_tokens": 9,
                "total_tokens": 140,
                "cache_read_input_tokens": 20,
                "cache_creation_input_tokens": 11,
                "cache_creation": {"ephemeral_1h_input_tokens": 8, "ephemeral_5m_input_tokens": 3},
            },
            (131, 20, 11, 8, 9),
        ),
        # Only what was written is beside the input, which holds what was read.
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 9,
                "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 11},
            },
            (111, 20, 11, None, 9),
        ),
        # xAI counts reasoning beside the output.
        (
            {
                "prompt_tokens": 32,
                "completion_tokens": 9,
                "total_tokens": 135,
                "prompt_tokens_details": {"cached_tokens": 6},
                "completion_tokens_details": {"reasoning_tokens": 94},
            },
            (32, 6, None, None, 103),
        ),
        # No total, and more read than the input is.
        (
            {"prompt_tokens": 5, "completion_tokens": 9, "cache_read_input_tokens": 90},
            (95, 90, None, None, 9),
        ),
        # One spelling says nothing, another one does.
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 0},
                "cache_read_input_tokens": 90,
            },
            (100, 90, None, None, 1),
        ),
    ],
)
def test_the_total_of_a_router(usage: Json, expected: tuple[int | None, ...]) -> None:
    assert counts(chat_usage(usage)) == expected
    for dialect in ("openai-chat", "openai-responses"):
        assert counts(by_name(dialect).usage({"usage": usage})) == expected


_LANGFUSE = {"input": 5, "output": 57, "input_cache_read": 1000, "total": 121062}
_WRITTEN = (121005, 1000, 120000, 100000, 57)


@pytest.mark.parametrize(
    "details",
    [
        {"input_cache_creation_1h": 100000, "input_cache_creation_5m": 20000},
        # The same tokens twice: as a whole and by their lifetimes.
        {
            "input_cache_creation": 120000,
            "input_ephemeral_1h_input_tokens": 100000,
            "input_ephemeral_5m_input_tokens": 20000,
        },
        {
            "input_cache_creation": 120000,
            "cache_creation.ephemeral_1h_input_tokens": 100000,
            "cache_creation.ephemeral_5m_input_tokens": 20000,
        },
        # A total that added up what stands there twice.
        {
            "input_cache_creation": 120000,
            "input_cache_creation_1h": 100000,
            "input_cache_creation_5m": 20000,
            "total": 241062,
        },
        # LangChain's callback took twice from the input what stands there twice.
        {
            "input": 0,
            "input_cache_creation": 120000,
            "input_ephemeral_1h_input_tokens": 100000,
            "input_ephemeral_5m_input_tokens": 20000,
        },
        # The whole is that of five minutes, and the total has both.
        {"cache_creation_input_tokens": 20000, "input_cache_creation_1h": 100000},
        # The total says that the input is all of it.
        {"input": 121005, "input_cache_creation_1h": 100000, "input_cache_creation_5m": 20000},
    ],
)
def test_lifetimes_in_langfuse(details: Json) -> None:
    assert counts(of_details({**_LANGFUSE, **details}, None)) == _WRITTEN


@pytest.mark.parametrize("whole", [0, 120000, None])
def test_lifetimes_in_langchain(whole: int | None) -> None:
    details = {
        "cache_read": 1000,
        "cache_creation": whole,
        "ephemeral_1h_input_tokens": 100000,
        "ephemeral_5m_input_tokens": 20000,
    }
    usage = {"output_tokens": 57, "total_tokens": 121062, "input_token_details": details}
    assert counts(of_metadata({**usage, "input_tokens": 121005}, None)) == _WRITTEN
    assert counts(of_metadata({**usage, "input_tokens": 5}, None)) == _WRITTEN


def test_a_span_whose_total_has_the_cache_beside_the_input() -> None:
    told = {"input_tokens": 100, "output_tokens": 9, "total_tokens": 139, "cache_read.input_tokens": 30}
    attributes = {f"gen_ai.usage.{name}": value for name, value in told.items()}
    assert counts(of_span(attributes, None, None)) == (130, 30, None, None, 9)

"""LangSmith: creations and patches are one run; only llm runs are calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.importers.langsmith import FORMAT
from tests.unit.importers.spans_help import FIXTURES, bills, items, read, requests

ROOT = FIXTURES / "langsmith"
Json = dict[str, Any]


def run(outputs: Any, **more: Any) -> Json:
    return {
        "id": "r1",
        "trace_id": "r1",
        "dotted_order": "20260304T100000000000Zr1",
        "run_type": "llm",
        "start_time": "2026-03-04T10:00:00",
        "inputs": {"messages": [{"role": "user", "content": "Ask."}]},
        "outputs": outputs,
        **more,
    }


def test_creations_and_patches_in_lines() -> None:
    found = read((ROOT / "run_ops.jsonl").read_bytes(), "langsmith")
    assert requests(found) == [("th-1", None, "r0")] * 2
    assert items(found)[1:] == [
        ("system_prompt", "You cook."),
        ("user_message", "Soup for four?"),
        ("tool_call", 'pantry {"shelf":1}'),
        ("tool_result", "leeks, cream"),
        ("assistant_message", "Leek soup it is."),
    ]
    assert bills(found) == [
        {"input_tokens": 33, "cached_tokens": 0, "output_tokens": 7},
        {"input_tokens": 58, "output_tokens": 6},
    ]


def test_a_batch_whose_patch_is_known_by_its_place_alone() -> None:
    found = read((ROOT / "batch.json").read_bytes(), "langsmith")
    assert items(found) == [("user_message", "Ahoy"), ("assistant_message", "Ahoy yourself.")]
    assert bills(found) == [{"input_tokens": 8, "cached_tokens": 0, "output_tokens": 5}]


def test_an_answer_without_its_creation_is_no_request() -> None:
    lines = (ROOT / "run_ops.jsonl").read_bytes().splitlines(keepends=True)
    found = read(b"".join(lines[:3] + lines[4:]), "langsmith")
    assert len(requests(found)) == 1
    assert [problem.slug for problem in found.problems] == ["no-request"]


@pytest.mark.parametrize(
    ("outputs", "billed"),
    [
        (
            {
                "usage_metadata": {
                    "input_tokens": 9,
                    "output_tokens": 2,
                    "input_token_details": {"cache_read": 4},
                }
            },
            {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 2},
        ),
        (
            {"llm_output": {"token_usage": {"prompt_tokens": 9, "completion_tokens": 2}}},
            {"input_tokens": 9, "output_tokens": 2},
        ),
        (
            {"llm_output": {"tokenUsage": {"promptTokens": 9, "completionTokens": 2}}},
            {"input_tokens": 9, "output_tokens": 2},
        ),
        (
            {
                "choices": [{"message": {"role": "assistant", "content": "x"}}],
                "object": "chat.completion",
                "usage": {
                    "prompt_tokens": 9,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 4},
                },
            },
            {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 2},
        ),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "text", "text": "x"}],
                "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 2},
            },
            {"input_tokens": 9, "cached_tokens": 4, "output_tokens": 2},
        ),
        ({"output": "x"}, None),
    ],
)
def test_bills_from_where_they_are(outputs: Json, billed: Json | None) -> None:
    assert bills(read([run(outputs)], "langsmith")) == ([billed] if billed else [])


def test_tokens_of_an_exported_run_and_not_of_its_parents() -> None:
    chain = {**run({}), "id": "r0", "run_type": "chain", "prompt_tokens": 900, "completion_tokens": 90}
    call = run({"output": "x"}, prompt_tokens=9, completion_tokens=2, parent_run_id="r0")
    assert bills(read([chain, call], "langsmith")) == [{"input_tokens": 9, "output_tokens": 2}]


def test_an_error_is_told() -> None:
    found = read([run(None, error="RateLimitError('slow down')\nTraceback")], "langsmith")
    [mark] = [
        e["data"]["metadata"]["ctxctl"] for e in found.events if e["event_type"].endswith("assembly.created")
    ]
    assert mark["error"] == "RateLimitError('slow down')"


def test_inputs_alone_are_no_request() -> None:
    message = {"content": "Hi.", "type": "human", "additional_kwargs": {}}
    lines = json.dumps({"input": {"messages": [message]}}) + "\n"
    found = read(lines * 3, "langsmith")
    assert [problem.slug for problem in found.problems] == ["no-model-calls"]


@pytest.mark.parametrize(
    "head", [b"", b"{}", b'{"id": 1, "outputs": {}}', b'{"run_type": "x"}', b'[{"post": []}]']
)
def test_other_files_are_not_claimed(head: bytes) -> None:
    assert FORMAT.detect(head) == 0

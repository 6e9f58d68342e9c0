"""OpenInference: flat and nested attributes give the same items; the request's own JSON is preferred."""

from __future__ import annotations

import json

import pytest

from ctxctl.importers.openinference import FORMAT
from tests.unit.importers.spans_help import FIXTURES, bills, items, read, records, requests

ROOT = FIXTURES / "openinference"


def test_phoenix_rows() -> None:
    found = read((ROOT / "phoenix.jsonl").read_bytes(), "openinference")
    assert requests(found) == [("bees", None, "t1")] * 3
    assert items(found)[1:6] == [
        ("system_prompt", "You keep bees."),
        ("user_message", "How is the hive?"),
        ("tool_call", 'weigh {"hive":2}'),
        ("tool_result", "41 kg"),
        ("assistant_message", "It weighs 41 kg, all well."),
    ]
    assert bills(found) == [
        {"input_tokens": 52, "cached_tokens": 0, "output_tokens": 12},
        {"input_tokens": 80, "cached_tokens": 48, "output_tokens": 10},
        {"input_tokens": 21, "output_tokens": 4},
    ]


def test_the_requests_own_json_holds_what_the_flat_form_leaves_out() -> None:
    found = read((ROOT / "phoenix.jsonl").read_bytes())
    assert ("system_prompt", "You answer briefly.") in items(found)
    assert items(found)[-1] == ("assistant_message", "Two jars.")


def test_otlp_with_an_image() -> None:
    found = read((ROOT / "otlp.json").read_bytes(), "openinference")
    assert items(found) == [
        ("user_message", "What is on this picture?"),
        ("image", None),
        ("assistant_message", "A lighthouse."),
    ]
    assert records(found, "image")[0]["mime_type"] == "image/png"


def nested(message: dict[str, object]) -> dict[str, object]:
    return {"message": message}


def test_rows_of_a_table_with_nested_messages() -> None:
    call = {"tool_call": {"id": "c1", "function": {"name": "add", "arguments": '{"a":1}'}}}
    row = {
        "context.span_id": "s1",
        "context.trace_id": "t1",
        "name": "llm",
        "span_kind": "LLM",
        "start_time": "2026-01-02 08:00:01.000000+00:00",
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.input_messages": [nested({"role": "user", "content": "One and one?"})],
        "attributes.llm.output_messages": [nested({"role": "assistant", "tool_calls": [call]})],
        "attributes.llm.tools": [{"tool": {"json_schema": '{"name": "add"}'}}],
        "attributes.llm.token_count.prompt": 9.0,
    }
    found = read(json.dumps(row) + "\n", "openinference")
    assert items(found) == [
        ("tool_definition", '{"name":"add"}'),
        ("user_message", "One and one?"),
        ("tool_call", 'add {"a":1}'),
    ]
    assert bills(found) == [{"input_tokens": 9}]
    assert found.events[1]["time"] == "2026-01-02T08:00:01.000000+00:00"


def test_other_kinds_of_span_are_no_calls() -> None:
    rows = [
        {"name": "x", "span_id": "1", "attributes": {"openinference.span.kind": kind, "input.value": "Hi."}}
        for kind in ("CHAIN", "TOOL", "AGENT", "EMBEDDING", "RETRIEVER")
    ]
    found = read(rows, "openinference")
    assert [problem.slug for problem in found.problems] == ["no-model-calls"]


def test_indexes_without_end_are_left_out() -> None:
    flat = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.999999999.message.role": "user",
        "llm.input_messages.0.message.content": "Hi.",
        "llm.input_messages.x.message.content": "No.",
    }
    assert items(read([{"name": "llm", "span_id": "1", "attributes": flat}])) == [("user_message", "Hi.")]


@pytest.mark.parametrize("head", [b"", b"{}", b'{"a": "openinference.span.kind"}', b'[{"llm": 1}]'])
def test_other_files_are_not_claimed(head: bytes) -> None:
    assert FORMAT.detect(head) == 0

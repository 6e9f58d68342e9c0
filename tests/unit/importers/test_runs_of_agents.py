"""Spans of agents' runs without the calls inside them: Logfire's, pydantic-ai's, the AI SDK's outer ones.

The fixtures are spans of pydantic-ai 1.107 (formats 1 and 2) less all but the runs' own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.importers.trajectories import FIXTURES, read

RUNS = ("otel/logfire-runs.json", "otel/pydantic-ai-runs.json")


def spans(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FIXTURES / name).read_text())
    return found


def saved(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(value, indent=1))
    return path


def slugs(found: Any) -> list[str]:
    return [problem.slug for problem in found.problems]


@pytest.mark.parametrize("name", RUNS)
def test_each_answer_of_a_run_is_a_call(name: str) -> None:
    found = read(Path(name))
    assert [(r.turn, len(found.kinds(at))) for at, r in enumerate(found.requests())] == [
        (spans(name)[0]["context"]["trace_id"], 2),
        (spans(name)[0]["context"]["trace_id"], 5),
        (spans(name)[0]["context"]["trace_id"], 7),
        (spans(name)[1]["context"]["trace_id"], 9),
        (spans(name)[1]["context"]["trace_id"], 12),
        (spans(name)[1]["context"]["trace_id"], 14),
    ]
    assert found.kinds(0) == ["system_prompt", "user_message"]


@pytest.mark.parametrize("name", RUNS)
def test_a_sum_over_calls_is_no_calls_bill_and_is_said(name: str) -> None:
    found = read(Path(name))
    assert found.usage() == []
    assert slugs(found) == ["summed-usage"]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_went_on_without_its_first_part_has_only_its_own_answers(
    tmp_path: Path, name: str
) -> None:
    found = read(saved(tmp_path, spans(name)[1:]))
    told = "pydantic_ai.new_message_index" in spans(name)[1]["attributes"]
    # Format 1 does not say where the new messages begin.
    assert len(found.requests()) == (3 if told else 6)


def test_a_run_of_one_call_has_its_bill(tmp_path: Path) -> None:
    (run, *_) = spans(RUNS[1])
    messages = json.loads(run["attributes"]["pydantic_ai.all_messages"])
    run["attributes"]["pydantic_ai.all_messages"] = json.dumps([messages[0], messages[-1]])
    found = read(saved(tmp_path, [run]))
    billed = run["attributes"]["gen_ai.usage.input_tokens"], run["attributes"]["gen_ai.usage.output_tokens"]
    assert [(row[0], row[2]) for row in found.usage()] == [billed]
    assert slugs(found) == []


def test_a_run_whose_calls_are_there_adds_nothing(tmp_path: Path) -> None:
    run = spans(RUNS[1])[0]
    call = {
        **run,
        "name": "chat clerk-1",
        "context": {**run["context"], "span_id": "0x00000000000000aa"},
        "parent_id": run["context"]["span_id"],
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "clerk-1",
            "gen_ai.input.messages": '[{"role":"user","parts":[{"type":"text","content":"Hi."}]}]',
            "gen_ai.usage.input_tokens": 7,
        },
    }
    found = read(saved(tmp_path, [call, run]))
    assert [row[0] for row in found.usage()] == [7]
    assert len(found.requests()) == 1


@pytest.mark.parametrize("messages", ["", "[", "[1, 2]", '{"a": 1}', "[[[[[]]]]]", '"x"'])
def test_messages_that_are_none_are_no_calls(tmp_path: Path, messages: str) -> None:
    run = spans(RUNS[1])[0]
    run["attributes"]["pydantic_ai.all_messages"] = messages
    run["attributes"]["pydantic_ai.new_message_index"] = -5
    assert "no-model-calls" in slugs(read(saved(tmp_path, [run])))


@pytest.mark.parametrize(
    ("operation", "billed"), [("ai.generateObject", [41]), ("ai.streamObject", [41]), ("ai.generateText", [])]
)
def test_an_object_is_made_by_one_call_and_has_its_bill(
    tmp_path: Path, operation: str, billed: list[int]
) -> None:
    outer = {
        "name": operation,
        "spanContext": {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "2"},
        "attributes": {
            "ai.operationId": operation,
            "ai.model.id": "clerk-1",
            "ai.prompt": '{"prompt":"Name three bees."}',
            "ai.usage.inputTokens": 41,
            "ai.usage.outputTokens": 9,
        },
    }
    assert [row[0] for row in read(saved(tmp_path, [outer])).usage()] == billed

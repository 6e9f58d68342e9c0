"""Langfuse: generations of every framework, in the order of their times, each billed once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.importers.langfuse import FORMAT
from ctxctl.providers.spans.billing import of_details
from tests.unit.importers.spans_help import FIXTURES, bills, items, read, records, requests

ROOT = FIXTURES / "langfuse"
Json = dict[str, Any]


def generation(number: int, given: Any, said: Any = None, **more: Any) -> Json:
    return {
        "id": f"g{number}",
        "traceId": "t1",
        "type": "GENERATION",
        "parentObservationId": None,
        "startTime": f"2026-02-03T09:00:0{number}.000Z",
        "modelParameters": {},
        "model": "gpt-4o",
        "usageDetails": {"input": 10 * number, "output": 1, "total": 10 * number + 1},
        "input": given,
        "output": said,
        **more,
    }


def both(given: Any, said: Any = None, **more: Any) -> list[tuple[str, str | None]]:
    return items(read([generation(1, given, said, **more)], "langfuse"))


def test_a_trace_in_the_order_of_its_times() -> None:
    found = read((ROOT / "trace.json").read_bytes(), "langfuse")
    assert requests(found) == [("sess-lf", None, "lf-1")] * 2
    assert [text for _, text in items(found)][1:] == [
        "You plan trips.",
        "A day in Leuven?",
        'trains {"to":"Leuven"}',
        "09:12",
        "Take the 09:12 train.",
    ]
    assert bills(found) == [
        {"input_tokens": 40, "cached_tokens": 0, "output_tokens": 12},
        {"input_tokens": 66, "cached_tokens": 36, "output_tokens": 9},
    ]


def test_lines_of_observations() -> None:
    found = read((ROOT / "observations.jsonl").read_bytes(), "langfuse")
    assert [bill["input_tokens"] for bill in bills(found)] == [18, 20, 12, 61, 9]
    texts = [text for _, text in items(found)]
    for text in (
        "You rhyme.",
        "A line on rain.",
        "You know maps.",
        "The Lys.",
        "You tell the time.",
        "clock {}",
    ):
        assert text in texts
    assert ("custom", '{"strange":{"shape":[1,2,3]}}') in items(found), "what is not understood is kept whole"


def test_prose_is_taken_apart_and_said_to_be() -> None:
    found = read([generation(1, "system: Be kind.\nuser: Hello\nthere.")], "langfuse")
    assert items(found) == [("system_prompt", "Be kind."), ("user_message", "Hello\nthere.")]
    assert all(record["metadata"]["ctxctl"]["derived"] for record in records(found, "system_prompt"))
    assert both("just: text") == [("user_message", "just: text")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            json.dumps(json.dumps([{"role": "user", "content": "Twice encoded."}])),
            [("user_message", "Twice encoded.")],
        ),
        ({"contents": "A bare text."}, [("user_message", "A bare text.")]),
        ({"prompt": "A prompt."}, [("user_message", "A prompt.")]),
        (
            {"kwargs": {"messages": [{"role": "user", "content": "In kwargs."}]}},
            [("user_message", "In kwargs.")],
        ),
        (["role='user' content=\"It's a repr.\" name=None x=1"], [("user_message", "It's a repr.")]),
        (
            [
                {"role": "user", "content": "Ask."},
                {
                    "role": "assistant",
                    "content": "",
                    "additional_kwargs": {
                        "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": "{}"}}]
                    },
                },
                {"role": "find", "content": "Found."},
            ],
            [("user_message", "Ask."), ("tool_call", "find {}"), ("tool_result", "Found.")],
        ),
        (
            [
                {"role": "tool", "content": {"type": "function", "function": {"name": "find"}}},
                {"role": "user", "content": "Ask."},
            ],
            [("tool_definition", '{"type":"function","function":{"name":"find"}}'), ("user_message", "Ask.")],
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm."},
                        {"type": "tool_use", "id": "t", "name": "cut", "input": {}},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": "t", "content": "Done."}],
                },
            ],
            [("reasoning", "Hm."), ("tool_call", "cut {}"), ("tool_result", "Done.")],
        ),
        ([17], [("custom", "17")]),
        (None, []),
    ],
)
def test_inputs_of_many_shapes(given: Any, expected: list[tuple[str, str]]) -> None:
    assert both(given) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Plain.", [("assistant_message", "Plain.")]),
        (
            {"choices": [{"message": {"role": "assistant", "content": "Chosen."}}]},
            [("assistant_message", "Chosen.")],
        ),
        ({"candidates": [{"content": {"parts": [{"text": "Gem."}]}}]}, [("assistant_message", "Gem.")]),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Block."}]},
            [("assistant_message", "Block.")],
        ),
        (
            {"index": 0, "message": {"role": "assistant", "content": "Event."}},
            [("assistant_message", "Event.")],
        ),
        ([{"toolCallId": "c", "toolName": "find", "input": '{"a":1}'}], [("tool_call", 'find {"a":1}')]),
        ({"answer": 42, "why": None}, [("assistant_message", '{"answer":42,"why":null}')]),
        ([], []),
    ],
)
def test_outputs_of_many_shapes(said: Any, expected: list[tuple[str, str]]) -> None:
    assert both(None, said) == expected


@pytest.mark.parametrize(
    ("details", "billed"),
    [
        # Parts of input and output.
        ({"input": 85, "output": 29, "total": 114, "prompt_details.cache_read": 80}, (85, 80, 29)),
        # Disjoint: they add up to the total.
        (
            {"input": 179, "output": 35, "total": 278, "output_reasoning": 64, "input_cache_read": 0},
            (179, 0, 99),
        ),
        ({"input": 10, "output": 5, "total": 115, "input_cache_read": 100}, (110, 100, 5)),
        (
            {"input": 3, "output": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7},
            (100, 90, 5),
        ),
        # The total has more in it than is told.
        ({"input": 5, "output": 845, "total": 2023}, (5, None, 845)),
        ({"promptTokens": 7, "completionTokens": 2, "totalTokens": 9}, (7, None, 2)),
    ],
)
def test_details_that_are_parts_and_details_that_are_not(details: Json, billed: tuple[int, ...]) -> None:
    found = of_details(details, None)
    assert found is not None
    assert (found["input_tokens"], found.get("cached_tokens"), found["output_tokens"]) == billed


@pytest.mark.parametrize("details", [None, {}, [], {"input": "many"}, {"input": 0, "output": 0, "total": 0}])
def test_no_bill(details: Any) -> None:
    assert of_details(details, None) is None


def test_a_generation_around_another_one_is_not_counted_and_lends_what_the_inner_one_wrote_as_text() -> None:
    tools = [{"name": "find", "parameters": {}}]
    outer = generation(1, {"messages": [{"role": "user", "content": "Ask."}], "tools": tools}, "Said.")
    inner = generation(2, "user: Ask.", "Said.", parentObservationId="g1")
    found = read([outer, inner], "langfuse")
    assert bills(found) == [{"input_tokens": 20, "output_tokens": 1}]
    assert [kind for kind, _ in items(found)] == ["tool_definition", "user_message", "assistant_message"]


def test_an_observation_that_was_told_twice_is_one() -> None:
    first = generation(1, [{"role": "user", "content": "Ask."}])
    events = [
        {"id": "e1", "type": "generation-create", "body": {**first, "usageDetails": None}},
        {
            "id": "e2",
            "type": "generation-update",
            "body": {"id": "g1", "traceId": "t1", "output": "Said.", "usageDetails": first["usageDetails"]},
        },
    ]
    found = read({"batch": events}, "langfuse")
    assert items(found) == [("user_message", "Ask."), ("assistant_message", "Said.")]
    assert bills(found) == [{"input_tokens": 10, "output_tokens": 1}]


@pytest.mark.parametrize(
    "head", [b"", b"{}", b'{"observations": []}', b'{"trace": {}, "steps": []}', b'[{"type": "x"}]']
)
def test_other_files_are_not_claimed(head: bytes) -> None:
    assert FORMAT.detect(head) == 0


def beeai() -> Json:
    found: Json = json.loads((ROOT / "beeai.json").read_bytes())
    return found


def said_of(found: Any) -> list[str | None]:
    return [text for kind, text in items(found) if kind == "assistant_message"]


def test_events_of_a_call_are_no_calls() -> None:
    """BeeAI's spans of the middle of 2025 are one for each event; that of `start` is the call."""
    found = read((ROOT / "beeai.json").read_bytes(), "langfuse")
    assert len(requests(found)) == 2
    assert bills(found) == [{"input_tokens": 52}, {"input_tokens": 88}]
    assert said_of(found)[1:] == ["Thought: The gauge told it.\nFinal Answer: 2.1 m."]
    assert found.problems == []


@pytest.mark.parametrize("why", ["cut", "another number", "another trace", "one begun since"])
def test_an_answer_of_no_call_for_certain_is_left_out(why: str) -> None:
    value = beeai()
    [told] = [one for one in value["observations"] if ".success-5" in one["name"]]
    if why == "cut":
        held = told["metadata"]["attributes"]
        gone = ("target", "name", "traceId", "llm.output_messages.0.")
        told["metadata"]["attributes"] = {n: v for n, v in held.items() if not n.startswith(gone)}
    elif why == "another number":
        told["name"] = told["name"].replace("-5", "-4")
    elif why == "another trace":
        told["traceId"] = "t-other"
    else:
        [last] = [
            one for one in value["observations"] if ".start-5" in one["name"] and "backend" in one["name"]
        ]
        more = {**last, "id": "s6", "name": "backend.openai.chat.start-6", "startTime": told["startTime"]}
        value["observations"].append(more)
    found = read(value, "langfuse")
    assert len(requests(found)) == (3 if why == "one begun since" else 2)
    assert len(said_of(found)) == 1
    assert [problem.slug for problem in found.problems] == ["unpaired-answers"]


def test_events_of_a_call_are_no_calls_in_opentelemetry_either() -> None:
    spans = [
        {
            "name": one["name"],
            "context": {"trace_id": one["traceId"], "span_id": one["id"]},
            "parent_id": one["parentObservationId"],
            "start_time": one["startTime"],
            "attributes": one["metadata"]["attributes"],
        }
        for one in beeai()["observations"]
    ]
    found = read(spans)
    assert len(requests(found)) == 2
    assert said_of(found)[1:] == ["Thought: The gauge told it.\nFinal Answer: 2.1 m."]


def test_a_generation_of_such_a_name_that_shows_its_input_is_a_call() -> None:
    found = read([generation(1, "Hello.", "Hi.", name="backend.openai.chat.success-1")], "langfuse")
    assert len(requests(found)) == 1

"""What a request to Chat Completions costs beside its texts, by the published rules, worked by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.tokens.counter import Counter
from ctxctl.tokens.overhead import CALL, Item, chat_size, tools_size


def count(text: str) -> int:
    return Counter("o200k_base").count(text)[0]


def words(text: str) -> int:
    """One token a word: sums can be done by hand."""
    return len(text.split())


def tool(**more: Any) -> str:
    function = {"name": "f", "description": "Does it.", **more}
    return json.dumps({"type": "function", "function": function})


def item(kind: str, text: str) -> Item:
    return Item(kind, text, words(text))


def test_every_message_costs_four_and_the_answer_three() -> None:
    items = [item("system_prompt", "a b c"), item("user_message", "d e")]
    assert chat_size(items, words) == 5 + 2 * 4 + 3
    assert chat_size([], words) == 3


def test_the_example_of_the_guide_that_was_billed() -> None:
    """A short request as it was billed: 8 tokens for "Hello" with nothing else, under GPT-4o."""
    assert chat_size([Item("user_message", "Hello", count("Hello"))], count) == 8


def test_an_answer_and_its_calls_are_one_message() -> None:
    told = [item("user_message", "go"), item("assistant_message", ""), item("tool_call", "f {}")]
    result = item("tool_result", "done now")
    assert chat_size([*told, result], words) == 3 + (4 + 1) + 4 + (2 + CALL) + (4 + 2)
    # Calls without a text make a message too, and only one.
    two = [told[0], told[2], told[2], result]
    assert chat_size(two, words) == 3 + (4 + 1) + 4 + 2 * (2 + CALL) + (4 + 2)


def test_a_function_costs_what_the_guide_says() -> None:
    schema = {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "Where to look."},
            "unit": {"type": "string", "description": "Which", "enum": ["c", "f"]},
        },
    }
    by_hand = 7 + words("f:Does it") + 3 + 3 + words("place:string:Where to look") + 3 - 3
    by_hand += 2 * (3 + 1) + words("unit:string:Which") + 12
    assert tools_size([tool(parameters=schema)], words) == by_hand


def test_properties_within_properties_cost_what_outer_ones_do() -> None:
    schema: dict[str, Any] = {"type": "string", "description": "Last."}
    levels = 8
    for level in range(levels):
        schema = {"type": "object", "properties": {"at": schema}}
        if level % 2:
            schema = {"type": "array", "items": schema}
    # The outermost is the function's arguments, which are an object.
    assert schema["type"] == "array"
    by_hand = 7 + words("f:Does it") + levels * (3 + 3) + words("at:string:Last") + (levels - 1) + 12
    assert tools_size([tool(parameters=schema["items"])], words) == by_hand


def test_functions_end_once() -> None:
    one, two = tools_size([tool()], words), tools_size([tool(), tool()], words)
    assert two - one == one - 12


def test_older_models_get_declarations() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"]}
    text = "namespace functions {\n\n// Does it.\ntype f = (_: {\nq: number,\n}) => any;\n\n"
    text += "} // namespace functions"
    assert tools_size([tool(parameters=schema)], words, older=True) == words(text) + 9 - 1


@pytest.mark.parametrize(
    "text",
    ["", "not json", "[]", "null", '"f"', "{}", '{"function": 3}', '{"name": 3}', "[" * 100_000],
)
def test_what_is_no_function_costs_its_text(text: str) -> None:
    assert tools_size([text], words) == words(text)


@pytest.mark.parametrize(
    "parameters",
    [
        None, [], 3, {"properties": []}, {"properties": {"a": None, "b": 4}},
        {"properties": {"a": {"enum": 3}}},
        {"properties": {"a": {"type": ["string"], "description": {"x": 1}, "enum": [None, 1, {"y": 2}]}}},
    ],
)  # fmt: skip
@pytest.mark.parametrize("older", [False, True])
def test_hostile_schemas_cost_something_and_raise_nothing(parameters: Any, older: bool) -> None:
    assert tools_size([tool(parameters=parameters)], words, older=older) > 7


@pytest.mark.parametrize("older", [False, True])
def test_a_bottomless_schema_ends(older: bool) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for _ in range(200):
        schema = {"type": "object", "properties": {"deeper": schema}}
    assert 20 < tools_size([tool(parameters=schema)], words, older=older) < 500

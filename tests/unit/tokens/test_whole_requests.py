"""Requests to Chat Completions without a bill: what is recorded whole has a size by the rules of the API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.tokens.counter import Counter
from ctxctl.tokens.overhead import ANSWER, MESSAGE, ROLE, TOOLS, TOOLS_OLDER, tool_size, tools_size

Json = dict[str, Any]

LOOK: Json = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a place and tell what is there, in one sentence.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Where to look."},
                "unit": {"type": "string", "enum": ["metre", "foot"]},
            },
            "required": ["place"],
        },
    },
}
SEARCH: Json = {"type": "web_search"}
MESSAGES = [
    {"role": "system", "content": "You are short."},
    {"role": "user", "content": "What is at the quay?"},
]


def counter(encoding: str = "o200k_base") -> Counter:
    return Counter(encoding)


def steps(
    tmp_path: Path, *bodies: Json, calibration: str = "shipped", usage: Json | None = None
) -> list[Step]:
    """The steps of a file of exchanges."""
    path = tmp_path / "exchanges.jsonl"
    answer: Json = {"role": "assistant", "content": "A crane."}
    response: Json = {"object": "chat.completion", "choices": [{"index": 0, "message": answer}]}
    if usage is not None:
        response["usage"] = usage
    path.write_text("".join(json.dumps({"request": body, "response": response}) + "\n" for body in bodies))
    with Inspector.open(path, calibration=calibration) as inspector:
        return [result for result in inspector.replay() if isinstance(result, Step)]


def body(model: str, *tools: Json, messages: list[Json] | None = None) -> Json:
    return {"model": model, "messages": messages or MESSAGES, "tools": list(tools)}


@pytest.mark.parametrize(
    ("model", "encoding", "around"),
    [("gpt-4o", "o200k_base", TOOLS), ("gpt-3.5-turbo-0125", "cl100k_base", TOOLS_OLDER)],
)
def test_an_unbilled_request_has_the_size_that_the_rules_give(
    tmp_path: Path, model: str, encoding: str, around: int
) -> None:
    (step,) = steps(tmp_path, body(model, LOOK))

    def count(text: str) -> int:
        return counter(encoding).count(text)[0]

    texts = sum(count(str(message["content"])) for message in MESSAGES)
    tool = tool_size(json.dumps(LOOK), count, older=around == TOOLS_OLDER)
    assert tool is not None
    assert step.window.recorded == texts + tool
    assert step.window.used == texts + tool + around + len(MESSAGES) * (MESSAGE + ROLE) + ANSWER
    assert step.window.used_method == "expected"
    assert step.window.used_error is not None
    assert step.window.by_method == {f"exact:{encoding}": texts, f"calibrated:{encoding}": tool}


def test_a_tool_is_never_counted_exactly(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, body("gpt-4o", LOOK), calibration="none")
    texts = sum(counter().count(str(message["content"]))[0] for message in MESSAGES)
    assert step.window.by_method["exact:o200k_base"] == texts
    assert step.window.by_method["estimate:o200k_base"] == step.window.recorded - texts > 0
    assert step.window.used_method == "recorded"  # without a calibration nothing is expected


def test_a_tool_of_the_provider_itself_is_an_estimate(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, body("gpt-4o", LOOK, SEARCH))
    assert step.window.by_method["estimate:o200k_base"] == counter().count('{"type":"web_search"}')[0]


def test_a_model_of_which_no_rule_is_known_is_not_expected(tmp_path: Path) -> None:
    (step,) = steps(tmp_path, body("some-model", LOOK))
    assert (step.window.used_method, step.window.unrecorded) == ("recorded", None)


def test_what_holds_an_image_is_not_expected(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    (step,) = steps(tmp_path, body("gpt-4o", messages=[*MESSAGES, {"role": "user", "content": [image]}]))
    assert step.window.uncounted
    assert step.window.used_method == "recorded"


def test_the_bill_wins_and_the_rules_said_what_it_would_be(tmp_path: Path) -> None:
    (unbilled,) = steps(tmp_path, body("gpt-4o", LOOK))
    (step,) = steps(tmp_path, body("gpt-4o", LOOK), usage={"prompt_tokens": 80, "completion_tokens": 3})
    assert (step.window.used, step.window.used_method) == (80, "reported")
    assert step.stages["evidence"].facts["expected_input"] == unbilled.window.used


def test_an_unbilled_request_grows_by_what_comes(tmp_path: Path) -> None:
    answer = {"role": "assistant", "content": "A crane."}
    more = [*MESSAGES, answer, {"role": "user", "content": "And behind it?"}]
    first, second = steps(tmp_path, body("gpt-4o", LOOK), body("gpt-4o", LOOK, messages=more))
    came = sum(counter().count(str(message["content"]))[0] for message in more[2:])
    assert second.window.used - first.window.used == came + 2 * (MESSAGE + ROLE)


@pytest.mark.parametrize("older", [False, True])
def test_definitions_cost_what_each_does_and_once_what_is_around_them(older: bool) -> None:
    def count(text: str) -> int:
        return counter("cl100k_base" if older else "o200k_base").count(text)[0]

    one = json.dumps(LOOK)
    two = json.dumps({"name": "wait", "input_schema": {"type": "object", "properties": {}}})
    each = [tool_size(text, count, older=older) for text in (one, two)]
    assert None not in each
    around = TOOLS_OLDER if older else TOOLS
    assert tools_size([one, two], count, older=older) == sum(filter(None, each)) + around


@pytest.mark.parametrize("name", ["parameters", "input_schema", "inputSchema"])
def test_the_schema_counts_under_any_name(name: str) -> None:
    def count(text: str) -> int:
        return counter().count(text)[0]

    plain = LOOK["function"]
    other = {"name": plain["name"], "description": plain["description"], name: plain["parameters"]}
    assert tool_size(json.dumps(other), count) == tool_size(json.dumps(LOOK), count)

"""Calls over one WebSocket: a warmed connection, and what goes on from it."""

from __future__ import annotations

from typing import Any

from ctxctl.providers.calls.http import Call
from ctxctl.providers.calls.websockets import calls_of_messages

Json = dict[str, Any]
WHOLE = Call("wss://api.openai.com/v1/responses", None)


def create(name: str | None, *texts: str, **fields: Any) -> Json:
    made = {"type": "response.create", "model": "gpt-6", "input": [item(text) for text in texts], **fields}
    return made if name is None else {**made, "previous_response_id": name}


def item(text: str) -> Json:
    return {"type": "message", "role": "user", "content": text}


def answered(name: str) -> list[Json]:
    return [
        {"type": "response.created", "response": {"id": name}},
        {"type": "response.completed", "response": {"id": name, "output": []}},
    ]


def asked(sent: list[Json], names: list[str]) -> list[Json]:
    received = [event for name in names for event in answered(name)]
    return [call.request for call in calls_of_messages(WHOLE, sent, received)]


def test_a_request_behind_a_warm_up_has_its_input_in_front() -> None:
    warm = create(None, "rules", generate=False, tools=[{"type": "web_search"}])
    (first, second) = asked([warm, create("w", "ask"), create("a", "more")], ["w", "a", "b"])
    assert first == {
        "model": "gpt-6",
        "input": [item("rules"), item("ask")],
        "tools": [{"type": "web_search"}],
    }
    assert second == {"model": "gpt-6", "input": [item("more")], "previous_response_id": "a"}


def test_warm_ups_upon_warm_ups_and_what_stood_before_them() -> None:
    sent = [create("old", "x", generate=False), create("w", "y", generate=False), create("v", "z")]
    (only,) = asked(sent, ["w", "v", "a"])
    assert only["input"] == [item("x"), item("y"), item("z")]
    assert only["previous_response_id"] == "old"


def test_an_id_that_warmed_nothing_stays() -> None:
    sent = [create(None, "x", generate=False), create(None, "y"), create("None", "z")]
    first, second = asked(sent, ["w"])
    assert first["input"] == [item("y")]
    assert second["previous_response_id"] == "None"


def test_a_long_row_of_warm_ups_does_not_stand_in_front_of_each_of_them() -> None:
    rows = [create(f"w{n - 1}", f"x{n}", generate=False) for n in range(100)]
    (only,) = asked([*rows, create("w99", "ask")], [f"w{n}" for n in range(100)] + ["a"])
    assert 1 < len(only["input"]) <= 18
    assert only["input"][-2:] == [item("x99"), item("ask")]


def test_few_requests_have_one_warm_up_in_front() -> None:
    sent = [create(None, "rules", generate=False), *(create("w", f"ask {n}") for n in range(100))]
    found = asked(sent, ["w", *(f"a{n}" for n in range(100))])
    assert sum(len(one["input"]) for one in found) == 116
    assert found[-1] == {"model": "gpt-6", "input": [item("ask 99")], "previous_response_id": "w"}

"""What breaks a cache is recorded from bodies as they are sent: by the program, and by the proxy's reader."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exchange_help import MESSAGES, Wire
from record_help import SECRET, events, replayed

from ctxctl import Recorder

Json = dict[str, Any]


def body() -> Json:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "all": {"type": "boolean"}}}
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.txt", "all": True}}
    return {
        "model": "claude-opus-5",
        "max_tokens": 900,
        "system": "Be kind and brief.",
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": schema}],
        "messages": [
            {"role": "user", "content": "What does the file say?"},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "I shall look.", "signature": "c2ln" * 9}, call],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "none"}]},
        ],
    }


def _order(changed: Json) -> None:
    block = changed["messages"][1]["content"][1]
    block["input"] = dict(reversed(block["input"].items()))


CHANGES: list[tuple[Callable[[Json], object], str | None, str | None]] = [
    (lambda b: b.update(model="claude-sonnet-5"), "model", None),
    (lambda b: b.update(tool_choice={"type": "any"}), "tool_choice", None),
    (lambda b: b.update(thinking={"type": "enabled", "budget_tokens": 2048}), "thinking", None),
    (_order, None, "key order"),
    (lambda b: b["messages"][1]["content"][0].update(signature="b3Ro" * 9), None, "signature"),
    (lambda b: b["messages"][2]["content"][0].update(is_error=True), None, "is_error"),
]


@pytest.mark.parametrize(("edit", "setting", "change"), CHANGES)
def test_a_program_that_records_its_bodies(
    tmp_path: Path, edit: Callable[[Json], object], setting: str | None, change: str | None
) -> None:
    path, changed = tmp_path / "run.jsonl", copy.deepcopy(body())
    edit(changed)
    with Recorder(path, strict=True) as recorder, recorder.turn() as turn:
        for one in (body(), changed):
            with turn.step(model=one["model"]) as step:
                step.request(body=one)
    cache = replayed(path)[1]["cache"]
    assert cache["compared"] == "wire"
    assert (cache["broken_by"]["setting"], cache["broken_by"]["change"]) == (setting, change)


@pytest.mark.parametrize(("edit", "setting", "change"), CHANGES)
def test_exchanges_over_the_wire(
    tmp_path: Path, edit: Callable[[Json], object], setting: str | None, change: str | None
) -> None:
    wire, changed = Wire(tmp_path / "run.jsonl"), copy.deepcopy(body())
    edit(changed)
    for one in (body(), changed):
        said = [{"type": "text", "text": "I see."}]
        wire.ask(one, {"type": "message", "role": "assistant", "content": said}, MESSAGES)
    wire.close()
    steps = replayed(tmp_path / "run.jsonl")
    assert [step["thread"] for step in steps] == ["main", "main"]
    cache = steps[1]["cache"]
    assert cache["compared"] == "wire"
    assert (cache["broken_by"]["setting"], cache["broken_by"]["change"]) == (setting, change)


def test_parameters_hold_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Recorder(path, strict=True) as recorder, recorder.turn() as turn, turn.step() as step:
        step.request(body={**body(), "tool_choice": {"type": "tool", "name": SECRET}})
    told = [e for e in events(path) if e["event_type"] == "context.assembly.created"]
    assert told[0]["data"]["metadata"]["ctxctl"]["request"]["api"] == "anthropic"
    assert SECRET not in json.dumps(events(path))

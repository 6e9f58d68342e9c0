"""The reader of raw captures finds what is wrong: right answers agree, and each altered one does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.test_independent import ask
from tools.independent import bills, compare, wire

TOOL = {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}
FIRST = {"role": "user", "content": "one"}
SAID = {"role": "assistant", "content": [{"type": "text", "text": "uno"}]}


def usage(plain: int, read: int) -> dict[str, int]:
    return {"input_tokens": plain, "cache_read_input_tokens": read, "output_tokens": 2}


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Three requests of one conversation; the last one has another prompt in the place of the second's."""
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "Be kind.", "tools": [TOOL]}
    talks = ([FIRST], [FIRST, SAID, {"role": "user", "content": "two"}],
             [FIRST, SAID, {"role": "user", "content": "else"}])  # fmt: skip
    path = tmp_path / "log.jsonl"
    with path.open("w") as file:
        for number, messages in enumerate(talks):
            answer = {"id": f"m{number}", "type": "message", "role": "assistant", "model": body["model"],
                      "content": SAID["content"], "usage": usage(30 + number, 5 * number)}  # fmt: skip
            asked = {"url": "https://api.anthropic.com/v1/messages", "body": {**body, "messages": messages}}
            file.write(json.dumps({"request": asked, "response": {"body": answer}}) + "\n")
    return path


def steps(path: Path) -> list[dict[str, Any]]:
    return [line for line in ask(["replay", str(path), "--json", "--all"]) if line["type"] == "step"]


def test_it_agrees_with_what_is_right(capture: Path) -> None:
    assert compare.wire(wire.requests(capture), steps(capture)) == []


@pytest.mark.parametrize(
    ("what", "path", "value"),
    [
        ("new", ("ledger", "new"), 99),
        ("prefix", ("cache", "possible_prefix"), 1),
        ("window", ("window", "used"), 1),
        ("sum", ("window", "unrecorded"), 7),
        ("bill", ("usage", "reported_cached"), 4),
        ("status", ("counts", "removed"), 0),
        ("status", ("changes", 0, "status"), "updated"),
        ("items", ("changes",), []),
    ],
)
def test_it_finds_what_is_altered(capture: Path, what: str, path: tuple[Any, ...], value: Any) -> None:
    said = steps(capture)
    held: Any = said[2]
    for key in path[:-1]:
        held = held[key]
    held[path[-1]] = value
    assert what in {wrong.what for wrong in compare.wire(wire.requests(capture), said)}


def test_a_bill_that_only_one_of_them_has(capture: Path) -> None:
    said = steps(capture)
    found = [request.bill for request in wire.requests(capture)]
    assert compare.bills([bill for bill in found if bill], said) == []
    assert [wrong.raw for wrong in compare.bills([bill for bill in found[1:] if bill], said)] == [None]
    more = bills.Bill(9, None, None, 1)
    assert [wrong.said for wrong in compare.bills([more, *filter(None, found)], said)] == [None]

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.importers.claude_tap import reader
from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

PATH = "claude_tap/trace.jsonl"
DATA = (FIXTURES / PATH).read_bytes()
LINES = DATA.splitlines(keepends=True)


def test_records_with_whole_and_with_streamed_answers_are_steps() -> None:
    steps, problems = seen(PATH)
    assert sorted((step.model, step.billed) for step in steps if step.billed) == [
        ("claude-sonnet-4-20250514", 304), ("claude-sonnet-4-20250514", 346), ("gpt-5", 40),
    ]  # fmt: skip
    assert not problems, "token counting is another call, counted and left out"


def test_other_calls_are_counted() -> None:
    found, _ = events("claude-tap", DATA)
    (told,) = [e["data"] for e in found if "others" in e["data"]]
    assert told["others"] == {"token counts": 1}


def test_websocket_requests_are_told_apart_and_warming_is_none() -> None:
    steps, _ = seen(PATH)
    (codex,) = [step for step in steps if step.model == "gpt-5"]
    assert codex.kinds() == ["tool_definition", "system_prompt", "user_message"]
    found, _ = events("claude-tap", DATA)
    answers = [e["data"].get("content") for e in found if e["event_type"] == "context.item.added"]
    assert "Calm." in answers, "the answer's items come before an empty final output"


def test_a_refused_request_has_no_answer_and_no_bill() -> None:
    steps, _ = seen(PATH)
    assert len([step for step in steps if step.billed is None]) == 1
    found, _ = events("claude-tap", DATA)
    assert "Overloaded" not in repr([e["data"].get("content") for e in found])


def test_a_bundle_gives_the_same_steps_as_its_lines() -> None:
    bundled, problems = seen("claude_tap/bundle.ctap.json")
    plain, _ = seen(PATH)
    assert [step.window for step in bundled] == [step.window for step in plain[:2]]
    assert not problems


def test_a_blob_that_is_not_there_is_reported() -> None:
    bundle = json.loads((FIXTURES / "claude_tap/bundle.ctap.json").read_bytes())
    del bundle["blobs"]["sha256:bb"]
    _, problems = events("claude-tap", json.dumps(bundle).encode())
    assert slugs(problems) == ["missing-blob"]


def test_detection() -> None:
    assert detected(DATA) == "claude-tap"
    assert detected((FIXTURES / "claude_tap/bundle.ctap.json").read_bytes()) == "claude-tap"
    assert detected(b"x\n" + LINES[0]) == "claude-tap"
    assert detected(LINES[0][:300]) == "claude-tap"
    older = {"id": "r", "turn": 1, "request": {"method": "POST", "path": "/v1/messages"}, "response": {}}
    assert detected(json.dumps(older).encode()) == "claude-tap"


def test_a_part_of_all_records_is_put_back_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = json.loads((FIXTURES / "claude_tap/bundle.ctap.json").read_bytes())
    said = [{"role": "user", "content": f"line {n}"} for n in range(101)]
    bundle["blobs"]["long"] = {"payload": said}
    bundle["records"] = [json.loads(json.dumps(bundle["records"][0])) for _ in range(50)]
    for record in bundle["records"]:
        record["record"]["request"]["body"]["messages"] = {reader._BLOB: {"hash": "long"}}
    data = json.dumps(bundle).encode()
    found, problems = events("claude-tap", data)
    assert requests(found) == 50
    assert problems == []
    monkeypatch.setattr(reader, "PUT_BACK", 1_000_000)
    monkeypatch.setattr(reader, "_TIMES_PUT_BACK", 0)
    found, problems = events("claude-tap", data)
    assert 5 < requests(found) < 15
    assert [problem.slug for problem in problems] == ["windows-too-large"]


def requests(found: list[dict[str, Any]]) -> int:
    return sum(event["event_type"] == "context.injection.applied" for event in found)

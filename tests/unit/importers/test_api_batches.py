"""Batches, and logs in which requests and answers stand in lines of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.ingest.folder import Folder
from tests.unit.importers.calls_help import FIXTURES, detected, events, seen, slugs

INPUT = (FIXTURES / "api/batch/input.jsonl").read_bytes()
OUTPUT = (FIXTURES / "api/batch/output.jsonl").read_bytes()


def body(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o", "temperature": 0, "messages": [{"role": "user", "content": text}]}


def answer(text: str, billed: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{billed}",
        "object": "chat.completion",
        "model": "gpt-4o-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": billed, "completion_tokens": 2, "total_tokens": billed + 2},
    }


def written(tmp_path: Path, *records: Any) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def billed(path: Path | str) -> list[tuple[str, int | None]]:
    return [(step.thread, step.billed) for step in seen(path)[0]]


def test_every_line_of_what_was_sent_is_a_call() -> None:
    assert detected(INPUT) == "api"
    steps, problems = seen("api/batch/input.jsonl")
    assert [(s.thread, s.billed, s.model) for s in steps] == [
        (f"tide-{n}", None, "gpt-4o-mini") for n in range(4)
    ]
    assert steps[2].texts() == ["You read tide tables.", "When is high water at Juist?"]
    assert not problems
    found, _ = events("api", INPUT)
    lines = [
        e["metadata"]["ctxctl"]["source_line"]
        for e in found
        if e["event_type"] == "context.injection.applied"
    ]
    assert lines == [1, 2, 3, 4]


def test_what_came_back_alone_shows_answers_and_bills_and_says_that_the_requests_are_not_there() -> None:
    steps, problems = seen("api/batch/output.jsonl")
    assert [(s.thread, s.billed, s.texts()[-1]) for s in steps] == [
        ("tide-2", 26, "High water at Juist is at 11:51."),
        ("tide-0", 24, "High water at Norddeich is at 11:42."),
        ("tide-1", 25, "High water at Baltrum is at 11:58."),
    ]
    assert slugs(problems) == ["no-request", "no-request"]
    assert sorted((p.line, "the request is not in the file" in p.message) for p in problems) == [
        (1, True),
        (4, True),
    ]
    assert "No such harbour in the policy" in next(p.message for p in problems if p.line == 4)


@pytest.mark.parametrize("parts", [(INPUT, OUTPUT), (OUTPUT, INPUT)])
def test_both_in_one_file_are_paired_by_their_ids(tmp_path: Path, parts: tuple[bytes, bytes]) -> None:
    path = tmp_path / "both.jsonl"
    path.write_bytes(b"".join(parts))
    steps, problems = seen(path)
    assert [(s.thread, s.billed) for s in steps] == [
        ("tide-0", 24), ("tide-1", 25), ("tide-2", 26), ("tide-3", None)
    ]  # fmt: skip
    assert all(len(step.window) == 2 for step in steps)
    assert not problems


@pytest.mark.parametrize(
    "names",
    [("input.jsonl", "output.jsonl"), ("requests.jsonl", "batch_6f_output.jsonl"), ("b.jsonl", "a.jsonl")],
)
def test_both_in_one_directory_are_paired_by_their_ids(tmp_path: Path, names: tuple[str, str]) -> None:
    for name, data in zip(names, (INPUT, OUTPUT), strict=True):
        (tmp_path / name).write_bytes(data)
    api = registry.by_name("api")
    assert api.reads_folders
    assert api.detect_folder(Folder("batch", tmp_path))
    assert billed(tmp_path) == [("tide-0", 24), ("tide-1", 25), ("tide-2", 26), ("tide-3", None)]


def test_a_refused_request_has_its_reason() -> None:
    found, _ = events("api", INPUT + OUTPUT)
    told = [e["data"]["metadata"]["ctxctl"] for e in found if e["event_type"] == "context.assembly.created"]
    assert [mark.get("status") for mark in told] == [None, None, None, 400]
    assert "No such harbour in the policy." in told[3]["error"]


def test_a_batch_of_anthropic_tells_how_each_request_ended() -> None:
    steps, problems = seen("api/anthropic_batch.jsonl")
    assert [(s.thread, s.billed) for s in steps] == [("tide-0", None), ("tide-1", 21), ("tide-2", None)]
    found, _ = events("api", (FIXTURES / "api/anthropic_batch.jsonl").read_bytes())
    told = [e["data"]["metadata"]["ctxctl"] for e in found if e["event_type"] == "context.assembly.created"]
    assert [mark.get("error") for mark in told] == ["max_tokens: too small", None, "expired"]
    assert not problems


def test_the_document_that_a_batch_is_made_with(tmp_path: Path) -> None:
    lines = (FIXTURES / "api/anthropic_batch.jsonl").read_text().splitlines()
    path = tmp_path / "batch.json"
    for indent in (None, 2):
        path.write_text(json.dumps({"requests": [json.loads(line) for line in lines[:3]]}, indent=indent))
        assert [thread for thread, _ in billed(path)] == ["tide-0", "tide-1", "tide-2"]


def test_batches_of_gemini_and_bedrock(tmp_path: Path) -> None:
    assert billed("api/gemini_batch.jsonl") == [("tide-0", 18), ("tide-1", 19)]
    asked = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
    }
    told = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "ho"}],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    both = {"recordId": "REC1", "modelInput": asked, "modelOutput": told}
    assert billed(written(tmp_path, both)) == [("REC1", 3)]


def test_a_key_beside_other_fields_is_no_id(tmp_path: Path) -> None:
    found, _ = events("api", json.dumps({"key": "SECRET", "url": "/v1/x", "request": body("hi")}).encode())
    assert "SECRET" not in repr(found)


def test_answers_that_overtake_each_other_go_to_their_requests(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"request_id": "a", "request": body("one")},
        {"request_id": "b", "request": body("two")},
        {"request_id": "b", "response": answer("2", 20)},
        {"request_id": "a", "response": answer("1", 10)},
        {"url": "/v1/chat/completions", "body": body("three")},
        {"response": answer("3", 30)},
    )
    steps, problems = seen(path)
    assert [(step.texts()[-1], step.billed) for step in steps] == [("one", 10), ("two", 20), ("three", 30)]
    assert not problems


def test_an_answer_to_nobody_is_not_billed_to_another_request(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": 1, "request": body("one"), "response": answer("1", 10)},
        {"id": 7, "response": answer("stray", 70)},
        {"id": 2, "request": body("two"), "response": answer("2", 20)},
    )
    steps, problems = seen(path)
    assert {(step.texts()[-1], step.billed) for step in steps} == {("one", 10), ("two", 20), ("stray", 70)}
    assert [(p.slug, p.line) for p in problems] == [("no-request", 2)]


def test_calls_that_ask_no_model_are_counted(tmp_path: Path) -> None:
    other = {"custom_id": "e", "url": "/v1/embeddings", "body": {"model": "e", "input": ["x"]}}
    data = b"".join(
        json.dumps(record).encode() + b"\n" for record in (*map(json.loads, INPUT.splitlines()), other)
    )
    found, problems = events("api", data)
    (told,) = [e["data"] for e in found if e["event_type"] == "ctxctl.source.opened"]
    assert told["others"] == {"embeddings": 1}
    assert not problems


def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxctl.importers.api.reader.MAX_WAITING", 1500)
    asked = [{"custom_id": f"r{n}", "body": body("x" * 400)} for n in range(8)]
    path = written(
        tmp_path, *asked, {"custom_id": "r7", "response": {"status_code": 200, "body": answer("7", 7)}}
    )
    steps, problems = seen(path)
    assert len(steps) == 8
    assert [step.billed for step in steps] == [None] * 7 + [7]
    assert slugs(problems) == ["waited-too-long"]

"""`POST /v1/events`: what is acknowledged is in the trace, what is not is said line by line."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from ctxctl.record.receive import events as endpoint
from tests.unit.record.receive_help import NDJSON, receiving
from tests.unit.record.record_help import SECRET, ctxctl, data, events, replayed, types

ITEM = {
    "event_type": "context.item.added", "event_id": "a-1", "session_id": "s",
    "turn_id": "t", "source": "mine/1", "time": "2026-01-02T03:04:05Z", "run_id": "r-9",
    "data": {"item_id": "x", "context_kind": "user_message", "content": "Hello.", "visibility": ["model"]},
}  # fmt: skip
CHAT = {"model": "gpt-5", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}
ANSWER = {
    "object": "chat.completion",
    "choices": [{"message": {"role": "assistant", "content": "Air scatters blue light more."}}],
    "usage": {"prompt_tokens": 24, "completion_tokens": 7},
}


def test_a_native_event_keeps_its_envelope_and_gets_what_it_lacks(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out, session="base", source="here") as receiver:
        bare = {"event_type": "my.event", "data": {"n": 1}}
        answer = receiver.post("/v1/events", [ITEM, bare])
        assert (answer.status, answer.json) == (200, {"written": 2, "repeated": 0, "failed": 0})
        first, second = events(out)
    assert {name: first[name] for name in ITEM if name != "data"} == {
        n: v for n, v in ITEM.items() if n != "data"
    }
    assert first["data"]["content"] == "Hello."
    assert second["session_id"] == "base"
    assert second["source"] == "here"
    assert second["event_id"]
    assert second["time"] > "2026"
    assert out.stat().st_mode & 0o777 == 0o600


def test_calls_become_records_and_steps(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out) as receiver:
        answer = receiver.post(
            "/v1/events",
            [
                {"call": "item", "item_id": "faq#11", "content": "Blue light.", "kind": "retrieval_result"},
                {"call": "surface", "items": ["faq#11", "faq#12"]},
                {"call": "selection", "selected": ["faq#11"], "omitted": [["faq#12", "low_relevance"]]},
                {"call": "budget", "max_tokens": 8000, "dropped": [["faq#12", "budget_limit"]]},
                {"call": "request", "body": CHAT},
                {"call": "response", "body": ANSWER},
                {"call": "request", "body": {**CHAT, "model": "gpt-6"}, "thread": "side", "step": "own-step"},
                {"call": "failed", "error": "RateLimitError", "thread": "side", "step": "own-step"},
            ],
        )
        assert answer.json == {"written": 8, "repeated": 0, "failed": 0}, answer.json
    steps = replayed(out)
    assert [step["thread"] for step in steps] == ["main", "side"]
    assert data(out, "ctxctl.usage.reported")[0]["input_tokens"] == 24
    assert data(out, "context.selection.completed")[0]["omitted_item_refs"] == [
        {"item_ref": "faq#12", "reason": "low_relevance"}
    ]
    assert data(out, "ctxctl.step.failed") == [{"schema_version": "0.1.1", "error": "RateLimitError"}]


def test_what_comes_after_an_injection_counts_for_the_next_request(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out) as receiver:
        step = {"turn": "t1", "step": "s1"}
        lines = [
            {"call": "item", "item_id": "a", "content": "first", **step},
            {"call": "assembly", "blocks": [["a", "user"]], **step},
            {"call": "injection", **step},
            {"call": "item", "item_id": "b", "content": "later", **step},
        ]
        assert receiver.post("/v1/events", lines).status == 200
        found = events(out)
    assert "step_id" in found[2]
    assert "step_id" not in found[3]


def test_each_line_that_failed_is_told_and_the_others_are_written(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    lines = [
        json.dumps(ITEM), "{", "[1]", '{"x": 1}', '{"call": "fly"}', '{"call": "item"}', "",
        json.dumps({**ITEM, "event_id": 5}), json.dumps({**ITEM, "event_id": "b", "data": {"item_id": 1}}),
        '{"call": "item", "item_id": "d", "content": ' + "[" * 150 + "]" * 150 + "}",
        json.dumps({"call": "item", "item_id": "last", "content": "c"}),
    ]  # fmt: skip
    with receiving(out) as receiver:
        answer = receiver.post("/v1/events", "\n".join(lines), NDJSON)
        assert answer.status == 422
        told = answer.json
        assert (told["written"], told["failed"]) == (2, 8)
        assert [one["line"] for one in told["errors"]] == [2, 3, 4, 5, 6, 8, 9, 10]
        assert all(one["error"] for one in told["errors"])
        assert receiver.recorder.dropped == 0
    assert types(out) == ["item.added", "item.added"]


def test_what_is_sent_again_is_written_once(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    lines = [ITEM, {"call": "item", "item_id": "c", "content": "d", "id": "c-1"}]
    with receiving(out) as receiver:
        assert receiver.post("/v1/events", lines).json["written"] == 2
        assert receiver.post("/v1/events", lines).json == {"written": 0, "repeated": 2, "failed": 0}
        other = {**ITEM, "session_id": "another"}
        assert receiver.post("/v1/events", [other]).json["written"] == 1
    assert len(out.read_bytes().splitlines()) == 3


@pytest.mark.parametrize("media", ["application/json", "application/json; charset=utf-8"])
def test_a_json_document_is_one_event_or_a_list_of_them(tmp_path: Path, media: str) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out) as receiver:
        assert receiver.post("/v1/events", json.dumps(ITEM, indent=2), media).json["written"] == 1
        many = [{**ITEM, "event_id": "b"}, {**ITEM, "event_id": "c"}, 7]
        answer = receiver.post("/v1/events", json.dumps(many), media)
        assert (answer.json["written"], answer.json["failed"]) == (2, 1)
        assert receiver.post("/v1/events", "[1, ", media).status == 400
        gzipped = gzip.compress(json.dumps({**ITEM, "event_id": "d"}).encode())
        assert receiver.post("/v1/events", gzipped, media, Content_Encoding="gzip").json["written"] == 1


def test_secrets_are_replaced_in_events_and_calls(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out) as receiver:
        hidden = {**ITEM["data"], "content": f"token {SECRET}"}  # type: ignore[dict-item]
        body = {"model": "gpt-5", "messages": [{"role": "user", "content": f"use {SECRET}"}]}
        lines = [
            {**ITEM, "data": hidden},
            {"event_type": "my.event", "event_id": SECRET, "data": {"Authorization": "Basic abcdef"}},
            {"call": "request", "body": body, "session": f"s-{SECRET}"},
            {"call": "item", "item_id": SECRET, "content": {"deep": [SECRET]}},
            {"call": "fly", "x": SECRET},
            {"call": "failed", "error": 5, "y": SECRET},
        ]
        answer = receiver.post("/v1/events", lines)
        assert SECRET.encode() not in answer.body
        assert receiver.recorder.redacted
    assert SECRET.encode() not in out.read_bytes()
    assert b"Basic abcdef" not in out.read_bytes()
    assert b"[redacted github-token" in out.read_bytes()


def test_rules_that_cannot_be_applied_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out) as receiver:

        def broken(*_: object) -> object:
            raise RuntimeError(SECRET)

        redactor = receiver.recorder._core.redactor
        monkeypatch.setattr(type(redactor), "value", broken)
        monkeypatch.setattr(type(redactor), "worth_a_look", lambda *_: True)
        answer = receiver.post("/v1/events", [ITEM])
        assert answer.status == 422
        assert SECRET.encode() not in answer.body
    assert out.read_bytes() == b""


def test_a_full_disk_is_the_senders_to_know_and_nothing_counts_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "t.jsonl"
    lines = [{**ITEM, "event_id": f"e-{n}"} for n in range(6)]
    written: list[bytes] = []
    real = os.write

    with receiving(out) as receiver:
        ours = os.stat(out).st_ino

        def full(fd: int, data: bytes) -> int:
            if os.fstat(fd).st_ino == ours and len(written) >= 3:
                raise OSError(28, "No space left on device")
            if os.fstat(fd).st_ino == ours:
                written.append(data)
            return real(fd, data)

        monkeypatch.setattr(os, "write", full)
        answer = receiver.post("/v1/events", lines)
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) >= 1
        told = answer.json
        assert (told["written"], told["next"], told["failed"]) == (3, 4, 0)
        monkeypatch.setattr(os, "write", real)
        receiver.recorder._core.journal._retry_at = 0.0
        assert receiver.post("/v1/events", lines[told["next"] - 1 :]).json["written"] == 3
        assert receiver.recorder.dropped == 0
    assert [event["event_id"] for event in events(out)] == [f"e-{n}" for n in range(6)]


def test_lines_and_bodies_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "t.jsonl"
    monkeypatch.setattr(endpoint, "MAX_LINES", 3)
    with receiving(out) as receiver:
        long = {"call": "item", "item_id": "x", "content": "y" * (endpoint.MAX_LINE + 1)}
        answer = receiver.post("/v1/events", [long, {"call": "item", "item_id": "z", "content": "w"}])
        assert (answer.json["written"], answer.json["failed"]) == (1, 1)
        assert "8 MiB" in answer.json["errors"][0]["error"]
        many = [{"call": "item", "item_id": f"n{n}", "content": "w"} for n in range(5)]
        answer = receiver.post("/v1/events", many)
        assert (answer.json["written"], answer.json["failed"]) == (3, 2)


def test_rotation_tells_again_what_a_file_needs(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    text = "A long text that is referred to when it comes again. " * 20
    with receiving(out, rotate_bytes=8000) as receiver:
        for n in range(12):
            record = {
                "item_id": f"i{n % 3}",
                "context_kind": "custom",
                "content": text,
                "visibility": ["model"],
            }
            line = {"event_type": "context.item.updated", "event_id": f"e{n}", "data": record}
            assert receiver.post("/v1/events", [line]).status == 200
            assert receiver.post("/v1/events", [{"call": "request", "body": CHAT}]).status == 200
    files = sorted(tmp_path.glob("t*.jsonl"))
    assert len(files) > 1
    for file in files:
        assert text.strip() in file.read_text()  # no reference into another file
        done = ctxctl("validate", str(file))
        assert done.returncode in (0, 1), done.stderr
        assert "ref" not in done.stdout, done.stdout


def test_the_command_listens_says_where_and_ends_with_a_signal(tmp_path: Path) -> None:
    import signal
    import sys

    out = tmp_path / "t.jsonl"
    command = [sys.executable, "-m", "ctxctl", "record", "--events", "--port", "0", "-o", str(out)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    try:
        first, second = child.stderr.readline(), child.stderr.readline()
        assert first.startswith("ctxctl: events on http://127.0.0.1:")
        assert f"ctxctl watch {out}" in second
    finally:
        child.send_signal(signal.SIGINT)
        rest = child.stderr.read()
        assert child.wait(30) == 0
    assert "0 events written" in rest


def test_a_port_that_is_taken_is_said_and_no_file_is_made(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl") as receiver:
        other = tmp_path / "other.jsonl"
        done = ctxctl("record", "--events", "--port", str(receiver.port), "-o", str(other))
    assert done.returncode == 2
    assert f"127.0.0.1:{receiver.port}" in done.stderr
    assert "--port" in done.stderr
    assert not other.exists()

"""OTLP: what an exporter sends, in any order, becomes the steps that an import of it gives."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ctxctl.model import vocab
from ctxctl.providers.spans.span import spans as read
from ctxctl.record import journal, sink
from ctxctl.record.receive import otlp
from ctxctl.record.receive.otlp import HOLD, SETTLE, SpanBuffer
from ctxctl.record.recorder import Recorder
from tests.unit.record.otlp_help import (
    Program,
    details,
    frames,
    logs,
    logs_protobuf,
    told,
    traces,
    traces_protobuf,
)  # fmt: skip
from tests.unit.record.receive_help import receiving
from tests.unit.record.record_help import SECRET, data, events, replayed

Json = dict[str, Any]
PROTOBUF = otlp.PROTOBUF


def conversation(session: str | None = "conv-1") -> list[Json]:
    """Three traces of one conversation, each an agent's run with two calls; children before their parents."""
    program, said, made = Program(), [("system", "Be terse.")], []
    for trace in (1, 2, 3):
        more = {"gen_ai__conversation__id": session} if session else {}
        agent = program.agent(trace, "planner", **more)
        inner = []
        for n in range(2):
            said.append(("user", f"Question {trace}.{n}?"))
            inner.append(program.chat(trace, said, f"Answer {trace}.{n}.", agent))
            said.append(("assistant", f"Answer {trace}.{n}."))
        made += [*inner, agent]
    return made


def imported(tmp_path: Path, spans: list[Json]) -> list[Json]:
    file = tmp_path / "capture.json"
    file.write_text(json.dumps(traces(*spans)))
    return frames(file)


@pytest.mark.parametrize("session", ["conv-1", None])
@pytest.mark.parametrize("way", ["json", "protobuf", "gzip"])
def test_a_conversation_over_several_traces_is_what_an_import_makes_of_it(
    tmp_path: Path, way: str, session: str | None
) -> None:
    spans = conversation(session)
    out = tmp_path / "t.jsonl"
    with receiving(out, otlp=True, events=False, session="base") as receiver:
        for span in spans:
            if way == "json":
                answer = receiver.post("/v1/traces", traces(span))
                assert (answer.status, answer.json) == (200, {})
                continue
            body = traces_protobuf(span)
            if way == "gzip":
                answer = receiver.post("/v1/traces", gzip.compress(body), PROTOBUF, Content_Encoding="gzip")
            else:
                answer = receiver.post("/v1/traces", body, PROTOBUF)
            assert (answer.status, answer.headers["Content-Type"], answer.body) == (200, PROTOBUF, b"")
    live, file = frames(out), imported(tmp_path, spans)
    assert len(live) == 6
    for name in ("carried", "input", "model", "thread", "turn"):
        assert [frame[name] for frame in live] == [frame[name] for frame in file], name
    assert {frame["session"] for frame in live} == {session or "base"}
    replayed(out)
    assert any("6 model calls;" in line and line.endswith(" 3") for line in receiver.said), receiver.said


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def held(out: Path, **options: Any) -> Iterator[tuple[SpanBuffer, Clock]]:
    clock = Clock()
    with Recorder(out, strict=True, **options) as recorder:
        yield SpanBuffer(recorder, clock), clock


def give(spans: SpanBuffer, *records: Json, as_logs: bool = False) -> None:
    for span in read(logs(*records) if as_logs else traces(*records)):
        spans.add(span, 1000)


def written(out: Path) -> int:
    return len(data(out, "context.injection.applied"))


def test_what_was_acknowledged_waits_for_a_slow_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder in a program drops events rather than let it wait; here nobody waits but the spans."""
    monkeypatch.setattr(journal, "SLOW", 0.0)
    out, spans = tmp_path / "t.jsonl", conversation()
    with held(out) as (holder, _):
        give(holder, *spans)
        holder.due(everything=True)
    calls = sum("chat" in one["name"] for one in spans)
    assert written(out) == len(data(out, vocab.USAGE_REPORTED)) == calls
    assert data(out, vocab.RECORD_DROPPED) == []


@pytest.mark.parametrize("first", [3, 7, 12])
def test_what_was_acknowledged_waits_for_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The call that is being written when the disk is full is counted as lost; those behind it wait."""
    real, count = os.write, 0

    def full(fd: int, line: bytes) -> int:
        nonlocal count
        count += 1
        if count == first:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(fd, line)

    out, spans = tmp_path / "t.jsonl", conversation()
    calls = sum("chat" in one["name"] for one in spans)
    with held(out) as (holder, clock):
        monkeypatch.setattr(sink.os, "write", full)
        give(holder, *spans)
        clock.now += HOLD
        holder.due()
        assert len(data(out, vocab.USAGE_REPORTED)) < calls
        time.sleep(0.1)
        holder.due()
    assert len(data(out, vocab.USAGE_REPORTED)) >= calls - 1


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_arrival_changes_nothing(tmp_path: Path, seed: int) -> None:
    chance, spans = random.Random(seed), conversation()
    mixed = [*spans, *chance.sample(spans, 3)]
    chance.shuffle(mixed)
    out = tmp_path / "t.jsonl"
    with held(out) as (holder, clock):
        while mixed:
            give(holder, *(mixed.pop() for _ in range(min(len(mixed), chance.randint(1, 4)))))
            clock.now += 0.2
            holder.due()
        clock.now += SETTLE
        holder.due()
        assert holder.bytes == 0
        assert holder.late == 3
    assert [f["carried"] for f in frames(out)] == [f["carried"] for f in imported(tmp_path, spans)]


def test_a_trace_is_written_as_soon_as_it_is_whole_and_quiet(tmp_path: Path) -> None:
    first, second, agent = conversation()[:3]
    with held(tmp_path / "t.jsonl") as (holder, clock):
        give(holder, first, second)
        clock.now += SETTLE
        holder.due()
        assert holder.calls == 0  # the agent around it may still come
        give(holder, agent)
        holder.due()
        assert holder.calls == 0
        clock.now += SETTLE
        holder.due()
        assert holder.calls == 2


def test_nothing_waits_longer_than_said_for_a_parent_that_does_not_come(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    spans = conversation()
    with held(out) as (holder, clock):
        for at, span in enumerate([one for one in spans if "chat" in one["name"]]):
            give(holder, span)
            clock.now += HOLD
            holder.due()
            assert holder.calls == at + 1
            assert holder.bytes == 0
        give(holder, *(one for one in spans if "chat" not in one["name"]))
        clock.now += HOLD
        holder.due()
        assert holder.calls == 6
    # One conversation, told by what the requests repeat, though no span names the session in time.
    assert [len(frame["carried"]) for frame in frames(out)] == [3, 5, 7, 9, 11, 13]
    assert len(told(frames(out), "thread")) == 1


def test_a_span_around_a_call_that_went_before_it_is_no_call(tmp_path: Path) -> None:
    out, program = tmp_path / "t.jsonl", Program()
    root = program.span("workflow", 1)
    outer = program.chat(1, [("user", "q")], "a", root)
    middle = program.span("send", 1, outer)
    inner = program.chat(1, [("user", "q")], "a", middle)
    with held(out) as (holder, clock):
        for span in (inner, middle, outer, root):
            give(holder, span)
            clock.now += HOLD
            holder.due()
    assert written(out) == 1


@pytest.mark.parametrize("log_first", [True, False])
@pytest.mark.parametrize("apart", [0.0, HOLD - 1])
def test_texts_in_a_log_record_join_their_span(tmp_path: Path, *, log_first: bool, apart: float) -> None:
    out, program = tmp_path / "t.jsonl", Program()
    whole = program.chat(1, [("user", "What?")], "That.")
    bare = {**whole, "attributes": [a for a in whole["attributes"] if "messages" not in a["key"]]}
    log = details(
        whole, **{a["key"]: a["value"]["stringValue"] for a in whole["attributes"] if "messages" in a["key"]}
    )
    with held(out) as (holder, clock):
        for at, record in enumerate((log, bare) if log_first else (bare, log)):
            give(holder, record, as_logs=record is log)
            clock.now += apart if at == 0 else SETTLE
            holder.due()
        assert holder.calls == 1
        give(holder, log, as_logs=True)  # sent once more, as its acknowledgement was lost
        holder.due(everything=True)
        assert (holder.calls, holder.late) == (1, 1)
    (frame,) = frames(out)
    assert [kind for kind, *_ in frame["carried"]] == ["tool_definition", "user_message"]
    assert frame["input"] == 10


def test_agents_inside_agents_are_threads_of_their_own(tmp_path: Path) -> None:
    out, program = tmp_path / "t.jsonl", Program()
    lead = program.agent(1, "lead", gen_ai__conversation__id="c")
    first = program.chat(1, [("system", "You lead."), ("user", "Go.")], "Delegating.", lead)
    helper = program.agent(1, "helper", lead)
    inner = program.chat(1, [("system", "You help."), ("user", "Look.")], "Found.", helper)
    spans = [first, inner, helper, lead]
    with held(out) as (holder, clock):
        give(holder, *spans)
        clock.now += SETTLE
        holder.due()
    live, file = frames(out), imported(tmp_path, spans)
    assert [f["thread"] for f in live] == [f["thread"] for f in file] == ["main", "helper"]


def test_memory_is_bounded_however_many_spans_never_find_their_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxctl.record.receive import otlp as module

    monkeypatch.setattr(module, "MAX_HELD", 20_000)
    monkeypatch.setattr(module, "_TRACES", 30)
    out, program = tmp_path / "t.jsonl", Program()
    parent = program.span("never sent", 9)
    with held(out) as (holder, clock):
        for trace in range(100):
            give(holder, program.chat(trace, [("user", f"q{trace}")], "a", parent))
            clock.now += 0.001
            assert holder.bytes <= 20_000
            assert len(holder._traces) <= 31
        holder.due(everything=True)
        assert holder.calls == 100
    assert written(out) == 100


def test_while_the_disk_is_full_spans_wait_and_are_written_later(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with held(out) as (holder, clock):
        journal = holder._guard._journal
        give(holder, *conversation())
        journal._retry_at = float("inf")
        clock.now += 100
        holder.due()
        assert holder.calls == 0
        journal._retry_at = 0.0
        holder.due()
        assert holder.calls == 6
        assert journal.dropped == 0
    assert written(out) == 6


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs"])
@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "7",
        '"x"',
        '{"resourceSpans": 7, "resourceLogs": 7}',
        '{"x": []}',
        '{"a":' * 500 + "1" + "}" * 500,
        "\xff",
    ],
)
def test_what_is_no_export_is_refused_with_a_status(tmp_path: Path, path: str, body: str) -> None:
    with receiving(tmp_path / "t.jsonl", otlp=True) as receiver:
        answer = receiver.post(path, body.encode("latin-1"), "application/json")
        assert answer.status == 400
        assert answer.json["code"] == 3
        assert answer.json["message"]


def test_broken_protobuf_is_refused_in_protobuf(tmp_path: Path) -> None:
    whole = traces_protobuf(*conversation())
    with receiving(tmp_path / "t.jsonl", otlp=True) as receiver:
        for body in (whole[:-3], b"\xff" * 30, b"\x0a\x7f"):
            answer = receiver.post("/v1/traces", body, PROTOBUF)
            assert answer.status == 400
            assert answer.headers["Content-Type"] == PROTOBUF
            assert answer.body.startswith(b"\x08\x03\x12")
        assert receiver.post("/v1/traces", b"", PROTOBUF).status == 200
        assert receiver.post("/v1/traces", {}).json == {}


def test_records_that_cannot_be_read_are_counted_in_the_answer(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl", otlp=True) as receiver:
        good = conversation()[0]
        answer = receiver.post("/v1/traces", traces(good, 7, {**good, "attributes": 7}))  # type: ignore[arg-type]
        assert answer.json["partialSuccess"]["rejectedSpans"] == "2"
        answer = receiver.post("/v1/logs", logs(details(good), "x"))  # type: ignore[arg-type]
        assert answer.json["partialSuccess"]["rejectedLogRecords"] == "1"
    made = otlp._accepted("traces", 300, PROTOBUF)
    parsed = ExportTraceServiceResponse.FromString(made.body)
    assert parsed.partial_success.rejected_spans == 300
    assert parsed.partial_success.error_message


def test_metrics_are_taken_and_that_is_said_once(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    with receiving(out, otlp=True) as receiver:
        for _ in range(3):
            assert receiver.post("/v1/metrics", {"resourceMetrics": []}).json == {}
            assert receiver.post("/v1/metrics", b"", PROTOBUF).status == 200
        assert sum("not recorded" in line and "metrics" in line for line in receiver.said) == 1
    assert events(out) == []


def test_log_records_in_protobuf_and_old_events_one_a_message(tmp_path: Path) -> None:
    out, program = tmp_path / "t.jsonl", Program()
    whole = program.chat(5, [("user", "What?")], "That.")
    log = details(whole, **{a["key"]: a["value"].get("stringValue", 7) for a in whole["attributes"]})
    with receiving(out, otlp=True) as receiver:
        assert receiver.post("/v1/logs", logs_protobuf(log), PROTOBUF).status == 200
        body = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "Hi."}}]}}
        other = {"eventName": "gen_ai.user.message", "spanId": "ab" * 8, "attributes": [], "body": body}
        old = {**log, **other}
        assert receiver.post("/v1/logs", logs(old)).status == 200
    assert written(out) == 2


def test_secrets_in_spans_are_replaced_wherever_they_stand(tmp_path: Path) -> None:
    out, program = tmp_path / "t.jsonl", Program()
    agent = program.agent(1, f"agent {SECRET}", gen_ai__conversation__id=f"c-{SECRET}")
    body = [("system", f"key {SECRET}"), ("user", f"my token is {SECRET}")]
    call = program.chat(1, body, f"it is {SECRET}", agent, gen_ai__response__id=f"r-{SECRET}")
    failed = {**program.chat(1, body, "", agent), "status": {"code": 2, "message": f"401 {SECRET}"}}
    with receiving(out, otlp=True) as receiver:
        for span in (call, failed, agent):
            assert receiver.post("/v1/traces", traces(span)).status == 200
    text = out.read_bytes()
    assert SECRET.encode() not in text
    assert b"[redacted github-token" in text
    assert written(out) == 2
    assert receiver.recorder.redacted


def test_a_call_that_failed_says_so(tmp_path: Path) -> None:
    out, program = tmp_path / "t.jsonl", Program()
    call = program.chat(1, [("user", "q")], "a", gen_ai__output__messages=None)
    with receiving(out, otlp=True) as receiver:
        receiver.post("/v1/traces", traces({**call, "status": {"code": 2, "message": "RateLimitError"}}))
    assert data(out, "ctxctl.step.failed")[0]["error"] == "RateLimitError"


def test_a_recording_goes_on_in_the_same_file(tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    for part in (conversation()[:3], conversation()[3:]):
        with receiving(out, otlp=True, events=False) as receiver:
            for span in part:
                receiver.post("/v1/traces", traces(span))
    assert [len(frame["carried"]) for frame in frames(out)] == [3, 5, 7, 9, 11, 13]


def test_a_call_that_cannot_be_made_into_a_step_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ctxctl.record.conversations import Conversations

    real, out, asked = Conversations.ask, tmp_path / "t.jsonl", 0

    def ask(self: Conversations, *rest: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise RuntimeError("a fault")
        return real(self, *rest)

    monkeypatch.setattr(Conversations, "ask", ask)
    with held(out) as (holder, _):
        give(holder, *conversation())
        holder.due(everything=True)
        assert holder._guard._journal.dropped == 1
    assert written(out) == 5
    assert data(out, "ctxctl.record.dropped")[0]["reasons"] == {"RuntimeError in a span": 1}

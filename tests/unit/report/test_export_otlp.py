"""OTLP/JSON: read back by the protocol's own messages, and by ctxctl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ctxctl.report.otlp import _nanoseconds
from tests.unit.report.exports_help import TRACES, exported, steps_of
from tests.unit.testing.sessions_help import events, item, written_trace


def spans(data: bytes) -> list[dict[str, object]]:
    """Return the spans' attributes, after the protocol's own decoder has taken each request."""
    found = []
    for line in data.splitlines():
        request = json.loads(line)
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    assert len(bytes.fromhex(span.pop("traceId"))) == 16
                    assert len(bytes.fromhex(span.pop("spanId"))) == 8
        for resource in ParseDict(request, ExportTraceServiceRequest()).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    assert span.end_time_unix_nano >= span.start_time_unix_nano
                    found.append(
                        {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}
                    )
    return found


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_every_step_is_a_span_with_its_numbers(path: Path) -> None:
    data = exported(path, "otlp")
    steps = steps_of(path)
    found = spans(data)
    assert [one["ctxctl.window.used"] for one in found] == [step.window.used for step in steps]
    assert [one.get("gen_ai.usage.input_tokens") for one in found] == [
        None if step.usage is None else step.usage.reported_input for step in steps
    ]
    assert exported(path, "otlp") == data


def test_ctxctl_reads_the_bills_back(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_bytes(exported(TRACES[0], "otlp"))

    def bills(of: Path) -> list[tuple[object, ...]]:
        return [
            (s.usage.reported_input, s.usage.reported_output, s.model)
            for s in steps_of(of)
            if s.usage is not None
        ]

    assert sorted(bills(path)) == sorted(bills(TRACES[0]))


def test_lone_surrogates_and_huge_numbers_are_no_end(tmp_path: Path) -> None:
    lines = events([item("a", "hello")])
    lines[-1]["step_id"] = "\ud800"
    assert len(spans(exported(written_trace(tmp_path, lines), "otlp"))) == 1


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1970-01-01T00:00:01Z", "1000000000"),
        ("2026-01-01T01:00:00.5+01:00", "1767225600500000000"),
        ("2026-01-01T00:00:00", "1767225600000000000"),
        ("0001-01-01T00:00:00Z", "0"),
        ("yesterday", "0"),
        (None, "0"),
    ],
)
def test_times(time: str | None, expected: str) -> None:
    assert _nanoseconds(time) == expected


@pytest.mark.parametrize("kind", ["otlp", "envelopes"])
def test_what_would_turn_a_terminal_around_is_escaped(kind: str, tmp_path: Path) -> None:
    lines = [
        {**event, "session_id": "s\u202e-1", "turn_id": "t\u202e"}
        for event in events([item("doc", "x")], "t1")
    ]
    data = exported(written_trace(tmp_path, lines), kind)
    assert "\u202e" not in data.decode()
    assert "\u202e" in json.dumps([json.loads(line) for line in data.splitlines()], ensure_ascii=False)

"""Published suites and captures, where they are at hand (CTXCTL_CORPUS)."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

from ctxctl.errors import UnreadableError
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source, open_source
from ctxctl.trace.validate import validate_event
from ctxctl.trace.writer import TraceWriter

GOOD = b'{"schema_version":"0.1.1","event_id":"%s","event_type":"context.item.added","data":{"item_id":"a"}}'


def as_content(document: bytes) -> bytes:
    line = (GOOD % b"x").replace(b'"a"}', b'"b","content":')
    return line[:-1] + document.replace(b"\n", b" ") + b"}}"


def test_json_test_suite_as_lines_and_as_contents(corpus: Path) -> None:
    """y: accepted without a problem; n, i: never an exception, and the neighbours are read."""
    files = sorted((corpus / "suites" / "JSONTestSuite" / "test_parsing").iterdir())
    assert len(files) > 300
    wrong = []
    for path in files:
        document = path.read_bytes()
        for line in (document.replace(b"\n", b" "), as_content(document)):
            trace = Trace(Source.from_bytes("memory", GOOD % b"1" + b"\n" + line + b"\n" + GOOD % b"2"))
            ids = [event.event_id for event in trace.events()]
            if ids[:1] != ["1"] or ids[-1:] != ["2"]:
                wrong.append((path.name, ids))
            slugs = {problem.slug for problem in trace.problems}
            if path.name.startswith("y_") and line is not document and "x" in ids and slugs:
                wrong.append((path.name, slugs))
            if path.name.startswith("y_") and slugs & {"bad-json"}:
                wrong.append((path.name, slugs))
        with contextlib.suppress(UnreadableError):
            list(Trace(Source.from_bytes("memory", document)).events())
    assert wrong == []


def test_naughty_strings_come_back_as_they_are(corpus: Path) -> None:
    path = corpus / "suites" / "big-list-of-naughty-strings" / "blns.json"
    strings: list[str] = json.loads(path.read_bytes())
    file = io.BytesIO()
    with TraceWriter(file) as writer:
        for number, string in enumerate(strings):
            data = {"item_id": f"i{number}", "content": string, "title": string}
            writer.write({"event_type": "context.item.added", "time": "2026-01-01T00:00:00Z", "data": data})
    trace = Trace(Source.from_bytes("memory", file.getvalue()))
    records: list[Any] = [event.record for event in trace.events()]
    assert trace.problems == []
    assert [record.title for record in records] == strings
    assert [trace.contents.text(record.content) for record in records] == strings


def test_mapped_events_decode_and_round_trip(corpus: Path) -> None:
    count = 0
    for path in sorted((corpus / "samples" / "mapped-context-events").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        trace = Trace(open_source(path))
        events = list(trace.events())
        assert trace.problems == []
        assert len(events) == len(lines)
        assert all(event.record is not None for event in events)
        file = io.BytesIO()
        with TraceWriter(file) as writer:
            for line in lines:
                assert validate_event(line) == []
                assert writer.write(line)
        again = Trace(Source.from_bytes("memory", file.getvalue()))
        for line, written in zip(lines, file.getvalue().splitlines(), strict=True):
            back = json.loads(written)
            assert validate_event(back) == []
            if "content_ref" not in back.get("data", {}):
                assert {**back, "data": {**back["data"], **line["data"]}} == {
                    **line,
                    "data": back["data"] | line["data"],
                }
        for one, other in zip(events, again.events(), strict=True):
            assert type(one.record) is type(other.record)
            assert getattr(one.record, "content_digest", 0) == getattr(other.record, "content_digest", 0)
            for name in one.__struct_fields__:
                if name not in ("record", "offset", "length"):
                    assert getattr(one, name) == getattr(other, name)
        assert again.problems == []
        count += len(lines)
    assert count == 107


def test_published_examples_are_read_and_what_they_lack_is_said(corpus: Path) -> None:
    for path in (corpus / "samples" / "agentcontext").glob("example-*.json"):
        record = json.loads(path.read_bytes())
        line = {"event_id": "1", "event_type": "context.exported", "data": record}
        trace = Trace(Source.from_bytes("memory", json.dumps(line).encode()))
        assert len(list(trace.events())) == 1
        assert [problem.slug for problem in trace.problems] == ["no-schema-version"]

"""The writer: valid lines, contents once, files kept safe."""

from __future__ import annotations

import io
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from ctxctl.errors import CtxctlError, UnreadableError
from ctxctl.model import vocab
from ctxctl.model.problem import Problem
from ctxctl.model.records import Item
from ctxctl.trace import writer as module
from ctxctl.trace.reader import Trace
from ctxctl.trace.source import Source, open_source
from ctxctl.trace.validate import RECORD_SCHEMAS, validate_event
from ctxctl.trace.writer import TraceWriter

SCHEMAS = Path(module.__file__).parent / "schemas"
TIME = "2026-01-01T00:00:00Z"
LONG = "a text that is longer than sixty-four bytes, so that it is written only once"


def item(name: str, content: Any = LONG, **data: Any) -> dict[str, Any]:
    return {
        "event_type": vocab.ITEM_ADDED,
        "time": TIME,
        "data": {"item_id": name, "content": content, **data},
    }


def written(*events: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    file = io.BytesIO()
    with TraceWriter(file, **options) as writer:
        for event in events:
            writer.write(event)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def schema_errors(event: dict[str, Any]) -> list[str]:
    """The verdict of the reference implementation of JSON Schema."""

    def errors(name: str, value: Any) -> list[str]:
        schema = json.loads((SCHEMAS / f"agentcontext-{name}.schema.json").read_bytes())
        return [error.message for error in Draft202012Validator(schema).iter_errors(value)]

    name = RECORD_SCHEMAS.get(event["event_type"])
    return errors("event", event) + (errors(name, event["data"]) if name else [])


MINIMAL = {
    vocab.SURFACE_CREATED: {"surface_id": "s", "scope": "turn"},
    vocab.ITEM_UPDATED: {"item_id": "a"},
    vocab.ITEM_REMOVED: {"item_id": "a", "metadata": {"cause": "expired"}},
    vocab.SELECTION_COMPLETED: {"selection_id": "s", "surface_id": "s"},
    vocab.BUDGET_APPLIED: {"budget_id": "b", "target": "model"},
    vocab.ASSEMBLY_CREATED: {"assembly_id": "a", "target": "model", "ordered_blocks": []},
    vocab.INJECTION_APPLIED: {"injection_id": "i"},
    vocab.COMPACTION_COMPLETED: {
        "compaction_id": "c",
        "scope": "turn",
        "source_item_refs": [],
        "method": "custom",
    },
    vocab.SUMMARY_CREATED: {"summary_id": "s", "content": LONG},
    vocab.MISSING_DETECTED: {
        "missing_id": "m",
        "scope": "turn",
        "question": "?",
        "severity": "info",
        "status": "open",
    },
    vocab.REDACTION_APPLIED: {"item_id": "a"},
    vocab.EXPORTED: {"context_id": "c", "scope": "turn", "lifecycle": "archived"},
    vocab.USAGE_REPORTED: {"input_tokens": 3},
}


@pytest.mark.parametrize("event_type", MINIMAL)
def test_every_record_is_completed_until_it_validates(event_type: str) -> None:
    (event,) = written({"event_type": event_type, "data": MINIMAL[event_type]}, clock=lambda: TIME)
    assert schema_errors(event) == []
    assert validate_event(event) == []
    assert list(event)[-1] == "data"
    assert {"schema_version", "event_id", "source", "time"} <= set(event)


def test_unknown_fields_and_native_ids_are_kept_and_the_argument_is_left_alone() -> None:
    event = {**item("a"), "native": {"x": [1, None]}, "session_id": "s", "metadata": {"k": 1}}
    event["data"]["odd"] = {"y": 2}
    before = json.dumps(event)
    (first,) = written(event)
    assert json.dumps(event) == before
    assert (first["native"], first["data"]["odd"], first["metadata"]) == (
        {"x": [1, None]},
        {"y": 2},
        {"k": 1},
    )


def test_contents_are_inline_once() -> None:
    first, second, third = written(item("a"), item("b"), item("c", "short"))
    assert first["data"]["content"] == LONG
    assert "content" not in second["data"]
    assert second["data"]["content_ref"].startswith("sha256:")
    assert second["data"]["content_mode"] == "ref"
    assert third["data"]["content"] == "short"


def test_structured_contents_blocks_and_summaries_too() -> None:
    tree = {"b": [1, 2.5, {"z": LONG}], "a": 18446744073709551615}
    assembly = {
        "event_type": vocab.ASSEMBLY_CREATED,
        "time": TIME,
        "data": {
            "assembly_id": "a",
            "target": "model",
            "ordered_blocks": [{"content": LONG}, {"content": LONG}],
        },
    }
    summary = {
        "event_type": vocab.SUMMARY_CREATED,
        "time": TIME,
        "data": {"summary_id": "s", "content": LONG},
    }
    events = written(item("a", tree), item("b", dict(reversed(tree.items()))), assembly, summary)
    assert events[1]["data"]["content_ref"].startswith("sha256:")
    blocks = events[2]["data"]["ordered_blocks"]
    assert [("content" in block) for block in blocks] == [True, True]
    assert "content_ref" in events[3]["data"]


@pytest.mark.parametrize("content", ["x" * 64, ["x" * 60], {"k": "x" * 56}])
def test_contents_of_sixty_four_bytes_are_referred_to_and_shorter_ones_are_not(content: Any) -> None:
    whole = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
    assert len(whole) == 64
    shorter = json.loads(json.dumps(content).replace("x", "", 1))
    events = written(item("a", content), item("b", content), item("c", shorter), item("d", shorter))
    assert ["content" in event["data"] for event in events] == [True, False, True, True]


def test_contents_read_back() -> None:
    file = io.BytesIO()
    contents = [LONG, LONG, {"k": [LONG]}, {"k": [LONG]}, "half \ud83d of a pair" * 9, "x"]
    with TraceWriter(file) as writer:
        for number, content in enumerate(contents):
            writer.write(item(f"i{number}", content))
    trace = Trace(Source.from_bytes("memory", file.getvalue()))
    records = [event.record for event in trace.events()]
    assert trace.problems == []
    texts = []
    for record in records:
        assert isinstance(record, Item)
        assert record.content is not None
        texts.append(trace.contents.text(record.content))
    assert texts[:2] == [LONG, LONG]
    assert texts[2] == texts[3] == json.dumps({"k": [LONG]}, separators=(",", ":"))
    assert texts[4:] == ["half \ufffd of a pair" * 9, "x"]


def test_contents_are_inlined_anew_after_a_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TELL_AGAIN", 2000)
    events = written(*[item(f"i{number}") for number in range(30)])
    inline = [number for number, event in enumerate(events) if "content" in event["data"]]
    assert 1 < len(inline) < 10


def test_an_importer_writes_the_same_bytes_each_time_and_a_recorder_never_the_same_ids(
    tmp_path: Path,
) -> None:
    assert written(item("a"), item("b")) == written(item("a"), item("b"))
    ids = set()
    for _ in range(2):
        with TraceWriter(tmp_path / "t.jsonl") as writer:
            writer.write(item("a"))
    with open_source(tmp_path / "t.jsonl") as source:
        ids = {event.event_id for event in Trace(source).events()}
    assert len(ids) == 2


@pytest.mark.parametrize(
    "event",
    [
        {"event_type": "x"},
        {"time": TIME},
        {"event_type": vocab.ITEM_ADDED, "time": TIME, "data": {"content": "no id"}},
        {"event_type": vocab.ITEM_ADDED, "time": TIME, "data": []},
        {"event_type": vocab.ITEM_ADDED, "time": TIME},
        {
            "event_type": vocab.BUDGET_APPLIED,
            "time": TIME,
            "data": {"budget_id": "b", "target": "m", "max_tokens": -1},
        },
        {"event_type": "x", "time": "yesterday"},
        {"event_type": "x", "time": TIME, "extra": object()},
        {"event_type": "x", "time": TIME, "extra": {1: b"bytes"}},
    ],
)
def test_what_cannot_be_written_is_refused_and_the_file_stays_valid(event: dict[str, Any]) -> None:
    with pytest.raises(CtxctlError) as caught:
        written(event)
    assert caught.value.slug == "invalid-event"
    problems: list[Problem] = []
    assert len(written(event, item("a"), report=problems.append)) == 1
    assert [problem.slug for problem in problems] == ["invalid-event"]


def test_odd_values_are_written_as_json_can_hold_them() -> None:
    deep: Any = "end"
    for _ in range(150):
        deep = [deep]
    (event,) = written({**item("a"), "big": 1 << 70, "nan": float("nan"), "deep": deep, 5: "five"})
    assert (event["big"], event["nan"], event["deep"], event["5"]) == (1 << 70, None, deep, "five")
    for _ in range(400):
        deep = [deep]
    with pytest.raises(CtxctlError):
        written({**item("a"), "deep": deep})


def test_files_are_private_and_never_behind_a_symlink(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    mask = os.umask(0)
    try:
        TraceWriter(path).close()
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(UnreadableError) as caught:
        TraceWriter(link)
    assert caught.value.slug == "not-writable"
    with pytest.raises(UnreadableError):
        TraceWriter(tmp_path)


def test_a_torn_tail_is_closed_before_the_next_record(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as writer:
        writer.write(item("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:50])
    with TraceWriter(path) as writer:
        writer.write(item("b"))
    with open_source(path) as source:
        trace = Trace(source)
        assert [event.line for event in trace.events()] == [1, 3]
        assert [problem.line for problem in trace.problems] == [2]


def test_several_threads_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with TraceWriter(path) as writer:
        threads = [
            threading.Thread(target=lambda: [writer.write(item("a", "x" * 5000)) for _ in range(50)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with open_source(path) as source:
        trace = Trace(source)
        assert len(list(trace.events())) == 200
        assert trace.problems == []


def test_a_full_disk_is_an_error_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TraceWriter(tmp_path / "t.jsonl")

    def full(_fd: int, _data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "write", full)
    with pytest.raises(CtxctlError) as caught:
        writer.write(item("a"))
    assert caught.value.slug == "write-failed"


def test_schemas_are_those_of_the_standard(corpus: Path) -> None:
    published = corpus / "samples" / "agentcontext" / "schemas"
    for path in published.iterdir():
        assert (SCHEMAS / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        ({"ctxctl": {"source_line": 7}}, 7), ({"ctxctl": {"source_line": "7"}}, 0), ({"ctxctl": {}}, 0),
        ({"ctxctl": 7}, 0), ({}, 0), (None, 0),
    ],
)  # fmt: skip
def test_a_refused_event_is_told_with_the_line_that_it_was_made_of(metadata: Any, line: int) -> None:
    problems: list[Problem] = []
    assert written({"data": {}, "metadata": metadata}, report=problems.append) == []
    assert [(problem.line, problem.byte, problem.slug) for problem in problems] == [
        (line, 0, "invalid-event")
    ]

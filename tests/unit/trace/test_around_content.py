"""Lines with large structured contents are passed on without being parsed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from ctxctl.cli.main import run
from ctxctl.trace import around_content
from ctxctl.trace.around_content import parsed_around_content

LINE = b'{"event_id":"e","data":{"item_id":"i","content": [1, {"b":"x"}] ,"title":"t"},"n":9007199254740993}'


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(around_content, "PARSE_BYTES", 10)


@pytest.mark.usefixtures("small")
def test_everything_but_the_content_is_parsed() -> None:
    found = parsed_around_content(LINE)
    assert found is not None
    content = found["data"]["content"]
    assert isinstance(content, orjson.Fragment)
    assert orjson.dumps(content) == b'[1, {"b":"x"}]'
    assert [*found] == ["event_id", "data", "n"]
    assert [*found["data"]] == ["item_id", "content", "title"]
    assert found["n"] == 9007199254740993


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "line",
    [
        LINE[:-3],
        LINE.replace(b"[1,", b"[1"),
        LINE.replace(b'"x"', b'"\\ud800"'),
        LINE.replace(b'[1, {"b":"x"}]', b'"a text of the same length"'),
        LINE.replace(b'[1, {"b":"x"}]', b"[1]"),
        LINE.replace(b'"content"', b'"contents"'),
        b'{"data": [1, 2, 3], "event_id": "e"}',
        b"[" * 100_000,
        b'{"data":{"content":' + b"[" * 100_000,
    ],
)
def test_damaged_lines_and_small_contents_are_left_to_others(line: bytes) -> None:
    assert parsed_around_content(line) is None


def test_what_is_not_large_is_parsed_by_others() -> None:
    assert parsed_around_content(LINE) is None


def _traced(path: Path) -> Path:
    event = {
        "schema_version": "0.1.1", "event_type": "context.item.added", "source": "s",
        "time": "2026-03-04T16:02:16Z", "session_id": "s", "turn_id": "t",
    }  # fmt: skip
    item: dict[str, Any] = {
        "schema_version": "0.1.1",
        "context_kind": "user_message",
        "content_mode": "inline",
    }
    contents: list[Any] = [[{"type": "text", "text": "x" * n}] for n in (2, 50, 3000)] * 2 + [
        {"a": [1, 2.5, None, "é"]}
    ]
    rows = []
    for n, content in enumerate(contents):
        data = {**item, "item_id": f"i{n}", "visibility": ["model"], "content": content}
        rows.append({**event, "event_id": f"e{n}", "data": data})
    rows.append({
        **event, "event_id": "last",
        "data": {**item, "item_id": "evidence", "visibility": ["evidence_export"], "content": contents[1]},
    })  # fmt: skip
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def _exported(trace: Path, strict: list[str]) -> bytes:
    out = trace.with_suffix(".out")
    assert run(["export", str(trace), "--format", "events", *strict, "-o", str(out), "--force"]) == 0
    return out.read_bytes()


@pytest.mark.parametrize("strict", [[], ["--strict"]], ids=["native", "strict"])
def test_an_export_is_the_same_to_the_byte(
    strict: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = _traced(tmp_path / "trace.jsonl")
    parsed = [json.loads(line) for line in _exported(trace, strict).splitlines()]
    monkeypatch.setattr(around_content, "PARSE_BYTES", 10)
    passed_on = [json.loads(line) for line in _exported(trace, strict).splitlines()]
    assert passed_on == parsed
    assert len(parsed) == 8


def test_what_was_redacted_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = _traced(tmp_path / "trace.jsonl")
    redaction = json.loads(trace.read_text().splitlines()[0]) | {
        "event_id": "r", "event_type": "context.redaction.applied",
        "data": {
            "schema_version": "0.1.1", "item_id": "i1",
            "redaction_state": "removed", "redaction_method": "m",
        },
    }  # fmt: skip
    with trace.open("a") as file:
        file.write(json.dumps(redaction) + "\n")
    monkeypatch.setattr(around_content, "PARSE_BYTES", 10)
    assert b'"' + b"x" * 50 + b'"' not in _exported(trace, [])


def test_validate_looks_around_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(around_content, "PARSE_BYTES", 10)
    trace = _traced(tmp_path / "trace.jsonl")
    assert run(["validate", str(trace)]) == 0
    trace.write_text(trace.read_text().replace('"visibility": ["model"]', '"visibility": "model"', 1))
    assert run(["validate", str(trace)]) == 1
    assert "visibility" in capsys.readouterr().out

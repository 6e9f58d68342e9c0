"""Detection looks past values that are longer than what it reads at first."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from ctxctl.importers import registry
from ctxctl.importers.registry import detect_folder
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.outline import outline
from ctxctl.trace.source import Source

TOOLS = [
    {"name": f"tool_{n}", "description": "long " * 300,
     "input_schema": {"type": "object", "properties": {f"p{m}": {"type": "string"} for m in range(20)}}}
    for n in range(80)
]  # fmt: skip
BODY = {
    "tools": TOOLS,
    "system": "s" * 90_000,
    "model": "claude-x",
    "max_tokens": 5,
    "messages": [{"role": "user", "content": "hi"}],
}
TEXT = json.dumps(BODY)


def name_of(data: bytes) -> str | None:
    found = registry.detect(Source.from_bytes("capture", data))
    return found.name if found is not None else None


@pytest.mark.parametrize(
    "value",
    [
        BODY,
        [BODY, BODY],
        {"request": BODY, "response": None},
        {"url": "https://api.anthropic.com/v1/messages", "method": "POST", "body": BODY},
        {"custom_id": "a", "params": BODY},
        {"requests": [{"custom_id": "a", "params": BODY}]},
        {"request": TEXT},
        {"request": {"body": TEXT}},
        [{"request": BODY}],
    ],
)
def test_messages_may_come_behind_long_tools(tmp_path: Path, value: Any) -> None:
    for data in (json.dumps(value).encode(), json.dumps(value, indent=1).encode()):
        assert len(data) > 2 * registry.HEAD
        assert name_of(data) == "api"
        (tmp_path / "capture.json").write_bytes(data)
        assert registry.of_file(tmp_path / "capture.json", data[: registry.HEAD]).name == "api"  # type: ignore[union-attr]
    found = detect_folder(Folder("x", tmp_path))
    assert not isinstance(found, str)
    assert found.name == "api"


def test_every_line_of_a_log_of_long_requests_is_read() -> None:
    line = json.dumps({"timestamp": "2026-03-01T10:00:00Z", "path": "/v1/messages", "body": BODY})
    data = f"{line}\n".encode() * 3
    assert name_of(data) == "api"
    source = Source.from_bytes("capture", data)
    found = list(registry.capture_events(registry.by_name("api"), source, lambda _: None))
    assert sum(e["event_type"] == "context.injection.applied" for e in found) == 3


def test_tools_alone_stay_tools() -> None:
    dump = [{**tool, "inputSchema": tool["input_schema"]} for tool in TOOLS]
    for value in ({"tools": dump}, dump):
        assert name_of(json.dumps(value).encode()) == "mcp-tools"


def test_an_outline_is_short_whatever_the_document() -> None:
    wide = {f"key {n}": [{"a": {"b": ["x" * 100] * 6}}] * 6 for n in range(5000)}  # longer than is ever read
    deep: Any = "end"
    for _ in range(200):
        deep = {"a": [deep]}
    text = json.dumps({"messages": [{"role": "user"}] * 1000})
    nested = json.dumps({"a": json.dumps({"b": json.dumps({"c": text})})})
    for value in (wide, deep, text, nested, ["x" * 5000] * 100, base64.b64encode(b"x" * 100_000).decode()):
        made = outline(json.dumps([value]).encode())
        assert len(made) < registry.HEAD
        json.loads(made)
    for data in (
        b"",
        b"[",
        b"{",
        b"[[[",
        b"\xef\xbb\xbf",
        b"text",
        b"[1,",
        b'{"a":1}\n{"b":',
        b"[" * 100_000,
    ):
        outline(data)


def test_an_outline_looks_at_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []

    def loads(text: bytes) -> Any:
        parsed.append(len(text))
        return orjson.loads(text)

    counting = SimpleNamespace(loads=loads, dumps=orjson.dumps, JSONDecodeError=orjson.JSONDecodeError)
    monkeypatch.setattr("ctxctl.ingest.outline.orjson", counting)
    line = json.dumps({"role": "x", "text": "y" * 1000}).encode() + b"\n"
    outline(line * 100_000)
    assert len(parsed) < 30
    assert sorted(parsed)[-2] < 2 * len(line)  # the whole was tried once


def test_the_first_entry_of_a_list_that_goes_on_is_told() -> None:
    data = json.dumps([{"a": 1}, {"b": [1, 2]}]).encode()[:-3]
    assert json.loads(outline(data)) == [{"a": 1}]


@pytest.mark.parametrize(
    ("entry", "shown"), [(rb'"x \ud800 y"', "x ? y"), (b"12345678901234567890123", 1.2345678901234568e22)]
)
def test_an_entry_that_only_pythons_own_parser_takes_is_outlined(entry: bytes, shown: object) -> None:
    made = outline(b'[{"content": ' + entry + b'}, {"role": "assis')
    assert orjson.loads(made) == [{"content": shown}]

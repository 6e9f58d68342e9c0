"""`show --text`, `blame` and `diff` show what was sent; with `--canonical` JSON in its canonical form."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ctxctl.cli.app import app

Json = dict[str, Any]
SENT = 'read {"path": "a.txt", "all": true}'
OTHER = 'read {"all":true, "path":"a.txt"}'
CANONICAL = 'read {"all":true,"path":"a.txt"}'
SCHEMA = '{"type":"function","function":{"name":"read","parameters":{"type":"object","properties":{}}}}'
SORTED = '{"function":{"name":"read","parameters":{"properties":{},"type":"object"}},"type":"function"}'


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Two requests: the second has the same call with its arguments in another order."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": SENT[5:]}}
    body: Json = {
        "model": "gpt-5.6",
        "tools": [json.loads(SCHEMA)],
        "messages": [
            {"role": "user", "content": "What does it say?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
        ],
    }
    other = copy.deepcopy(body)
    other["messages"][1]["tool_calls"][0]["function"]["arguments"] = OTHER[5:]
    message = {"role": "assistant", "content": "Nothing."}
    answer = {"object": "chat.completion", "model": "gpt-5.6", "choices": [{"message": message}]}
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps({"request": b, "response": answer}) + "\n" for b in (body, other)))
    return path


def said(*command: str) -> str:
    done = CliRunner().invoke(app, list(command))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_show(pairs: Path) -> None:
    first = said("show", f"{pairs}@1.1", "--text", "--stage", "assembly")
    assert SENT in first
    assert SCHEMA in first
    assert OTHER in said("show", f"{pairs}@1.2", "--text", "--stage", "assembly")
    for step in ("1.1", "1.2"):
        plain = said("show", f"{pairs}@{step}", "--text", "--stage", "assembly", "--canonical")
        assert CANONICAL in plain
        assert SORTED in plain


def test_blame(pairs: Path) -> None:
    assert OTHER in said("blame", f"{pairs}@1.2", "--item", "c1")
    assert CANONICAL in said("blame", f"{pairs}@1.2", "--item", "c1", "--canonical")


def test_diff(pairs: Path) -> None:
    shown = said("diff", f"{pairs}@1.1", "@1.2")
    assert f"-{SENT}" in shown
    assert f"+{OTHER}" in shown
    assert "key order" in shown
    plain = said("diff", f"{pairs}@1.1", "@1.2", "--canonical")
    assert "same text, not the same: key order" in plain
    assert SENT not in plain


def test_the_prefix_is_told_with_what_broke_it(pairs: Path) -> None:
    shown = " ".join(said("show", f"{pairs}@1.2").split())
    assert "by read: a.txt (updated, key order)" in shown
    assert "compared by content" not in shown
    (line,) = [json.loads(one) for one in said("show", f"{pairs}@1.2", "--json").splitlines()][1:2]
    cache = line["step"]["cache"]
    assert (cache["compared"], cache["broken_by"]["change"]) == ("wire", "key order")


def test_a_text_that_is_no_versions_canonical_form_stays_as_it_is(tmp_path: Path) -> None:
    trace = tmp_path / "run.jsonl"
    head = {"schema_version": "0.1.1", "source": "test", "time": "2026-01-02T03:04:05Z", "session_id": "s"}
    item = {"schema_version": "0.1.1", "item_id": "A", "context_kind": "tool_result",
            "content_mode": "inline", "visibility": ["model"], "content": '{"b": 1, "a": 2}'}  # fmt: skip
    event = {**head, "event_id": "e", "event_type": "context.item.added", "step_id": "x", "data": item}
    trace.write_text(json.dumps(event) + "\n")
    for option in ([], ["--canonical"]):
        assert '{"b": 1, "a": 2}' in said("show", str(trace), "--text", "--stage", "assembly", *option)

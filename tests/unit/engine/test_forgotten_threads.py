"""A capture of many conversations: the least recently used are forgotten, and no step changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.cli.main import run
from ctxctl.providers.dialects import threads as wire_threads
from ctxctl.session import Inspector


def asked(number: int, texts: list[str]) -> bytes:
    """A recorded call of the Anthropic API, in a conversation of its own."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    answer = {
        "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": f"Answer {number}."}],
        "usage": {"input_tokens": 20 + 10 * len(texts), "output_tokens": 5},
    }  # fmt: skip
    request = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}
    return json.dumps({"request": request, "response": answer}).encode()


def sizes(path: Path) -> list[tuple[int, int, int, tuple[str, ...]]]:
    """Each step's recorded and sent size, and its window, in the order of the capture."""
    with Inspector.open(str(path)) as inspector:
        return [
            (n, at.step.window.recorded, at.step.window.used, tuple(p.item for p in at.placements))
            for n, at in enumerate(inspector.steps())
        ]


def test_what_is_forgotten_of_old_conversations_changes_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    for number in range(60):
        first = [f"Question number {number}, about apples."]
        rows += [asked(number, first), asked(number, [*first, f"Answer {number}.", "And pears?"])]
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b"\n".join(rows) + b"\n")
    whole = sizes(path)
    assert len(whole) == 120
    monkeypatch.setattr(wire_threads, "_THREADS", 8)
    monkeypatch.setattr(wire_threads, "_RECENT", 4)
    other = tmp_path / "again.jsonl"
    other.write_bytes(path.read_bytes())
    assert sizes(other) == whole
    trace = tmp_path / "trace.jsonl"
    assert run(["import", str(other), "-o", str(trace)]) == 0
    assert trace.read_bytes().count(b'"final":true') > 40
    assert sizes(trace) == whole

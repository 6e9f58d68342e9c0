"""A foreign capture that is cut back to what it was before: what was read on of it counts no longer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxctl.session.live import LiveSession


def requests(count: int) -> list[bytes]:
    messages: list[dict[str, str]] = []
    lines = []
    for n in range(count):
        messages.append({"role": "user", "content": f"question {n}"})
        lines.append(json.dumps({"model": "gpt-4o", "messages": messages}).encode() + b"\n")
        messages.append({"role": "assistant", "content": f"answer {n}"})
    return lines


@pytest.mark.parametrize("left", [1, 2, 4])
def test_a_capture_that_loses_its_end_is_followed_to_where_it_ends(tmp_path: Path, left: int) -> None:
    path = tmp_path / "requests.jsonl"
    lines = requests(5)
    path.write_bytes(b"".join(lines))
    with LiveSession(path) as live:
        wait_for(live, 5)
        path.write_bytes(b"".join(lines[:left]))
        wait_for(live, left)
        path.write_bytes(b"".join(lines))
        wait_for(live, 5)
        path.write_bytes(b"".join(lines[:left]))
        wait_for(live, left)
        assert live.finish().state == "over"


def wait_for(live: LiveSession, steps: int) -> None:
    for _ in range(100):
        news = live.poll(0.1)
        if news.state == "following" and len(news.rows) == steps:
            return
    raise AssertionError(f"{len(news.rows)} steps, {news.state}; {steps} expected")

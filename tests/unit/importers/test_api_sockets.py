"""Bodies that went over a WebSocket: frames without the words of an event stream."""

from __future__ import annotations

import json
from pathlib import Path

from ctxctl.model.results import Step
from ctxctl.session import Inspector


def test_an_answer_that_came_over_a_socket_has_an_event_a_line(tmp_path: Path) -> None:
    """Frames have no `data:` in front: they are one answer, and the next request goes on from it."""
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "uno"}]}
    told = {
        "id": "r1",
        "object": "response",
        "output": [said],
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    events = [
        {"type": "response.created", "response": {**told, "output": [], "usage": None}},
        {"type": "response.output_item.done", "output_index": 0, "item": said},
        {"type": "response.completed", "response": told},
    ]
    asked = {"model": "gpt-5", "stream": True, "input": [{"role": "user", "content": "one"}]}
    (tmp_path / "1.request.json").write_text(json.dumps(asked))
    (tmp_path / "1.response.txt").write_text("".join(json.dumps(event) + "\n" for event in events))
    (tmp_path / "2.request.json").write_text(json.dumps({**asked, "previous_response_id": "r1"}))
    with Inspector.open(str(tmp_path)) as inspector:
        first, second = (step for step in inspector.replay() if isinstance(step, Step))
        assert inspector.problems == []
    assert first.usage is not None
    assert first.usage.reported_input == 9
    assert (second.counts.added, second.counts.skipped) == (2, 1)

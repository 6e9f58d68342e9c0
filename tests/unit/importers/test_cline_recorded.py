"""A session of Cline's command line 3.0.65 beside what it sent."""

from __future__ import annotations

import json

from tests.unit.importers.agent_help import FIXTURES, Json, imported, items, windows
from tests.unit.importers.recorded_help import recorded

NAME = "cline"
SESSION = FIXTURES / "cline" / "typed.messages.json"
_RULES = "\n\n# Rules\n## rules\nHouse rule: bees first."


def sent(messages: list[Json]) -> list[str]:
    found = []
    for message in messages:
        if message.get("reasoning_content"):
            found.append(str(message["reasoning_content"]))
        found.append(str(message["content"]))
        for call in message.get("tool_calls") or []:
            found.append(call["function"]["name"])
    return found


def test_frames_are_what_was_sent_but_for_the_rules_behind_the_prompt() -> None:
    wire = recorded("cline.json")["wire"]
    assert len(wire) == 3
    for window, body in zip(windows(SESSION, NAME), wire, strict=True):
        said = sent(body["messages"])
        frame = [
            str(text).split()[0] if kind == "tool_call" else _result(str(text)) for kind, text in window.items
        ]
        assert said[0] == frame[0] + _RULES
        assert said[1:] == frame[1:]


def _result(text: str) -> str:
    """A result as the session keeps it, in the JSON that is sent."""
    try:
        return json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)
    except json.JSONDecodeError:
        return text


def test_what_was_typed_is_sent_without_its_mode() -> None:
    assert ("user_message", "Read the notes") in windows(SESSION, NAME)[0].items
    events, problems = imported(NAME, SESSION.read_bytes())
    assert not problems
    typed = next(one for one in items(events).values() if one["context_kind"] == "user_message")
    assert typed["metadata"]["native"]["mode"] == "act"
    assert typed["metadata"]["ctxctl"]["derived"] is True

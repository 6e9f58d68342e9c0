"""A chat of Gemini CLI 0.61.0, taken up again twice, beside what it sent."""

from __future__ import annotations

import json

from tests.unit.importers.agent_help import FIXTURES, Json, windows
from tests.unit.importers.recorded_help import Sent, held, recorded

NAME = "gemini-cli"
CHAT = FIXTURES / "gemini_cli" / "resumed.jsonl"


def sent(contents: list[Json]) -> list[Sent]:
    return [_piece(content["role"], part) for content in contents for part in content["parts"]]


def _piece(role: str, part: Json) -> Sent:
    if "functionCall" in part:
        call = part["functionCall"]
        return "call", f"{call['name']} {json.dumps(call['args'], sort_keys=True)}"
    if "functionResponse" in part:
        response = part["functionResponse"]["response"]
        return "result", response.get("output", response.get("error"))
    return "assistant" if role == "model" else "user", part["text"]


def test_frames_are_what_was_sent_in_order() -> None:
    wire = recorded("gemini_cli.json")["wire"]
    assert len(wire) == 7
    for window, body in zip(windows(CHAT, NAME), wire, strict=True):
        assert held(window) == sent(body["contents"])


def test_results_are_sent_twice_once_a_chat_was_taken_up_again() -> None:
    found = windows(CHAT, NAME)
    counts = [window.kinds().count("tool_result") for window in found]
    assert counts == [0, 2, 4, 8, 9, 10, 11]
    assert len({placed for placed in found[3].items if placed[0] == "tool_result"}) == 4


def test_bills_are_those_of_the_requests() -> None:
    wire = recorded("gemini_cli.json")["wire"]
    billed = [window.billed() for window in windows(CHAT, NAME)]
    assert billed == [one["usage"]["promptTokenCount"] for one in wire]

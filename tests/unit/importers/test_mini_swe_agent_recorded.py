"""A run of mini-swe-agent 2.4.6 beside what it sent: two answers that it could not use."""

from __future__ import annotations

import json

from tests.unit.importers.agent_help import FIXTURES, Json, Window, windows
from tests.unit.importers.recorded_help import Sent, held, recorded

NAME = "mini-swe-agent"
RUN = FIXTURES / "mini_swe_agent" / "refused.traj.json"


def sent(messages: list[Json]) -> list[Sent]:
    return [one for message in messages if message["role"] != "system" for one in _pieces(message)]


def _pieces(message: Json) -> list[Sent]:
    role = "result" if message["role"] == "tool" else message["role"]
    found = [(role, message["content"])]
    for call in message.get("tool_calls") or []:
        arguments = json.loads(call["function"]["arguments"])
        found.append(("call", f"{call['function']['name']} {json.dumps(arguments, sort_keys=True)}"))
    return found


def frames() -> list[tuple[Window, Json]]:
    return list(zip(windows(RUN, NAME), recorded("mini_swe_agent.json")["wire"], strict=True))


def test_frames_are_what_was_sent_in_order() -> None:
    assert len(frames()) == 4
    for window, body in frames():
        assert held(window) == sent(body["messages"])


def test_an_answer_that_could_not_be_used_was_billed_and_is_not_sent() -> None:
    billed = [(window.billed(), body["usage"]["prompt_tokens"]) for window, body in frames()]
    assert [one for one, _ in billed] == [other for _, other in billed]
    last = frames()[-1][0]
    assert "No call here." not in last.texts()
    assert last.kinds().count("policy_note") == 2
    assert {window.turn for window, _ in frames()} == {frames()[0][0].turn}

"""SWE-agent's model interactions of the start of November 2025: parameters and outputs in the line itself."""

from __future__ import annotations

from tests.unit.importers.trajectories import FIXTURES, detected, read

FIRST = FIXTURES / "swe_agent_calls" / "first_shape.jsonl"


def test_each_line_is_known() -> None:
    for line in FIRST.read_bytes().splitlines():
        assert detected(line) == "swe-agent-calls"
    assert detected({"type": "request", "model": "m", "messages": []}) != "swe-agent-calls"


def test_requests_and_answers() -> None:
    found = read(FIRST)
    assert found.kinds(0) == ["system_prompt", "user_message"]
    for again in (1, 2):
        assert found.kinds(again)[2:] == ["assistant_message", "tool_call", "tool_result"]
    texts = [record.get("content") for record in found.items().values()]
    assert "At 06:12." in texts
    assert [request.model for request in found.requests()] == ["gpt-4.1-mini"] * 3


def test_the_counts_and_the_cost_of_an_answer_are_its_bill() -> None:
    found = read(FIRST)
    assert [one[0] for one in found.usage()] == [24, 51]
    bills = [e["data"] for e in found.events if e["event_type"] == "ctxctl.usage.reported"]
    assert [(one["output_tokens"], one["stated_usd"]) for one in bills] == [(0, "0.0009"), (5, "0.0011")]
    assert [problem.slug for problem in found.problems] == []

"""mini-SWE-agent trajectories of both formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.mini_swe_agent.reader import _blocks
from tests.unit.importers.trajectories import detected, read


def test_text_format_carries_all_messages_before_the_answer() -> None:
    found = read(Path("mini_swe_agent/text.traj.json"))
    assert found.format == "mini-swe-agent"
    first, second = found.requests()
    assert (first.session, first.turn, first.model) == ("lamp__lamp-1", "turn-1", "acme/large-2")
    assert found.kinds(0) == ["system_prompt", "user_message"]
    assert found.kinds(1) == ["system_prompt", "user_message", "assistant_message", "tool_result"]
    assert [i["native_id"] for i in found.of("context.injection.applied")] == ["gen-1", "gen-2"]
    assert second.items[:2] == first.items


def test_usage_is_that_of_the_raw_responses() -> None:
    assert read(Path("mini_swe_agent/text.traj.json")).usage() == [(40, 0, 12), (75, 32, 9)]
    bill = read(Path("mini_swe_agent/calls.traj.json")).of("ctxctl.usage.reported")[0]
    assert (bill["input_tokens"], bill["cached_tokens"], bill["cache_write_tokens"]) == (300, 256, 16)


def test_tool_calls_and_responses_items_have_their_own_ids() -> None:
    found = read(Path("mini_swe_agent/calls.traj.json"))
    items = found.items()
    assert items["call_a/result"]["title"] == items["call_a"]["title"] == "bash: ls | wc -l"
    assert items["call_b"]["context_kind"] == "tool_call"
    assert items["call_b/result"]["content"] == "9"
    assert "reasoning" in found.kinds(1)


def test_person_who_interjects_begins_a_turn() -> None:
    found = read(Path("mini_swe_agent/calls.traj.json"))
    assert [r.turn for r in found.requests()] == ["turn-1", "turn-1", "turn-2"]
    assert found.kinds(2)[-1] == "user_message"


def test_time_is_the_response_s() -> None:
    found = read(Path("mini_swe_agent/text.traj.json"))
    times = [e["time"] for e in found.events if e["event_type"] == "context.injection.applied"]
    assert times == ["2025-10-09T08:53:20+00:00", "2025-10-09T08:53:29+00:00"]


def test_detection_by_the_format_s_name_or_the_run_s_facts() -> None:
    messages = [{"role": "user", "content": "x"}]
    assert detected({"messages": messages, "trajectory_format": "mini-swe-agent-1.1"}) == "mini-swe-agent"
    facts = {"model_stats": {"instance_cost": 0, "api_calls": 1}}
    assert detected({"info": facts, "messages": messages}) == "mini-swe-agent"
    assert detected({"info": facts, "trajectory": []}) != "mini-swe-agent"


def test_wrong_types_everywhere_do_no_harm() -> None:
    messages = [
        None,
        3,
        {"role": "assistant", "extra": 4},
        {"role": "assistant", "extra": {"response": {"usage": []}}},
    ]
    found = read({"info": {"config": []}, "messages": messages, "trajectory_format": "mini-swe-agent-1"})
    assert len(found.requests()) == 2
    assert found.usage() == []


def test_output_that_comes_back_as_a_message_goes_by_its_command() -> None:
    answer = {"role": "assistant", "content": "I look.\n\n```bash\nls -R\nwc -l x\n```"}
    wrong = {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Look."},
        answer,
        {"role": "user", "content": "<returncode>0</returncode>"},
        wrong,
        {"role": "user", "content": "One command, please."},
        {"role": "assistant", "content": "Done."},
    ]
    found = read({"trajectory_format": "mini-swe-agent-1", "info": {}, "messages": messages})
    titles = [i.get("title") for i in found.items().values() if i["context_kind"] == "tool_result"]
    assert titles == ["ls -R", None]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("```bash\nls\n```", ["ls"]),
        ("a ```mswea_bash_command \t\nls\nls\n``` b", ["ls\nls"]),
        ("```bash\nls\n```\n```bash\npwd\n```", ["ls", "pwd"]),
        ("```bash\nls\n```bash\npwd\n```", ["ls"]),
        ("```bash\n```\n```", ["```"]),
        ("```bash\nls", []),
        ("```bash ls\n```", []),
    ],
)
def test_the_commands_of_an_answer(text: str, commands: list[str]) -> None:
    assert list(_blocks(text)) == commands


class _Text(str):
    """A text that counts how often it is searched."""

    __slots__ = ()
    searched = 0

    def find(self, *given: Any) -> int:
        _Text.searched += 1
        return str.find(self, *given)


def test_commands_that_do_not_end_are_looked_for_once() -> None:
    _Text.searched = 0
    assert list(_blocks(_Text("x```bash\n" * 1000))) == []
    assert _Text.searched == 1

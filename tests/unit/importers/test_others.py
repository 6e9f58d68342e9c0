"""Kimi Code, HAIL, Qwen Code and Factory Droid; iFlow, which writes Claude Code's lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from tests.unit.importers.agent_help import FIXTURES, Json, imported, items, jsonl, of_type, windows

KIMI = FIXTURES / "kimi" / "wire.jsonl"
HAIL = FIXTURES / "hail" / "session.hail.jsonl"
QWEN = FIXTURES / "qwen_code" / "chat.jsonl"
DROID = FIXTURES / "droid" / "session.jsonl"
ALL = {"kimi": KIMI, "hail": HAIL, "qwen-code": QWEN, "droid": DROID}
COMPACTED = "context.compaction.completed"
USAGE = "ctxctl.usage.reported"


@pytest.mark.parametrize("name", ALL)
def test_each_is_known_by_its_content(name: str) -> None:
    head = ALL[name].read_bytes()
    found = registry.of_head(head)
    assert found is not None
    assert found.name == name
    assert registry.of_head(b"\xef\xbb\xbf\n{broken\n" + head) is found


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("wrong", [None, 3, [], {}, "x", [None, {"type": 3}]])
def test_wrong_types_are_tolerated(name: str, wrong: Any) -> None:
    for record in ALL[name].read_bytes().splitlines():
        value = __import__("orjson").loads(record)
        imported(name, jsonl(*({**value, field: wrong} for field in value)))


def test_kimi_bills_each_request_once() -> None:
    found = windows(KIMI, "kimi")
    assert [w.step.step_id for w in found] == ["0.1", "0.2", "compaction", "1.1"]
    assert [w.billed() for w in found] == [1500, 1560, 1640, 400]
    assert [w.turn for w in found] == ["0", "0", "0", "1"]


def test_kimi_tells_of_the_whole_context() -> None:
    found = windows(KIMI, "kimi")
    assert found[0].kinds() == ["system_prompt", "tool_definition", "user_message"]
    assert found[1].kinds()[3:] == ["reasoning", "tool_call", "tool_result", "policy_note"]
    held = items(imported("kimi", KIMI.read_bytes())[0])
    assert held["Bash_0/result"]["title"] == "Bash: ls"


def test_kimi_keeps_prompts_when_it_compacts() -> None:
    last = windows(KIMI, "kimi")[-1]
    assert last.items[2:] == [
        ("user_message", "list the plants"),
        ("thread_summary", "The conversation was compacted. Plants were listed."),
        ("user_message", "water them"),
    ]
    told = of_type(imported("kimi", KIMI.read_bytes())[0], COMPACTED)[0]
    assert len(told["source_item_refs"]) == 5


def test_kimi_without_kept_prompts_keeps_what_came_after() -> None:
    def message(text: str) -> Json:
        inner = {"role": "user", "content": [{"type": "text", "text": text}], "origin": {"kind": "user"}}
        return {"type": "context.append_message", "message": inner, "time": 1785612800000}

    compaction = {"type": "context.apply_compaction", "summary": "so far", "compactedCount": 1}
    ask = {"type": "llm.request", "kind": "loop", "turnStep": "0.1"}
    events, _ = imported("kimi", jsonl(message("a"), message("b"), compaction, ask))
    blocks = of_type(events, "context.assembly.created")[0]["ordered_blocks"]
    held = items(events)
    assert [held[b["block_id"]]["content"] for b in blocks] == ["so far", "b"]


def test_hail_bills_what_the_total_grew_by() -> None:
    found = windows(HAIL, "hail")
    assert [w.billed() for w in found] == [1000, 1200]
    assert found[0].kinds() == ["user_message"]
    assert found[1].kinds() == ["user_message", "reasoning", "assistant_message", "tool_call", "tool_result"]
    events, _ = imported("hail", HAIL.read_bytes())
    assert sum(u["input_tokens"] for u in of_type(events, USAGE)) == 2200


def test_hail_tells_that_codex_compacted(tmp_path: Path) -> None:
    def event(number: int, event_type: Json, text: str) -> Json:
        blocks = [{"type": "Text", "text": text}]
        made = {"type": "event", "event_id": f"e-{number}", "timestamp": "2026-02-27T09:00:01.000Z"}
        return {**made, "event_type": event_type, "content": {"blocks": blocks}}

    lines = [
        {"type": "header", "version": "hail-1.0.0", "session_id": "s", "agent": {"tool": "codex"}},
        event(1, {"type": "UserMessage"}, "go"),
        event(2, {"type": "AgentMessage"}, "done"),
        event(3, {"type": "Custom", "data": {"kind": "context_compacted"}}, "context compacted"),
        event(4, {"type": "UserMessage"}, "on"),
        event(5, {"type": "AgentMessage"}, "done again"),
    ]
    events, _ = imported("hail", jsonl(*lines))
    (told,) = of_type(events, COMPACTED)
    assert told["source_item_refs"][0].startswith("e-2@")
    assert told["metadata"]["ctxctl"]["request"]["billed"] is False
    (tmp_path / "s.hail.jsonl").write_bytes(jsonl(*lines))
    assert windows(tmp_path / "s.hail.jsonl", "hail")[-1].texts() == ["go", "on"]


def test_qwen_goes_back_to_a_parent() -> None:
    found = windows(QWEN, "qwen-code")
    assert [w.billed() for w in found] == [900, 960, 970, 971, 210]
    assert found[2].texts()[-1] == "buy it"
    assert found[3].texts()[-2:] == ["Milk.", "and in todo.txt?"]
    assert found[1].kinds() == ["user_message", "tool_call", "tool_result"]
    assert found[0].step.window.limit == 262144


def test_qwen_compressed_history_replaces_what_was_there() -> None:
    last = windows(QWEN, "qwen-code")[-1]
    assert last.kinds() == ["thread_summary", "assistant_message", "user_message"]
    told = of_type(imported("qwen-code", QWEN.read_bytes())[0], COMPACTED)[0]
    assert told["metadata"]["native"]["originalTokenCount"] == 974


def test_qwen_compressed_nothing_where_the_client_notes_something_else() -> None:
    notes = [
        {"type": "system", "subtype": kind, "sessionId": "s"} for kind in ("ui_telemetry", "slash_command")
    ]
    found = imported("qwen-code", QWEN.read_bytes() + jsonl(*notes))[0]
    assert (
        len(of_type(found, COMPACTED))
        == len(of_type(imported("qwen-code", QWEN.read_bytes())[0], COMPACTED))
        == 1
    )


def test_droid_keeps_what_came_after_the_anchor() -> None:
    found = windows(DROID, "droid")
    assert [w.turn for w in found] == ["m2", "m2", "m7"]
    assert found[0].kinds() == ["policy_note", "user_message"]
    assert found[2].items == [
        ("thread_summary", "The canal has 38 locks."),
        ("assistant_message", "Thirty-eight."),
        ("user_message", "And bridges?"),
    ]
    assert all(w.billed() is None for w in found)

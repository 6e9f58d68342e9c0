"""pi and OpenClaw sessions: what each request carried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.pi import FORMAT
from tests.unit.importers.agent_help import FIXTURES, Json, imported, items, jsonl, of_type, windows, written

NAME = "pi"
TREE = FIXTURES / "pi" / "session-v3.jsonl"
LINEAR = FIXTURES / "pi" / "session-v1.jsonl"
OPENCLAW = FIXTURES / "pi" / "openclaw.jsonl"
HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}


def entry(native: str, parent: str | None, kind: str = "message", **fields: Any) -> Json:
    return {"type": kind, "id": native, "parentId": parent, "timestamp": "2026-01-01T00:00:01Z", **fields}


def user(native: str, parent: str | None, text: str) -> Json:
    return entry(native, parent, message={"role": "user", "content": text})


def said(native: str, parent: str | None, text: str, **fields: Any) -> Json:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "model": "m", "api": "a"}
    return entry(native, parent, message={**message, "provider": "p", "stopReason": "stop", **fields})


def test_a_session_is_one_request_for_each_answer() -> None:
    found = windows(TREE, NAME)
    assert [w.turn for w in found] == [
        "u0000001",
        "u0000001",
        "u0000002",
        "u0000002",
        "u0000003",
        "u0000004",
    ]
    assert found[0].kinds() == ["user_message", "image", "policy_note"]
    assert found[1].kinds() == [
        *found[0].kinds(),
        "reasoning",
        "assistant_message",
        "tool_call",
        "tool_result",
        "image",
    ]
    assert found[1].texts()[5] == 'read {"path":"beds.log"}'


def test_input_is_the_whole_context_with_what_was_cached() -> None:
    found = windows(TREE, NAME)
    assert [w.billed() for w in found] == [2104, 2242, None, 2303, 90, 2300]


def test_commands_of_the_person_are_told_in_pis_words_unless_they_were_kept_out() -> None:
    texts = windows(TREE, NAME)[2].texts()
    assert "Ran `./pump --bed 2`\n```\npump: no power\n```\n\nCommand exited with code 3" in texts
    assert not any("secret" in (text or "") for text in texts)


def test_a_failed_answer_is_a_request_that_no_later_one_carries() -> None:
    found = windows(TREE, NAME)
    assert found[2].items == found[3].items
    assert "It see" not in found[4].texts()


def test_a_compaction_leaves_its_summary_and_what_it_kept() -> None:
    found = windows(TREE, NAME)[4]
    assert found.items == [
        ("thread_summary", "Bed 2 is dry; the pump has no power."),
        ("user_message", "Why did the pump fail?"),
        ("assistant_message", "The pump has no power."),
        ("user_message", "Water it by hand then."),
    ]
    [record] = of_type(imported(NAME, TREE.read_bytes())[0], "context.compaction.completed")
    assert record["summary_ref"].startswith("k0000001@")
    assert record["metadata"]["native"]["tokensBefore"] == 2318


def test_a_branch_goes_back_behind_the_compaction() -> None:
    found = windows(TREE, NAME)
    assert found[5].items[:-2] == [*found[3].items, ("assistant_message", "The pump has no power.")]
    assert found[5].items[-2:] == [
        ("thread_summary", "Watering by hand was talked over."),
        ("user_message", "Repair the pump instead."),
    ]
    assembly = of_type(imported(NAME, TREE.read_bytes())[0], "context.assembly.created")[5]
    assert assembly["metadata"]["ctxctl"]["cause"] == "branched"


def test_version_1_counts_entries_from_the_header() -> None:
    found = windows(LINEAR, NAME)
    assert [w.billed() for w in found] == [900, 985, 1017, 300]
    assert found[3].texts() == ["The clock counted 59 seconds.", "Fix it.", "Sixty now.", "And the hours?"]


def test_openclaws_leaf_says_what_the_next_request_continues() -> None:
    found = windows(OPENCLAW, NAME)
    assert [w.billed() for w in found] == [1102, 1192, 1204, 1219]
    assert found[2].kinds() == [
        "user_message",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
        "user_message",
    ]
    assert found[2].texts()[-1] == "Any news?"


def test_openclaws_own_lines_are_no_requests_and_nobody_sees_them() -> None:
    texts = [text for w in windows(OPENCLAW, NAME) for text in w.texts()]
    assert "active subagents: none" not in texts
    assert "The town has none." not in texts, "it hangs beside what the session continued"


def test_what_openclaw_puts_into_a_message_is_apart() -> None:
    told = items(imported(NAME, OPENCLAW.read_bytes())[0])
    assert told["10000007"]["context_kind"] == "runtime_state"
    assert told["10000007/part-2"]["content"] == "\n\nGo on when you can."


def test_a_run_of_another_program_is_a_request_without_a_bill(tmp_path: Path) -> None:
    bill = {"input": 5, "output": 6, "cacheRead": 7, "cacheWrite": 8}
    path = written(tmp_path, HEADER, user("u", None, "hi"), said("a", "u", "hello", api="cli", usage=bill))
    [found] = windows(path, NAME)
    assert found.billed() is None


def test_entries_that_came_in_the_wrong_order_are_put_right(tmp_path: Path) -> None:
    lines = [
        HEADER,
        user("u1", None, "one"),
        said("a2", "u2", "four"),
        user("u2", "u1", "two"),
        user("u3", "a2", "five"),
    ]
    path = written(tmp_path, *lines, said("a3", "u3", "six"))
    assert windows(path, NAME)[-1].texts() == ["one", "two", "four", "five"]


def test_a_lost_entry_does_not_lose_what_is_before_it(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER, user("u1", None, "one"), user("u3", "u2", "three"), said("a", "u3", "x"))
    assert windows(path, NAME)[0].texts() == ["one", "three"]


def test_entries_that_come_twice_count_once(tmp_path: Path) -> None:
    answer = said("a", "u1", "x", usage={"input": 4, "output": 1, "cacheRead": 0, "cacheWrite": 0})
    path = written(tmp_path, HEADER, user("u1", None, "one"), answer, answer)
    assert len(windows(path, NAME)) == 1


def test_calls_that_share_an_id_are_told_apart(tmp_path: Path) -> None:
    call = [{"type": "toolCall", "id": "call_1", "name": "look", "arguments": {}}]
    result = {"role": "toolResult", "toolCallId": "call_1", "toolName": "look"}
    lines = [
        HEADER,
        user("u", None, "go"),
        said("a1", "u", "", content=call),
        entry("r1", "a1", message={**result, "content": [{"type": "text", "text": "first"}]}),
        said("a2", "r1", "", content=call),
        entry("r2", "a2", message={**result, "content": [{"type": "text", "text": "second"}]}),
        said("a3", "r2", "done"),
    ]
    assert windows(written(tmp_path, *lines), NAME)[2].texts()[-4:] == [
        "look {}",
        "first",
        "look {}",
        "second",
    ]


def test_a_trajectory_has_the_context_of_each_attempt(tmp_path: Path) -> None:
    head = {"traceSchema": "openclaw-trajectory", "schemaVersion": 1, "sessionId": "s", "modelId": "gpt-5.4"}
    tools = [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}]
    context = {"systemPrompt": "Be kind.", "tools": tools, "prompt": "Hello?", "messages": []}
    said = [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hello."}]
    lines = [
        {**head, "type": "session.started", "ts": "2026-06-01T10:00:00Z", "runId": "r1"},
        {**head, "type": "context.compiled", "runId": "r1", "data": context},
        {**head, "type": "model.completed", "runId": "r1", "data": {"usage": {"input": 9}}},
        {**head, "type": "context.compiled", "runId": "r2", "data": {"truncated": True}},
        {
            **head,
            "type": "context.compiled",
            "runId": "r3",
            "data": {**context, "messages": said, "prompt": "Bye."},
        },
    ]
    found = windows(written(tmp_path, *lines), NAME)
    assert [w.turn for w in found] == ["r1", "r3"]
    assert found[0].kinds() == ["tool_definition", "system_prompt", "user_message"]
    assert found[1].texts()[1:] == ["Be kind.", "Hello?", "Hello.", "Bye."]
    assert found[1].step.counts.skipped == 3


@pytest.mark.parametrize(
    "first",
    [
        HEADER,
        entry("r", "a", message={"role": "toolResult", "toolCallId": "c", "content": []}),
        said("a", "u", "x"),
        {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 3, "tokensBefore": 9},
        {"traceSchema": "openclaw-trajectory", "type": "session.started", "sessionId": "s"},
    ],
)
def test_sessions_are_known_by_any_of_their_lines(first: Json) -> None:
    assert FORMAT.detect(b'\xef\xbb\xbf\n{"type":"mess\n' + jsonl(first)) >= 80


def test_one_message_by_itself_is_known_however_it_is_laid_out() -> None:
    message = json.loads(LINEAR.read_bytes().split(b"\n")[2])["message"]
    assert FORMAT.detect(json.dumps(message, indent=1).encode()) >= 80
    found, _ = imported(NAME, json.dumps(message, indent=1).encode())
    assert len(of_type(found, "context.injection.applied")) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"type": "user", "uuid": "1", "sessionId": "s", "message": {"role": "user", "content": "x"}},
        {"type": "message", "role": "user", "content": "hello", "timestamp": "2026-01-01T00:00:00Z"},
        {"type": "session_meta", "payload": {"id": "1", "cwd": "/"}},
        {"type": "session", "id": 7},
    ],
)
def test_other_logs_are_left_alone(other: Json) -> None:
    assert FORMAT.detect(jsonl(other)) == 0


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [1, None, {"type": 3}], {"role": []}])
def test_fields_of_any_type_do_no_harm(odd: Any) -> None:
    for kind in ("message", "compaction", "custom_message", "branch_summary", "leaf", "session"):
        imported(
            NAME, jsonl(HEADER, {"type": kind, "id": odd, "parentId": odd, "message": odd, "summary": odd})
        )
    for role in ("user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary", "?"):
        fields = dict.fromkeys(
            ("content", "usage", "toolCallId", "command", "output", "model", "summary"), odd
        )
        imported(NAME, jsonl(HEADER, entry("a", None, message={"role": role, **fields})))
    for name in ("targetId", "appendParentId", "firstKeptEntryId", "firstKeptEntryIndex", "customType"):
        imported(NAME, jsonl(HEADER, user("u", None, "x"), entry("l", "u", "leaf", **{name: odd})))
        imported(NAME, jsonl(HEADER, user("u", None, "x"), entry("l", "u", "compaction", **{name: odd})))


@pytest.mark.parametrize("odd", [None, 1, [], {}, [1, None, {"type": 3}]])
def test_detection_takes_fields_of_any_type(odd: Any) -> None:
    names = ("type", "role", "content", "message", "method", "response", "id", "sessionId", "parts", "info")
    for name in names:
        record = {"type": "message", "role": "user", "content": [], "message": {"role": odd}, name: odd}
        assert 0 <= FORMAT.detect(jsonl(record, odd, [odd])) <= 100
        assert 0 <= FORMAT.detect(json.dumps({name: [{"type": odd}]}, indent=1).encode()) <= 100


def test_an_entry_with_an_id_that_was_there_is_left_out_and_told_where_it_is_another(tmp_path: Path) -> None:
    again = [user("u1", None, text) for text in ("one", "one", "other")]
    path = written(tmp_path, HEADER, *again, said("a1", "u1", "two"))
    _, problems = imported(NAME, path.read_bytes())
    assert [(one.line, one.slug) for one in problems] == [(4, "duplicate-uuid")]
    assert windows(path, NAME)[-1].texts() == ["one"]


def test_windows_are_made_when_they_are_asked_for(tmp_path: Path) -> None:
    lines = [
        user("u1", None, "one"), said("a1", "u1", "two"), user("u2", "a1", "three"), user("u3", "u1", "four"),
        user("u4", "u2", "five"), said("a2", "u4", "six"), said("a3", "u3", "seven"),
        said("a4", "a2", "eight"),
    ]  # fmt: skip
    found = [step.texts() for step in windows(written(tmp_path, HEADER, *lines), NAME)]
    assert found == [["one"], ["one", "two", "three", "five"], ["one", "four"],
                     ["one", "two", "three", "five", "six"]]  # fmt: skip

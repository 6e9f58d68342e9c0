from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.importers.claude_code import FORMAT, texts
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.trace.source import Source, open_source
from ctxctl.trace.validate import validate_event
from tests.unit.importers.claude_code_help import (
    FIXTURES,
    call,
    events,
    frames,
    line,
    of_type,
    result,
    said,
    source,
    text,
    user,
)

SESSION = "5e550000-0000-4000-8000-000000000001"
ADDED, UPDATED, REMOVED = "context.item.added", "context.item.updated", "context.item.removed"
ASSEMBLY, COMPACTION, USAGE = (
    "context.assembly.created",
    "context.compaction.completed",
    "ctxctl.usage.reported",
)


def imported(name: str) -> tuple[list[dict[str, Any]], list[Problem]]:
    problems: list[Problem] = []
    with open_source(FIXTURES / "claude_code" / name) as opened:
        found = registry.detect(opened)
        assert found is not None
        assert found.name == "claude-code"
        return list(found.events(opened, problems.append)), problems


def own(event: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = event["data"]["metadata"]["ctxctl"]
    return found


@pytest.mark.parametrize(
    "name",
    ["session.jsonl", "compaction.jsonl", "sidechain.jsonl", f"agents/{SESSION}.jsonl", "requests.jsonl"],
)
def test_every_event_validates_and_replays(name: str) -> None:
    found, problems = imported(name)
    assert problems == []
    assert [(e["event_type"], validate_event(e)) for e in found if validate_event(e)] == []
    assert len({e["event_id"] for e in found}) == len(found)
    opened = Inspector.open(str(FIXTURES / "claude_code" / name))
    steps = [step for step in opened.replay() if isinstance(step, Step)]
    assert opened.problems == []
    assert len(steps) == len(of_type(found, ASSEMBLY))
    assert all(s.basis == "assembly" and s.layer == "injected" and s.mode == "window" for s in steps)


def test_lines_of_one_message_are_one_call() -> None:
    found, _ = imported("session.jsonl")
    steps = [e["step_id"] for e in of_type(found, ASSEMBLY)]
    assert steps == ["msg_01", "msg_02", "msg_03", "msg_04", "msg_05"]
    usage = of_type(found, USAGE)[0]
    assert usage["step_id"] == "msg_01"
    assert usage["data"] == {
        "provider": "anthropic",
        "input_tokens": 11_904,
        "model": "claude-opus-4-5-20251101",
        "cached_tokens": 11_000,
        "cache_write_tokens": 900,
        "output_tokens": 131,
        "output_is_partial": True,
        "metadata": {"native": {"service_tier": "standard"}},
    }


def test_parallel_calls_and_what_came_with_their_results_are_in_the_next_request() -> None:
    found, _ = imported("session.jsonl")
    assert frames(found)["main", "msg_02"][5:] == [
        "a-01",
        "a-02",
        "toolu_01",
        "toolu_02",
        "toolu_01/result",
        "toolu_02/result",
        "toolu_02/result/1",
        "at-2",
    ]


def test_answers_stand_behind_their_bill_and_name_no_step() -> None:
    found, _ = imported("session.jsonl")
    added = {e["data"]["item_id"]: e for e in of_type(found, ADDED)}
    assert "step_id" not in added["a-05"]
    bill = max(n for n, e in enumerate(found[: found.index(added["a-05"])]) if e["event_type"] == USAGE)
    between = found[bill + 1 : found.index(added["a-05"])]
    assert all(e["event_type"] == ADDED and "step_id" not in e for e in between)
    assert found[bill]["step_id"] == "msg_02"
    assert "step_id" not in added["a-08"]
    assert added["a-08"] is found[-1]


def test_turns_are_prompts_only() -> None:
    found, _ = imported("session.jsonl")
    turns = {e["step_id"]: e["turn_id"] for e in of_type(found, ASSEMBLY)}
    # An interruption and a task notification set off nothing; a command that expands to a prompt does.
    assert turns == {"msg_01": "u-01", "msg_02": "u-01", "msg_03": "u-02", "msg_04": "u-03", "msg_05": "u-03"}


def test_kinds_titles_and_texts() -> None:
    found, _ = imported("session.jsonl")
    items = {e["data"]["item_id"]: e["data"] for e in of_type(found, ADDED)}
    assert {name: item["context_kind"] for name, item in items.items()} == {
        "u-00": "policy_note",
        "u-00b": "runtime_state",
        "u-00c": "runtime_state",
        "u-01": "user_message",
        "at-1": "policy_note",
        "a-01": "reasoning",
        "a-02": "assistant_message",
        "toolu_01": "tool_call",
        "toolu_01/result": "tool_result",
        "toolu_02": "tool_call",
        "toolu_02/result": "tool_result",
        "toolu_02/result/1": "tool_result",
        "at-2": "policy_note",
        "a-05": "assistant_message",
        "u-02": "runtime_state",
        "u-02/1": "user_message",
        "u-02/2": "image",
        "toolu_03": "tool_call",
        "toolu_03/result": "tool_result",
        "i-01": "runtime_state",
        "u-03": "user_message",
        "u-03m": "policy_note",
        "a-07": "assistant_message",
        "n-01": "runtime_state",
        "a-08": "assistant_message",
    }
    assert all(item["visibility"] == ["model"] for item in items.values())
    assert items["toolu_02"]["content"] == 'Grep {"path":"shop","pattern":"round\\\\("}'
    assert items["toolu_02"]["title"] == items["toolu_02/result"]["title"] == "Grep: round\\("
    assert items["u-02/2"]["content_mode"] == "opaque"
    assert items["toolu_03/result"]["metadata"]["native"] == {"type": "tool_result", "is_error": True}


def test_neither_local_errors_nor_progress_nor_a_system_prompt_are_made_up() -> None:
    found, _ = imported("session.jsonl")
    kinds = {e["data"]["context_kind"] for e in of_type(found, ADDED)}
    assert "system_prompt" not in kinds
    assert "tool_definition" not in kinds
    assert not any("overloaded" in str(e["data"].get("content")) for e in of_type(found, ADDED))


def test_events_say_which_line_and_when() -> None:
    found, _ = imported("session.jsonl")
    lines = (FIXTURES / "claude_code" / "session.jsonl").read_text().splitlines()
    for event in of_type(found, ADDED):
        native = json.loads(lines[event["metadata"]["ctxctl"]["source_line"] - 1])
        assert event["time"] == native["timestamp"]
        assert event["session_id"] == native["sessionId"]


def test_microcompaction_blanks_results_and_a_boundary_replaces_the_rest() -> None:
    found, _ = imported("compaction.jsonl")
    (blank,) = of_type(found, UPDATED)
    assert (blank["step_id"], blank["data"]["item_id"]) == ("msg_04", "toolu_01/result")
    assert own(blank) == {"truncated": True, "derived": True}
    assembly = next(e for e in of_type(found, ASSEMBLY) if e["step_id"] == "msg_04")
    assert own(assembly)["splices"] == [[2, 1, 1], [5, 0, 2]]
    assert assembly["data"]["ordered_blocks"][0]["metadata"] == {"ctxctl": {"truncated": True}}
    (compaction,) = of_type(found, COMPACTION)
    data = compaction["data"]
    assert compaction["step_id"] == "msg_06"
    assert [ref.partition("@")[0] for ref in data["source_item_refs"]] == [
        *frames(found)["main", "msg_05"],
        "a-05",
    ]
    assert data["summary_ref"].startswith("c-01@")
    assert (data["trigger"], data["method"]) == ("token_pressure", "abstractive_summary")
    assert data["metadata"]["native"] == {"trigger": "auto", "preTokens": 155_189}
    assert frames(found)["main", "msg_06"] == ["c-01", "at-1", "u-03"]
    assert all("cause" not in own(e) for e in of_type(found, ASSEMBLY))


def test_a_blanked_result_is_another_version_of_the_same_item() -> None:
    found, _ = imported("compaction.jsonl")
    refs = frames(found, refs=True)
    before, after = refs["main", "msg_03"][2], refs["main", "msg_04"][2]
    assert before != after
    assert before.partition("@")[0] == after.partition("@")[0] == "toolu_01/result"


def test_a_summary_without_a_boundary_is_a_compaction() -> None:
    found, _ = events(
        user("u1", None, "go"),
        said("a1", "u1", "m1", text("done")),
        user("c1", None, "This session is being continued", isCompactSummary=True),
        said("a2", "c1", "m2", text("on")),
    )
    (compaction,) = of_type(found, COMPACTION)
    assert [r.partition("@")[0] for r in compaction["data"]["source_item_refs"]] == ["u1", "a1"]
    assert "trigger" not in compaction["data"]
    assert frames(found)["main", "m2"] == ["c1"]


def test_preserved_messages_stay_behind_the_summary() -> None:
    kept = {"anchorUuid": "c1", "uuids": ["u2", "a2"]}
    found, _ = events(
        user("u1", None, "first"),
        said("a1", "u1", "m1", text("one")),
        user("u2", "a1", "second"),
        said("a2", "u2", "m2", text("two")),
        line(
            "system",
            "b1",
            None,
            subtype="compact_boundary",
            logicalParentUuid="a2",
            compactMetadata={"trigger": "manual", "preTokens": 9, "preservedMessages": kept},
        ),
        user("c1", "b1", "Summary", isCompactSummary=True),
        user("u3", "c1", "third"),
        said("a3", "u3", "m3", text("three")),
        user("u4", "a2", "fourth"),
        said("a4", "u4", "m4", text("four")),
    )
    assert frames(found)["main", "m3"] == ["c1", "u2", "a2", "u3"]
    assert frames(found)["main", "m4"] == ["c1", "u2", "a2", "u4"]
    (compaction,) = of_type(found, COMPACTION)
    assert [r.partition("@")[0] for r in compaction["data"]["source_item_refs"]] == ["u1", "a1"]
    assert compaction["data"]["trigger"] == "manual"
    assert "preservedMessages" not in compaction["data"]["metadata"]["native"]


def test_a_rewind_is_branched_and_a_retry_of_an_old_prompt_is_a_turn_of_its_own() -> None:
    found, _ = events(
        user("u1", None, "first"),
        said("a1", "u1", "m1", text("one")),
        user("u2", "a1", "second"),
        said("a2", "u2", "m2", text("two")),
        user("u3", "a1", "second, better"),
        said("a3", "u3", "m3", text("three")),
        said("a4", "u2", "m4", text("two again")),
    )
    causes = [own(e).get("cause") for e in of_type(found, ASSEMBLY)]
    assert causes == [None, None, "branched", "branched"]
    assert frames(found)["main", "m3"] == ["u1", "a1", "u3"]
    assert frames(found)["main", "m4"] == ["u1", "a1", "u2"]
    assert [e["turn_id"] for e in of_type(found, ASSEMBLY)] == ["u1", "u2", "u3", "u2~2"]


def test_a_missing_parent_is_reported_and_the_line_before_stands_in() -> None:
    found, problems = events(
        user("u1", None, "first"),
        said("a1", "u1", "m1", text("one")),
        user("u2", "lost", "second"),
        said("a2", "u2", "m2", text("two")),
    )
    assert frames(found)["main", "m2"] == ["u1", "a1", "u2"]
    assert [(p.line, p.slug) for p in problems] == [(3, "missing-parent")]


def test_a_parent_that_comes_later_is_followed_once_it_is_there() -> None:
    found, problems = events(
        user("u1", None, "first"),
        user("u3", "u2", "third"),
        user("u2", "u1", "second"),
        said("a1", "u3", "m1", text("one")),
    )
    assert frames(found)["main", "m1"] == ["u1", "u2", "u3"]
    assert problems == []


def test_lines_that_stand_in_for_each_others_parents_are_walked_once() -> None:
    segment = {"headUuid": "u1", "tailUuid": "u3", "anchorUuid": "b1"}
    found, problems = events(
        user("u1", None, "first"),
        user("u2", "u3", "second"),
        user("u3", "lost", "third"),
        said("a1", "u3", "m1", text("one")),
        said("a2", "u2", "m2", text("two")),
        line("system", "b1", None, subtype="compact_boundary", compactMetadata={"preservedSegment": segment}),
        user("c1", "b1", "Summary", isCompactSummary=True),
        said("a3", "c1", "m3", text("three")),
    )
    assert frames(found)["main", "m3"] == ["c1"]
    assert {p.slug for p in problems} == {"missing-parent"}


@pytest.mark.parametrize(
    ("parents", "told"),
    [
        ({"u1": None, "a1": "u1", "u2": "u2", "a2": "u2"}, (3, "follow the line before it")),
        ({"u1": "a2", "a1": "u1", "u2": "a1", "a2": "u2"}, (4, "begin a conversation")),
    ],
)
def test_a_line_that_follows_itself_is_told_and_its_parent_is_not_believed(
    parents: dict[str, str | None], told: tuple[int, str]
) -> None:
    found, problems = events(
        user("u1", parents["u1"], "first"),
        said("a1", parents["a1"], "m1", text("one")),
        user("u2", parents["u2"], "second"),
        said("a2", parents["a2"], "m2", text("two")),
    )
    ((number, instead),) = [
        (p.line, p.message.rpartition(" taken to ")[2]) for p in problems if p.slug == "circular-parents"
    ]
    assert (number, instead) == told
    assert len(of_type(found, ASSEMBLY)) == 2
    if told[0] == 3:
        assert frames(found)["main", "m2"] == ["u1", "a1", "u2"]


def test_repeated_uuids_are_reported_and_only_new_content_counts() -> None:
    found, problems = events(
        user("u1", None, "first"),
        user("u1", None, "first"),
        user("u1", None, "another"),
        said("a1", "u1", "m1", text("one")),
    )
    assert [(p.line, p.slug) for p in problems] == [(2, "duplicate-uuid"), (3, "duplicate-uuid")]
    assert frames(found)["main", "m1"] == ["u1"]
    assert of_type(found, ADDED)[1]["data"]["content"] == "another"


def test_streamed_duplicates_of_a_block_are_one() -> None:
    found, _ = events(
        user("u1", None, "go"),
        said("a1", "u1", "m1", text("on it")),
        said("a2", "a1", "m1", text("on it")),
        said("a3", "a2", "m1", call("t1")),
        said("a4", "a3", "m1", call("t1")),
        result("r1", "a4", "t1"),
        said("a5", "r1", "m2", text("done")),
    )
    assert frames(found)["main", "m2"] == ["u1", "a1", "t1", "t1/result"]


def test_messages_taken_back_leave_the_context() -> None:
    found, _ = events(
        user("u1", None, "go"),
        said("a1", "u1", "m1", text("no")),
        line("system", "s1", "a1", subtype="model_refusal_fallback", retractedMessageUuids=["a1"]),
        user("u2", "s1", "again"),
        said("a2", "u2", "m2", text("yes")),
        said("a3", "u2", "m3", text("yes, really"), supersedesUuids=["a2"]),
        user("u3", "a3", "thanks"),
        said("a4", "u3", "m4", text("bye")),
    )
    assert frames(found)["main", "m2"] == ["u1", "u2"]
    assert frames(found)["main", "m4"] == ["u1", "u2", "a3", "u3"]
    gone = of_type(found, REMOVED)
    assert [(e["data"]["item_id"], e["data"]["metadata"]["cause"]) for e in gone] == [
        ("a1", "cleared"),
        ("a2", "cleared"),
    ]


def test_inline_sub_agents_are_threads_that_name_their_call() -> None:
    found, _ = imported("sidechain.jsonl")
    first = next(e for e in of_type(found, ASSEMBLY) if e["thread_id"] == "sidechain-5c000001")
    assert own(first)["parent_thread"] == "main"
    assert own(first)["parent_tool_call"] == "toolu_01"
    assert own(first)["agent_type"] == "Explore"
    assert frames(found)["sidechain-5c000001", "msg_s2"] == ["5c000001-aa", "toolu_s1", "toolu_s1/result"]
    assert frames(found)["main", "msg_02"] == ["u-01", "toolu_01", "toolu_01/result"]


def test_sub_agents_files_come_along_nested_where_they_were_started() -> None:
    found, _ = imported(f"agents/{SESSION}.jsonl")
    firsts = {}
    for event in of_type(found, ASSEMBLY):
        firsts.setdefault(event["thread_id"], own(event))
    assert list(firsts) == ["main", "agent-a2", "agent-a1", "agent-n1", "agent-acompact-9"]
    assert firsts["agent-a1"]["parent_tool_call"] == "toolu_01"
    assert firsts["agent-n1"]["parent_thread"] == "agent-a1"
    assert firsts["agent-n1"]["agent_type"] == "Plan"
    assert firsts["agent-acompact-9"]["parent_thread"] == "main"
    assert {e["session_id"] for e in found} == {SESSION}
    nested = next(e for e in found if e["thread_id"] == "agent-n1")
    assert nested["metadata"]["ctxctl"]["source_file"] == f"{SESSION}/subagents/agent-n1.jsonl"


def test_a_sub_agent_ends_with_its_file_so_that_a_watch_has_its_last_step_there() -> None:
    found, _ = imported(f"agents/{SESSION}.jsonl")
    ends = {e["thread_id"]: n for n, e in enumerate(found) if e["event_type"] == "ctxctl.session.ended"}
    assert list(ends) == ["agent-a2", "agent-n1", "agent-a1", "agent-acompact-9"]
    for thread, at in ends.items():
        assert not [e for e in found[at + 1 :] if e["thread_id"] == thread]
    opened = Inspector.open(str(FIXTURES / "claude_code" / "agents" / f"{SESSION}.jsonl"))
    steps = [s for s in opened.replay() if isinstance(s, Step)]
    assert [s.first_line for s in steps] == sorted(s.first_line for s in steps)


def test_a_compactions_own_call_carries_the_conversation_it_summarises() -> None:
    found, _ = imported(f"agents/{SESSION}.jsonl")
    window = frames(found)["agent-acompact-9", "msg_k1"]
    assert window == [*frames(found)["main", "msg_02"], "k-u"]
    again = [e for e in of_type(found, ADDED) if e["thread_id"] == "agent-acompact-9"]
    assert sum(e["data"]["content_mode"] == "ref" for e in again) == len(window) - 1
    opened = Inspector.open(str(FIXTURES / "claude_code" / "agents" / f"{SESSION}.jsonl"))
    steps = [s for s in opened.replay() if isinstance(s, Step) and s.thread == "agent-acompact-9"]
    assert [s.window.uncounted for s in steps] == [0]


def test_a_sub_agents_file_opens_by_itself() -> None:
    found, problems = imported(f"agents/{SESSION}/subagents/agent-a1.jsonl")
    assert {e["thread_id"] for e in found} == {"agent-a1"}
    assert problems == []


def test_a_session_carried_on_under_another_id_stays_one() -> None:
    found, _ = events(
        user("u1", None, "go", sessionId="old"),
        said("a1", "u1", "m1", text("one"), sessionId="old"),
        user("u2", "a1", "on", sessionId="new"),
        said("a2", "u2", "m2", text("two"), sessionId="new"),
        user("v1", None, "else", sessionId="third"),
        said("b1", "v1", "m3", text("three"), sessionId="third"),
    )
    assert [e["session_id"] for e in of_type(found, ASSEMBLY)] == ["old", "old", "third"]


def test_damaged_lines_are_salvaged_and_reported_by_line_and_byte() -> None:
    first = json.dumps(user("u1", None, "go")).encode()
    glued = json.dumps(said("a1", "u1", "m1", call("t1"))).encode() + b'{"type":"summary","leafUuid":"a1"}'
    escape = json.dumps(result("r1", "a1", "t1", "user!example")).encode().replace(b"!", b"\\@")
    torn = b'{"type":"user","uuid":"gone","message":{"role":"us' + json.dumps(user("u2", "r1", "on")).encode()
    rest = [b"\0\0\0", b"[1]", json.dumps(said("a2", "u2", "m2", text("done"))).encode(), b'{"type":"assi']
    data = b"\xef\xbb\xbf" + b"\r\n".join([first, glued, escape, torn, *rest])
    problems: list[Problem] = []
    found = list(FORMAT.events(Source.from_bytes("x", data), problems.append))
    assert frames(found)["main", "m2"] == ["u1", "t1", "t1/result", "u2"]
    assert any(e["data"].get("content") == "user\\@example" for e in found)
    lines = sorted({p.line for p in problems})
    assert lines == [2, 3, 4, 5, 6, 8]
    places = {p.slug: p.byte for p in problems}
    assert places["glued-lines"] == data.index(b'{"type":"summary"')
    assert places["bad-escape"] == data.index(b"\\@")


def test_nonsense_in_every_field_raises_nothing() -> None:
    odd: list[Any] = [None, True, 3, -1.5, "", "x", [], [None, 3, "s", {}], {}, {"type": 3}, {"type": "text"}]
    keys = ["uuid", "parentUuid", "message", "sessionId", "timestamp", "attachment", "compactMetadata"]
    keys += ["toolUseResult", "agentId", "isSidechain", "origin", "retractedMessageUuids", "content", "type"]
    keys += ["microcompactMetadata", "isCompactSummary", "supersedesUuids", "subtype"]
    base = [
        user("u1", None, "go"),
        said("a1", "u1", "m1", call("t1", "Task", prompt="p"), usage={"input_tokens": 1}),
        result("r1", "a1", "t1"),
        line("attachment", "t", "r1", attachment={"type": "file"}),
        line("system", "b", None, subtype="compact_boundary", compactMetadata={}),
        line("system", "m", "b", subtype="microcompact_boundary", microcompactMetadata={}),
    ]
    inner = ["content", "id", "model", "usage", "role"]
    lines = [{**value, key: bad} for value in base for key in keys for bad in odd]
    lines += [
        {**value, "message": {**value["message"], key: bad}}
        for value in base[:3]
        for key in inner
        for bad in odd
    ]
    found, _ = events(*base, *lines)
    assert [validate_event(e) for e in found if validate_event(e)] == []


@pytest.mark.parametrize(
    ("value", "kind", "sets_off"),
    [
        ("Fix the test", "user_message", True),
        ("<b>bold</b> is not shown", "user_message", True),
        ("<command-message>init</command-message>\n<command-name>/init</command-name>", "user_message", True),
        (
            "<command-name>/clear</command-name>\n<command-message>clear</command-message>",
            "runtime_state",
            False,
        ),
        ("<local-command-stdout>Bye!</local-command-stdout>", "runtime_state", False),
        ("<bash-input>git pull</bash-input>", "runtime_state", False),
        ("<bash-stdout>ok</bash-stdout><bash-stderr></bash-stderr>", "runtime_state", False),
        ("[Request interrupted by user for tool use]", "runtime_state", False),
        ("<task-notification>\n<task-id>b</task-id></task-notification>", "runtime_state", False),
        ('<teammate-message teammate_id="a">hi</teammate-message>', "peer_agent_message", False),
        ("<ide_selection>The user selected line 3</ide_selection>", "runtime_state", False),
        ("<system-reminder>Be brief.</system-reminder>\n", "policy_note", False),
        ("<system-reminder>Be brief.</system-reminder>\nFix it", "user_message", True),
        (
            "Caveat: The messages below were generated by the user while running local commands.",
            "policy_note",
            False,
        ),
        ("Operation stopped by hook: busy", "runtime_state", False),
        ("  \n", "user_message", False),
    ],
)
def test_readings_of_user_texts(value: str, kind: str, sets_off: bool) -> None:
    reading = texts.reading_of(value)
    assert (reading.kind, reading.sets_off) == (kind, sets_off)


@pytest.mark.parametrize(
    "head",
    [
        b'{"type":"summary","summary":"x","leafUuid":"y"}',
        b'{"type":"file-history-snapshot","messageId":"m","snapshot":{}}',
        b'{\n  "type": "assistant",\n  "uuid": "u",\n  "sessionId": "s"\n}',
        b'{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"user","message":{"content":"cut off',
        b'not json\n{"type":"user","uuid":"u","sessionId":"s"}',
    ],
)
def test_detected(head: bytes) -> None:
    found = registry.detect(Source.from_bytes("x", head))
    assert found is not None
    assert found.name == "claude-code"


@pytest.mark.parametrize(
    "head",
    [
        b'{"schema_version":"0.1.1","event_id":"1","event_type":"context.item.added","source":"x","time":"t"}',
        b'{"timestamp":"t","type":"session_meta","payload":{}}',
        b'{"type":"system","subtype":"init","session_id":"s","tools":[]}',
        b'{"type":"user","message":{"role":"user","content":"x"},"session_id":"s","parent_tool_use_id":null}',
        b'{"kind":"getCurrent","turn":1,"provider_id":"a:b","data":null}',
        b"\x1f\x8b\x08",
        b"[]",
    ],
)
def test_not_detected(head: bytes) -> None:
    assert FORMAT.detect(head) == 0


def test_a_transcript_without_messages_gives_one_event() -> None:
    found, problems = events({"type": "summary", "summary": "x", "leafUuid": "y"})
    assert [e["event_type"] for e in found] == ["ctxctl.source.opened"]
    assert problems == []


def test_import_is_linear_in_the_session() -> None:
    lines = [user("u", None, "go")]
    previous = "u"
    for n in range(400):
        lines.append(said(f"a{n}", previous, f"m{n}", call(f"t{n}")))
        lines.append(result(f"r{n}", f"a{n}", f"t{n}"))
        previous = f"r{n}"
    found = list(FORMAT.events(source(*lines), lambda _: None))
    blocks = sum(len(e["data"]["ordered_blocks"]) for e in of_type(found, ASSEMBLY))
    assert blocks == 1 + 2 * 399


def test_hours_in_the_cache_and_the_reason_of_a_miss_come_along() -> None:
    kinds = {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 3}
    usage = {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 4}
    answer = said("a1", "u1", "m1", text("hello"), usage={**usage, "cache_creation": kinds})
    answer["message"]["diagnostics"] = {"cache_miss_reason": {"type": "model_changed"}}
    found, _ = events(user("u1", None, "go"), answer)
    bill = of_type(found, USAGE)[0]["data"]
    assert (bill["cache_write_tokens"], bill["cache_write_1h_tokens"]) == (4, 3)
    assert bill["cache_miss_cause"] == "model_changed"

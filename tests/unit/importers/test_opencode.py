"""opencode: exports, logs of hooks, printed events."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.opencode import FORMAT
from tests.unit.importers.agent_help import FIXTURES, Json, imported, items, jsonl, of_type, windows, written

NAME = "opencode"
EXPORT = FIXTURES / "opencode" / "export.json"
HOOKS = FIXTURES / "opencode" / "hooks.jsonl"
RUN = FIXTURES / "opencode" / "run.jsonl"


def event(kind: str, **properties: Any) -> list[Any]:
    return ["event", {"event": {"type": kind, "properties": properties}}]


def exported(*messages: Json) -> bytes:
    return json.dumps(
        {"info": {"id": "ses", "projectID": "p", "directory": "/d"}, "messages": messages}
    ).encode()


def message(role: str, native: str, *parts: Json, **info: Any) -> Json:
    return {"info": {"id": native, "role": role, **info}, "parts": [*parts]}


def test_an_answer_is_a_request_and_its_results_follow_its_calls() -> None:
    found = windows(EXPORT, NAME)
    assert [w.turn for w in found] == ["msg_u1", "msg_u1", *["msg_u2"] * 5]
    assert found[0].kinds() == ["user_message", "policy_note", "policy_note", "image"]
    assert found[1].kinds()[4:] == [
        "reasoning",
        "assistant_message",
        "tool_call",
        "tool_call",
        "tool_result",
        "tool_result",
    ]


def test_bills_hold_what_was_cached_and_reasoning_that_output_leaves_out() -> None:
    found = windows(EXPORT, NAME)
    assert [w.billed() for w in found] == [9003, 9152, 9162, None, 9232, 9300, 9050]
    bills = of_type(imported(NAME, EXPORT.read_bytes())[0], "ctxctl.usage.reported")
    assert [(bill["output_tokens"], bill.get("reasoning_tokens")) for bill in bills[2:3]] == [(55, 15)]


def test_a_pruned_result_is_blank_from_the_time_when_it_was() -> None:
    found = windows(EXPORT, NAME)
    assert "1180" in found[1].texts()
    assert "1180" not in found[2].texts()
    assert "[Old tool result content cleared]" in found[2].texts()
    assert "1190" in found[2].texts()


def test_a_failed_answer_is_left_out_and_a_failed_call_is_told() -> None:
    found = windows(EXPORT, NAME)
    assert found[3].items == found[4].items
    assert found[4].items[-1] == ("tool_result", "no gas")


def test_a_summary_stands_for_what_was_before_it() -> None:
    found = windows(EXPORT, NAME)
    assert found[5].texts()[-1] == "What did we do so far?"
    assert found[6].items == [
        ("user_message", "What did we do so far?"),
        ("thread_summary", "The kiln is at 1185 degrees and has no gas."),
        ("policy_note", "Continue if you have next steps"),
    ]


def test_a_compaction_may_keep_the_last_messages(tmp_path: Path) -> None:
    said = {"type": "text", "text": "x"}
    path = tmp_path / "export.json"
    path.write_bytes(
        exported(
            message("user", "u1", {**said, "id": "p1", "text": "one"}),
            message("assistant", "a1", {**said, "id": "p2", "text": "two"}),
            message("user", "u2", {**said, "id": "p3", "text": "three"}),
            message("assistant", "a2", {**said, "id": "p4", "text": "four"}),
            message("user", "u3", {"type": "compaction", "id": "p5", "tail_start_id": "u2"}),
            message("assistant", "a3", {**said, "id": "p6", "text": "sum"}, summary=True, finish="stop"),
            message("assistant", "a4", {**said, "id": "p7", "text": "five"}),
        )
    )
    assert windows(path, NAME)[-1].texts() == ["What did we do so far?", "sum", "three", "four"]


def test_answers_whose_ids_were_blanked_are_each_a_request(tmp_path: Path) -> None:
    def answer(native: str, text: str, call: str, tokens: int) -> Json:
        ran = {"status": "completed", "input": {"path": text}, "output": f"the text of {text}"}
        return message(
            "assistant",
            native,
            {"type": "step-start", "id": "REDACTED"},
            {"type": "tool", "id": "REDACTED", "callID": call, "tool": "read", "state": ran},
            {"type": "step-finish", "id": "REDACTED"},
            modelID="m",
            tokens={"input": tokens, "output": 5, "cache": {"read": 0, "write": 0}},
        )

    asked = message("user", "u1", {"type": "text", "text": "read both", "id": "p1"})
    first, second = answer("REDACTED", "a", "REDACTED", 10), answer("REDACTED", "b", "REDACTED", 20)
    path = tmp_path / "export.json"
    path.write_bytes(exported(asked, first, second, second, answer("a3", "c", "call_3", 30)))
    found = windows(path, NAME)
    assert [w.billed() for w in found] == [10, 20, 30]
    assert found[-1].texts() == [
        "read both",
        'read {"path":"a"}',
        "the text of a",
        'read {"path":"b"}',
        "the text of b",
    ]
    told = [problem for problem in imported(NAME, path.read_bytes())[1] if problem.slug == "duplicate-uuid"]
    assert [problem.message for problem in told] == [
        "2 different messages have the id REDACTED: each is read"
    ]


def test_what_opencode_asks_by_itself_is_no_turn(tmp_path: Path) -> None:
    def part(kind: str, native: str, **fields: Any) -> Json:
        return {"type": kind, "id": native, **fields}

    path = tmp_path / "export.json"
    path.write_bytes(
        exported(
            message("user", "m1", part("text", "p1", text="Bake.")),
            message("assistant", "m2", part("text", "p2", text="Baked.")),
            message("user", "m3", part("text", "p3", text="Go on.", synthetic=True)),
            message("assistant", "m4", part("text", "p4", text="On.")),
            message("user", "m5", part("compaction", "p5", auto=False)),
            message("assistant", "m6", part("text", "p6", text="All."), summary=True, finish="stop"),
        )
    )
    assert [w.turn for w in windows(path, NAME)] == ["m1", "m1", "m5"]


def test_what_a_stopped_tool_had_printed_is_its_result(tmp_path: Path) -> None:
    state = {"status": "error", "input": {}, "error": "Tool execution aborted"}
    state["metadata"] = {"interrupted": True, "output": "half"}
    tool = {"type": "tool", "id": "p2", "tool": "bash", "callID": "c1", "state": state}
    path = tmp_path / "export.json"
    path.write_bytes(
        exported(
            message("user", "m1", {"type": "text", "id": "p1", "text": "Bake."}),
            message("assistant", "m2", tool),
            message("assistant", "m3", {"type": "text", "id": "p3", "text": "Burnt."}),
        )
    )
    assert windows(path, NAME)[1].items[-1] == ("tool_result", "half")


def test_messages_that_were_removed_leave_by_a_branch(tmp_path: Path) -> None:
    def told(role: str, native: str, text: str) -> list[Any]:
        part = {"type": "text", "id": f"p-{native}", "messageID": native, "sessionID": "s", "text": text}
        info = {"id": native, "sessionID": "s", "role": role}
        return [event("message.updated", info=info), event("message.part.updated", part=part)]

    lines = [
        *told("user", "m1", "One"),
        *told("assistant", "m2", "Yes"),
        event("session.idle", sessionID="s"),
    ]
    lines += [event("message.removed", sessionID="s", messageID=native) for native in ("m1", "m2", "m9")]
    lines += [*told("user", "m3", "Two"), *told("assistant", "m4", "No")]
    path = tmp_path / "hooks.jsonl"
    path.write_bytes(jsonl(*lines))
    found = windows(path, NAME)
    assert [w.texts() for w in found] == [["One"], ["Two"]]
    assert {c.cause for c in found[1].step.changes if c.status == "removed"} == {"branched"}


def test_older_versions_have_several_requests_in_a_message(tmp_path: Path) -> None:
    tokens = {"input": 10, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    parts: list[Json] = [
        {"type": "step-start", "id": "s1"},
        {
            "type": "tool",
            "id": "t1",
            "callID": "c1",
            "tool": "ls",
            "state": {"status": "running", "input": {}},
        },
        {"type": "step-finish", "id": "f1", "tokens": tokens},
        {"type": "step-start", "id": "s2"},
        {"type": "text", "id": "x1", "text": "done"},
        {"type": "step-finish", "id": "f2", "tokens": {**tokens, "input": 20}},
    ]
    path = tmp_path / "export.json"
    path.write_bytes(exported(message("assistant", "a", *parts, tokens={**tokens, "input": 20})))
    found = windows(path, NAME)
    assert [w.billed() for w in found] == [10, 20]
    assert found[1].texts() == ["ls {}", "[Tool execution was interrupted]"]


def test_hooks_tell_of_tools_and_system_prompt() -> None:
    found = {(w.thread, at): w for at, w in enumerate(windows(HOOKS, NAME))}
    first = next(w for (thread, _), w in found.items() if thread == "main")
    assert first.kinds() == ["tool_definition", "tool_definition", "system_prompt", "user_message"]
    assert first.texts()[2] == "You are an observatory's clerk."
    assert first.step.window.limit == 200_000


def test_a_child_session_is_a_thread_without_the_tools_that_it_may_not_use() -> None:
    child = next(w for w in windows(HOOKS, NAME) if w.thread != "main")
    assert child.kinds() == ["tool_definition", "system_prompt", "user_message"]
    assert child.billed() == 80
    assembly = next(
        event["data"]["metadata"]["ctxctl"]
        for event in imported(NAME, HOOKS.read_bytes())[0]
        if event["event_type"] == "context.assembly.created" and event["thread_id"].startswith("ses_child")
    )
    assert assembly["parent_thread"] == "main"
    assert assembly["parent_tool_call"] == "call_t1"
    assert assembly["agent_type"] == "general"


def test_hooks_upsert_by_id() -> None:
    main = [w for w in windows(HOOKS, NAME) if w.thread == "main"]
    assert [w.billed() for w in main] == [100, 140]
    assert main[1].texts()[4:] == [
        "A task for the agent.",
        'task {"description":"count","prompt":"Count the stars.","subagent_type":"general"}',
        "<task_result>Seven.</task_result>",
    ]
    output = [
        bill["output_tokens"]
        for bill in of_type(imported(NAME, HOOKS.read_bytes())[0], "ctxctl.usage.reported")
    ]
    assert sorted(output) == [3, 6, 28]


def test_pieces_of_a_text_that_was_broken_off_are_put_together() -> None:
    said = {"id": "p", "messageID": "a", "sessionID": "s", "type": "text", "text": ""}
    piece = {"sessionID": "s", "messageID": "a", "partID": "p", "field": "text"}
    lines = [
        event("message.updated", sessionID="s", info={"id": "a", "role": "assistant", "sessionID": "s"}),
        event("message.part.updated", sessionID="s", part=said),
        event("message.part.delta", **piece, delta="half "),
        event("message.part.delta", **piece, delta="a word"),
    ]
    assert items(imported(NAME, jsonl(*lines))[0])["p"]["content"] == "half a word"


def test_printed_events_have_no_prompt() -> None:
    found = windows(RUN, NAME)
    assert [w.billed() for w in found] == [500, 530]
    assert found[1].texts() == ['read {"filePath":"moon.txt"}', "full moon"]


def test_the_database_gives_what_the_export_gives(tmp_path: Path) -> None:
    session = json.loads(EXPORT.read_bytes())
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as made:
        columns = "id TEXT PRIMARY KEY, time_created INTEGER, time_updated INTEGER"
        made.execute(f"CREATE TABLE session ({columns}, project_id TEXT, parent_id TEXT, version TEXT)")
        made.execute(f"CREATE TABLE message ({columns}, session_id TEXT, data TEXT)")
        made.execute(f"CREATE TABLE part ({columns}, message_id TEXT, session_id TEXT, data TEXT)")
        made.execute("INSERT INTO session VALUES (?, 1, 1, 'p', NULL, '1.2.27')", (session["info"]["id"],))
        made.execute("INSERT INTO session VALUES ('child', 2, 2, 'p', ?, '1.2.27')", (session["info"]["id"],))
        for at, one in enumerate([*session["messages"], message("assistant", "m", agent="general")]):
            native = "child" if one["info"]["id"] == "m" else session["info"]["id"]
            row = (one["info"]["id"], at, native, json.dumps(one["info"]))
            made.execute("INSERT INTO message VALUES (?, ?, 0, ?, ?)", row)
            for part in one["parts"]:
                found = (part["id"], one["info"]["id"], native, json.dumps(part))
                made.execute("INSERT INTO part VALUES (?, 0, 0, ?, ?, ?)", found)
    made.close()
    assert FORMAT.detect(path.read_bytes()[: 64 * 1024]) >= 90
    found_windows = windows(path, NAME)
    assert [w.items for w in found_windows if w.thread == "main"] == [w.items for w in windows(EXPORT, NAME)]
    assert [w.thread for w in found_windows][-1] == "child"


@pytest.mark.parametrize("path", [EXPORT, HOOKS, RUN])
def test_captures_are_known(path: Path) -> None:
    data = path.read_bytes()
    assert FORMAT.detect(data) >= 90
    assert FORMAT.detect(b"\xef\xbb\xbf\n" + data[: len(data) * 2 // 3]) >= 90


def test_compact_exports_are_known_and_other_messages_are_not() -> None:
    assert FORMAT.detect(exported()) >= 90
    assert FORMAT.detect(b'{"messages":[{"role":"user","content":"x"}]}') == 0
    assert FORMAT.detect(b'["event",{"name":"x"}]\n') == 0


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [1, None, {"type": 3}]])
def test_fields_of_any_type_do_no_harm(odd: Any) -> None:
    for role in ("user", "assistant"):
        part = dict.fromkeys(("id", "text", "state", "tokens", "callID", "tool", "url", "mime"), odd)
        for kind in ("text", "tool", "file", "reasoning", "step-finish", "compaction", odd):
            imported(NAME, exported(message(role, "m", {**part, "type": kind}), {"info": odd, "parts": odd}))
            record = event(
                "message.part.updated", sessionID="s", part={**part, "type": kind, "messageID": odd}
            )
            imported(NAME, jsonl(record))
        info = dict.fromkeys(("time", "tokens", "error", "tools", "finish", "modelID", "parentID"), odd)
        imported(NAME, exported({"info": {"id": "m", "role": role, **info}, "parts": [{"type": "text"}]}))
    for hook in ("chat.message", "experimental.chat.system.transform", "tool.definition", "event", "?"):
        imported(NAME, jsonl([hook, odd, odd], [hook, {"sessionID": "s", "model": odd}, {"system": odd}]))


def test_a_session_that_is_its_own_parent_does_no_harm(tmp_path: Path) -> None:
    lines = [
        event("session.created", info={"id": "a", "parentID": "b"}),
        event("session.created", info={"id": "b", "parentID": "a"}),
        event("message.updated", sessionID="a", info={"id": "m", "role": "assistant", "sessionID": "a"}),
    ]
    assert len(windows(written(tmp_path, *lines), NAME)) == 1


@pytest.mark.parametrize("odd", [None, 1, [], {}, [1, None, {"type": 3}]])
def test_detection_takes_fields_of_any_type(odd: Any) -> None:
    names = ("type", "role", "content", "message", "method", "response", "id", "sessionId", "parts", "info")
    for name in names:
        record = {"type": "message", "role": "user", "content": [], "message": {"role": odd}, name: odd}
        assert 0 <= FORMAT.detect(jsonl(record, odd, [odd])) <= 100
        assert 0 <= FORMAT.detect(json.dumps({name: [{"type": odd}]}, indent=1).encode()) <= 100


def test_what_the_person_ran_is_no_request(tmp_path: Path) -> None:
    said = {"type": "text", "id": "p", "text": "The following tool was executed by the user"}
    ran = {"type": "tool", "id": "t1", "tool": "bash", "callID": "c1"}
    ran["state"] = {"status": "completed", "input": {"command": "ls"}, "output": "notes"}  # type: ignore[assignment]
    path = tmp_path / "export.json"
    path.write_bytes(
        exported(
            message("user", "m1", {**said, "synthetic": True}),
            message("assistant", "m2", ran),
            message("user", "m3", {"type": "text", "id": "p3", "text": "What is there?"}),
            message("assistant", "m4", {"type": "text", "id": "p4", "text": "Notes."}),
            message("user", "m5", {"type": "subtask", "id": "p5", "agent": "general"}),
            message("assistant", "m6", {**ran, "id": "t2", "callID": "c2", "tool": "task"}),
            message("assistant", "m7", {"type": "text", "id": "p7", "text": "Done."}),
        )
    )
    found = windows(path, NAME)
    assert [window.turn for window in found] == ["m3", "m5"]
    assert found[0].texts() == [said["text"], 'bash {"command":"ls"}', "notes", "What is there?"]
    assert found[1].texts()[-2:] == ['task {"command":"ls"}', "notes"]


def test_a_history_is_rendered_for_a_summary_from_1_18_15_on(tmp_path: Path) -> None:
    long = "é" * 2001
    tool = {"type": "tool", "id": "t", "tool": "read", "callID": "c"}
    tool["state"] = {"status": "completed", "input": {"b": 1, "a": "é"}, "output": long}  # type: ignore[assignment]
    messages = [
        message("user", "m1", {"type": "text", "id": "p1", "text": "Read."}),
        message("assistant", "m2", {"type": "reasoning", "id": "p2", "text": "Hm."}, tool),
        message("user", "m3", {"type": "text", "id": "p3", "text": "Kept."}),
        message("assistant", "m4", {"type": "text", "id": "p4", "text": "Yes."}),
        message("user", "m5", {"type": "compaction", "id": "p5", "tail_start_id": "m3"}),
        message(
            "assistant", "m6", {"type": "text", "id": "p6", "text": "All."},
            summary=True, finish="stop", parentID="m5",
        ),
        message("user", "m7", {"type": "text", "id": "p7", "text": "On."}),
        message("assistant", "m8", {"type": "text", "id": "p8", "text": "So."}),
    ]  # fmt: skip
    for version, wanted in (("1.18.15", 1), ("1.18.14", 6)):
        path = tmp_path / f"{version}.json"
        info = {"id": "ses", "projectID": "p", "directory": "/d", "version": version}
        path.write_text(json.dumps({"info": info, "messages": messages}))
        found = windows(path, NAME)
        assert len(found[2].items) == wanted + (version == "1.18.14")
        assert found[3].texts() == ["What did we do so far?", "All.", "Kept.", "Yes.", "On."]
    asked = windows(tmp_path / "1.18.15.json", NAME)[2].texts()[0]
    assert asked == (
        "Here is the conversation so far:\n\n<conversation>\n[User]: Read.\n\n[Assistant reasoning]: Hm.\n"
        f'[Assistant tool call]: read({{"b":1,"a":"é"}})\n[Tool result]: {"é" * 2000}\n[truncated]\n'
        "</conversation>"
    )


def _failed_summaries(number: int) -> list[Json]:
    text = {"type": "text", "id": "p", "text": "word " * 100}
    asked = [message("user", "m", text)]
    for at in range(number):
        asked.append(message("user", f"q{at}", {"type": "compaction", "id": f"p{at}"}))
        asked.append(
            message("assistant", f"a{at}", {**text, "id": f"s{at}"}, summary=True, parentID=f"q{at}")
        )
    return asked


def _of_version(messages: list[Json], version: str = "1.18.15") -> bytes:
    info = {"id": "ses", "projectID": "p", "directory": "/d", "version": version}
    return json.dumps({"info": info, "messages": messages}).encode()


def _as_database(path: Path, messages: list[Json]) -> None:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE session (id TEXT, time_created INTEGER, version TEXT)")
        made.execute("CREATE TABLE message (id TEXT, time_created INTEGER, session_id TEXT, data TEXT)")
        made.execute("CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)")
        made.execute("INSERT INTO session VALUES ('s', 1, '1.18.15')")
        for at, one in enumerate(messages):
            native = one["info"]["id"]
            made.execute("INSERT INTO message VALUES (?, ?, 's', ?)", (native, at, json.dumps(one["info"])))
            for part in one["parts"]:
                made.execute("INSERT INTO part VALUES (?, ?, ?)", (part["id"], native, json.dumps(part)))
    made.close()


@pytest.mark.parametrize("form", ["export", "database"])
def test_a_history_is_not_rendered_without_end(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ctxctl.importers.opencode.session._ROOM", 2000)
    monkeypatch.setattr("ctxctl.importers.opencode.session._TIMES", 0)

    def read(number: int) -> tuple[list[Json], list[Any]]:
        messages = _failed_summaries(number)
        if form == "export":
            return imported(NAME, _of_version(messages))
        path = tmp_path / f"{number}.db"
        _as_database(path, messages)
        return imported(NAME, path.read_bytes())

    assert read(2)[1] == []
    few, many = read(8), read(40)
    assert len(json.dumps(few[0])) == len(json.dumps(many[0]))
    for _, problems in (few, many):
        (told,) = problems
        assert told.slug == "windows-too-large"
        assert "render the history so often that it comes to more than 2,000 characters" in told.message


def test_results_that_are_pruned_at_one_time_are_each_blank(tmp_path: Path) -> None:
    def ran(native: str, cleared: int) -> Json:
        state = {"status": "completed", "input": {}, "output": native, "time": {"compacted": cleared}}
        return {"type": "tool", "id": native, "tool": "read", "callID": native, "state": state}

    path = tmp_path / "export.json"
    path.write_bytes(
        exported(
            message("assistant", "m1", ran("t1", 2), ran("t2", 5), time={"created": 1}),
            message("assistant", "m2", ran("t3", 5), time={"created": 3}),
            message("assistant", "m3", time={"created": 6}),
        )
    )
    found = windows(path, NAME)
    blank = "[Old tool result content cleared]"
    assert found[2].texts().count(blank) == 3
    assert found[1].texts() == ["read {}", "read {}", blank, "t2"]

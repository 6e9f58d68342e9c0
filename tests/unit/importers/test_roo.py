"""Tasks of Roo Code and Cline: histories, chats, both together; sessions of Cline's SDK."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.importers.roo.reader import bill
from ctxctl.ingest.folder import Folder
from ctxctl.session import Inspector
from tests.unit.importers.agent_help import FIXTURES, Json, imported, items, of_type, windows

NAME = "roo"
TASK = FIXTURES / "roo" / "task"
HISTORY = "api_conversation_history.json"
CHAT = "ui_messages.json"
COMPACTED = "context.compaction.completed"
USAGE = "ctxctl.usage.reported"


def said(role: str, text: str, **fields: Any) -> Json:
    return {"role": role, "content": [{"type": "text", "text": text}], **fields}


def history(*messages: Json) -> bytes:
    return json.dumps(messages).encode()


def test_a_task_has_its_requests_from_the_chat_and_its_windows_from_the_history() -> None:
    found = windows(TASK, NAME)
    assert [w.step.step_id for w in found] == ["1760000000050", "1760000004000", "1760000060050"]
    assert [w.turn for w in found] == ["1760000000100", "1760000000100", "1760000060100"]
    assert [w.billed() for w in found] == [9004, 9305, 9506]
    assert found[1].kinds() == [
        "user_message", "runtime_state", "reasoning", "assistant_message", "tool_call", "tool_result",
        "tool_result", "runtime_state",
    ]  # fmt: skip
    assert found[2].kinds()[-5:] == ["tool_result", "tool_result", "user_message", "image", "runtime_state"]


def test_the_editors_state_is_one_item_that_is_renewed() -> None:
    events, _ = imported(NAME, (TASK / HISTORY).read_bytes())
    assert len(of_type(events, "context.item.updated")) == 2
    state = items(events)["environment_details"]
    assert state["content"].startswith("<environment_details>")
    assert state["source_refs"][0]["source_id"] == "environment_details"


def test_a_call_in_xml_is_an_item_and_loses_no_character() -> None:
    answer = windows(TASK / HISTORY, NAME)[1].items
    texts = [text or "" for kind, text in answer if kind in ("assistant_message", "tool_call")]
    stored = json.loads((TASK / HISTORY).read_bytes())[1]["content"][1]["text"]
    assert "".join(texts) == stored


def test_an_unclosed_call_is_text() -> None:
    events, _ = imported(
        NAME, history(said("user", "<task>a</task>"), said("assistant", "<read_file>\n<path>"))
    )
    assert {i["context_kind"] for i in items(events).values()} == {"user_message", "assistant_message"}


def test_a_history_alone_has_a_request_for_each_answer_and_no_bill() -> None:
    found = windows(TASK / HISTORY, NAME)
    assert [len(w.items) for w in found] == [2, 8, 15]
    assert all(w.billed() is None for w in found)


def test_a_chat_alone_has_bills_and_what_was_shown() -> None:
    found = windows(TASK / CHAT, NAME)
    assert [w.billed() for w in found] == [9004, 9305, 9506]
    assert found[1].kinds() == [
        "user_message", "runtime_state", "assistant_message", "tool_call", "tool_result", "runtime_state",
    ]  # fmt: skip
    events, _ = imported(NAME, (TASK / CHAT).read_bytes())
    assert all(item["metadata"]["ctxctl"]["derived"] for item in items(events).values())


def test_the_files_in_context_are_told() -> None:
    events, _ = imported(NAME, (TASK / "task_metadata.json").read_bytes())
    assert of_type(events, "ctxctl.source.opened")[0]["files_in_context"][0]["path"] == "tides/table.py"


def test_condensed_messages_leave_and_those_behind_a_marker_too() -> None:
    events, problems = imported(NAME, (FIXTURES / "roo" / "condensed" / HISTORY).read_bytes())
    assert not problems
    first, second = of_type(events, COMPACTED)
    assert (first["compaction_id"], len(first["source_item_refs"])) == ("c-1", 6)
    assert (second["compaction_id"], second["method"]) == ("t-1", "truncation")
    found = windows(FIXTURES / "roo" / "condensed" / HISTORY, NAME)
    assert found[2].kinds() == ["thread_summary", "user_message", "runtime_state"]
    assert found[3].kinds() == ["thread_summary", "user_message", "user_message", "runtime_state"]


def test_what_was_deleted_is_told_by_the_chat() -> None:
    found = windows(FIXTURES / "roo" / "deleted", NAME)
    assert [w.billed() for w in found] == [9000, 4000]
    assert found[0].kinds() == ["user_message", "runtime_state"]
    assert found[1].kinds() == [
        "user_message", "runtime_state", "thread_summary", "tool_result", "tool_result", "runtime_state",
    ]  # fmt: skip


STATE = "<environment_details>\n# Current Time\n{}\n</environment_details>"
REPORT = "The report of the owls."
FINISHED = "<attempt_completion>\n<result>\nDone.\n</result>\n</attempt_completion>"


def blocks(role: str, *texts: str, **fields: Any) -> Json:
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts], **fields}


def condensed_in_place(path: Path, report: str = REPORT) -> None:
    """A task whose third request was condensed by a version that deletes: it kept the last two messages."""
    messages = [
        blocks("user", "<task>\nName the owls\n</task>", STATE.format(1), ts=100),
        blocks("assistant", "The owls were listed.", ts=3000, isSummary=True),
        blocks("user", "[list_files for 'owls'] Result:", "barn-owl", STATE.format(2), ts=3000),
        blocks("assistant", f"{report}\n{FINISHED}", ts=4000),
        blocks("user", "<feedback>\nMore\n</feedback>", STATE.format(3), STATE.format(4), ts=5060),
        blocks("assistant", "More owls.", ts=7000),
    ]

    def shown(kind: str, said: str, ts: int, text: str) -> Json:
        return {"ts": ts, "type": kind, kind: said, "text": text}

    def sent(ts: int, *texts: str) -> Json:
        request = {"request": "\n\n".join(texts), "apiProtocol": "openai", "tokensIn": 900, "tokensOut": 9}
        return shown("say", "api_req_started", ts, json.dumps(request))

    chat = [
        shown("say", "text", 0, "Name the owls"),
        sent(50, "<task>\nName the owls\n</task>", STATE.format(1)),
        shown("say", "text", 1500, "I list the folder."),
        shown("ask", "tool", 1600, json.dumps({"tool": "listFilesTopLevel", "path": "owls"})),
        sent(2950, "[list_files for 'owls'] Result:", "barn-owl", STATE.format(2)),
        shown("say", "text", 3500, REPORT),
        shown("say", "completion_result", 3600, "Done."),
        shown("ask", "tool", 4100, json.dumps({"tool": "finishTask"})),
        shown("say", "user_feedback", 5000, "More"),
        sent(5050, "<feedback>\nMore\n</feedback>", STATE.format(3)),
        {"ts": 6000, "type": "say", "say": "condense_context",
         "contextCondense": {"summary": "The owls were listed.", "cost": 0}},
        shown("say", "text", 6900, "More owls."),
    ]  # fmt: skip
    summary = messages[1]
    summary["content"] = "The owls were listed."
    (path / HISTORY).write_text(json.dumps(messages))
    (path / CHAT).write_text(json.dumps(chat))


def test_in_the_chat_alone_a_request_is_shown_before_its_condensation(tmp_path: Path) -> None:
    condensed_in_place(tmp_path)
    found = windows(tmp_path / CHAT, NAME)
    assert [len(w.step.annotations.compactions) for w in found] == [0, 0, 1]
    assert found[2].kinds() == ["thread_summary", "user_message", "runtime_state"]


def told(path: Path) -> list[Json]:
    """The events of a task's directory."""
    importer = registry.by_name(NAME)
    assert importer.reads_folders
    return list(importer.folder_events(Folder("tasks", path), lambda problem: None))


def test_what_a_condensation_kept_is_the_item_that_the_chat_showed(tmp_path: Path) -> None:
    condensed_in_place(tmp_path)
    found = windows(tmp_path, NAME)
    assert [len(w.items) for w in found] == [2, 7, 11]
    last = found[2].step
    changes = {change.item: change.status for change in last.changes}
    assert {item for item, status in changes.items() if status in ("removed", "omitted")} == {
        "chat-2",
        "chat-3",
    }
    assert changes["message-3/0"] == changes["message-3/1"] == "added", "the answer of the request before"
    (compaction,) = of_type(told(tmp_path), COMPACTED)
    assert sorted(ref.partition("@")[0] for ref in compaction["source_item_refs"]) == ["chat-2", "chat-3"]
    (time,) = [event["time"] for event in told(tmp_path) if event["event_type"] == COMPACTED]
    assert time == "1970-01-01T00:00:03+00:00", "that of the summary"


def test_the_editors_state_is_one_item_after_a_condensation_too(tmp_path: Path) -> None:
    condensed_in_place(tmp_path)
    with Inspector.open(tmp_path) as inspector:
        inspector.replay()
        placements = inspector.frame(2).placements
    states = [(p.item, p.kind) for p in placements if p.kind == "runtime_state"]
    assert states == [("environment_details", "runtime_state")] * 4


def test_a_message_that_says_another_thing_than_the_chat_is_another_item(tmp_path: Path) -> None:
    condensed_in_place(tmp_path, report="An edited report.")
    gone = {c.item for c in windows(tmp_path, NAME)[2].step.changes if c.status in ("removed", "omitted")}
    assert "chat-5" in gone


def test_a_summary_stands_before_what_was_kept(tmp_path: Path) -> None:
    messages = [
        said("user", "<task>a</task>", ts=1),
        said("assistant", "one", ts=2, condenseParent="c"),
        said("assistant", "the summary", ts=3, isSummary=True, condenseId="c"),
        said("user", "<feedback>b</feedback>", ts=4),
        said("assistant", "two", ts=5),
    ]
    chat = [
        {"ts": time, "type": "say", "say": "api_req_started", "text": json.dumps({"tokensIn": 5})}
        for time in (0.5, 3.5)
    ]
    chat.append({"ts": 4.5, "type": "say", "contextCondense": {"condenseId": "c", "summary": "the summary"}})
    (tmp_path / HISTORY).write_text(json.dumps(messages))
    (tmp_path / CHAT).write_text(json.dumps(chat))
    found = windows(tmp_path, NAME)
    assert found[1].texts() == ["<task>a</task>", "the summary", "<feedback>b</feedback>"]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"apiProtocol": "openai", "tokensIn": 100, "cacheReads": 80}, 100),
        ({"apiProtocol": "anthropic", "tokensIn": 100, "cacheReads": 80, "cacheWrites": 5}, 185),
        ({"tokensIn": 3, "cacheWrites": 16041}, 16044),
        ({"tokensIn": 0, "tokensOut": 0}, None),
        ({"tokensIn": "3"}, None),
        ({}, None),
    ],
)
def test_what_a_request_was_billed(fields: Json, wanted: int | None) -> None:
    found = bill(fields)
    assert (found["input_tokens"] if found is not None else None) == wanted


def test_directories_of_tasks_are_sessions(tmp_path: Path) -> None:
    for name in ("t-1", "t-2"):
        shutil.copytree(TASK, tmp_path / name)
    folder = Folder("tasks", tmp_path)
    importer = registry.by_name(NAME)
    assert importer.reads_folders
    assert importer.detect_folder(folder) >= 90
    events = list(registry.capture_events(registry.by_name(NAME), folder, lambda problem: None))
    assert {e.get("session_id") for e in events} == {"t-1", "t-2", None}
    assert len({e["event_id"] for e in events}) == len(events)


def test_a_task_somewhere_below_says_nothing_of_all_the_rest(tmp_path: Path) -> None:
    shutil.copytree(TASK, tmp_path / "t-1")
    (tmp_path / "t-1" / "checkpoints" / "objects").mkdir(parents=True)
    for number in range(20):  # a task's own, whatever it is
        (tmp_path / "t-1" / "checkpoints" / "objects" / str(number)).touch()
    importer = registry.by_name(NAME)
    assert importer.detect_folder(Folder("tasks", tmp_path)) >= 90
    for number in range(60):
        (tmp_path / f"{number}.jsonl").touch()
    assert importer.detect_folder(Folder("sessions", tmp_path)) == 0


@pytest.mark.parametrize(
    "messages",
    [
        [None, 3, "x", {"role": 4}, {"role": "user"}, {"role": "user", "content": 5}],
        [{"role": "assistant", "content": [{"type": 3}, None], "ts": "x"}],
        [{"role": "user", "isSummary": True, "condenseId": 7, "content": {}}],
        [{"ts": [], "type": "say", "say": "api_req_started", "text": "{"}, {"say": [], "ts": None}],
        [{"ts": 1, "type": "say", "say": "api_req_started", "text": '{"tokensIn": -1, "request": 4}'}],
    ],
)
def test_wrong_types_are_tolerated(messages: list[Any]) -> None:
    imported(NAME, json.dumps(messages).encode())


def test_what_is_no_task_is_not_claimed() -> None:
    importer = registry.by_name(NAME)
    assert importer.detect(b'[{"role": "user", "content": "hi"}]') == 0
    assert importer.detect(b'[{"ts": 1, "type": "point", "say": 2}]') == 0
    assert registry.of_head((TASK / CHAT).read_bytes()) is importer


# -- Cline's SDK ------------------------------------------------------------------------------------------


def test_a_session_of_the_sdk() -> None:
    path = FIXTURES / "cline" / "session.messages.json"
    found = windows(path, "cline")
    assert [w.billed() for w in found] == [4200, 4300]
    assert found[0].kinds() == ["system_prompt", "user_message", "external_resource"]
    assert found[1].kinds()[3:] == ["reasoning", "tool_call", "tool_result"]
    assert found[0].step.model == "claude-sonnet-4-5"


def test_what_a_compaction_of_the_sdk_left() -> None:
    events, _ = imported("cline", (FIXTURES / "cline" / "session.compaction.json").read_bytes())
    told = of_type(events, COMPACTED)[0]
    assert told["metadata"]["native"] == {"tokensBefore": 4312}
    assert told["summary_ref"].startswith("s1/0@")

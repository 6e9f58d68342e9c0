"""iFlow's transcripts: lines like Claude Code's, whose parents are none."""

from __future__ import annotations

import shutil
from pathlib import Path

from ctxctl.importers import registry
from ctxctl.importers.claude_code import FORMAT as CLAUDE_CODE
from ctxctl.importers.iflow import FORMAT as IFLOW
from ctxctl.ingest.folder import Folder
from tests.unit.importers.agent_help import FIXTURES, Json, imported, jsonl, of_type, windows

CAPTURE = FIXTURES / "iflow" / "session.jsonl"
CLAUDE = FIXTURES / "claude_code"


def line(kind: str, uuid: str, parent: str | None, content: object, **fields: object) -> Json:
    message: Json = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"r-{uuid}", "model": "glm", "usage": {"input_tokens": 0, "output_tokens": 0}}
    return {
        "uuid": uuid, "parentUuid": parent, "sessionId": "session-1", "timestamp": "2026-01-01T00:00:00.000Z",
        "type": kind, "isSidechain": False, "userType": "external", "message": message, **fields,
    }  # fmt: skip


def test_its_lines_are_told_from_claude_codes() -> None:
    found = registry.of_head(CAPTURE.read_bytes()[: registry.HEAD])
    assert found is not None
    assert found.name == "iflow"
    for path in CLAUDE.rglob("*.jsonl"):
        assert IFLOW.detect(path.read_bytes()) == 0, path


def test_a_line_longer_than_the_head_is_known_too() -> None:
    head = jsonl(line("user", "u", None, "x" * 9000))[:4000]
    assert IFLOW.detect(head) > CLAUDE_CODE.detect(head) > 0
    renamed = jsonl({**line("user", "u", None, "hi"), "sessionId": "5e55"})
    assert IFLOW.detect(renamed) == 0
    wrapped = {"functionResponse": {"id": "c", "name": "f", "response": {"output": "ok"}}}
    block = {"type": "tool_result", "tool_use_id": "c", "content": wrapped}
    assert IFLOW.detect(jsonl({**line("user", "u", None, [block]), "sessionId": "5e55"})) > 95


def test_an_answer_is_one_request_and_its_overlapping_lines_one_call_each() -> None:
    found = windows(CAPTURE, "iflow")
    assert [len(w.items) for w in found] == [1, 7, 10, 12, 14]
    assert [w.turn for w in found] == [found[0].turn] * 3 + [found[3].turn] * 2
    assert found[1].kinds() == [
        "user_message", "assistant_message", "tool_call", "tool_call", "tool_result", "policy_note",
        "tool_result",
    ]  # fmt: skip
    calls = [text for kind, text in found[-1].items if kind == "tool_call"]
    assert len(calls) == len(set(calls)) == 4


def test_a_result_is_what_its_function_answered() -> None:
    last = windows(CAPTURE, "iflow")[-1]
    results = [text for kind, text in last.items if kind == "tool_result"]
    assert results[0] == "Bees dance.\nBees make honey.\nBees see ultraviolet."
    assert results[1] == "Count each kind once.\n"
    assert results[3] == "Error: File not found: /home/d/hive/ages.txt"


def test_a_bill_of_nothing_is_none() -> None:
    assert [w.billed() for w in windows(CAPTURE, "iflow")] == [None, None, 16472, None, 16950]


def test_odd_results_keep_what_they_hold() -> None:
    block = {"type": "tool_result", "tool_use_id": "c", "content": {"callId": "c", "responseParts": None}}
    both = {"functionResponse": {"response": {"output": "a", "error": "b"}}}
    other = {"type": "tool_result", "tool_use_id": "d", "content": both}
    lines = [
        line("user", "u", None, "go"),
        line("assistant", "a", "u", [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]),
        line("user", "r", "a", [block, other]),
        line("assistant", "b", "u", [{"type": "text", "text": "done"}]),
    ]
    events, problems = imported("iflow", jsonl(*lines))
    assert not problems
    texts = {data["item_id"]: data.get("content") for data in of_type(events, "context.item.added")}
    assert texts["c/result"] == '{"callId":"c","responseParts":null}'
    assert texts["d/result"] == '{"error":"b","output":"a"}'


def test_nonsense_in_every_field_raises_nothing() -> None:
    for value in jsonl_values():
        for field in value:
            for wrong in (None, 0, -1.5, "", [], [None], {}, {"a": 1}, True):
                imported("iflow", jsonl({**value, field: wrong}))
                message = value["message"]
                for inner in message:
                    imported("iflow", jsonl({**value, "message": {**message, inner: wrong}}))


def jsonl_values() -> list[Json]:
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    return [line("user", "u", None, "go", version="1.0.0"), line("assistant", "a", "u", [block])]


def test_a_projects_directory_is_its_sessions(tmp_path: Path) -> None:
    for name in ("session-a.jsonl", "session-b.jsonl"):
        shutil.copy(CAPTURE, tmp_path / name)
    folder = Folder("p", tmp_path)
    assert IFLOW.detect_folder(folder) > CLAUDE_CODE.detect_folder(folder)
    found = list(IFLOW.folder_events(folder, lambda _: None))
    assert len([e for e in found if e["event_type"] == "context.assembly.created"]) == 10

"""Cursor's transcripts, hook logs and databases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers import registry
from ctxctl.importers.cursor import database
from ctxctl.importers.cursor.parts import user_parts
from ctxctl.ingest.database import value as parsed
from tests.unit.importers.agent_help import FIXTURES, Json, imported, items, jsonl, of_type, windows

NAME = "cursor"
AGENTS = FIXTURES / "cursor" / "agent-transcripts"
MAIN = AGENTS / "a-1" / "a-1.jsonl"
HOOKS = FIXTURES / "cursor" / "hooks.jsonl"
ROOT = "ff" * 32


def store(path: Path, messages: list[Any]) -> Path:
    """A database as the CLI keeps it: messages by digest, a root that lists them."""
    head = {"agentId": "a-9", "name": "Owls", "createdAt": 1775522590321, "lastUsedModel": "claude-4-sonnet",
            "latestRootBlobId": ROOT}  # fmt: skip
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE blobs (id TEXT PRIMARY KEY, data BLOB)")
        made.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
        made.execute("INSERT INTO meta VALUES ('0', ?)", (json.dumps(head).encode().hex(),))
        root = b""
        for number, message in enumerate(messages, 1):
            native = bytes([number]) * 32
            root += b"\x0a\x20" + native
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            made.execute("INSERT INTO blobs VALUES (?, ?)", (native.hex(), data))
        made.execute("INSERT INTO blobs VALUES (?, ?)", (ROOT, root + b"\x4a\x02/w"))
    return path


def vscdb(path: Path, rows: dict[str, Any]) -> Path:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
        made.executemany(
            "INSERT INTO cursorDiskKV VALUES (?, ?)", [(k, json.dumps(v)) for k, v in rows.items()]
        )
    return path


def test_a_transcript_has_a_request_for_each_answer() -> None:
    found = windows(MAIN, NAME)
    assert [w.turn for w in found] == ["turn-1", "turn-1", "turn-2"]
    assert found[0].kinds() == ["runtime_state", "user_message"]
    assert found[1].kinds()[2:] == ["assistant_message", "reasoning", "tool_call"]
    assert found[1].items[3] == ("reasoning", None)
    assert found[2].texts()[-1] == "<user_query>\nAnd the Erdre?\n</user_query>"


class Counted(str):
    """A text that counts the characters that are searched in it, and those that are copied out of it."""

    __slots__ = ("work",)

    def __init__(self, _text: str) -> None:
        self.work = 0

    def find(self, *given: Any) -> int:
        found = super().find(*given)
        self.work += (found if found >= 0 else len(self)) - given[1]
        return found

    def index(self, *given: Any) -> int:
        found = super().index(*given)
        self.work += found - given[1]
        return found

    def __getitem__(self, key: Any) -> str:
        found = super().__getitem__(key)
        self.work += len(found)
        return found


@pytest.mark.parametrize("make", ["<aa>\n".__mul__, "<aa></aa>".__mul__, None])
def test_what_the_editor_put_in_front_is_cut_in_linear_time(make: Callable[[int], str] | None) -> None:
    def work(n: int) -> int:
        names = [f"{chr(97 + i // 26 % 26)}{chr(97 + i % 26)}" for i in range(n)]
        put = make(n) if make is not None else "".join(f"<{name}>\n" for name in names)
        text = Counted(f"{put}\n<user_query>\nHi\n</user_query>")
        made = user_parts(text)
        assert len(made) > n
        assert made[-1].text == "<user_query>\nHi\n</user_query>"
        return text.work

    assert work(400) <= 5 * work(100)


def test_what_the_editor_put_behind_an_image_is_no_part_of_the_question() -> None:
    put = ["[Image]\n", "<image_files>\n1. /w/owl.png\n</image_files>\n", "<timestamp>8:55</timestamp>\n"]
    query = "<user_query>\nwhat is it?\n<timestamp>mine</timestamp>\n</user_query>"
    parts = user_parts("".join(put) + query)
    assert [part.text for part in parts] == [*put, query]
    assert [part.kind for part in parts] == ["custom", "external_resource", "runtime_state", "user_message"]
    assert [part.source for part in parts] == [None, "image_files", "timestamp", None]


@pytest.mark.parametrize(
    "text", ["[Image]\n<timestamp>8:55</timestamp>\nowls", "[Image]", "<timestamp>\nowls"]
)
def test_what_nothing_tells_from_a_question_stays_in_it(text: str) -> None:
    assert [(part.kind, part.text) for part in user_parts(text)] == [("user_message", text)]


def test_sub_agents_of_a_directory_are_threads() -> None:
    found = windows(AGENTS, NAME)
    assert sorted(w.thread for w in found) == ["main"] * 3 + ["s-1"] * 2
    assert {w.step.session for w in found} == {"a-1"}


def test_a_generation_of_a_hook_log_is_billed_once() -> None:
    found = {(w.thread, w.step.step_id): w for w in windows(HOOKS, NAME)}
    assert found["main", "g-1"].billed() == 1000
    assert found["main", "g-2"].billed() == 5000
    assert found["s-1", "g-s"].billed() is None
    assert found["s-1", "g-s"].texts() == ["Count the words of b."]
    events, _ = imported(NAME, HOOKS.read_bytes())
    assert len(of_type(events, "ctxctl.usage.reported")) == 2


def test_a_hook_log_has_calls_files_and_results() -> None:
    held = items(imported(NAME, HOOKS.read_bytes())[0])
    assert held["call_1"]["title"] == "Read: /w/b.md"
    assert held["call_1/result"]["metadata"]["ctxctl"]["derived"] is True
    assert held["/w/b.md"]["content"] == "# B\n"
    assert held["/w/a.md"]["content_mode"] == "opaque"
    assert held["tool_1/result"]["content"] == "no such file"


def test_a_sub_agent_of_a_hook_log_knows_its_call() -> None:
    events, _ = imported(NAME, HOOKS.read_bytes())
    assembly = next(
        e["data"]
        for e in events
        if e.get("thread_id") == "s-1" and e["event_type"] == "context.assembly.created"
    )
    origin = assembly["metadata"]["ctxctl"]
    assert (origin["parent_tool_call"], origin["agent_type"]) == ("call_2", "explore")


def test_a_store_lists_its_messages(tmp_path: Path) -> None:
    call = {"type": "tool-call", "toolCallId": "t-1", "toolName": "Shell", "args": {"command": "ls"}}
    result = {"type": "tool-result", "toolCallId": "t-1", "toolName": "Shell", "result": "owl"}
    path = store(tmp_path / "store.db", [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "<user_query>\nowls?\n</user_query>"}]},
        {"role": "assistant", "content": [{"type": "reasoning", "text": "Look."}, call]},
        {"role": "tool", "content": [result]},
        b"\x01\x02",
        {"role": "assistant", "content": "One owl."},
    ])  # fmt: skip
    found = windows(path, NAME)
    assert [w.kinds() for w in found] == [
        ["system_prompt", "user_message"],
        ["system_prompt", "user_message", "reasoning", "tool_call", "tool_result"],
    ]
    assert found[0].step.model == "claude-4-sonnet"
    _, problems = imported(NAME, path.read_bytes())
    assert [p.slug for p in problems] == ["missing-blob"]


def test_bubbles_are_read_in_the_order_of_their_headers(tmp_path: Path) -> None:
    tool = {"name": "read_file", "toolCallId": "t-1", "rawArgs": '{"path":"a.ts"}', "result": "42 lines"}
    path = vscdb(tmp_path / "state.vscdb", {
        "composerData:c-1": {
            "name": "bug",
            "modelConfig": {"modelName": "gpt-5"},
            "fullConversationHeadersOnly": [
                {"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}, {"bubbleId": "b3", "type": 2},
                {"bubbleId": "gone", "type": 2},
            ],
        },
        "bubbleId:c-1:b1": {"type": 1, "text": "fix it", "createdAt": "2026-10-04T08:00:00Z"},
        "bubbleId:c-1:b2": {"type": 2, "thinking": {"text": "Look."}, "toolFormerData": tool},
        "bubbleId:c-1:b3": {"type": 2, "text": "Fixed.", "tokenCount": {"inputTokens": 9, "outputTokens": 1}},
        "composerData:old": {"conversation": [{"type": 1, "text": "hi", "bubbleId": "x"}]},
        "composerData:null": None,
    })  # fmt: skip
    found = windows(path, NAME)
    first = [w for w in found if w.step.session == "c-1"]
    assert [w.kinds() for w in first] == [
        ["user_message"], ["user_message", "reasoning", "tool_call", "tool_result"],
    ]  # fmt: skip
    assert all(w.billed() is None for w in found)
    _, problems = imported(NAME, path.read_bytes())
    assert [p.slug for p in problems] == ["missing-blob"]


def test_a_database_without_messages_says_so(tmp_path: Path) -> None:
    path = store(tmp_path / "store.db", [])
    with sqlite3.connect(path) as made:
        made.execute("DELETE FROM blobs")
    _, problems = imported(NAME, path.read_bytes())
    assert [(p.slug, p.line) for p in problems] == [("missing-blob", 1)]
    _, problems = imported(NAME, vscdb(tmp_path / "state.vscdb", {}).read_bytes())
    assert [(p.slug, p.line) for p in problems] == [("no-records", 1)]


@pytest.mark.parametrize(
    "record",
    [
        {"role": "user", "message": {"content": [None, 3, {"type": 4}, {"type": "text", "text": 5}]}},
        {"role": "assistant", "message": {"content": "plain"}},
        {"role": [], "message": []},
        {"ts": 1, "evt": [], "payload": {"conversation_id": "c", "hook_event_name": "x"}},
        {"evt": "postToolUse", "payload": {"conversation_id": "c", "tool_output": {"a": 1}, "tool_input": 3}},
        {"evt": "beforeSubmitPrompt", "payload": {"conversation_id": "c", "attachments": [3], "prompt": 4}},
    ],
)
def test_wrong_types_are_tolerated(record: Json) -> None:
    imported(NAME, jsonl({"role": "user", "message": {"content": []}}, record))
    imported(NAME, jsonl({"evt": "stop", "payload": {"hook_event_name": "stop"}}, record))


def test_only_cursors_lines_are_claimed() -> None:
    importer = registry.by_name(NAME)
    assert importer.detect(jsonl({"role": "user", "message": {"content": []}, "uuid": "u"})) == 0
    assert importer.detect(jsonl({"evt": "x", "payload": {}})) == 0
    assert importer.detect(b"SQLite format 3\0" + b"CREATE TABLE messages") == 0
    assert registry.of_head(MAIN.read_bytes()) is importer
    assert registry.of_head(HOOKS.read_bytes()) is importer


def in_all(path: Path) -> tuple[int, list[str]]:
    """The characters of the texts that an import makes parts of, and what it told."""
    events, problems = imported(NAME, path.read_bytes())
    texts = [one["data"].get("content", "") for one in events if one["event_type"] == "context.item.added"]
    return sum(map(len, texts)), [problem.message for problem in problems]


def test_a_message_that_is_listed_again_and_again_ends_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "AGAIN", 2000)
    path = store(tmp_path / "store.db", [{"role": "user", "content": "x" * 5000}])
    again = (b"\x0a\x20" + b"\x01" * 32) * 400
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("UPDATE blobs SET data = ? WHERE id = ?", (again, ROOT))
        opened.commit()
    size, told = in_all(path)
    assert 5000 < size <= path.stat().st_size + 7000
    assert told[0].startswith("the messages that are listed again come to more than")


def test_a_bubble_that_is_listed_again_and_again_ends_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "AGAIN", 2000)
    read: list[bytes] = []

    def value(text: Any) -> Any:
        read.append(str(text).encode())
        return parsed(text)

    monkeypatch.setattr(database, "value", value)
    heads = [{"bubbleId": "b1", "type": 1}] * 400
    composer = {"name": "Owls", "fullConversationHeadersOnly": heads}
    rows: dict[str, Any] = {f"composerData:c{n}": composer for n in (1, 2)}
    rows |= {f"bubbleId:c{n}:b1": {"type": 1, "text": "x" * 5000} for n in (1, 2)}
    path = vscdb(tmp_path / "state.vscdb", rows)
    told = in_all(path)[1]
    assert 5000 < sum(len(text) for text in read if b"x" * 5000 in text) <= path.stat().st_size + 8000
    assert len([one for one in told if one.startswith("the messages that are listed again")]) == 1
    assert len(of_type(imported(NAME, path.read_bytes())[0], "ctxctl.source.opened")) == 1


def test_a_few_messages_may_be_listed_again(tmp_path: Path) -> None:
    path = store(tmp_path / "store.db", [{"role": "user", "content": "Go on."}])
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("UPDATE blobs SET data = ? WHERE id = ?", ((b"\x0a\x20" + b"\x01" * 32) * 3, ROOT))
        opened.commit()
    assert in_all(path) == (18, [])

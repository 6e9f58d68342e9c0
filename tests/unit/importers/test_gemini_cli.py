"""Gemini CLI: recorded chats, saved histories, recorded replies, printed events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxctl.importers.gemini_cli import FORMAT
from ctxctl.importers.gemini_cli.reader import Chat, RowsOfItems
from ctxctl.ingest.build import block
from ctxctl.ingest.run import Run
from tests.unit.importers.agent_help import FIXTURES, Json, imported, jsonl, of_type, windows, written

NAME = "gemini-cli"
FOLDER = FIXTURES / "gemini_cli"
CHAT = FOLDER / "session.json"
LINES = FOLDER / "session.jsonl"
HEAD = {"sessionId": "s", "projectHash": "p", "startTime": "2026-01-01T00:00:00Z", "kind": "main"}


def asked(native: str, text: str) -> Json:
    return {"id": native, "type": "user", "timestamp": "2026-01-01T00:00:01Z", "content": text}


def said(native: str, text: str, **fields: Any) -> Json:
    return {"id": native, "type": "gemini", "timestamp": "2026-01-01T00:00:02Z", "content": text, **fields}


def test_an_answer_is_a_request_and_holds_its_results() -> None:
    found = windows(CHAT, NAME)
    assert [w.turn for w in found] == ["g-u1", "g-u1", "g-u1", "g-u2"]
    assert found[1].items[5:] == [
        ("assistant_message", "I will look."),
        ("tool_call", 'list_directory {"path":"shelf"}'),
        ("tool_call", 'read_file {"file_path":"gone.txt"}'),
        ("tool_result", "atlas\nalmanac"),
        ("tool_result", "File not found"),
    ]


def test_calls_that_were_recorded_by_themselves_belong_to_the_answer_before() -> None:
    found = windows(CHAT, NAME)
    assert len(found) == 4
    assert found[2].items[-3:] == [
        ("assistant_message", "I check the list of loans."),
        ("tool_call", 'read_file {"file_path":"loans.txt"}'),
        ("tool_result", "dictionary"),
    ]


def test_input_holds_what_was_cached_and_output_what_was_thought() -> None:
    bills = of_type(imported(NAME, CHAT.read_bytes())[0], "ctxctl.usage.reported")
    assert [(b["input_tokens"], b["cached_tokens"], b["output_tokens"]) for b in bills] == [
        (5000, 0, 60),
        (5100, 4800, 45),
        (5200, 5000, 9),
        (5260, 5100, 15),
    ]
    total = sum(b["input_tokens"] + b["output_tokens"] for b in bills)
    chat = json.loads(CHAT.read_bytes())
    assert total == sum(m["tokens"]["total"] for m in chat["messages"] if m["type"] == "gemini")


def test_files_that_a_message_refers_to_are_apart() -> None:
    assert windows(CHAT, NAME)[0].kinds() == ["user_message", *["external_resource"] * 4]


def test_what_the_cli_tells_the_person_is_not_sent() -> None:
    texts = [text or "" for w in windows(CHAT, NAME) for text in w.texts()]
    assert not any("Update available" in text or "API Error" in text or text == "shelf." for text in texts)


def test_a_chat_in_lines_gives_what_the_document_gives_and_rewinds() -> None:
    document, lines = windows(CHAT, NAME), windows(LINES, NAME)
    assert [w.items for w in lines[:4]] == [w.items for w in document]
    assert lines[4].items == [*document[3].items[:-1], ("user_message", "When is it back?")]
    assembly = of_type(imported(NAME, LINES.read_bytes())[0], "context.assembly.created")[4]
    assert assembly["metadata"]["ctxctl"]["cause"] == "branched"


def test_a_history_that_was_replaced_asks_nothing_again(tmp_path: Path) -> None:
    lines = [
        HEAD,
        asked("u1", "one"),
        said("a1", "two"),
        {"$set": {"messages": [asked("u9", "short")]}},
        asked("u2", "three"),
    ]
    found = windows(written(tmp_path, *lines, said("a2", "four")), NAME)
    assert [w.texts() for w in found] == [["one"], ["short", "three"]]


def answered(native: str, call: str, output: Any) -> Json:
    """What newer versions record beside the call: the message that took its result to the model."""
    response = {"id": call, "name": "look", "response": {"output": output}}
    return {**asked(native, ""), "content": [{"functionResponse": response}]}


def called(call: str, output: str) -> Json:
    result = [{"functionResponse": {"id": call, "name": "look", "response": {"output": output}}}]
    return {"id": call, "name": "look", "args": {"at": "x"}, "status": "success", "result": result}


def test_a_recorded_result_is_no_prompt_and_stands_once(tmp_path: Path) -> None:
    lines = [
        HEAD,
        asked("u1", "one"),
        said("a1", "", model="m"),
        said("a1", "", model="m", toolCalls=[called("c1", "seen"), called("c2", "long")]),
        answered("u2", "c1", "seen"),
        answered("u3", "c2", "cut"),
        said("a2", "two", model="m"),
    ]
    found = windows(written(tmp_path, *lines), NAME)
    assert [(w.turn, w.texts()) for w in found] == [
        ("u1", ["one"]),
        ("u1", ["one", 'look {"at":"x"}', 'look {"at":"x"}', "seen", "cut"]),
    ]


def test_files_of_a_result_are_kept_in_a_notice_and_the_words_before_it_are_made_up(tmp_path: Path) -> None:
    data = [{"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}]
    lines = [
        HEAD,
        asked("u1", "one"),
        said("a1", "", model="m", toolCalls=[called("c1", "seen")]),
        answered("u2", "c1", "seen"),
        {**said("a2", ""), "content": [{"text": "Binary content received.", "thought": True}]},
        {**asked("i1", ""), "type": "info", "content": data},
        {**asked("i2", "Update available!"), "type": "info"},
        said("a3", "two", model="m"),
    ]
    found = windows(written(tmp_path, *lines), NAME)
    assert [w.kinds() for w in found] == [
        ["user_message"],
        ["user_message", "tool_call", "tool_result", "image"],
    ]


def test_a_rewritten_history_holds_each_call_once(tmp_path: Path) -> None:
    """The CLI writes each turn's parts into its message, beside the calls it keeps there anyway."""
    call = {"functionCall": {"id": "c1", "name": "look", "args": {"at": "x"}}}
    masked = "<tool_output_masked>\nstored\n</tool_output_masked>"
    rewritten = [
        asked("u0", "<session_context>\nhere\n</session_context>"),
        asked("u1", "one"),
        said("a1", "", model="m", toolCalls=[called("c1", masked)]) | {"content": [call]},
        answered("u2", "c1", masked),
    ]
    lines = [
        HEAD,
        asked("u1", "one"),
        said("a1", "", model="m", toolCalls=[called("c1", "seen")]),
        answered("u2", "c1", "seen"),
        {"$set": {"messages": rewritten}},
        said("a2", "two", model="m"),
    ]
    found = windows(written(tmp_path, *lines), NAME)
    assert [w.turn for w in found] == ["u1", "u1"]
    assert found[1].items == [
        ("runtime_state", "<session_context>\nhere\n</session_context>"),
        ("user_message", "one"),
        ("tool_call", 'look {"at":"x"}'),
        ("tool_result", masked),
    ]
    [entered] = [change for change in found[1].step.changes if change.kind == "tool_result"]
    assert "truncated" in entered.flags


def test_a_compressed_history_is_a_compaction(tmp_path: Path) -> None:
    kept = asked("u2", "two")
    rewritten = [asked("s1", "<state_snapshot>all</state_snapshot>"), said("s2", "Got it."), kept]
    lines = [HEAD, asked("u1", "one"), said("a1", "done", model="m"), kept, {"$set": {"messages": rewritten}}]
    path = written(tmp_path, *lines, said("a2", "yes", model="m"))
    found = windows(path, NAME)
    assert found[1].kinds() == ["thread_summary", "assistant_message", "user_message"]
    [compaction] = of_type(imported(NAME, path.read_bytes())[0], "context.compaction.completed")
    assert [ref.partition("@")[0] for ref in compaction["source_item_refs"]] == ["u1", "a1"]
    assert compaction["summary_ref"].startswith("s1@")


def test_a_prompt_that_was_taken_back_is_in_no_later_request(tmp_path: Path) -> None:
    first = [asked("u1", "one"), said("a1", "done", model="m")]
    lines = [HEAD, *first, asked("u2", "two"), {"$set": {"messages": first}}, asked("u3", "three")]
    found = windows(written(tmp_path, *lines, said("a3", "yes", model="m")), NAME)
    assert [(w.turn, w.texts()) for w in found] == [("u1", ["one"]), ("u3", ["one", "done", "three"])]


def test_a_chat_of_a_sub_agent_says_so() -> None:
    found, _ = imported(NAME, jsonl({**HEAD, "kind": "subagent"}, asked("u", "x"), said("a", "y")))
    [assembly] = of_type(found, "context.assembly.created")
    assert assembly["metadata"]["ctxctl"]["agent_type"] == "subagent"


def test_a_checkpoint_is_a_history_whose_greeting_nobody_was_asked_for() -> None:
    found = windows(FOLDER / "checkpoint-day.json", NAME)
    assert [len(w.items) for w in found] == [4, 7]
    assert found[1].kinds() == [
        "runtime_state",
        "assistant_message",
        "user_message",
        "image",
        "assistant_message",
        "tool_call",
        "tool_result",
    ]


def test_replies_have_a_bill_and_an_empty_window() -> None:
    found = windows(FOLDER / "run.responses", NAME)
    assert [(w.billed(), w.items) for w in found] == [(700, []), (90, [])]
    told = of_type(imported(NAME, (FOLDER / "run.responses").read_bytes())[0], "context.item.added")
    assert [(item["context_kind"], item["content"]) for item in told] == [
        ("reasoning", "**Thinking**"),
        ("assistant_message", "It is late."),
        ("tool_call", "clock {}"),
        ("assistant_message", '{"next_speaker":"user"}'),
    ]
    bill = of_type(imported(NAME, (FOLDER / "run.responses").read_bytes())[0], "ctxctl.usage.reported")[0]
    assert (bill["output_tokens"], bill["reasoning_tokens"], bill["cached_tokens"]) == (29, 20, 600)


def test_printed_pieces_are_one_text_and_a_new_answer_is_a_new_request() -> None:
    found = windows(FOLDER / "stream.jsonl", NAME)
    assert [w.billed() for w in found] == [None] * 3
    assert found[2].items == [
        ("user_message", "How deep is the well?"),
        ("assistant_message", "I let a stone fall."),
        ("tool_call", 'drop {"what":"stone"}'),
        ("tool_result", "two seconds"),
        ("tool_call", 'drop {"what":"rope"}'),
        ("tool_result", "no rope"),
    ]


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_captures_are_known(path: Path) -> None:
    data = path.read_bytes()
    assert FORMAT.detect(data) >= 80
    assert FORMAT.detect(b"\xef\xbb\xbf\r\n" + data) >= 80


@pytest.mark.parametrize(
    "other",
    [
        {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
        {"type": "system", "subtype": "init", "session_id": "s", "model": "m"},
        {"type": "user", "message": {"role": "user", "content": "x"}, "sessionId": "s"},
        [{"role": "user", "content": "x"}],
        {"jsonrpc": "2.0", "method": "tools/list", "id": 1},
        {"method": "tools/list", "response": {"tools": []}},
        {"id": "m", "type": "user", "timestamp": "t", "content": "x", "session": "another client's"},
    ],
)
def test_other_captures_are_left_alone(other: Any) -> None:
    assert FORMAT.detect(jsonl(other)) == 0
    assert FORMAT.detect(json.dumps(other, indent=2).encode()) == 0


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [1, None, {"type": 3}]])
def test_fields_of_any_type_do_no_harm(odd: Any) -> None:
    for kind in ("user", "gemini", "info", odd):
        fields = dict.fromkeys(("content", "toolCalls", "tokens", "model", "thoughts", "timestamp"), odd)
        message = {"id": "m", "type": kind, **fields}
        imported(NAME, json.dumps({**HEAD, "messages": [message, odd]}).encode())
        imported(NAME, jsonl(HEAD, message, {**message, "id": odd}, {"$set": odd}, {"$rewindTo": odd}))
    call = dict.fromkeys(("id", "name", "args", "result", "status"), odd)
    imported(NAME, json.dumps({**HEAD, "messages": [said("a", "x", toolCalls=[call])]}).encode())
    imported(NAME, json.dumps([{"role": "model", "parts": odd}, {"role": odd, "parts": [odd]}]).encode())
    imported(NAME, jsonl({"method": "generateContent", "response": odd}, {"method": odd, "response": odd}))
    imported(
        NAME, jsonl({"method": "generateContent", "response": {"candidates": odd, "usageMetadata": odd}})
    )
    for kind in ("init", "message", "tool_use", "tool_result", "result"):
        imported(NAME, jsonl({"type": kind, "content": odd, "tool_id": odd, "output": odd, "error": odd}))


@pytest.mark.parametrize("odd", [None, 1, [], {}, [1, None, {"type": 3}]])
def test_detection_takes_fields_of_any_type(odd: Any) -> None:
    names = ("type", "role", "content", "message", "method", "response", "id", "sessionId", "parts", "info")
    for name in names:
        record = {"type": "message", "role": "user", "content": [], "message": {"role": odd}, name: odd}
        assert 0 <= FORMAT.detect(jsonl(record, odd, [odd])) <= 100
        assert 0 <= FORMAT.detect(json.dumps({name: [{"type": odd}]}, indent=1).encode()) <= 100


class CountedId(str):
    """An id that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedId.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class CountedRows(list[Any]):
    """Rows of a window that count how often one is looked at."""

    looked = 0

    def __getitem__(self, at: Any) -> Any:
        self.looked += 1
        return super().__getitem__(at)


def test_a_rewind_finds_its_message_without_a_search() -> None:
    def work(n: int) -> int:
        run = Run(NAME, lambda _: None)
        chat = Chat(run)
        ids = [CountedId(f"x{i}") for i in range(n)]
        for native in ids:
            chat.message(asked(native, "hi"))
        CountedId.compared = 0
        assert all(chat.rewind(CountedId(native)) for native in reversed(ids))
        assert not chat.rewind("x0")
        assert len(run.thread()) == 0
        return CountedId.compared

    assert work(200) <= 5 * work(50)


def test_results_that_are_told_again_find_their_calls_without_a_search() -> None:
    def answered(i: int, output: str) -> Json:
        return {"functionResponse": {"id": f"c{i}", "name": "x", "response": {"output": output}}}

    def work(n: int) -> int:
        run = Run(NAME, lambda _: None)
        window = run.thread()
        window.rows = rows = CountedRows()
        chat = Chat(run)
        calls = [{"id": f"c{i}", "name": "x", "args": {}, "result": [answered(i, "y")]} for i in range(n)]
        chat.message(said("a1", "ok", toolCalls=calls))
        chat.message({**asked("u2", ""), "content": [answered(i, "z") for i in range(n)]})
        assert [row[0].item for row in rows[-n:]] == [f"c{i}/result" for i in range(n)]
        assert len({row[0].ref for row in rows[-n:]}) == n
        return rows.looked

    assert work(200) <= 5 * work(50)


def test_what_was_taken_back_is_found_no_more() -> None:
    """A result is set where it stands now, and an id is that of its first message."""
    rows: list[Any] = []
    places = RowsOfItems(rows)

    def put(*items: str) -> None:
        rows.extend((block((item, item, "user", False, "", "", "", "")), "custom") for item in items)

    put("a", "b", "a")
    assert (places.last("a"), places.last("b"), places.last("c")) == (2, 1, None)
    del rows[2:]
    assert (places.last("a"), places.last("b")) == (0, 1)
    places.cut(0)
    rows[:] = []
    put("b")
    assert (places.last("a"), places.last("b")) == (None, 0)

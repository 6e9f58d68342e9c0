"""Inputs made by the providers' documents, of what the corpus has little: both readers read them alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.test_independent import ask
from tools.independent.held import held
from tools.independent.raw import Object

MODEL, OTHER = "claude-opus-4-6", "claude-opus-4-8"
COMPACT = {"context_management": {"edits": [{"type": "compact_20260112"}]}}
CLEAR = {
    "context_management": {
        "edits": [
            {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}},
            {"type": "clear_tool_uses_20250919", "exclude_tools": ["memory"], "clear_tool_inputs": True},
        ]
    }
}


def _usage(sent: int, output: int, read: int = 0, *passes: Object) -> Object:
    told = {"input_tokens": sent, "output_tokens": output, "cache_read_input_tokens": read}
    return {**told, "iterations": list(passes)} if passes else told


def _pass(kind: str, sent: int, output: int, read: int = 0, **more: str) -> Object:
    return {"type": kind, **_usage(sent, output, read), **more}


def _text(text: str) -> Object:
    return {"type": "text", "text": text}


def _answer(ident: Any, content: list[Object], usage: Object, edits: list[Object] | None = None) -> Object:
    made = {"id": f"msg_{ident}", "type": "message", "role": "assistant", "model": MODEL, "content": content}
    made |= {"stop_reason": "end_turn", "usage": usage}
    return made if edits is None else {**made, "context_management": {"applied_edits": edits}}


class _Talk:
    """A conversation over the wire whose every request has all messages so far."""

    def __init__(self, **body: Any) -> None:
        self.pairs: list[Object] = []
        self._body = {"model": MODEL, "max_tokens": 9, "system": "Be brief.", **body}
        self._messages: list[Object] = []

    def ask(self, said: Any, content: list[Object], usage: Object, edits: list[Object] | None = None) -> None:
        self._messages.append({"role": "user", "content": said})
        answer = _answer(len(self.pairs), content, usage, edits)
        self.pairs.append({"request": {**self._body, "messages": [*self._messages]}, "response": answer})
        self._messages.append({"role": "assistant", "content": content})


def compaction() -> list[Object]:
    talk = _Talk(**COMPACT)
    talk.ask("long work " * 90, [_text("one")], _usage(900, 9))
    summary = {"type": "compaction", "content": "A summary."}
    passes = _pass("compaction", 1000, 90), _pass("message", 50, 9)
    talk.ask("and next " * 30, [summary, _text("two")], _usage(50, 9, 0, *passes))
    talk.ask("third", [_text("three")], _usage(60, 5))
    talk.ask("fourth", [summary], _usage(0, 0, 0, _pass("compaction", 80, 40)))
    talk.ask("fifth", [{"type": "compaction", "content": None}, _text("it failed")], _usage(70, 4))
    talk.ask("sixth", [_text("six")], _usage(90, 4))
    return talk.pairs


def edits() -> list[Object]:
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in ("read", "memory", "grep")]
    talk, said = _Talk(tools=tools, **CLEAR), [_text("go")]
    for place, name in enumerate(("read", "memory", "grep", "read", "grep")):
        call = {"type": "tool_use", "id": f"t{place}", "name": name, "input": {"path": f"/p/{place}"}}
        thought = {"type": "thinking", "thinking": f"think {place}", "signature": "x"}
        done = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": place - 2}]
        talk.ask(said, [thought, call], _usage(200 + place, 9), done if place > 2 else [])
        said = [{"type": "tool_result", "tool_use_id": f"t{place}", "content": f"result {place} " * 20}]
    talk.ask(said, [_text("read")], _usage(210, 9), [{**done[0], "cleared_tool_uses": 3}])
    forgotten = {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1}
    talk.ask("once more", [_text("ok")], _usage(220, 9), [forgotten, {**done[0], "cleared_tool_uses": 3}])
    return talk.pairs


def deferred() -> list[Object]:
    tools = [
        {"name": f"svc_{n}", "description": f"Service {n}.", "input_schema": {}, "defer_loading": True}
        for n in range(5)
    ]
    talk = _Talk(tools=[{"type": "tool_search_tool_bm25_20251119", "name": "tool_search"}, *tools])
    names = [{"type": "tool_reference", "tool_name": name} for name in ("svc_4", "svc_1")]
    found = {"type": "tool_search_tool_search_result", "tool_references": names}
    search = [
        {"type": "server_tool_use", "id": "s1", "name": "tool_search", "input": {"query": "rain"}},
        {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": found},
        {"type": "tool_use", "id": "t1", "name": "svc_4", "input": {}},
    ]
    talk.ask("rain?", search, _usage(400, 30))
    call = {"type": "tool_use", "id": "t2", "name": "svc_1", "input": {}}
    talk.ask([{"type": "tool_result", "tool_use_id": "t1", "content": "yes"}], [call], _usage(480, 9))
    more = [{"type": "tool_reference", "tool_name": "svc_0"}]
    talk.ask([{"type": "tool_result", "tool_use_id": "t2", "content": more}], [_text("ok")], _usage(530, 9))
    return talk.pairs


def advisor() -> list[Object]:
    events: list[Object] = [
        {"type": "message_start", "message": _answer("s", [], _usage(10, 1, 1000))},
        {"type": "content_block_start", "index": 0, "content_block": _text("")},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": _usage(
            15, 90, 2080, _pass("message", 10, 50, 1000), _pass("message", 5, 40, 1080),
            _pass("advisor_message", 5000, 300, model=OTHER),
        )},
        {"type": "message_stop"},
    ]  # fmt: skip
    stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    body = {"model": MODEL, "max_tokens": 9, "system": "x", "messages": [{"role": "user", "content": "hi"}]}
    url = "https://api.anthropic.com/v1/messages"
    request = {"timestamp": 1, "method": "POST", "url": url, "headers": {}, "body": body}
    return [{"request": request, "response": {"status_code": 200, "headers": {}, "body_raw": stream}}]


def transcript() -> list[Object]:
    said: list[Object] = [{"role": "user", "content": "go"}]
    for place in range(4):
        call = {"type": "tool_use", "id": f"t{place}", "name": "Read", "input": {"file_path": f"/{place}"}}
        done = [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2}] if place == 3 else []
        answer = _answer(place, [call], _usage(3, 20, 9000 + place), done)
        result = {"type": "tool_result", "tool_use_id": f"t{place}", "content": f"text {place} " * 50}
        said += [answer, {"role": "user", "content": [result]}]
    cut = {**_answer("cut", [_text("a long answer " * 30)], _usage(3, 1, 9100)), "stop_reason": None}
    whole = [_text("on")], _usage(50, 9, 0, _pass("compaction", 9200, 90), _pass("message", 50, 9))
    said += [cut, {"role": "user", "content": "more"}, _answer("packed", *whole)]
    head = {"sessionId": "s", "version": "2.1.150", "cwd": "/p", "isSidechain": False}
    return [
        {
            **head, "type": message["role"], "message": message, "uuid": f"u{place}",
            "parentUuid": f"u{place - 1}" if place else None, "timestamp": f"2026-09-01T10:00:{place:02}Z",
        }
        for place, message in enumerate(said)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "requests"), [(compaction, 6), (edits, 7), (deferred, 3), (advisor, 1), (transcript, 6)]
)
def test_both_readers_say_the_same(tmp_path: Path, made: Any, requests: int) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in made()))
    found = held(path, ask)
    assert (found.requests, [str(wrong) for wrong in found.wrong]) == (requests, [])

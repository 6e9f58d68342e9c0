"""HTTP exchanges become steps: each in its conversation, with what it carried, billed and got back."""

from __future__ import annotations

import gc
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from exchange_help import (
    BILL,
    CHAT,
    GEMINI,
    JSON,
    MESSAGES,
    RESPONSES,
    SSE,
    TOOLS,
    Wire,
    answer,
    body,
    call,
    carried,
    chat,
    said,
    user,
)
from record_help import SECRET, data, events, replayed, types

from ctxctl.record import http


@pytest.fixture
def wire(tmp_path: Path) -> Wire:
    return Wire(tmp_path / "run.jsonl", session="s")


def threads(path: Path) -> list[str]:
    return [event["thread_id"] for event in events(path) if event["event_type"] == "context.assembly.created"]


def failures(path: Path) -> list[str]:
    return [record["error"] for record in data(path, "ctxctl.step.failed")]


def answers(path: Path) -> list[str]:
    records = data(path, "context.item.added")
    return [r["content"] for r in records if r["context_kind"] == "assistant_message"]


def test_a_session_with_tools(wire: Wire) -> None:
    one = [user("weather?")]
    wire.ask(body(*one, tools=TOOLS), chat(None, tool_calls=[call(1)]))
    one += [
        {"role": "assistant", "content": None, "tool_calls": [call(1)]},
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ]
    wire.ask(body(*one, tools=TOOLS), chat("It rains."))
    one += [said("It rains."), user("thanks")]
    wire.ask(body(*one, tools=TOOLS), chat("Bye."))
    wire.close()
    steps = replayed(wire.path)
    assert [(s["thread"], s["turn"], s["step"]) for s in steps] == [
        ("main", 1, 1), ("main", 1, 2), ("main", 2, 1),
    ]  # fmt: skip
    assert [s["counts"]["added"] for s in steps] == [3, 2, 2]
    assert all((s["usage"]["reported_input"], s["usage"]["reported_cached"]) == (50, 10) for s in steps)
    assert steps[0]["model"] == "m-1"


def test_conversations_of_one_client_are_told_apart_by_what_they_repeat(wire: Wire) -> None:
    first, second = [user("one")], [user("two")]
    for number in range(3):
        for own in (first, second):
            wire.ask(body(*own), chat(f"{own[0]['content']} {number}"))
            own += [said(f"{own[0]['content']} {number}"), user(f"more {number}")]
    wire.close()
    assert len(set(threads(wire.path))) == 2
    assert threads(wire.path)[::2] == ["main"] * 3


def test_a_request_beside_one_without_an_answer_is_a_branch(wire: Wire) -> None:
    same = body(user("draw"))
    flights = [wire.send(same) for _ in range(3)]
    for number, flight in enumerate(flights):
        answer(flight, chat(f"picture {number}"))
    for number in (2, 0, 1):
        wire.ask(body(user("draw"), said(f"picture {number}"), user("again")), chat("done"))
    wire.close()
    found = threads(wire.path)
    assert len(set(found[:3])) == 3
    assert found[3:] == [found[2], found[0], found[1]]


def test_a_sub_agent_has_a_thread_of_its_own_and_its_origin(wire: Wire) -> None:
    order = "Find every place where the parser is called."
    wire.ask(
        body(user("tidy up"), tools=TOOLS),
        chat(None, tool_calls=[call(7, json.dumps({"prompt": order, "subagent_type": "explore"}))]),
    )
    wire.ask(body(user(order), system="You explore.", tools=TOOLS[:1]), chat("in two files"))
    wire.close()
    made = data(wire.path, "context.assembly.created")[1]["metadata"]["ctxctl"]
    assert (made["parent_thread"], made["parent_tool_call"], made["agent_type"]) == ("main", "c7", "explore")
    assert threads(wire.path) == ["main", "agent-explore"]


def test_a_side_question_that_comes_first_is_not_the_main_thread(wire: Wire) -> None:
    wire.ask(body(user("quota"), max_tokens=1), chat("ok"))
    wire.ask(body(user("hello"), system="Generate a short title of the conversation."), chat("Greeting"))
    wire.ask(body(user("hello"), tools=TOOLS), chat("hi"))
    wire.close()
    assert [name.partition("-")[0] for name in threads(wire.path)] == ["side", "side", "main"]


@pytest.mark.parametrize("status", [429, 500, 529, None])
def test_a_retry_is_the_same_step(wire: Wire, status: int | None) -> None:
    given = body(user("hi"))
    first = wire.send(given)
    if status is None:
        first.end("timeout")
    else:
        answer(first, {"error": {"type": "rate_limit_error", "message": f"slow down, {SECRET}"}}, status)
    answer(wire.send(given, again=True), chat("hello"))
    wire.ask(given, chat("hello again"))
    wire.close()
    assert failures(wire.path) == [
        "no answer: timeout" if status is None else f"HTTP {status}: rate_limit_error"
    ]
    steps = replayed(wire.path)
    assert [s["counts"]["added"] for s in steps] == [2, 0]
    assert types(wire.path).count("injection.applied") == 2
    assert "slow down" not in wire.path.read_text()


def test_an_error_keeps_its_status_and_type_only(wire: Wire) -> None:
    for number, error in enumerate(
        (
            {"error": {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "x y"}},
            {"type": "error", "error": {"type": "overloaded_error", "message": "x y"}},
            {"error": {"status": "RESOURCE_EXHAUSTED", "message": "x y", "code": 429}},
            [{"error": {"status": "INTERNAL", "message": "x y"}}],
            {"error": "not a slug: x y"},
            "x y",
            None,
        )
    ):
        answer(wire.send(body(user(f"{number}"))), error, 400)
    wire.close()
    kinds = ["invalid_request_error", "overloaded_error", "RESOURCE_EXHAUSTED", "INTERNAL"]
    assert failures(wire.path) == [f"HTTP 400: {kind}" for kind in kinds] + ["HTTP 400"] * 3
    assert "x y" not in wire.path.read_text()


STREAMS: dict[str, tuple[str, dict[str, Any], list[Any]]] = {
    "chat": (
        CHAT, body(user("hi")), [
            {"id": "r", "model": "m-1",
             "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hel"}}]},
            {"choices": [{"index": 0, "delta": {"content": "lo"}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": BILL},
        ],
    ),
    "anthropic": (
        MESSAGES, {"model": "m-1", "max_tokens": 99, "messages": [user("hi")]}, [
            {"type": "message_start", "message": {"type": "message", "model": "m-1", "role": "assistant",
             "content": [], "usage": {"input_tokens": 50, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hel"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ],
    ),
    "responses": (
        RESPONSES, {"model": "m-1", "input": [user("hi")], "store": False}, [
            {"type": "response.created", "response": {"id": "r", "model": "m-1", "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message",
             "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]}},
            {"type": "response.completed", "response": {"id": "r", "object": "response", "model": "m-1",
             "output": [{"type": "message", "role": "assistant",
                         "content": [{"type": "output_text", "text": "hello"}]}],
             "usage": {"input_tokens": 50, "output_tokens": 5, "total_tokens": 55}}},
        ],
    ),
}  # fmt: skip


def raw(events_of: list[Any]) -> bytes:
    made = [f"event: {e.get('type', 'x')}\ndata: {json.dumps(e)}\n\n".encode() for e in events_of]
    return b"".join(made)


def squeezed(encoding: str, data: bytes) -> bytes:
    if encoding == "gzip":
        return gzip.compress(data)
    if encoding == "deflate":
        return zlib.compress(data)
    if encoding == "br":
        import brotli

        return bytes(brotli.compress(data))
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "br", "zstd"])
def test_streams_are_put_together_whatever_their_encoding(wire: Wire, name: str, encoding: str) -> None:
    url, given, stream = STREAMS[name]
    wire.bodies.append(({CHAT: "openai-chat", MESSAGES: "anthropic"}.get(url, "openai-responses"), given))
    headers, packed = JSON, json.dumps(given).encode()
    if encoding:
        headers, packed = [*JSON, ("Content-Encoding", encoding)], squeezed(encoding, packed)
    exchange = wire.exchanges.begin("POST", url, headers, packed)
    assert exchange is not None
    exchange.head(200, [*SSE, *([("Content-Encoding", encoding)] if encoding else [])])
    whole = raw(stream)
    whole = squeezed(encoding, whole) if encoding else whole
    for at in range(0, len(whole), 7):
        exchange.data(whole[at : at + 7])
    exchange.end("complete")
    wire.close()
    assert answers(wire.path) == ["hello"]
    (bill,) = data(wire.path, "ctxctl.usage.reported")
    assert (bill["input_tokens"], bill["output_tokens"], bill["model"]) == (50, 5, "m-1")
    assert failures(wire.path) == []


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("how", ["upstream_reset", "client_gone", "complete"])
def test_a_cut_stream_keeps_what_came_and_says_so(wire: Wire, name: str, how: str) -> None:
    url, given, stream = STREAMS[name]
    exchange = wire.send(given, url)
    exchange.head(200, SSE)
    exchange.data(raw(stream[: 2 if name == "responses" else 3 if name == "anthropic" else 1]))
    exchange.end(how)
    wire.close()
    (text,) = answers(wire.path)
    assert text == ("hello" if name == "responses" else "hel")
    (item,) = [r for r in data(wire.path, "context.item.added") if r["context_kind"] == "assistant_message"]
    assert item["metadata"]["ctxctl"]["truncated"] is True
    told = {"complete": "the stream stopped before its end"}.get(how, f"cut: {how.replace('_', ' ')}")
    assert failures(wire.path) == [told]
    assert data(wire.path, "ctxctl.step.failed")[0]["partial"] is True


def test_a_compressed_stream_that_is_cut_keeps_what_can_be_decoded(wire: Wire) -> None:
    url, given, stream = STREAMS["anthropic"]
    exchange = wire.send(given, url)
    exchange.head(200, [*SSE, ("content-encoding", "gzip")])
    packer = zlib.compressobj(wbits=31)
    exchange.data(packer.compress(raw(stream[:3])) + packer.flush(zlib.Z_SYNC_FLUSH))
    exchange.end("upstream_reset")
    wire.close()
    assert answers(wire.path) == ["hel"]
    assert failures(wire.path) == ["cut: upstream reset"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_stream_is_over_when_it_says_so(wire: Wire, name: str, size: int) -> None:
    url, given, stream = STREAMS[name]
    exchange = wire.send(given, url)
    exchange.head(200, SSE)
    whole = raw(stream) + (b"data: [DONE]\n\n" if name == "chat" else b"")
    for at in range(0, len(whole), size):
        assert answers(wire.path) == []
        exchange.data(whole[at : at + size])
    assert answers(wire.path) == ["hello"]
    exchange.end("upstream_reset")
    wire.close()
    assert failures(wire.path) == []


def test_a_text_that_speaks_of_the_end_is_not_it(wire: Wire) -> None:
    url, given, stream = STREAMS["anthropic"]
    exchange = wire.send(given, url)
    exchange.head(200, SSE)
    text = "message_stop [DONE] response.completed\n\ndata: [DONE]\n\n"
    stream[3]["delta"]["text"] = text
    for event in stream[:4]:
        exchange.data(raw([event]))
    assert answers(wire.path) == []
    exchange.end("upstream_reset")
    wire.close()
    assert answers(wire.path) == ["hel" + text]
    stream[3]["delta"]["text"] = "lo"


def test_the_end_of_a_stream_is_looked_for_in_its_last_event_alone(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, is_end = [], http.is_end
    monkeypatch.setattr(
        http, "is_end", lambda data, dialect: looked.append(len(data)) or is_end(data, dialect)
    )
    exchange = wire.send(body(user("hi"), stream=True))
    exchange.head(200, SSE)
    piece = raw([{"choices": [{"index": 0, "delta": {"content": "[DONE]"}}]}])
    for _ in range(300):
        exchange.data(piece)
    assert looked == [len(piece)] * 300
    exchange.data(piece + b"data: [DO")
    assert answers(wire.path) == []
    exchange.data(b"NE]\n\n")
    assert answers(wire.path) == ["[DONE]" * 301]
    wire.close()


def test_an_answer_that_is_told_of_when_its_thread_has_gone_on(wire: Wire) -> None:
    late = wire.send(body(user("hi")))
    wire.ask(body(user("hi"), said("hello"), user("and?")), chat("no"))
    answer(late, chat("hello"))
    wire.close()
    assert threads(wire.path) == ["main", "main"]
    (told,) = data(wire.path, "ctxctl.answer.late")
    assert told["usage"]["input_tokens"] == 50
    assert len(replayed(wire.path)) == 2


def test_gemini(wire: Wire) -> None:
    contents: list[Any] = [{"role": "user", "parts": [{"text": "hi"}]}]
    given = {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": contents}
    bill = {"promptTokenCount": 50, "cachedContentTokenCount": 10, "candidatesTokenCount": 5}
    for pieces, last in ((["hel", "lo"], True), (["bye"], False)):
        exchange = wire.send({**given, "contents": list(contents)}, GEMINI)
        exchange.head(200, SSE)
        for text in pieces:
            part = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}
            end = {"finishReason": "STOP"} if text == pieces[-1] and last else {}
            exchange.data(raw([{"candidates": [{**part, **end}], "usageMetadata": bill}]))
        exchange.end("complete")
        contents += [
            {"role": "model", "parts": [{"text": "hello"}]},
            {"role": "user", "parts": [{"text": "and?"}]},
        ]
    wire.close()
    assert answers(wire.path) == ["hello", "bye"]
    assert failures(wire.path) == ["the stream stopped before its end"]
    steps = replayed(wire.path)
    assert [(s["thread"], s["model"], s["usage"]["reported_cached"]) for s in steps] == [
        ("main", "gemini-3", 10)
    ] * 2


def test_an_error_inside_a_stream(wire: Wire) -> None:
    url, given, stream = STREAMS["anthropic"]
    exchange = wire.send(given, url)
    exchange.head(200, SSE)
    exchange.data(
        raw([*stream[:3], {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}])
    )
    exchange.end("complete")
    wire.close()
    assert answers(wire.path) == ["hel"]
    assert failures(wire.path) == ["overloaded_error"]


@pytest.mark.parametrize(
    ("method", "url", "given"),
    [
        ("GET", CHAT, {"model": "m", "messages": []}),
        ("POST", "https://api.example/v1/messages/count_tokens", body(user("x"))),
        ("POST", "https://api.example/v1/embeddings", {"model": "m", "input": "x"}),
        ("POST", "https://api.example/v1/files", {"purpose": "x"}),
        ("POST", "https://api.example/v1/moderations", {"input": "x"}),
        ("POST", "https://api.example/api/login", {"user": "x"}),
        ("POST", "https://api.example/mcp", {"jsonrpc": "2.0", "method": "tools/list", "id": 1}),
        ("POST", "https://api.example/v1/completions", {"model": "m", "prompt": "x"}),
    ],
)
def test_what_asks_no_model_is_not_recorded(wire: Wire, method: str, url: str, given: Any) -> None:
    assert wire.exchanges.begin(method, url, JSON, json.dumps(given).encode()) is None
    assert wire.exchanges.begin("POST", CHAT, JSON, None) is None
    assert wire.exchanges.begin("POST", CHAT, JSON, b"{torn") is None
    wire.close()
    assert not wire.path.exists() or events(wire.path) == []


SESSION = "0f3a9d1c-1111-4222-8333-444455556666"


@pytest.mark.parametrize(
    ("headers", "more"),
    [
        ([("X-Claude-Code-Session-Id", SESSION)], {}),
        ([("session_id", SESSION)], {}),
        ([], {"metadata": {"user_id": f"user_1_account__session_{SESSION}"}}),
        ([], {"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": SESSION})}}),
        ([], {"metadata": {"conversation_id": SESSION}}),
        ([], {"prompt_cache_key": SESSION}),
    ],
)
def test_the_session_is_what_the_request_says(tmp_path: Path, headers: Any, more: Any) -> None:
    wire = Wire(tmp_path / "run.jsonl")
    wire.ask(body(user("hi"), **more), chat("hello"), headers=[*JSON, *headers])
    wire.ask(body(user("hi")), chat("hello"))
    wire.close()
    made = [e["session_id"] for e in events(wire.path) if e["event_type"] == "context.assembly.created"]
    assert made == [SESSION, wire.recorder.session]
    assert threads(wire.path) == ["main", "main"]


def test_a_turn_of_the_program_says_more_than_the_request(wire: Wire) -> None:
    with wire.recorder.turn("deploy", thread="ops"):
        wire.ask(body(user("hi"), prompt_cache_key="k"), chat("hello"))
    wire.ask(body(user("hi"), said("hello"), user("and?")), chat("no"))
    wire.close()
    first, second = (e for e in events(wire.path) if e["event_type"] == "context.assembly.created")
    assert (first["session_id"], first["thread_id"], first["turn_id"]) == ("s", "ops", "deploy")
    assert (second["session_id"], second["thread_id"]) == ("s", "ops")
    assert second["turn_id"] != "deploy"


def test_inside_of_a_step_the_program_records_itself(wire: Wire) -> None:
    given = json.dumps(body(user("hi"))).encode()
    with wire.recorder.step() as step:
        step.request(given)
        assert wire.exchanges.begin("POST", CHAT, JSON, given) is None
    wire.recorder.close()
    assert types(wire.path).count("assembly.created") == 1


def test_histories_that_the_provider_holds(wire: Wire) -> None:
    def response(name: str, text: str) -> dict[str, Any]:
        said = {"type": "message", "id": f"m-{name}", "role": "assistant",
                "content": [{"type": "output_text", "text": text}]}  # fmt: skip
        bill = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        return {"id": name, "object": "response", "model": "m-1", "output": [said], "usage": bill}

    wire.ask({"model": "m-1", "instructions": "Be brief.", "input": "one"}, response("r1", "1"), RESPONSES)
    wire.ask(
        {"model": "m-1", "instructions": "Be brief.", "input": "two", "previous_response_id": "r1"},
        response("r2", "2"), RESPONSES,
    )  # fmt: skip
    wire.close()
    one, two = replayed(wire.path)
    assert (one["thread"], two["thread"]) == ("main", "main")
    assert (one["counts"]["added"], two["counts"]["added"]) == (2, 2)
    assert carried(wire.path) == [2, 4]


def test_secrets_reach_no_byte_of_the_file(wire: Wire) -> None:
    tail = SECRET[10:]
    url = f"https://u:{SECRET}@api.example/v1/chat/completions?key={SECRET}"
    given = body(user(f"deploy with {SECRET} now"), system=f"The key is {SECRET}.", tools=TOOLS)
    headers = [*JSON, ("Authorization", f"Bearer {SECRET}"), ("x-api-key", SECRET), ("x-session-id", SECRET)]
    exchange = wire.exchanges.begin("POST", url, headers, json.dumps(given).encode())
    assert exchange is not None
    exchange.head(200, [*SSE, ("set-cookie", SECRET)])
    for letter in SECRET:
        chunk = {"choices": [{"index": 0, "delta": {"content": letter}}]}
        exchange.data(f"data: {json.dumps(chunk)}\n\n".encode())
    exchange.data(b"data: [DONE]\n\n")
    exchange.end("complete")
    side = body(user(f"{SECRET} title?"), system=f"Generate a title {SECRET}", max_tokens=5)
    answer(wire.send(side), chat("x"))
    wire.recorder.close()
    text = wire.path.read_text().lower()
    assert SECRET.lower() not in text
    assert tail.lower() not in text
    assert wire.recorder.redacted == {"github-token": 5}


def test_what_is_forgotten_is_ended(wire: Wire) -> None:
    exchange = wire.send(body(user("hi")))
    exchange.end("upstream_reset")
    exchange.end("complete")
    exchange.data(b"late")
    exchange.head(200, JSON)
    del exchange
    wire.send(body(user("hi there"))).head(200, JSON)
    gc.collect()
    wire.close()
    assert failures(wire.path) == ["no answer: upstream reset", "cut: client gone"]


def test_what_is_collected_in_the_middle_of_another_exchange_is_told_with_the_next(wire: Wire) -> None:
    exchange = wire.send(body(user("hi")))
    exchange.head(200, JSON)
    with wire.recorder._exclusively():
        del exchange
        gc.collect()
    wire.ask(body(user("hi there")), chat("hello"))
    wire.close()
    assert failures(wire.path) == ["cut: client gone"]


def test_nothing_raises_even_if_the_recorder_is_strict(wire: Wire) -> None:
    exchange: Any = wire.send(body(user("hi")))
    exchange.head("x", 7)
    exchange.data(None)
    exchange.end(None)
    bad: Any = 7
    assert wire.exchanges.begin(bad, bad, bad, bad) is None
    assert wire.exchanges.begin("POST", CHAT, [*JSON, ("content-encoding", "gzip")], b"\x1f\x8b{") is None
    nest = b'{"model": "m", "messages": [{"role": "user", "content": ' + b"[" * 900 + b"]" * 900 + b"}]}"
    made = wire.exchanges.begin("POST", CHAT, JSON, nest)
    assert made is not None
    answer(made, chat("deep"))
    wire.recorder.close()
    assert answers(wire.path) == ["deep"]


def test_a_file_that_rotates_tells_everything_anew(tmp_path: Path) -> None:
    wire = Wire(tmp_path / "run.jsonl", session="s", rotate_bytes=40_000)
    history = [user("x" * 900)]
    for number in range(12):
        answer(wire.send(body(*history)), chat(f"answer {number} " + "y" * 900))
        history += [said(f"answer {number} " + "y" * 900), user(f"more {number}")]
    wire.recorder.close()
    files = sorted(tmp_path.glob("run*.jsonl"))
    assert len(files) > 1
    for path in files:
        steps = replayed(path)
        assert all(step["window"]["uncounted"] == 0 for step in steps)
    assert max(max(carried(path), default=0) for path in files) == 2 + 2 * 11


def test_memory_is_bounded(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxctl.providers.dialects import threads

    monkeypatch.setattr(threads, "_THREADS", 10)
    monkeypatch.setattr(threads, "_MESSAGES", 60)
    for number in range(60):
        wire.ask(body(user(f"question {number}")), chat(f"a longer answer, number {number}"))
    history = [user("a long one")]
    for number in range(60):
        wire.ask(body(*history[-4:]), chat(f"yet another answer, number {number}"))
        history += [said(f"yet another answer, number {number}"), user(f"next {number}")]
    wire.close()
    conversations = wire.exchanges._known_conversations
    assert conversations is not None
    remembered = conversations._remembered
    assert len(remembered.threads()) <= 10
    assert len(remembered._carried) + len(remembered._said) <= 70
    assert len(conversations._live.threads) <= 10
    assert sum(len(t.conversation._versions) for t in remembered.threads()) <= 200
    assert wire.exchanges._held == 0

"""Bodies, what calls are for, times: what containers of calls share."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from typing import Any

import pytest

from ctxctl.ingest.parts import moment
from ctxctl.ingest.run import Run
from ctxctl.model.problem import Problem
from ctxctl.providers.calls import answers, encodings, purpose
from ctxctl.providers.calls.http import Call, Calls
from ctxctl.providers.dialects import by_name

Json = dict[str, Any]

BODY = {"model": "m", "messages": []}
TEXT = json.dumps(BODY)


@pytest.mark.parametrize(
    ("raw", "encoded"),
    [
        (BODY, False),
        (TEXT, False),
        ("\ufeff  " + TEXT, False),
        (TEXT.encode(), False),
        (json.dumps(TEXT), False),
        (gzip.compress(TEXT.encode(), mtime=0), False),
        (zlib.compress(TEXT.encode()), False),
        (gzip.compress(TEXT.encode(), mtime=0).decode("latin-1"), False),
        (base64.b64encode(TEXT.encode()).decode(), True),
        (base64.b64encode(gzip.compress(TEXT.encode(), mtime=0)).decode(), True),
    ],
)
def test_a_body_is_opened_however_it_was_kept(raw: object, encoded: bool) -> None:
    assert encodings.decoded_body(raw, encoded=encoded) == BODY


def test_what_is_no_json_stays_text_and_what_is_no_text_is_nothing() -> None:
    assert encodings.decoded_body("data: {}\n\n") == "data: {}\n\n"
    assert encodings.decoded_body("{cut") == "{cut"
    assert encodings.decoded_body('"{cut"') == '"{cut"'
    assert encodings.decoded_body(b"\x89PNG\0\0\xff") is None
    assert encodings.decoded_body(5) is None
    assert encodings.decoded_body("a", encoded=True) is None


def test_a_compressed_bomb_is_cut_short() -> None:
    data = gzip.compress(b"x" * (encodings.MAX_BODY + 1000))
    assert len(encodings.decoded_body(data)) == encodings.MAX_BODY
    assert encodings.decoded_body(data[:1000]) is not None, "what a cut one holds"


def test_headers_of_every_shape() -> None:
    for headers in (
        {"X-Request-Id": "r"},
        {"x-request-id": ["r", "s"]},
        [{"name": "X-Request-ID", "value": "r"}],
        [["x-request-id", "r"]],
    ):
        assert encodings.header(headers, "x-request-id") == "r"
    assert encodings.header([5, [1, 2], {"name": 3}], "x") is None


@pytest.mark.parametrize(
    ("method", "url", "body", "what"),
    [
        ("POST", "https://api.openai.com/v1/chat/completions", BODY, "model"),
        ("POST", None, BODY, "model"),
        ("POST", "https://x.test/v1beta/models/g:generateContent?key=K", {"contents": []}, "model"),
        ("POST", "https://api.openai.com/v1/embeddings", {"input": "x"}, "embeddings"),
        ("POST", "https://x.test/v1beta/models/g:batchEmbedContents", {}, "embeddings"),
        ("POST", "https://api.anthropic.com/v1/messages/count_tokens", BODY, "token counts"),
        ("POST", "https://api.openai.com/v1/moderations", {"input": "x"}, "moderation"),
        ("POST", "https://auth.test/oauth/token", {"grant_type": "x"}, "sign-in"),
        ("POST", "http://localhost/mcp", {"jsonrpc": "2.0", "method": "tools/list", "id": 1}, "MCP messages"),
        ("GET", "https://api.openai.com/v1/models", None, "model list"),
        ("GET", "https://x.test/", None, "other requests"),
        (5, 7, "x", "other requests"),
    ],
)
def test_what_a_call_is_for(method: object, url: object, body: object, what: str) -> None:
    assert purpose.purpose(method, url, body) == what


@pytest.mark.parametrize(
    ("url", "body", "name"),
    [
        ("https://b.test/model/x/converse", {"messages": []}, "Bedrock Converse"),
        (None, {"messages": [], "toolConfig": {}}, "Bedrock Converse"),
        (None, {"message": "x", "chat_history": []}, "Cohere chat v1"),
        ("https://api.openai.com/v1/completions", {"prompt": "x", "model": "m"}, "text completion"),
        ("https://api.openai.com/v1/chat/completions", BODY, None),
        ("https://b.test/model/x/invoke", {"anthropic_version": "bedrock-2023-05-31", "messages": []}, None),
    ],
)
def test_dialects_that_are_known_and_not_read(url: object, body: dict[str, object], name: str | None) -> None:
    assert purpose.unread_dialect(url, body) == name


def test_addresses_lose_what_may_be_a_key() -> None:
    assert purpose.without_query("https://u:p@x.test/v1/a?key=K#f") == "https://x.test/v1/a"
    assert purpose.without_query("/v1/a?key=K") == "/v1/a"
    assert purpose.without_query(7) is None
    assert purpose.path_of("http://[") == "http://["


def test_times() -> None:
    assert moment(1748554704.293292) == "2025-05-29T21:38:24.293Z"
    assert moment(1780844428797) == "2026-06-07T15:00:28.797Z"
    assert moment("2026-03-06 19:24:49.810263+00:00") == "2026-03-06 19:24:49.810263+00:00"
    assert moment("Mon, 06 Apr 2026 10:00:00 GMT") == "2026-04-06T10:00:00+00:00"
    assert [moment(value) for value in (None, True, -1, 1e300, float("nan"), "soon", [])] == [None] * 7


CHAT = by_name("openai-chat")
TOKENS = {"input_tokens": 4, "output_tokens": 1}


def test_answers_of_servers_that_are_like_chat_completions() -> None:
    ollama = {"message": {"role": "assistant", "content": "hi"}, "prompt_eval_count": 4, "eval_count": 2}
    content = [{"type": "text", "text": "hi"}]
    cohere = {"id": "c", "message": {"content": content}, "usage": {"tokens": TOKENS}}
    for answer in (ollama, cohere):
        found = answers.final_response(answer, CHAT)
        assert found is not None
        assert [part.text for part in CHAT.reply(found)] == ["hi"]
        bill = CHAT.usage(found)
        assert bill is not None
        assert bill["input_tokens"] == 4


def test_answers_in_pieces() -> None:
    pieces = [{"message": {"role": "assistant", "content": text}} for text in ("h", "i")]
    lines = "".join(json.dumps(piece) + "\n" for piece in [*pieces, {"done": True, "prompt_eval_count": 4}])
    found = answers.final_response(lines, CHAT)
    assert found is not None
    assert [part.text for part in CHAT.reply(found)] == ["hi"]
    gemini = by_name("gemini")
    chunk = {"candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}}]}
    total = {**chunk, "usageMetadata": {"promptTokenCount": 4}}
    for answer in ([chunk, total], {"response": total}, [{"response": total}], encodings.as_events([total])):
        made = answers.final_response(answer, gemini)
        assert made is not None
        assert (gemini.usage(made) or {}).get("input_tokens") == 4
    assert answers.final_response("no answer", CHAT) is None
    assert answers.final_response([], CHAT) is None
    assert answers.final_response(5, CHAT) is None


def frame(event: Json) -> bytes:
    """An event as Bedrock sends it: a frame of AWS's event streams around base64."""
    sealed = base64.b64encode(json.dumps(event).encode()).decode()
    head = b"\x0b:event-type\x07\x00\x05chunk"
    payload = json.dumps({"bytes": sealed, "p": "abcdef"}).encode()
    start = (16 + len(head) + len(payload)).to_bytes(4, "big") + len(head).to_bytes(4, "big")
    made = start + zlib.crc32(start).to_bytes(4, "big") + head + payload
    return made + zlib.crc32(made).to_bytes(4, "big")


def taken(call: Call) -> tuple[list[Json], list[Problem]]:
    problems: list[Problem] = []
    calls = Calls(Run("http", problems.append))
    calls.take(call)
    return list(calls.finish()), problems


BEDROCK = (
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-opus-4-6-v1%3A0"
    "/invoke-with-response-stream"
)
BEDROCK_BODY = {"anthropic_version": "bedrock-2023-05-31", "messages": [{"role": "user", "content": "hi"}]}


def test_a_stream_from_bedrock_is_read_and_its_model_named() -> None:
    stream = [
        {"type": "message_start", "message": {"id": "m1", "model": "claude-opus-4-6", "content": [],
                                              "usage": {"input_tokens": 578, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Warm."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 54}},
    ]  # fmt: skip
    raw = b"".join(map(frame, stream))
    events, problems = taken(Call(BEDROCK, BEDROCK_BODY, raw, status=200))
    assert not problems
    (bill,) = [event["data"] for event in events if event["event_type"] == "ctxctl.usage.reported"]
    assert (bill["model"], bill["input_tokens"], bill["output_tokens"]) == ("claude-opus-4-6", 578, 54)
    cut, _ = taken(Call(BEDROCK, BEDROCK_BODY, raw[:-9], status=200))
    assert [e["data"].get("input_tokens") for e in cut if e["event_type"] == "ctxctl.usage.reported"] == [578]


def test_bedrocks_address_names_the_model_where_no_answer_came() -> None:
    events, _ = taken(Call(BEDROCK, BEDROCK_BODY))
    assert any("us.anthropic.claude-opus-4-6-v1:0" in json.dumps(event) for event in events)


def test_bytes_that_are_no_frames_are_no_stream_of_events() -> None:
    whole = frame({"type": "ping"})
    assert encodings.text_of(whole) == 'data: {"type": "ping"}\n\n'
    other = encodings.text_of(whole[:8] + b"\0\0\0\1" + whole[12:])
    assert other is not None
    assert not other.startswith("data:"), "its checksum is another's"
    assert encodings.text_of(whole[:20]) == "", "a frame that was cut off holds no event"

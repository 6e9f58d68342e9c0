"""Streams: what the events amount to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxctl.providers.dialects import by_name, stream


def sse(*events: Any, end: str = "\n") -> str:
    return "".join(f"event: x{end}data: {json.dumps(e)}{end}{end}" for e in events)


START = {
    "type": "message_start",
    "message": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "content": [],
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1},
    },
}


def block(at: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": at, "content_block": fields}


def delta(at: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": at, "delta": fields}


ANTHROPIC = (
    START,
    block(0, type="thinking", thinking="", signature=""),
    delta(0, type="thinking_delta", thinking="h"),
    delta(0, type="thinking_delta", thinking="m"),
    delta(0, type="signature_delta", signature="s"),
    block(1, type="text", text=""),
    {"type": "ping"},
    delta(1, type="text_delta", text="we"),
    delta(1, type="text_delta", text="ll"),
    block(2, type="tool_use", id="t", name="n", input={}),
    delta(2, type="input_json_delta", partial_json='{"a"'),
    delta(2, type="input_json_delta", partial_json=":1}"),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
    {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 11, "input_tokens": 0}},
    {"type": "message_stop"},
)


def test_messages_are_put_together_and_the_last_totals_win() -> None:
    for end in ("\n", "\r\n"):
        body = stream.streamed_response(sse(*ANTHROPIC, end=end), by_name("anthropic"))
        assert body is not None
        assert body["content"] == [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "well"},
            {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
        ]
        assert body["usage"] == {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 11}
        assert body["stop_reason"] == "tool_use"


def test_a_total_that_counts_the_prompt_means_its_zeros() -> None:
    """A request that was compacted inside begins with the compaction's read and ends with the answer's."""
    start = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 100, "cache_read_input_tokens": 55}},
    }
    end = {
        "type": "message_delta",
        "usage": {"input_tokens": 181, "cache_read_input_tokens": 0, "output_tokens": 8},
    }
    body = stream.streamed_response(sse(start, end), by_name("anthropic"))
    assert body is not None
    assert body["usage"] == {"input_tokens": 181, "cache_read_input_tokens": 0, "output_tokens": 8}


def test_a_cut_stream_gives_what_had_come() -> None:
    text = sse(*ANTHROPIC)
    for end in range(0, len(text), 7):
        body = stream.streamed_response(text[:end], "anthropic")
        assert body is None or isinstance(body["content"], list)
    body = stream.streamed_response(sse(*ANTHROPIC[:8]), "anthropic")
    assert body is not None
    assert body["content"][1]["text"] == "we"


def test_a_stream_that_failed_has_its_error() -> None:
    body = stream.streamed_response(
        sse(START, {"type": "error", "error": {"type": "overloaded_error"}}), "anthropic"
    )
    assert body is not None
    assert body["error"] == {"type": "overloaded_error"}


def test_data_over_several_lines_is_one_value() -> None:
    lines = json.dumps(START, indent=1).split("\n")
    assert list(stream.events("".join(f"data: {line}\n" for line in lines) + "\n")) == [START]
    # Some captures lost the blank lines between events.
    assert len(list(stream.events("".join(f"data: {json.dumps(e)}\n" for e in ANTHROPIC)))) == len(ANTHROPIC)


def chunk(choice: Any = None, **fields: Any) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice] if choice else [], **fields}


def test_chat_chunks() -> None:
    def piece(**inner: Any) -> dict[str, Any]:
        return chunk({"index": 0, "delta": inner})

    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "n", "arguments": ""}}
    text = (
        sse(
            piece(role="assistant", content=""),
            piece(reasoning_content="h"),
            piece(reasoning_content="m"),
            piece(content="we"),
            piece(content="ll"),
            piece(tool_calls=[call]),
            piece(tool_calls=[{"index": 0, "function": {"arguments": '{"a":'}}]),
            piece(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}]),
            piece(tool_calls=[{**call, "index": 1, "id": "c2"}]),
            chunk(usage={"prompt_tokens": 1, "completion_tokens": 1}),
            chunk(usage={"prompt_tokens": 5, "completion_tokens": 7}),
        )
        + "data: [DONE]\n\n"
    )
    body = stream.streamed_response(text)
    assert body is not None
    message = body["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("well", "hm")
    assert [(c["id"], c["function"]["arguments"]) for c in message["tool_calls"]] == [
        ("c1", '{"a":1}'),
        ("c2", ""),
    ]
    assert body["usage"] == {"prompt_tokens": 5, "completion_tokens": 7}


@pytest.mark.parametrize(
    "choices",
    [
        # Perplexity's: the piece, and all so far.
        [
            ({"content": "He"}, {"content": "He"}),
            ({"content": "llo"}, {"content": "Hello"}),
            ({}, {"content": "Hello"}),
        ],
        [({"content": ""}, {"content": "He"}), ({"content": ""}, {"content": "Hello"})],
        [(None, {"content": "He"}), (None, {"content": "Hello"})],
        # Pieces, and the whole at the end.
        [({"content": "He"}, None), ({"content": "llo"}, None), (None, {"content": "Hello"})],
        # Pieces alone, under either name or under both.
        [(None, {"content": "He"}), (None, {"content": "llo"})],
        [({"content": "He"}, {}), ({"content": "llo"}, {"content": None})],
        [({"content": "Hel"}, {"content": "Hel"}), ({"content": "lo"}, {"content": "lo"})],
    ],
)
def test_messages_that_grow_are_not_added_up(choices: list[tuple[Any, Any]]) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "n", "arguments": "{}"}}
    found = []
    for at, (delta, message) in enumerate(choices, 1):
        choice = {
            "index": 0,
            "delta": delta,
            "message": message and {"role": "assistant", "tool_calls": [call]} | message,
        }
        found.append(
            chunk(choice, usage={"prompt_tokens": 5, "completion_tokens": at, "total_tokens": 5 + at})
        )
    body = stream.streamed_response(sse(*found))
    assert body is not None
    assert body["choices"][0]["message"]["content"] == "Hello"
    assert len(body["choices"][0]["message"].get("tool_calls", [call])) == 1
    assert body["usage"]["completion_tokens"] == len(choices)


def test_the_end_of_a_responses_stream_is_the_response() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    events = (
        {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "hi"},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "output": [], "usage": {"input_tokens": 3}}},
    )
    whole = stream.streamed_response(sse(*events))
    assert whole is not None
    assert (whole["output"], whole["usage"]) == ([item], {"input_tokens": 3})
    cut = stream.streamed_response(sse(*events[:3]))
    assert cut is not None
    assert cut["output"] == [item]


def test_gemini_chunks() -> None:
    def piece(*parts: Any, **fields: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}], **fields}

    text = sse(
        piece({"text": "h", "thought": True}),
        piece({"text": "m", "thought": True}),
        piece({"text": "we"}),
        piece(
            {"text": "ll"}, {"functionCall": {"name": "n", "args": {}}}, usageMetadata={"promptTokenCount": 1}
        ),
        {"usageMetadata": {"promptTokenCount": 5}},
    )
    body = stream.streamed_response(text)
    assert body is not None
    assert body["candidates"][0]["content"]["parts"] == [
        {"text": "hm", "thought": True},
        {"text": "well"},
        {"functionCall": {"name": "n", "args": {}}},
    ]
    assert body["usageMetadata"] == {"promptTokenCount": 5}


def test_what_is_no_stream_gives_nothing() -> None:
    assert stream.streamed_response("") is None
    assert stream.streamed_response("data: [DONE]\n\n") is None
    assert stream.streamed_response("<html>", "anthropic") is None


def test_the_citations_of_a_block_are_put_together_in_order() -> None:
    first = {"cited_text": "a"}
    told = sse(
        START,
        block(0, type="text", text="", citations=[first]),
        *(delta(0, type="citations_delta", citation={"cited_text": text}) for text in "bc"),
        block(1, type="text", text="", citations=None),
        delta(1, type="citations_delta", citation={"cited_text": "d"}),
    )
    body = stream.streamed_response(told)
    assert body is not None
    cited = [[one["cited_text"] for one in content["citations"]] for content in body["content"]]
    assert cited == [["a", "b", "c"], ["d"]]


def test_what_came_so_far_is_not_copied_with_each_event() -> None:
    text: dict[str, Any] = {"citations": [{"cited_text": "a"}]}
    citations = text["citations"]
    stream._delta(text, {}, 0, {"type": "citations_delta", "citation": {"cited_text": "b"}})
    assert text["citations"] is citations
    usage = {"input_tokens": 5, "output_tokens": 1}
    assert stream._later(usage, {"output_tokens": 7}) is usage
    assert usage == {"input_tokens": 5, "output_tokens": 7}

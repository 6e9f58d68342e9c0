"""The five parsers that meet a stranger's bytes first, each as a function of bytes that holds them to their word."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Final, NamedTuple

from ctxctl.engine.query.parsing import QueryError, parse_query
from ctxctl.ingest.lines import values
from ctxctl.model.problem import Problem
from ctxctl.providers.dialects import DIALECTS
from ctxctl.providers.dialects.base import Dialect
from ctxctl.providers.dialects.stream import streamed_response
from ctxctl.record.http import is_end
from ctxctl.record.proxy import messages
from ctxctl.trace.contents import Contents
from ctxctl.trace.decode import Decoder, parse_line
from ctxctl.trace.depth import DEPTH_LIMIT, nests_deeper
from ctxctl.trace.salvage import repair_line, split_records
from ctxctl.trace.source import Source
from ctxctl.trace.writer import TraceWriter
from tools.fuzz.seeds import FIXTURES, TRACES

_HOSTS: Final = frozenset({"127.0.0.1", "localhost"})
_DIALECTS: Final[tuple[Dialect | None, ...]] = (None, *DIALECTS)


def codec(data: bytes) -> None:
    """Lines of a trace: decoded without an exception; what is written of them is read as the same."""
    problems: list[Problem] = []
    source = Source.from_bytes("fuzz", data)
    decoder = Decoder(Contents(source), problems.append)
    buffer = data if data.endswith(b"\n") else data + b"\n"
    events, last = decoder.scan(buffer, 0, 0)
    assert last == buffer.count(b"\n")
    for event in events:
        assert 0 <= event.offset <= event.offset + event.length <= len(buffer)
        assert 1 <= event.line <= last
    for problem in problems:
        assert 0 <= problem.byte <= len(buffer)
        assert "\n" not in problem.message
    value = parse_line(buffer[:-1])
    if value is not None and isinstance(value.get("event_type"), str):
        _written(value)


def _written(value: dict[str, object]) -> None:
    """What the writer takes of an event is valid for the reader, and it is written the same again."""
    out = io.BytesIO()
    refused: list[Problem] = []
    if not TraceWriter(out, source="fuzz", report=refused.append).write(value):
        assert refused
        return
    line = out.getvalue()
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    again = io.BytesIO()
    read = json.loads(line)
    assert TraceWriter(again, source="fuzz").write(read)
    assert json.loads(again.getvalue()) == read


def salvage(data: bytes) -> None:
    """A damaged line: faults and pieces lie within it, and each piece is one JSON value."""
    line = data.replace(b"\n", b" ")
    body, start, faults = repair_line(line)
    assert 0 <= start <= len(line)
    pieces, more = split_records(body, start, last=len(data) % 2 == 1)
    for fault in faults if body not in line else (*faults, *more):
        assert 0 <= fault.at <= len(line), fault
        assert "\n" not in fault.message
    for piece in pieces:
        value = json.loads(piece.text)
        assert not nests_deeper(DEPTH_LIMIT, value)
    problems: list[Problem] = []
    for _ in values(Source.from_bytes("fuzz", data), problems.append):
        pass
    for problem in problems:
        assert 1 <= problem.line <= data.count(b"\n") + 1
        assert 0 <= problem.byte <= len(data), problem


def sse(data: bytes) -> None:
    """A streamed answer: put together, or None; the same whether the dialect is named or found."""
    text = data.decode("utf-8", "replace")
    dialect = _DIALECTS[len(data) % len(_DIALECTS)]
    made = streamed_response(text, dialect)
    assert made is None or isinstance(made, dict)
    if dialect is not None:
        is_end(data, dialect)


def heads(data: bytes) -> None:
    """HTTP heads and bodies: taken, or refused by the two errors that say so; a body ends within the data."""
    end = messages.head_end(data)
    head = data[:end] if end >= 0 else data + b"\r\n\r\n"
    pieces: list[bytes] = []
    try:
        request = messages.parse_request(head)
        taken = request.body.feed(data, max(0, end), pieces)
        assert max(0, end) <= taken <= len(data)
        messages.provider_path(request.target, {"openai": b"/v1", "anthropic": b"/v1", "gemini": b"/v1beta"})
        messages.check_request(request, _HOSTS)
    except (messages.MalformedError, messages.MisdirectedError):
        pass
    try:
        answer = messages.parse_answer(head, b"GET")
        answer.body.feed(data, max(0, end), pieces)
    except messages.MalformedError:
        pass
    assert sum(map(len, pieces)) <= 2 * len(data)


def query(data: bytes) -> None:
    """What a user types: a query, or QueryError with a column in it and a message of one line."""
    text = data.decode("utf-8", "replace")
    try:
        parse_query(text)
    except QueryError as error:
        place, what = error.column, error.what
    else:
        return
    assert 0 <= place <= len(text), (place, text)
    assert what


class Parser(NamedTuple):
    """One parser, where it begins, and the words that its bytes are made of."""

    run: Callable[[bytes], None]
    starts: Callable[[], list[bytes]]
    words: tuple[bytes, ...]


def _trace_lines() -> list[bytes]:
    found = [line for path in sorted(TRACES.glob("*.jsonl")) for line in path.read_bytes().split(b"\n")[:12]]
    found += [path.read_bytes() for path in sorted((FIXTURES / "damaged").rglob("*")) if path.is_file()]
    return [one[:3000] for one in found if one]


def _streams() -> list[bytes]:
    found = [path.read_bytes() for path in sorted(FIXTURES.rglob("*.sse"))]
    found += [
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":3}}}\n\n'
        b'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}\n\n'
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}\n\ndata: [DONE]\n\n',
        b'data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i"}}\r\n\r\n'
        b'data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi"}\r\n\r\n'
        b'data: {"type":"response.completed","response":{"id":"r","output":[],"usage":{"input_tokens":1}}}\r\n\r\n',
        b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]}}],"usageMetadata":{"promptTokenCount":1}}\n\n',
    ]
    return [one[:4000] for one in found]


def _heads() -> list[bytes]:
    return [
        b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /responses?a=b HTTP/1.1\r\nhost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\n",
        b"GET http://example.com/ HTTP/1.0\r\nOrigin: https://example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n folded\r\n\r\nabc",
        b"HTTP/1.0 304 \n\n",
    ]


def _queries() -> list[bytes]:
    return [
        b'kind:tool_result,file window > 80% -status:skipped ("two words" | misses)', b"is not billed", b"turn:3..7 step:2",
        b"tokens>=1.5k AND (NOT source:web OR new)", b'title:"a \\" b" thread:main', b"cost<0.01 freed>0 usage=12,000",
    ]  # fmt: skip


_JSON_WORDS: Final = (
    b'{"', b'":', b"[]", b"{}", b"null", b"-1", b"1e999", b"NaN", b"\\ud800", b"\\u0000", b"\xed\xa0\x80", b"\0", b"\r\n", b'""',
    b"[" * 70, b'{"a":' * 70, b"9" * 40, b'"type":', b'"index":', b'"delta":', b'"content":',
)  # fmt: skip
_TRACE_WORDS: Final = (
    b'"event_type":', b'"event_id":', b'"data":{', b'"schema_version":"0.1.1"', b'"context.item.added"', b'"item_id":',
    b'"context.assembly.created"', b'"ordered_blocks":[', b'"metadata":{"ctxctl":{', b'"splices":[[0,1,1]]', b'"base":',
    b'"content_ref":"sha256:', b'"usage.reported"', b'"context.injection.applied"', b'"visibility":["model"]', b'"time":',
)  # fmt: skip

PARSERS: Final[dict[str, Parser]] = {
    "codec": Parser(codec, _trace_lines, (*_JSON_WORDS, *_TRACE_WORDS)),
    "salvage": Parser(salvage, _trace_lines, (*_JSON_WORDS, *_TRACE_WORDS)),
    "sse": Parser(sse, _streams, (*_JSON_WORDS, b"data:", b"event: ", b"\n\n", b"[DONE]", b'"choices":[', b'"usage":{')),
    "heads": Parser(
        heads, _heads,
        (b"\r\n", b"\r\n\r\n", b"\n\n", b"Host: ", b"Content-Length: ", b"Transfer-Encoding: chunked", b" HTTP/1.1", b"HTTP/1.1 200 ",
         b"0\r\n\r\n", b"Origin: ", b"Sec-Fetch-Site: ", b"/v1/v1/", b"CONNECT ", b"ffffffff\r\n", b"Upgrade: websocket", b"\t "),
    ),
    "query": Parser(
        query, _queries,
        (b"kind:", b" AND ", b" OR ", b" NOT ", b"-", b"|", b"(", b")", b'"', b"\\", b">=", b"\xe2\x89\xa5", b"%", b"is not ", b"..", b"1,000",
         b"window", b"tokens", b"turn:", b"status:", b"cost", b"\xc4\xb0", b"\xe2\x80\xa8"),
    ),
}  # fmt: skip

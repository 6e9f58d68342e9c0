"""What can happen between a program and a model's API, step by step."""

from __future__ import annotations

import gzip
import json
import zlib

import brotli
import zstandard

from tests.acceptance.wires import (
    Scenario,
    Step,
    close,
    dribble,
    flood,
    half,
    opens,
    reset,
    rest,
    send,
    until,
    until_size,
    waits,
    whole,
)

ANSWER = json.dumps(
    {
        "id": "a",
        "object": "chat.completion",
        "model": "gpt-5",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Blue light scatters."}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5},
    }
).encode()
ERROR = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
END = b"--end-of-body--"
"""A mark in the bodies that servers wait for."""


def body(prompt: str = "Why is the sky blue?", **more: object) -> bytes:
    asked = {
        "model": "gpt-5",
        "messages": [{"role": "user", "content": prompt}],
        **more,
        "user": END.decode(),
    }
    return json.dumps(asked).encode()


def post(data: bytes, *fields: bytes, path: bytes = b"/v1/chat/completions") -> bytes:
    head = [b"POST %b HTTP/1.1" % path, b"Host: {host}", b"Content-Type: application/json", *fields]
    return b"\r\n".join([*head, b"Content-Length: %d" % len(data), b"", data])


def reply(data: bytes, *fields: bytes, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(data), b"", data])


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


def chunked(*parts: bytes, fields: tuple[bytes, ...] = (), trailer: bytes = b"") -> bytes:
    head = b"\r\n".join([b"HTTP/1.1 200 OK", *fields, b"Transfer-Encoding: chunked", b"", b""])
    return head + b"".join(map(chunk, parts)) + b"0\r\n" + trailer + b"\r\n"


def event(text: str) -> bytes:
    delta = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}], "model": "gpt-5"}
    return b"data: " + json.dumps(delta).encode() + b"\n\n"


JSON = b"Content-Type: application/json"
SSE = b"Content-Type: text/event-stream"
SSE_HEAD = b"HTTP/1.1 200 OK\r\n" + SSE + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
DONE = b"data: [DONE]\n\n"
ASKED = until(END + b'"}')


def once(
    name: str, answer: bytes, *, asked: bytes | None = None, asks: int = 1, last: Step = close
) -> Scenario:
    """One request, one answer, and what the server does then."""
    asked = asked or post(body())
    return Scenario(name, [send(asked), rest], [whole(asked), send(answer), last], asks)


def compressed(name: str, coding: bytes, data: bytes) -> Scenario:
    return once(name, reply(data, JSON, b"Content-Encoding: " + coding))


def _gzip_events() -> list[bytes]:
    engine = zlib.compressobj(wbits=31)
    parts = [engine.compress(event(w)) + engine.flush(zlib.Z_SYNC_FLUSH) for w in ("One ", "two.")]
    return [*parts, engine.compress(DONE) + engine.flush()]


def streamed() -> Scenario:
    """Each event is read before the next one is sent."""
    words = ["Blue ", "light ", "scatters."]
    client: list[Step] = [send(post(body(stream=True)))]
    server: list[Step] = [ASKED, send(SSE_HEAD)]
    for number, word in enumerate(words):
        server += [send(chunk(event(word))), waits(f"read-{number}")]
        client += [until(word.encode()), opens(f"read-{number}")]
    return Scenario("sse", [*client, rest], [*server, send(chunk(DONE) + b"0\r\n\r\n"), close])


LARGE = 5 << 20
_ODD = b"data: a\r\rdata: \xe2\x82\r\n\r\n: comment\n\xef\xbb\xbfdata:b\n\ndata: [1,\ndata: 2]\n\n"
_SOCKET = [
    b"GET /v1/realtime?model=x HTTP/1.1",
    b"Host: {host}",
    b"Connection: keep-alive, Upgrade",
    b"Upgrade: websocket",
    b"Sec-WebSocket-Version: 13",
    b"Sec-WebSocket-Key: AAAA",
    b"",
    b"",
]
_SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
ASK = b'{"type":"response.create","model":"gpt-5","input":[{"role":"user","content":"Why?"}],"store":false}'


def masked(first: int, data: bytes) -> bytes:
    """A short frame of a client; the key of its mask is zeros."""
    return bytes((first, 0x80 | len(data), 0, 0, 0, 0)) + data


def told(kind: str, status: str) -> bytes:
    """An event of a response as a frame of a server."""
    response = b'{"id":"r","status":"%b","output":[]}' % status.encode()
    data = b'{"type":"response.%b","response":%b}' % (kind.encode(), response)
    return bytes((0x81, len(data))) + data


_PARTS = [
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n",
    b"Trailer: X-Sum\r\n\r\n",
    chunk(body()[:20], b";a=b"),
    chunk(body()[20:]),
    b"0\r\nX-Sum: 1\r\n\r\n",
]
_GONE = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"

ANSWERS = [
    once("json", reply(ANSWER, JSON, b"Date: Sat, 21 Nov 2026 00:00:00 GMT")),
    once("chunked", chunked(ANSWER[:30], ANSWER[30:], fields=(JSON,))),
    once("trailers", chunked(ANSWER, fields=(b"Trailer: X-Sum",), trailer=b"X-Sum: 9\r\n")),
    streamed(),
    once("sse until close", b"HTTP/1.1 200 OK\r\n" + SSE + b"\r\n\r\n" + event("One.") + DONE),
    once("sse without an end", b"HTTP/1.1 200 OK\r\n" + SSE + b"\r\n\r\n" + event("One.")),
    once("sse of another style", b"HTTP/1.1 200 OK\r\n" + SSE + b"\r\n\r\n" + _ODD),
    once(
        "sse, a character in two chunks", chunked(*[event("€")[n : n + 1] for n in range(60)], fields=(SSE,))
    ),
    compressed("gzip", b"gzip", gzip.compress(ANSWER)),
    compressed("deflate", b"deflate", zlib.compress(ANSWER)),
    compressed("br", b"br", brotli.compress(ANSWER)),
    compressed("zstd", b"zstd", zstandard.compress(ANSWER)),
    compressed("gzip that is none", b"gzip", b"\x1f\x8b" + ANSWER),
    once("gzip, flushed with each event", chunked(*_gzip_events(), fields=(SSE, b"Content-Encoding: gzip"))),
    once("401", reply(ERROR, JSON, status=b"401 Unauthorized")),
    once("429", reply(ERROR, JSON, b"Retry-After: 2", b"retry-after-ms: 1", status=b"429 Too Many Requests")),
    once("500", reply(b"<html>oh</html>", b"Content-Type: text/html", status=b"500 Internal Server Error")),
    once("529", reply(ERROR, JSON, status=b"529 ")),
    once("no reason", reply(ANSWER, JSON, status=b"200")),
    once("204", b"HTTP/1.1 204 No Content\r\n\r\n"),
    once("204 with a body", b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nhi"),
    once("304", b'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 99\r\n\r\n'),
    once(
        "307 is not followed", reply(b"", b"Location: http://127.0.0.1:1/", status=b"307 Temporary Redirect")
    ),
    once("103 before", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + reply(ANSWER, JSON)),
    once(
        "odd headers",
        reply(ANSWER, b"x-LOWER: a", b"Set-Cookie: a=1", b"set-cookie: b=2", b"X-Empty:", b"X-\xff: \xe9"),
    ),
    once("folded header", reply(ANSWER, JSON, b"X-Long: a\r\n  b")),
    once("header of 100 KB", reply(ANSWER, JSON, b"X-Long: " + b"x" * 100_000)),
    once("two lengths", reply(ANSWER, JSON, b"Content-Length: 3")),
    once("length and chunks", chunked(ANSWER, fields=(b"Content-Length: 3",))),
    once("HTTP/1.0 answer", b"HTTP/1.0 200 OK\r\n" + JSON + b"\r\n\r\n" + ANSWER),
    once("more than its length", reply(ANSWER, JSON) + b"and this"),
    once("large answer", reply(b"x" * LARGE, b"Content-Type: text/plain")),
]
BROKEN = [
    once("reset in a stream", SSE_HEAD + chunk(event("One ")), last=reset),
    once("reset without an answer", b"", last=reset),
    once("closed without an answer", b""),
    once("closed in a chunk", SSE_HEAD + b"ff\r\ndata: {"),
    once("closed before its length", reply(ANSWER, JSON)[:-20]),
    once("closed in the head", b"HTTP/1.1 200 OK\r\nContent-Le"),
    once("chunk without a size", SSE_HEAD + chunk(event("One ")) + b"zz\r\nhello\r\n"),
    once("no HTTP at all", b"\x15\x03\x01\x00\x02\x02\x46 not what was asked for\n"),
    Scenario(
        "the program gives up before the answer",
        [send(post(body())), waits("asked"), close],
        [ASKED, opens("asked"), rest],
    ),
    Scenario(
        "the program gives up, with a reset",
        [send(post(body())), waits("asked"), reset],
        [ASKED, opens("asked"), rest],
    ),
    Scenario(
        "the program gives up in a stream",
        [send(post(body())), until(b"One "), reset],
        [ASKED, send(SSE_HEAD + chunk(event("One "))), flood(chunk(b": wait\n\n" * 1000))],
        loose=True,
    ),
    Scenario(
        "the program gives up while it sends",
        [
            send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: 900\r\n\r\nhello"),
            waits("head"),
            close,
        ],
        [until(b"hello"), opens("head"), rest],
        asks=0,
    ),
]
REQUESTS = [
    once(
        "GET",
        reply(b'{"data":[]}', JSON),
        asks=0,
        asked=b"GET /v1/models?a=b HTTP/1.1\r\nHost: {host}\r\n\r\n",
    ),
    once("unknown route", reply(b"{}", JSON), asked=post(body(), path=b"/v1/files"), asks=0),
    once(
        "target as it is",
        reply(ANSWER, JSON),
        asked=post(body(), path=b"/v1//a%2Fb/../c%20d/%C3%A9;x?q=%2B+&&a=?/%23"),
    ),
    once(
        "query", reply(ANSWER, JSON), asked=post(body(), path=b"/v1/chat/completions?api-version=2026&x=%20")
    ),
    once(
        "odd header names",
        reply(ANSWER, JSON),
        asked=post(
            body(), b"x-STAINLESS-os:Linux", b"X-Two: a", b"x-two: b", b"Cookie: c=1", b"TE: trailers"
        ),
    ),
    once(
        "header of 100 KB in the request",
        reply(ANSWER, JSON),
        asked=post(body(), b"X-Long: " + b"y" * 100_000),
    ),
    once("chunked request", reply(ANSWER, JSON), asked=b"".join(_PARTS)),
    once(
        "gzip request", reply(ANSWER, JSON), asked=post(gzip.compress(body(), 0), b"Content-Encoding: gzip")
    ),
    Scenario(
        "byte by byte", [dribble(post(body()), 1), rest], [ASKED, dribble(reply(ANSWER, JSON), 7), close]
    ),
    Scenario(
        "chunks byte by byte",
        [dribble(b"".join(_PARTS), 1), rest],
        [whole(b"".join(_PARTS)), dribble(chunked(ANSWER, fields=(JSON,)), 1), close],
    ),
    Scenario(
        "large request", [send(post(body("x" * LARGE))), rest], [ASKED, send(reply(ANSWER, JSON)), close]
    ),
    Scenario(
        "HEAD",
        [
            send(b"HEAD /v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            until(b"\r\n\r\n"),
            send(post(body())),
            rest,
        ],
        [
            until(b"\r\n\r\n"),
            send(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
            ASKED,
            send(reply(ANSWER, JSON)),
            close,
        ],
    ),
    Scenario(
        "100-continue",
        [
            send(post(b"", b"Expect: 100-continue").replace(b"Length: 0", b"Length: %d" % len(body()))),
            until(b"100 Continue\r\n\r\n"),
            send(body()),
            rest,
        ],
        [until(b"\r\n\r\n"), send(b"HTTP/1.1 100 Continue\r\n\r\n"), ASKED, send(reply(ANSWER, JSON)), close],
    ),
    Scenario(
        "100-continue is refused",
        [send(post(b"", b"Expect: 100-continue").replace(b"Length: 0", b"Length: 5")), rest],
        [
            until(b"\r\n\r\n"),
            send(reply(ERROR, JSON, b"Connection: close", status=b"417 Expectation Failed")),
            close,
        ],
        asks=0,
    ),
    Scenario(
        "answered before it is sent",
        [send(post(body())[:-10]), until(ERROR), send(post(body())[-10:]), rest],
        [until(b"messages"), send(reply(ERROR, JSON, status=b"413 Content Too Large")), ASKED, close],
        asks=0,
    ),
    Scenario(
        "kept alive",
        [step for n in (1, 2, 3) for step in (send(post(body(f"Question {n}?"))), until(ANSWER, n))]
        + [half, rest],
        [step for n in (1, 2, 3) for step in (until(END + b'"}', n), send(reply(ANSWER, JSON)))] + [rest],
        asks=3,
    ),
    Scenario(
        "kept alive after an error",
        [send(post(body())), until(ERROR), send(post(body("Again?"))), rest],
        [
            ASKED,
            send(reply(ERROR, JSON, status=b"500 Oh")),
            until(END + b'"}', 2),
            send(reply(ANSWER, JSON)),
            close,
        ],
        asks=2,
    ),
    Scenario(
        "closed while idle",
        [send(post(body())), until(ANSWER), rest],
        [ASKED, send(reply(ANSWER, JSON)), close],
    ),
    Scenario(
        "one behind the other",
        [send(post(body()) + post(body("And red?"))), until(ANSWER, 2), half, rest],
        [until(END + b'"}', 2), send(reply(ANSWER, JSON) * 2), rest],
        asks=2,
    ),
    Scenario(
        "half closed", [send(post(body())), half, rest], [ASKED, rest, send(reply(ANSWER, JSON)), close]
    ),
    once(
        "HTTP/1.0 request",
        b"HTTP/1.0 200 OK\r\n\r\n" + ANSWER,
        asked=post(body()).replace(b"HTTP/1.1", b"HTTP/1.0"),
    ),
    once(
        "HTTP/1.0 without a host",
        b"HTTP/1.0 200 OK\r\n\r\n" + ANSWER,
        asked=post(body()).replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host: {host}\r\n", b""),
    ),
    Scenario(
        "HTTP/1.0 kept alive",
        [
            step
            for n in (1, 2)
            for step in (
                send(post(body(f"Q{n}"), b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")),
                until(ANSWER, n),
            )
        ]
        + [half, rest],
        [
            step
            for n in (1, 2)
            for step in (
                until(END + b'"}', n),
                send(reply(ANSWER, b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0")),
            )
        ]
        + [rest],
        asks=2,
    ),
    Scenario(
        "empty lines before a request",
        [send(b"\r\n\r\n" + post(body())), rest],
        [ASKED, send(reply(ANSWER, JSON)), close],
    ),
    Scenario(
        "websocket",
        [
            send(b"\r\n".join(_SOCKET)),
            until(b"\r\n\r\n"),
            send(b"\x81\x85\0\0\0\0hello"),
            until(b"\x81\x02ok"),
            half,
            rest,
        ],
        [until(b"\r\n\r\n"), send(_SWITCH), until(b"hello"), send(b"\x81\x02ok"), rest, close],
        asks=0,
    ),
    Scenario(
        "responses over a websocket",
        [
            send(b"\r\n".join(_SOCKET).replace(b"realtime?model=x", b"responses")),
            until(b"hello"),
            dribble(masked(0x01, ASK[:9]) + masked(0x89, b"p") + masked(0x80, ASK[9:]), 11),
            until(b"completed"),
            send(masked(0x88, b"\x03\xe8")),
            rest,
        ],
        [
            until(b"\r\n\r\n"),
            send(_SWITCH + b"\x81\x07hello {"),
            until(b"false}"),
            send(b"\x8a\x01p"),
            dribble(told("created", "in_progress") + told("completed", "completed"), 7),
            until(b"\x03\xe8"),
            send(b"\x88\x02\x03\xe8"),
            close,
        ],
    ),
    Scenario(
        "a websocket that says something else",
        [
            send(b"\r\n".join(_SOCKET).replace(b"realtime?model=x", b"responses")),
            until(b"\r\n\r\n"),
            send(b"GET / HTTP/1.1\r\n\r\n" + bytes(range(256)) * 300 + b"the end"),
            until(b"ok"),
            rest,
        ],
        [until(b"\r\n\r\n"), send(_SWITCH), until(b"the end"), send(b"\xff" * 999 + b"ok"), close],
        asks=0,
    ),
    Scenario(
        "an upgrade is refused",
        [send(b"\r\n".join(_SOCKET)), until(ERROR), send(post(body())), rest],
        [
            until(b"\r\n\r\n"),
            send(reply(ERROR, JSON, status=b"400 Bad Request")),
            ASKED,
            send(reply(ANSWER, JSON)),
            close,
        ],
    ),
    Scenario(
        "slow reader",
        [send(post(body())), waits("sent some"), until_size(len(reply(b"", JSON)) + LARGE), rest],
        [
            ASKED,
            send(reply(b"z" * LARGE, JSON)[:1000]),
            opens("sent some"),
            send(reply(b"z" * LARGE, JSON)[1000:]),
            close,
        ],
    ),
]
SCENARIOS = [*ANSWERS, *BROKEN, *REQUESTS]

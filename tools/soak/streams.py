"""The recording proxy under many streams at once, and the receiver of events under many senders."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from typing import Final

from tools.soak.samples import Sampler

CHUNKS: Final = 20
EVERY: Final = 1.0
"""Seconds between two chunks of a stream, and between two posts of a sender."""
EXPORTS_EVERY: Final = 5.0
"""Seconds between two exports of a program, which is how often OpenTelemetry's SDKs export by default."""
_END: Final = b"0\r\n\r\n"


async def stand_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A provider on loopback: each request is answered by a stream that says when each chunk was sent."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            await _request(reader)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            for number in range(CHUNKS):
                sent = json.dumps(
                    {"choices": [{"index": 0, "delta": {"content": f"at {time.monotonic()} "}}]}
                )
                _chunk(writer, f"data: {sent}\n\n")
                await writer.drain()
                if number < CHUNKS - 1:
                    await asyncio.sleep(EVERY)
            usage = {
                "choices": [],
                "usage": {"prompt_tokens": 20, "completion_tokens": 60, "total_tokens": 80},
            }
            _chunk(writer, f"data: {json.dumps(usage)}\n\ndata: [DONE]\n\n")
            writer.write(_END)
            await writer.drain()
    writer.close()


async def client(port: int, name: int, until: float, sampler: Sampler) -> None:
    """One program that asks again and again through the proxy, on one connection."""
    await asyncio.sleep(name % 100 * EVERY * CHUNKS / 100)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    asked = 0
    while time.monotonic() < until:
        asked += 1
        messages = [{"role": "user", "content": f"Client {name} asks for the {asked}th time."}]
        body = json.dumps({"model": "gpt-4o", "stream": True, "messages": messages}).encode()
        head = f"POST /chat/completions HTTP/1.1\r\n{_to(port)}content-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await _head(reader)
        while (size := int(await reader.readline(), 16)) > 0:
            data = await reader.readexactly(size + 2)
            if (at := data.find(b'"at ')) >= 0:
                sampler.note(time.monotonic() - float(data[at + 4 :].split(b" ", 1)[0]))
        await reader.readline()
        sampler.did()
    writer.close()


async def sender(port: int, name: int, until: float, sampler: Sampler) -> None:
    """One program that posts events again and again, on one connection; its lag is the time of an answer."""
    await asyncio.sleep(name % 100 * EVERY / 100)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while time.monotonic() < until:
        number += 1
        event = {
            "event_id": f"{name}-{number}", "event_type": "context.item.added", "schema_version": "0.1.0",
            "session_id": f"s{name}", "turn_id": "t", "source": "soak", "time": "2026-01-01T00:00:00Z",
            "data": {
                "item_id": f"i{number % 10}", "context_kind": "user_message", "content": f"Line {number}.",
                "visibility": ["model"],
            },
        }  # fmt: skip
        body = json.dumps(event).encode() + b"\n"
        head = (
            f"POST /v1/events HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/x-ndjson\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        began = time.monotonic()
        writer.write(head.encode() + body)
        length = await _head(reader)
        await reader.readexactly(length)
        sampler.note(time.monotonic() - began)
        sampler.did()
        await asyncio.sleep(EVERY)
    writer.close()


async def exporter(port: int, name: int, until: float, sampler: Sampler) -> None:
    """One program that exports the span of a call again and again (OTLP/HTTP, JSON), on one connection."""
    await asyncio.sleep(name % 100 * EXPORTS_EVERY / 100)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while time.monotonic() < until:
        number += 1
        body = json.dumps(_call(name, number)).encode()
        head = (
            f"POST /v1/traces HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        began = time.monotonic()
        writer.write(head.encode() + body)
        length = await _head(reader)
        await reader.readexactly(length)
        sampler.note(time.monotonic() - began)
        sampler.did()
        await asyncio.sleep(EXPORTS_EVERY)
    writer.close()


def _call(name: int, number: int) -> dict[str, object]:
    """An export of one span, a call of a model."""
    asked = [
        {
            "role": "user",
            "parts": [{"type": "text", "content": f"Program {name} asks for the {number}th time."}],
        }
    ]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]
    told = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
        "gen_ai.conversation.id": f"c{name}-{number // 10}", "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(answer),
    }  # fmt: skip
    attributes: list[dict[str, object]] = [
        {"key": key, "value": {"stringValue": value}} for key, value in told.items()
    ]
    attributes.append({"key": "gen_ai.usage.input_tokens", "value": {"intValue": "20"}})
    start = 1_790_000_000_000_000_000 + number * 1_000_000_000
    span = {
        "traceId": f"{name * 1_000_000 + number + 1:032x}", "spanId": f"{name * 1_000_000 + number + 1:016x}",
        "name": "chat gpt-4o", "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 500_000_000),
        "attributes": attributes,
    }  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


Program = Callable[[int, int, float, Sampler], Awaitable[None]]


async def load(program: Program, port: int, count: int, seconds: float, sampler: Sampler) -> int:
    """Run so many programs; how many of them broke off."""
    until = time.monotonic() + seconds
    tasks = [asyncio.ensure_future(program(port, name, until, sampler)) for name in range(count)]
    done = await asyncio.gather(*tasks, return_exceptions=True)
    for error in {repr(one) for one in done if one is not None}:
        print(f"broke off: {error}")
    return sum(one is not None for one in done)


def _to(port: int) -> str:
    return f"host: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"


async def _head(reader: asyncio.StreamReader) -> int:
    """Read a response's head; the length of its body, 0 where it is chunked.  Raises ValueError."""
    line = await reader.readline()
    if not line.startswith(b"HTTP/1.1 2"):
        raise ValueError(line.decode("latin-1"))
    length = 0
    while (line := await reader.readline()).strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return length


async def _request(reader: asyncio.StreamReader) -> None:
    if not await reader.readline():
        raise ConnectionError
    length = 0
    while (line := await reader.readline()).strip():
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    await reader.readexactly(length)


def _chunk(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

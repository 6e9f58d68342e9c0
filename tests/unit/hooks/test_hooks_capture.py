"""The front of a transport: the same bytes, once, whatever happens; nothing is left behind."""

from __future__ import annotations

import ast
import gc
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import ctxctl
from ctxctl.hooks import capture as hooks
from ctxctl.hooks.capture import end_reason

ROOT = Path(__file__).resolve().parents[3]
URL = "http://api.example/v1/chat/completions"
BODY = {"model": "m-1", "messages": [{"role": "user", "content": "hi"}]}
CHUNKS = [
    b'data: {"choices": [{"index": 0, "delta": {"content": "hel"}}]}\n\n',
    b'data: {"choices": [{"index": 0, "delta": {"content": "lo"}}]}\n\ndata: [DO',
    b"NE]\n\n",
]


class Stream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A stream that counts how often it is closed, and breaks where it is told to."""

    def __init__(self, breaks: BaseException | None = None) -> None:
        self.closed = 0
        self.breaks = breaks

    def __iter__(self) -> Iterator[bytes]:
        yield from CHUNKS[: 1 if self.breaks else None]
        if self.breaks:
            raise self.breaks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


class Transport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers with a stream, or raises."""

    def __init__(self, breaks: BaseException | None = None, refuses: BaseException | None = None) -> None:
        self.stream = Stream(breaks)
        self.refuses = refuses
        self.asked = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked += 1
        if self.refuses:
            raise self.refuses
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=self.stream)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self.handle_request(request)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [event["data"] for event in events if event["event_type"] == kind]


def said(path: Path) -> list[str]:
    items = records(path, "context.item.added")
    return [item["content"] for item in items if item["context_kind"] == "assistant_message"]


def test_a_stream_is_the_same_piece_by_piece(path: Path) -> None:
    inner = Transport()
    with ctxctl.capture(path), httpx2.Client(transport=inner) as client:
        with client.stream("POST", URL, json=BODY) as response:
            assert list(response.iter_raw()) == CHUNKS
        assert response.elapsed.total_seconds() >= 0
    assert (inner.asked, inner.stream.closed) == (1, 1)
    assert said(path) == ["hello"]
    assert records(path, "ctxctl.step.failed") == []


async def test_an_asynchronous_stream_is_the_same_piece_by_piece(path: Path) -> None:
    inner = Transport()
    async with httpx2.AsyncClient(transport=inner) as client:
        with ctxctl.capture(path):
            async with client.stream("POST", URL, json=BODY) as response:
                assert [chunk async for chunk in response.aiter_raw()] == CHUNKS
    assert (inner.asked, inner.stream.closed) == (1, 1)
    assert said(path) == ["hello"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (httpx2.ReadTimeout("x"), "timeout"),
        (httpx2.ReadError("x"), "upstream_reset"),
        (httpx2.RemoteProtocolError("x"), "upstream_reset"),
        (httpx2.LocalProtocolError("x"), "malformed"),
        (KeyboardInterrupt(), "client_gone"),
    ],
)
def test_what_a_transport_raises_goes_on_as_it_is(path: Path, error: BaseException, told: str) -> None:
    assert end_reason(error) == told
    for breaking in (Transport(refuses=error), Transport(breaks=error)):
        with ctxctl.capture(path), httpx2.Client(transport=breaking) as client:
            with pytest.raises(type(error)) as caught, client.stream("POST", URL, json=BODY) as response:
                list(response.iter_raw())
            assert caught.value is error
    words = told.replace("_", " ")
    assert [r["error"] for r in records(path, "ctxctl.step.failed")] == [
        f"no answer: {words}",
        f"cut: {words}",
    ]
    assert said(path) == ["hel"]


def test_a_response_that_is_only_dropped_is_ended(path: Path) -> None:
    with ctxctl.capture(path):
        client = httpx2.Client(transport=Transport())
        response = client.send(client.build_request("POST", URL, json=BODY), stream=True)
        next(response.iter_raw())
        del response
        gc.collect()
    assert [r["error"] for r in records(path, "ctxctl.step.failed")] == ["cut: client gone"]


def test_nothing_is_left_behind(path: Path) -> None:
    plain = httpx2.Client._transport_for_url, httpx2.AsyncClient._transport_for_url
    finders = list(sys.meta_path)
    with ctxctl.capture(path) as outer:
        with ctxctl.capture(path):
            assert httpx2.Client._transport_for_url is not plain[0]
        assert httpx2.Client._transport_for_url is not plain[0]
        outer.close()
        assert (httpx2.Client._transport_for_url, httpx2.AsyncClient._transport_for_url) == plain
    assert sys.meta_path == finders
    assert hooks._active == ()


def test_two_recordings_at_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    with ctxctl.capture(one), ctxctl.capture(two), httpx2.Client(transport=Transport()) as client:
        client.post(URL, json=BODY)
    assert said(one) == said(two) == ["hello"]


def test_a_transport_that_asks_another_one_is_one_request(path: Path) -> None:
    class Outer(httpx2.BaseTransport):
        def __init__(self) -> None:
            self.client = httpx2.Client(transport=Transport())

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            made = self.client.post(URL, json=json.loads(request.content))
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=made.content)

    with ctxctl.capture(path), httpx2.Client(transport=Outer()) as client:
        assert client.post(URL, json=BODY).content == b"".join(CHUNKS)
    assert len(records(path, "context.injection.applied")) == 1
    assert said(path) == ["hello"]


def test_other_requests_are_left_alone(path: Path) -> None:
    def upload() -> Iterator[bytes]:
        yield b"{}"

    with ctxctl.capture(path), httpx2.Client(transport=Transport()) as client:
        client.get("http://api.example/v1/models")
        client.post("http://api.example/v1/files", content=upload())
        client.post(URL, content=upload())
        client.post(URL, content=b"\xff{")
    assert not path.exists() or path.read_bytes() == b""


def test_what_cannot_be_recorded_is_sent_all_the_same(tmp_path: Path) -> None:
    there = tmp_path / "file"
    there.write_text("")
    inner = Transport()
    with ctxctl.capture(there / "below.jsonl") as made, httpx2.Client(transport=inner) as client:
        assert client.post(URL, json=BODY).content == b"".join(CHUNKS)
    assert made.recorder.dropped > 0


def test_a_client_of_something_else_is_refused(path: Path) -> None:
    with pytest.raises(TypeError):
        ctxctl.recorded(object(), path)
    client = ctxctl.recorded(
        httpx2.Client(transport=Transport(), mounts={"http://a.example": Transport()}), path
    )
    with pytest.raises(TypeError):
        ctxctl.recorded(client, path)
    client.post(URL, json=BODY)
    client.post(URL.replace("api.", "a."), json=BODY)
    assert len(records(path, "context.injection.applied")) == 2


def test_a_recorder_costs_no_import_of_a_hook_or_of_a_client() -> None:
    code = """
import sys
from ctxctl import Recorder
slow = ("httpx", "httpx2", "aiohttp", "re2", "orjson", "genai_prices")
heavy = [name for name in sys.modules if name.partition(".")[0] in slow]
rooms = ("ctxctl.hooks", "ctxctl.providers", "ctxctl.importers")
ours = [name for name in sys.modules if name.startswith(rooms)]
print(heavy, ours)
import ctxctl
ctxctl.capture
print([name for name in ("httpx", "httpx2", "genai_prices") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["[] []", "[]"], done.stderr


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tests" / "frameworks").glob("test_*.py")), ids=lambda p: p.name
)
def test_no_test_of_a_hook_is_left_out(path: Path) -> None:
    """Each names environments that are made, and none can skip itself there."""
    text = path.read_text(encoding="utf-8")
    named = [
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ENVIRONMENTS"
    ]
    (environments,) = named
    made = {one.stem for one in path.parent.glob("*.in")}
    assert environments
    assert set(environments) <= made
    assert all((path.parent / f"requirements-{name}.txt").exists() for name in made)
    assert not any(word in text for word in ("importorskip", "mark.skip", "pytest.skip", "xfail"))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (tested,) = (line for line in makefile.splitlines() if line.startswith("FRAMEWORKS ?= "))
    assert set(tested.removeprefix("FRAMEWORKS ?= ").split()) == made

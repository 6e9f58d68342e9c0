"""Responses over WebSocket through the relay: both sides see their frames, and the trace whole requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from ctxctl.record.options import Options
from ctxctl.record.proxy.server import Proxy
from ctxctl.record.proxy.upstreams import parsed
from ctxctl.record.proxy.writer_client import Totals, WriterClient
from ctxctl.session import Inspector
from tests.acceptance.responses_socket import SYSTEM, USAGE, Stand, answer, create, running, user
from tests.unit.providers.wire_rebuild import check

Json = dict[str, Any]


class Line:
    """A proxy with its recorder before a stand-in."""

    def __init__(self, trace: Path, port: int) -> None:
        self.trace = trace
        self.scribe = WriterClient(Options(trace))
        self.scribe.ready()
        server = parsed(f"http://127.0.0.1:{port}")
        assert server is not None
        self.proxy = Proxy([server], copies=self.scribe.connection)
        self.port = self.proxy.listeners[server].port

    def dial(self, **options: Any) -> Any:
        return connect(f"ws://127.0.0.1:{self.port}/v1/responses", max_size=None, proxy=None, **options)

    def close(self) -> Totals:
        self.proxy.stop()
        totals = self.scribe.finish(60.0)
        assert totals is not None
        assert totals.dropped == 0
        assert sum(listener.faults for listener in self.proxy.listeners.values()) == 0
        return totals

    def steps(self) -> list[Json]:
        """Where each step stands and how it went, in order."""
        events = [json.loads(line) for line in self.trace.read_bytes().splitlines()]
        failed = {
            (e.get("thread_id"), e["step_id"]): e["data"]["error"]
            for e in events
            if e["event_type"].endswith("step.failed")
        }
        billed = {
            (e.get("thread_id"), e["step_id"]): e["data"]["input_tokens"]
            for e in events
            if e["event_type"].endswith("usage.reported")
        }
        with Inspector.open(str(self.trace)) as inspector:
            list(inspector.replay())
            count = inspector.summary.steps if inspector.summary else 0
            found = [inspector.frame(at) for at in range(count)]
        return [
            {
                "thread": frame.step.thread, "turn": frame.step.turn, "items": len(frame.placements),
                "billed": billed.get((frame.step.thread, frame.step.step_id)),
                "failed": failed.get((frame.step.thread, frame.step.step_id)),
            }
            for frame in found
        ]  # fmt: skip

    def bodies(self, seen: list[Json]) -> None:
        """Every frame is the request that it stands for."""
        with Inspector.open(str(self.trace)) as inspector:
            list(inspector.replay())
            check(inspector, [("openai-responses", body) for body in seen])


Make = Callable[..., tuple[Stand, Line]]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setenv("CTXCTL_STATE_DIR", str(tmp_path))
    with ExitStack() as stack:

        def start(**options: Any) -> tuple[Stand, Line]:
            stand = Stand()
            port = stack.enter_context(running(stand, **options))
            line = Line(tmp_path / "run.jsonl", port)
            stack.callback(line.proxy.stop)
            return stand, line

        yield start


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_each_request_is_recorded_whole(make: Make, compression: str | None) -> None:
    stand, line = make(compression=compression)
    with line.dial(compression=compression) as socket:
        socket.send(create(SYSTEM, generate=False))
        warm, _ = answer(socket)
        socket.send(create(user("one, call"), before=warm))
        first, events = answer(socket)
        assert events[0]["type"] == "codex.rate_limits"
        result = {"type": "function_call_output", "call_id": "call_2", "output": "pieces of it"}
        socket.send(create(result, before=first))
        second, _ = answer(socket)
        # A message of any size, in fragments.
        socket.send(_cut(create(user("two " * 40_000), before=second), 5))
        answer(socket)
    totals = line.close()
    assert (totals.recorded, totals.passed, totals.unread) == (4, 0, {})
    steps = line.steps()
    assert [s["thread"] for s in steps] == ["warm-up", "main", "main", "main"]
    assert [s["items"] for s in steps] == [2, 3, 5, 7]
    assert [s["billed"] for s in steps] == [USAGE["input_tokens"]] * 4
    assert [s["turn"] for s in steps[1:]] == [1, 1, 2]
    line.bodies(stand.bodies)


def _cut(text: str, pieces: int) -> list[str]:
    size = len(text) // pieces + 1
    return [text[at : at + size] for at in range(0, len(text), size)]


def test_what_goes_on_after_a_warm_up_is_derived_and_the_rest_is_not(make: Make) -> None:
    _, line = make()
    with line.dial() as socket:
        socket.send(create(SYSTEM, generate=False))
        warm, _ = answer(socket)
        socket.send(create(user("one"), before=warm))
        answer(socket)
        socket.send(create(SYSTEM, user("another")))
        answer(socket)
    line.close()
    events = [json.loads(row) for row in line.trace.read_bytes().splitlines()]
    made = [e["data"] for e in events if e["event_type"].endswith("assembly.created")]
    marks = [one["metadata"]["ctxctl"].get("derived") for one in made]
    assert marks == [None, True, None]


def test_a_new_connection_goes_on_with_an_earlier_ones_response(make: Make) -> None:
    stand, line = make()
    with line.dial() as socket:
        socket.send(create(SYSTEM, user("one")))
        first, _ = answer(socket)
        socket.send(create(user("two"), before=first))
        second, _ = answer(socket)
    with line.dial() as socket:
        socket.send(create(user("three"), before=second))
        answer(socket)
        # From the middle, and from one that nobody has seen.
        socket.send(create(user("two, otherwise"), before=first))
        answer(socket)
        socket.send(create(user("and this"), before="resp_unseen"))
        answer(socket)
    line.close()
    steps = line.steps()
    assert [s["items"] for s in steps] == [3, 5, 7, 5, 3]
    line.bodies([*stand.bodies[:4], {**stand.bodies[4], "previous_response_id": "resp_unseen"}])


def test_connections_at_once_are_conversations_of_their_own(make: Make) -> None:
    stand, line = make()
    with line.dial() as one, line.dial() as other:
        one.send(create(SYSTEM, user("one, wait"), client_metadata={"session_id": "s", "thread_id": "a"}))
        other.send(create(SYSTEM, user("its own"), client_metadata={"session_id": "t", "thread_id": "b"}))
        name, _ = answer(other)
        other.send(create(user("goes on"), before=name, client_metadata={"session_id": "t"}))
        answer(other)
        stand.go.set()
        answer(one)
    line.close()
    with Inspector.open(str(line.trace)) as inspector:
        list(inspector.replay())
        found = {inspector.frame(at).step.session for at in range(3)}
    assert found == {"s", "t"}
    assert sorted(s["items"] for s in line.steps()) == [3, 3, 5]
    assert [s["failed"] for s in line.steps()] == [None] * 3


def test_what_fails_is_told_and_the_connection_goes_on(make: Make) -> None:
    _, line = make()
    with line.dial() as socket:
        socket.send(create(SYSTEM, user("one, refuse")))
        answer(socket)
        socket.send(create(SYSTEM, user("two, break")))
        answer(socket)
        socket.send(create(SYSTEM, user("three")))
        answer(socket)
        socket.send(create(SYSTEM, user("four, hang")))
        with pytest.raises(ConnectionClosed):
            answer(socket)
    with line.dial() as socket:
        socket.send(create(SYSTEM, user("five, wait")))
        while "added" not in socket.recv(timeout=20):
            pass
    totals = line.close()
    assert totals.recorded == 5
    assert [s["failed"] for s in line.steps()] == [
        "HTTP 429: usage_limit_reached",
        "server_error",
        None,
        "cut: websocket closed",
        "cut: websocket closed",
    ]
    assert "sk-proj" not in line.trace.read_text()


@pytest.mark.parametrize("status", [426, 404])
def test_a_refusal_is_passed_on_and_recorded_as_nothing(make: Make, status: int) -> None:
    _, line = make(process_request=lambda socket, request: socket.respond(status, "not here"))
    with pytest.raises(InvalidStatus) as caught, line.dial():
        pass
    assert (caught.value.response.status_code, caught.value.response.body) == (status, b"not here")
    totals = line.close()
    assert (totals.recorded, totals.passed, line.proxy.tunnels) == (0, 1, 0)


def test_other_sockets_are_passed_on_and_not_read(make: Make) -> None:
    _, line = make()
    with connect(f"ws://127.0.0.1:{line.port}/v1/realtime", proxy=None) as socket:
        socket.send(create(SYSTEM, user("one")))
        answer(socket)
    totals = line.close()
    assert (totals.recorded, totals.passed, totals.unread, line.proxy.tunnels) == (0, 0, {}, 1)

"""The recorder's side of a WebSocket: what it takes, and what it says of one that it cannot read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.protocol import Protocol, Side

from ctxctl import Recorder
from ctxctl.record.exchange import Exchanges
from ctxctl.record.proxy import writer_process
from ctxctl.record.proxy.writer_process import FrameReceiver
from ctxctl.session import Inspector

ASK = {"type": "response.create", "model": "gpt-5", "store": False,
       "input": [{"role": "user", "content": "Why is the sky blue?"}]}  # fmt: skip
HEAD = {"method": "GET", "url": "http://api.example/v1/responses",
        "headers": [["Connection", "Upgrade"], ["Upgrade", "websocket"]]}  # fmt: skip


class Bench:
    """A desk, and the two ends of one connection."""

    def __init__(self, path: Path, *agreed: str) -> None:
        self.path = path
        self.recorder = Recorder(path, strict=True)
        self.desk = FrameReceiver(Exchanges(self.recorder))
        self.program, self.server = Protocol(Side.CLIENT), Protocol(Side.SERVER)
        self.desk.take(b"R", 1, json.dumps(HEAD).encode())
        self.desk.take(b"G", 1, b"0")
        fields = [["sec-websocket-extensions", value] for value in agreed]
        self.desk.take(b"W", 1, json.dumps({"headers": fields}).encode())

    def say(self, **message: Any) -> None:
        self.program.send_text(json.dumps(message).encode())
        self.desk.take(b"S", 1, b"".join(self.program.data_to_send()))

    def tell(self, **event: Any) -> None:
        self.server.send_text(json.dumps(event).encode())
        self.desk.take(b"T", 1, b"".join(self.server.data_to_send()))

    def done(self, number: int, **more: Any) -> None:
        said = [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Air."}]}
        ]
        response = {"id": f"r{number}", "object": "response", "output": said, "status": "completed", **more}
        self.tell(type="response.completed", response=response)

    def close(self) -> list[dict[str, Any]]:
        self.desk.take(b"E", 1, b"complete")
        assert self.desk._held == 0
        self.recorder.close()
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("CTXCTL_STATE_DIR", str(tmp_path))
    return Bench(tmp_path / "run.jsonl")


def failures(events: list[dict[str, Any]]) -> list[str]:
    return [e["data"]["error"] for e in events if e["event_type"].endswith("step.failed")]


def test_answers_find_their_requests_by_the_responses_id(bench: Bench) -> None:
    first = {"role": "user", "content": "One?"}
    bench.say(**{**ASK, "input": [first], "client_metadata": {"session_id": "a"}})
    bench.say(**{**ASK, "client_metadata": {"session_id": "b"}})
    for number in (1, 2):
        bench.tell(type="response.created", response={"id": f"r{number}", "status": "in_progress"})
    bench.done(2, usage={"input_tokens": 22, "output_tokens": 2})
    bench.done(1, usage={"input_tokens": 11, "output_tokens": 1})
    events = bench.close()
    bills = {e["session_id"]: e["data"]["input_tokens"] for e in events if "usage" in e["event_type"]}
    assert bills == {"a": 11, "b": 22}
    assert failures(events) == []


def test_what_an_answer_says_before_its_end_is_kept(bench: Bench) -> None:
    bench.say(**ASK)
    bench.tell(type="response.created", response={"id": "r1", "status": "in_progress"})
    bench.tell(type="response.output_text.delta", output_index=0, content_index=0, delta="Half of it")
    events = bench.close()
    assert failures(events) == ["cut: websocket closed"]
    assert "Half of it" in bench.path.read_text()


def test_nothing_came(bench: Bench) -> None:
    bench.say(**ASK)
    assert failures(bench.close()) == ["no answer: websocket closed"]


def test_items_stand_in_for_an_end_without_output(bench: Bench) -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Thin air."}]}
    bench.say(**ASK)
    bench.tell(type="response.output_item.done", output_index=0, item=item)
    bench.done(1, output=[])
    bench.say(**{**ASK, "previous_response_id": "r1"})
    bench.done(2)
    bench.close()
    with Inspector.open(str(bench.path)) as inspector:
        list(inspector.replay())
        carried = [inspector.text(p.content) for p in inspector.frame(1).placements if p.content is not None]
    assert carried == ["Why is the sky blue?", "Thin air.", "Why is the sky blue?"]


def test_what_is_appended_goes_on_with_the_last_response(bench: Bench) -> None:
    bench.say(type="response.append", input=[{"role": "user", "content": "To nothing"}])
    bench.say(**ASK)
    bench.done(1)
    bench.say(type="response.append", input=[{"role": "user", "content": "And at dusk?"}])
    bench.done(2)
    bench.close()
    assert bench.desk.recorded == 2
    text = bench.path.read_text()
    assert "And at dusk?" in text
    assert "To nothing" not in text


@pytest.mark.parametrize("message", [b"", b"[]", b"7", b"{", b'{"type":7}', b'{"type":"response.processed"}'])
def test_what_asks_nothing_is_left_out(bench: Bench, message: bytes) -> None:
    bench.program.send_text(message)
    bench.desk.take(b"S", 1, b"".join(bench.program.data_to_send()))
    bench.say(**ASK)
    bench.server.send_text(message)
    bench.desk.take(b"T", 1, b"".join(bench.server.data_to_send()))
    bench.done(1)
    assert failures(bench.close()) == []
    assert (bench.desk.recorded, bench.desk.unread) == (1, {})


@pytest.mark.parametrize("given", [None, 7, {}, [7, None], [[]], "text"])
def test_inputs_of_any_shape(bench: Bench, given: Any) -> None:
    bench.say(**{**ASK, "input": given, "previous_response_id": 7, "client_metadata": [1]})
    bench.done(1)
    bench.say(**{**ASK, "previous_response_id": "r1"})
    bench.done(2)
    bench.close()
    assert bench.desk.unread == {}
    assert bench.recorder.dropped == 0


def test_what_is_no_websocket_is_told(bench: Bench) -> None:
    bench.say(**ASK)
    bench.desk.take(b"T", 1, b"\xff\xff\xff")
    bench.say(**ASK)
    assert failures(bench.close()) == ["no answer: malformed"]
    assert bench.desk.unread == {"no frames of a WebSocket": 1}


def test_without_its_package_it_is_said_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "websockets"]:
        monkeypatch.setitem(sys.modules, name, None)
    bench = Bench(tmp_path / "run.jsonl")
    bench.say(**ASK)
    bench.close()
    assert bench.desk.recorded == 0
    assert list(bench.desk.unread) == ["`pip install 'ctxctl[serve]'` is needed to read its frames"]


def test_an_extension_that_is_not_known_is_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run.jsonl", "x-shuffled")
    bench.say(**ASK)
    bench.close()
    assert (bench.desk.recorded, bench.desk.unread) == (0, {"an extension that is not known": 1})


def test_all_connections_hold_a_bounded_number_of_bytes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_process, "_ALL", 1000)
    bench.desk.take(b"S", 1, b"\x01\xfe\x03\x84\0\0\0\0" + b"x" * 900)
    assert bench.desk._held == 908
    bench.desk.take(b"T", 1, b"\x01\x7e\x03\x84" + b"x" * 900)
    bench.close()
    assert bench.desk.unread == {"messages that are too large": 1}

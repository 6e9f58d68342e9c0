"""The writer process: takes copies from the relay, writes the trace, and gives its counts at the end.

It outlives a proxy that is killed, and writes what it was sent until then.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.record.proxy.writer_client import FRAME, MAX_BODY

if TYPE_CHECKING:
    from ctxctl.record.exchange import Exchange, Exchanges
    from ctxctl.record.proxy.websocket import Histories, ResponsesSocket

_ALL: Final = 256 << 20
"""Bytes of unfinished requests that are held at most."""
_SESSIONS: Final = 10_000
_STUBS: Final = {"/messages": "messages", "/chat/completions": "messages", "/responses": "input"}


def main(connection: int) -> None:
    """Take frames from this descriptor until it is closed; write a line to stdout at start and end."""
    from ctxctl.errors import CtxctlError
    from ctxctl.record.options import Options

    # The relay goes first where there are not enough processors for both.
    os.nice(5)
    taken = socket.socket(fileno=connection)
    taken.setblocking(True)
    stream = taken.makefile("rb", buffering=1 << 18)
    given = json.loads(stream.readline())
    redact = given.pop("redact")
    options = Options(
        out=Path(given.pop("out")), redact=redact if isinstance(redact, bool) else Path(redact), **given
    )
    try:
        recorder = options.recorder()
    except CtxctlError as error:
        _say({"error": [type(error).__name__, error.slug, error.message, error.hint]})
        return
    from ctxctl.record.exchange import Exchanges

    receiver = FrameReceiver(Exchanges(recorder))
    _say({"ready": os.getpid()})
    _import_early()
    while len(head := stream.read(FRAME.size)) == FRAME.size:
        kind, number, size = FRAME.unpack(head)
        payload = stream.read(size)
        if len(payload) < size:
            break
        try:
            receiver.take(kind, number, payload)
        except Exception as error:
            recorder._core.journal.count_lost(f"{type(error).__name__} in a copy")
    receiver.close()
    for session in receiver.over:
        recorder.end_session(session)
    recorder.close()
    counts = {"written": recorder.written, "dropped": recorder.dropped, "redacted": recorder.redacted}
    _say({**counts, "recorded": receiver.recorded, "passed": receiver.passed, "unread": receiver.unread})


def _say(value: dict[str, Any]) -> None:
    try:
        sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
        sys.stdout.flush()
    except OSError:
        pass  # the proxy that reads it is gone


def _import_early() -> None:
    """Import what the first request needs, so that its record waits for no import."""
    import ctxctl.record.conversations
    import ctxctl.record.http  # noqa: F401


class _IncomingExchange:
    """An exchange whose frames are coming in."""

    __slots__ = ("body", "exchange", "head", "size", "socket", "stuck")

    def __init__(self, head: dict[str, Any]) -> None:
        self.head = head
        self.body: list[bytes] | None = []
        """The pieces of the request's body; None once the request is whole."""
        self.size = 0
        self.stuck = False
        """Whether the body is too large to be recorded."""
        self.exchange: Exchange | None = None
        self.socket: ResponsesSocket | None = None
        """The WebSocket that it went on as."""

    @property
    def upgrades(self) -> bool:
        """Whether it asks for another protocol; the answer shows whether it was granted."""
        return any(name.lower() == "upgrade" for name, _ in self.head["headers"])


class FrameReceiver:
    """Turns frames into recorded exchanges."""

    def __init__(self, exchanges: Exchanges) -> None:
        self._exchanges = exchanges
        self._open: dict[int, _IncomingExchange] = {}
        self._held = 0
        self._sessions: dict[str, None] = {}
        self.over: list[str] = []
        """The sessions that ended with the program."""
        self.recorded = 0
        """The number of requests to a model."""
        self.passed = 0
        """The number of other requests."""
        self.unread: dict[str, int] = {}
        """WebSockets that could not be read to their end, by reason."""
        self._histories: Histories | None = None
        """The histories of all WebSockets; made with the first one, as reading them imports much."""

    def take(self, kind: bytes, number: int, payload: bytes) -> None:
        """Take one frame."""
        if kind == b"Q":
            self.over = list(self._sessions)
            return
        if kind == b"R":
            self._open[number] = _IncomingExchange(orjson.loads(payload))
            return
        coming = self._open.get(number)
        if coming is None:
            return
        if kind == b"B":
            self._body(coming, payload)
        elif kind == b"G":
            self._begin(coming, int(payload))
        elif kind in (b"W", b"S", b"T"):
            self._socket(coming, kind, payload)
        elif kind == b"H":
            self._begin(coming, coming.size)
            answer = orjson.loads(payload)
            if coming.upgrades and answer["status"] != 101:
                self.passed += 1
            if coming.exchange is not None:
                coming.exchange.head(answer["status"], [(name, value) for name, value in answer["headers"]])
        elif kind == b"D":
            if coming.exchange is not None:
                coming.exchange.data(payload)
        elif kind in (b"E", b"X"):
            self._end(number, coming, payload.decode() if kind == b"E" else "timeout")

    def _body(self, coming: _IncomingExchange, piece: bytes) -> None:
        if coming.body is None or coming.stuck:
            return
        coming.size += len(piece)
        if coming.size > MAX_BODY or self._held + len(piece) > _ALL:
            coming.stuck = True
            self._let_go(coming)
            return
        self._held += len(piece)
        coming.body.append(piece)

    def _let_go(self, coming: _IncomingExchange) -> None:
        self._held -= sum(map(len, coming.body or ()))
        coming.body = []

    def _begin(self, coming: _IncomingExchange, size: int) -> None:
        if coming.body is None:
            return
        head, body = coming.head, b"".join(coming.body)
        headers = [(name, value) for name, value in head["headers"]]
        if coming.stuck:
            body = stub(head["url"], size)
            headers = [(name, value) for name, value in headers if name.lower() != "content-encoding"]
        coming.exchange = self._exchanges.begin(head["method"], head["url"], headers, body or None)
        if coming.exchange is not None:
            self._begun(coming.exchange)
        elif not coming.upgrades:
            self.passed += 1
        self._let_go(coming)
        coming.body = None

    def _begun(self, exchange: Exchange) -> None:
        self.recorded += 1
        if len(self._sessions) < _SESSIONS and (session := exchange.session) is not None:
            self._sessions[session] = None

    # -- WebSockets -----------------------------------------------------------------------------------------

    def _socket(self, coming: _IncomingExchange, kind: bytes, payload: bytes) -> None:
        """Take a frame of an upgraded connection: its head, or bytes of one side."""
        from ctxctl.record.proxy.websocket import Histories, ResponsesSocket, UnreadableError

        try:
            if kind == b"W":
                answer = orjson.loads(payload)["headers"]
                head = coming.head
                self._histories = self._histories or Histories()
                coming.socket = ResponsesSocket(
                    self._exchanges, head["url"], head["headers"], answer, self._histories, self._begun
                )
            elif coming.socket is not None:
                self._feed(coming.socket, kind, payload)
        except ModuleNotFoundError:
            self._leave(coming, "`pip install 'ctxctl[serve]'` is needed to read its frames")
        except UnreadableError as error:
            self._leave(coming, str(error))

    def _feed(self, socket: ResponsesSocket, kind: bytes, payload: bytes) -> None:
        from ctxctl.record.proxy.websocket import UnreadableError

        before = socket.pending
        if before + len(payload) + self._held > _ALL:
            raise UnreadableError("messages that are too large")
        try:
            (socket.from_program if kind == b"S" else socket.from_server)(payload)
        finally:
            self._held += socket.pending - before

    def _leave(self, coming: _IncomingExchange, why: str) -> None:
        self.unread[why] = self.unread.get(why, 0) + 1
        self._close_socket(coming, "malformed")

    def _close_socket(self, coming: _IncomingExchange, how: str) -> None:
        socket, coming.socket = coming.socket, None
        if socket is not None:
            self._held -= socket.pending
            socket.end(how)

    def _end(self, number: int, coming: _IncomingExchange, how: str) -> None:
        del self._open[number]
        self._let_go(coming)
        self._close_socket(coming, how)
        if coming.exchange is not None:
            coming.exchange.end(how)

    def close(self) -> None:
        """End the exchanges that are not whole, as no frame will follow."""
        for number, coming in list(self._open.items()):
            self._end(number, coming, "client_gone")


def stub(url: str, size: int) -> bytes:
    """Return a request that stands for one too large to be recorded, and states its size."""
    text = f"[ctxctl: a request of {size:,} bytes, more than the {MAX_BODY:,} that are recorded]"
    path = url.partition("?")[0]
    for end, name in _STUBS.items():
        if path.endswith(end):
            return orjson.dumps({name: [{"role": "user", "content": text}]})
    return orjson.dumps({"contents": [{"role": "user", "parts": [{"text": text}]}]})

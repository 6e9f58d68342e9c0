"""The server's side of a connection that is relayed: passes its bytes on, and finds the answers in them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from ctxctl.record.proxy import messages
from ctxctl.record.proxy.messages import Answer, Body, MalformedError, Request
from ctxctl.record.proxy.resets import reset

if TYPE_CHECKING:
    from ctxctl.record.proxy.copies import Copy
    from ctxctl.record.proxy.relay import Connection


class Exchange:
    """A request on its way, until its answer is whole."""

    __slots__ = ("answering", "copy", "request", "sent")

    def __init__(self, request: Request, copy: Copy) -> None:
        self.request = request
        self.copy = copy
        self.sent = False
        self.answering: Body | None = None
        """The body of its answer, once the head has come."""


class Server(asyncio.Protocol):
    """The server's side."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._head = bytearray()
        self.blind = False
        """What comes is passed on and no longer looked at."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self._transport = cast(asyncio.Transport, transport)
        if self._connection.listener.is_own(transport.get_extra_info("peername")):
            self._connection.looped()
            reset(self._transport)
            return
        self._connection.reached(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        connection = self._connection
        if connection.transport is not None and not connection.transport.is_closing():
            connection.transport.write(data)
            connection.answered = True
        if self.blind:
            if connection.socket is not None:
                connection.socket.told(data)
            return
        try:
            self._look(data)
        except MalformedError:
            self._give_up("malformed")
        except Exception:
            # Whatever goes wrong here is ours; the bytes are where they belong.
            connection.listener.faults += 1
            self._give_up("malformed")

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone; `exc`: not in good order."""
        self._transport = None
        self._connection.conclude(abrupt=exc is not None)
        self._connection.finish(abrupt=exc is not None)

    def pause_writing(self) -> None:
        """More has been written than is taken."""
        self._connection.hold()

    def resume_writing(self) -> None:
        """It has been taken."""
        self._connection.go_on()

    def send(self, data: bytes) -> None:
        """Pass on what the program sends."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def end(self) -> bool:
        """The program sends nothing more; False: nor does it wait for anything.

        TLS knows no such thing as one direction alone: a client that closes is gone.
        """
        if self._transport is not None and self._transport.can_write_eof():
            self._transport.write_eof()
            return True
        return False

    def leave(self, *, abrupt: bool) -> None:
        """The program is gone."""
        if self._transport is None:
            return
        if abrupt:
            reset(self._transport)
        else:
            self._transport.close()

    def hold(self) -> None:
        """The program does not take more for the moment."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        """It does again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # -- looking --------------------------------------------------------------------------------------------

    def _give_up(self, how: str) -> None:
        self.blind, self._head = True, bytearray()
        for exchange in self._connection.waiting:
            exchange.copy.end(how)

    def _look(self, data: bytes) -> None:
        """Find the answers in what came."""
        waiting, at = self._connection.waiting, 0
        while at < len(data):
            if not waiting:
                raise MalformedError("an answer to nothing")
            exchange = waiting[0]
            if exchange.answering is None:
                rest = self._begin(data[at:], exchange)
                if rest is None:
                    return
                data, at = rest, 0
            body = exchange.answering
            if body is None:
                continue
            pieces: list[bytes] = []
            at = body.feed(data, at, pieces)
            for piece in pieces:
                exchange.copy.data(piece)
            if body.done:
                waiting.popleft()
                exchange.copy.end("complete")

    def _begin(self, data: bytes, exchange: Exchange) -> bytes | None:
        """Take the head of an answer; returns what came behind it, None if there is none yet."""
        start = len(self._head)
        self._head += data
        end = messages.head_end(self._head, start)
        if end < 0:
            if len(self._head) > messages.MAX_HEAD:
                raise MalformedError("a head that is too long")
            return None
        head, rest = bytes(self._head[:end]), bytes(self._head[end:])
        self._head = bytearray()
        answer = messages.answer(head, exchange.request.method)
        if answer.interim:
            return rest
        exchange.answering = answer.body
        if answer.status == 101:
            self._switch(exchange, answer, rest)
            return None
        exchange.copy.head(answer.status, answer.fields)
        return rest

    def _switch(self, exchange: Exchange, answer: Answer, rest: bytes) -> None:
        """Both sides go on with another protocol; `rest` came behind the head."""
        connection = self._connection
        connection.tunnel = self.blind = True
        if not exchange.request.asks_over_socket:
            connection.listener.tunnels += 1
            exchange.copy.head(answer.status, answer.fields)
            return
        connection.socket = exchange.copy
        exchange.copy.switched(answer.fields)
        if rest:
            exchange.copy.told(rest)

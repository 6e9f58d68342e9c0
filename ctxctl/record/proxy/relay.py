"""Passes bytes on between a program and a server, and looks at copies of them afterwards.

A connection of the program has one connection to the server, begun with its first request and ended with
it, so that keeping alive, closing, resetting and waiting mean the same on both.  What is changed on the way
is one line of each request's head, `Host`, and in its first line the path, where the provider spells it
otherwise.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, cast

from ctxctl.record.proxy import messages
from ctxctl.record.proxy.answers import MisdirectedError, checked, own_answer, respelled, rewritten
from ctxctl.record.proxy.behind import Exchange, Server
from ctxctl.record.proxy.messages import MalformedError
from ctxctl.record.proxy.resets import reset, reset_when_flushed

if TYPE_CHECKING:
    from ctxctl.record.proxy.server import Listener

_AHEAD: Final = 1 << 20
"""Bytes that are taken from the program while there is no connection to the server."""
_LINGERING: Final = 2.0
"""Seconds in which the program may read an answer of ours while it is still sending."""


class Connection(asyncio.Protocol):
    """The program's side."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.transport: asyncio.Transport | None = None
        self.waiting: deque[Exchange] = deque()
        """Requests whose answers are not whole, in order."""
        self.answered = False
        """Whether any byte went to the program since its last request was whole."""
        self.tunnel = False
        """Both sides go on with another protocol, or with something that is not understood."""
        self._head = bytearray()
        self._exchange: Exchange | None = None
        """The request that is being sent."""
        self._server: Server | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._pending: list[bytes] = []
        self._ended = False
        """The program sends nothing more."""
        self._over = False
        """Nothing is passed on any more."""

    # -- what the program does ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.listener.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._over:
            return
        if self.tunnel:
            self._send(data)
            return
        try:
            self._take(data)
        except MalformedError as error:
            self._refuse(400, str(error))
        except MisdirectedError as error:
            self._refuse(error.status, str(error))

    def eof_received(self) -> bool:
        """The program sends nothing more; True: it may still be answered."""
        self._ended = True
        if self._over or not (self.waiting or self.tunnel or self._exchange):
            return False
        if self._server is None:
            return self._connecting is not None and self.listener.upstream.scheme == "http"
        return self._server.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone; `exc`: not in good order."""
        self.transport = None
        self.listener.connections.discard(self)
        self._conclude("client_gone")
        self._over = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._server is not None:
            self._server.leave(abrupt=exc is not None)

    def pause_writing(self) -> None:
        """More has been written than is taken."""
        if self._server is not None:
            self._server.hold()

    def resume_writing(self) -> None:
        """It has been taken."""
        if self._server is not None:
            self._server.go_on()

    # -- requests -----------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        """Cut requests; each piece goes on as soon as it is known to be one."""
        at = 0
        while at < len(data) and not self._over:
            if self._exchange is None:
                rest = self._begin(data[at:])
                if rest is None:
                    return
                data, at = rest, 0
            exchange = self._exchange
            if exchange is not None and not exchange.request.body.done:
                pieces: list[bytes] = []
                end = exchange.request.body.feed(data, at, pieces)
                self._send(data[at:end] if at or end < len(data) else data)
                for piece in pieces:
                    exchange.copy.body(piece)
                at = end
            if exchange is not None and exchange.request.body.done:
                exchange.sent, self._exchange = True, None
                exchange.copy.sent()

    def _begin(self, data: bytes) -> bytes | None:
        """Take a head; returns what came behind it, None if there is none yet."""
        start = len(self._head)
        self._head += data
        if not start:
            # Empty lines before a request mean nothing (RFC 9112, 2.2).
            self._head = self._head.lstrip(b"\r\n")
        end = messages.head_end(self._head, start)
        if end < 0:
            if len(self._head) > messages.MAX_HEAD:
                raise MalformedError("a head that is too long")
            return None
        head, rest = bytes(self._head[:end]), bytes(self._head[end:])
        self._head = bytearray()
        request = messages.request(head)
        checked(request, self.listener.hosts)
        asked = request.target
        head, request = respelled(head, request, self.listener.bases)
        self.listener.respelled += request.target != asked
        exchange = Exchange(request, self.listener.copies.begin())
        if not self.waiting:
            self.answered = False
        self._exchange = exchange
        self._send(rewritten(head, request, self.listener))
        exchange.copy.request(request.method, self.listener.url(request), request.fields)
        if self._server is not None and self._server.blind:
            exchange.copy.end("malformed")
        else:
            self.waiting.append(exchange)
        if request.body.done:
            exchange.sent, self._exchange = True, None
            exchange.copy.sent()
        return rest

    def _send(self, data: bytes) -> None:
        if self._server is not None:
            self._server.send(data)
            return
        self._pending.append(data)
        if self.transport is not None and sum(map(len, self._pending)) > _AHEAD:
            # Not before: who does not read does not learn that the program has given up.
            self.transport.pause_reading()
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        try:
            await self.listener.connect(lambda: Server(self))
        except (OSError, ValueError) as error:
            self._connecting = None
            self.listener.failed(error)
            self._refuse(502, f"cannot reach {self.listener.upstream.origin}: {self.listener.told(error)}")

    def reached(self, server: Server) -> None:
        """There is a connection to the server."""
        self._connecting = None
        if self.transport is None or self._over:
            server.leave(abrupt=True)
            return
        self._server = server
        pending, self._pending = self._pending, []
        server.send(b"".join(pending))
        self.transport.resume_reading()
        if self._ended and not server.end():
            self.transport.close()

    def looped(self) -> None:
        """The connection that was made leads back here."""
        self._connecting = None
        self._refuse(508, f"{self.listener.upstream.origin} leads back to this proxy")

    # -- the end ------------------------------------------------------------------------------------------

    def finish(self, *, abrupt: bool) -> None:
        """The server has ended the connection: so does this side, in the same way."""
        self._over = True
        if self.transport is None:
            return
        if not abrupt:
            self.transport.close()
        else:
            self.listener.spawn(reset_when_flushed(self.transport))

    def _refuse(self, status: int, why: str) -> None:
        """Answer in the server's place, if no answer has begun; then end both sides."""
        # Behind, or in the middle of, another answer there is no place for this one.
        others = self.waiting if self._server is not None else ()
        late = self.answered or any(exchange is not self._exchange for exchange in others)
        self._conclude("malformed" if status == 400 else "upstream_reset")
        if self._over:
            return
        self._over = True
        if self._server is not None:
            self._server.leave(abrupt=True)
        transport = self.transport
        if transport is None:
            return
        self.listener.refused(status)
        if late:
            reset(transport)
            return
        transport.resume_reading()
        transport.write(own_answer(status, why))
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGERING, transport.close)

    def _conclude(self, how: str) -> None:
        for exchange in self.waiting:
            exchange.copy.end(how)
        self.waiting.clear()

    def hold(self) -> None:
        """The server does not take more for the moment."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def go_on(self) -> None:
        """It does again."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def conclude(self, *, abrupt: bool) -> None:
        """Say how what was not whole ended, as the server's side has ended."""
        if self.waiting and not abrupt:
            first = self.waiting[0]
            if first.answering is not None and first.answering.until_close:
                self.waiting.popleft().copy.end("complete")
        self._conclude("complete" if self.tunnel and not abrupt else "upstream_reset")

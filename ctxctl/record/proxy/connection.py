"""Passes bytes on between a program and a server, and finds the messages in copies of them.

Each connection of the program has one connection to the server, begun with its first request and ended with
it, so that keeping alive, closing, resetting and waiting mean the same on both.  Only this is changed on the
way: the lines `Host` and `Origin` of each request's head, and the path in its first line where the provider
spells it otherwise.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from ctxctl.record.proxy import messages
from ctxctl.record.proxy.messages import (
    Answer,
    Body,
    MalformedError,
    MisdirectedError,
    Request,
    addressed_to,
    check_request,
    error_answer,
    with_provider_path,
)

if TYPE_CHECKING:
    from ctxctl.record.proxy.messages import Bases
    from ctxctl.record.proxy.upstreams import NetworkProxy, Upstream
    from ctxctl.record.proxy.writer_client import Copies, Copy


_AHEAD: Final = 1 << 20
"""Bytes that are read from the program before there is a connection to the server."""
_LINGERING: Final = 2.0
"""Seconds for the program to read the proxy's own answer while it is still sending."""


class Listener(Protocol):
    """What a connection needs of the listening port that it came to."""

    upstream: Upstream
    network_proxy: NetworkProxy | None
    bases: Bases
    hosts: frozenset[str]
    connections: set[Connection]
    tunnels: int
    respelled: int
    faults: int

    @property
    def copies(self) -> Copies:
        """The copies that are sent to the writer process."""
        ...

    def url(self, request: Request) -> str:
        """Return the address that a request goes to, for the recorder."""
        ...

    async def connect(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Connect to the server.  Raises OSError."""
        ...

    def is_own(self, peer: object) -> bool:
        """Whether an address is one of the proxy's own ports."""
        ...

    def spawn(self, task: Coroutine[Any, Any, None]) -> None:
        """Run a task in the proxy's loop."""
        ...

    def connect_failed(self, error: BaseException) -> None:
        """Note that no connection to the server could be made, and why."""
        ...

    def failure_text(self, error: BaseException) -> str:
        """Return why there is no connection to the server, as one line."""
        ...

    def count_refusal(self, status: int) -> None:
        """Count a request that was not passed on."""
        ...


class _End(asyncio.Protocol):
    """One end of a relayed connection: the program's or the server's."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._head = bytearray()
        """The bytes so far of a head that has not come whole."""

    def stop_reading(self) -> None:
        """Read no more here for now: the other end does not take it as fast."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.pause_reading()

    def read_on(self) -> None:
        """Read on, as the other end takes more."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.resume_reading()

    def _cut_head(self, data: bytes, *, blank_lines: bool = False) -> tuple[bytes, bytes] | None:
        """The head that is whole with this data, and what came behind it; None if it is not whole yet.

        Args:
            data: The next bytes.
            blank_lines: Pass over empty lines in front of the head.

        Raises:
            MalformedError: The head is too long.
        """
        start = len(self._head)
        self._head += data
        if blank_lines and not start:
            self._head = self._head.lstrip(b"\r\n")
        end = messages.head_end(self._head, start)
        if end < 0:
            if len(self._head) > messages.MAX_HEAD:
                raise MalformedError("a head that is too long")
            return None
        head, rest = bytes(self._head[:end]), bytes(self._head[end:])
        self._head = bytearray()
        return head, rest


class Connection(_End):
    """The program's side of a relayed connection."""

    def __init__(self, listener: Listener) -> None:
        super().__init__()
        self.listener = listener
        self.waiting: deque[Exchange] = deque()
        """Requests whose answers are not whole, in order."""
        self.answered = False
        """Whether any byte has gone to the program since it last began a request while none waited."""
        self.tunnel = False
        """Whether both sides have gone on with another protocol."""
        self.socket: Copy | None = None
        """Takes copies of both sides, where the other protocol is a WebSocket with requests to a model."""
        self._exchange: Exchange | None = None
        """The request that is being sent."""
        self._server: Server | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._pending: list[bytes] = []
        self._ended = False
        """Whether the program has ended its side."""
        self._over = False
        """Whether nothing is passed on any more."""

    # -- what the program does ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the new connection."""
        self.transport = cast("asyncio.Transport", transport)
        self.listener.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, and find the messages in them."""
        if self._over:
            return
        if self.tunnel:
            self._send(data)
            if self.socket is not None:
                self.socket.from_program(data)
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
        """End the other side as well; with `exc`, by a reset."""
        self.transport = None
        self.listener.connections.discard(self)
        self._conclude("client_gone")
        self._over = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._server is not None:
            self._server.leave(abrupt=exc is not None)

    def pause_writing(self) -> None:
        """Stop reading at the other end: this one does not take it as fast."""
        if self._server is not None:
            self._server.stop_reading()

    def resume_writing(self) -> None:
        """Read on at the other end."""
        if self._server is not None:
            self._server.read_on()

    # -- requests -----------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        """Cut the program's bytes into requests; each piece is passed on as soon as it is checked."""
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
                exchange.copy.request_sent()

    def _begin(self, data: bytes) -> bytes | None:
        """Take a request's head; return what came behind it, or None if it is not whole yet."""
        # Empty lines before a request mean nothing (RFC 9112, 2.2).
        cut = self._cut_head(data, blank_lines=True)
        if cut is None:
            return None
        head, rest = cut
        request = messages.parse_request(head)
        check_request(request, self.listener.hosts)
        asked = request.target
        head, request = with_provider_path(head, request, self.listener.bases)
        self.listener.respelled += request.target != asked
        exchange = Exchange(request, self.listener.copies.begin())
        if not self.waiting:
            self.answered = False
        self._exchange = exchange
        self._send(addressed_to(head, request, self.listener.upstream, self.listener.network_proxy))
        exchange.copy.request(request.method, self.listener.url(request), request.fields)
        if self._server is not None and self._server.blind:
            exchange.copy.end("malformed")
        else:
            self.waiting.append(exchange)
        if request.body.done:
            exchange.sent, self._exchange = True, None
            exchange.copy.request_sent()
        return rest

    def _send(self, data: bytes) -> None:
        if self._server is not None:
            self._server.send(data)
            return
        self._pending.append(data)
        if self.transport is not None and sum(map(len, self._pending)) > _AHEAD:
            # Not before: a proxy that does not read does not notice that the program has given up.
            self.transport.pause_reading()
        if self._connecting is None:
            self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        try:
            await self.listener.connect(lambda: Server(self))
        except (OSError, ValueError) as error:
            self._connecting = None
            self.listener.connect_failed(error)
            self._refuse(
                502, f"cannot reach {self.listener.upstream.origin}: {self.listener.failure_text(error)}"
            )

    def server_connected(self, server: Server) -> None:
        """Send the server what waits for it, as it is connected now."""
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

    def server_is_proxy(self) -> None:
        """Refuse the request: the connection to the server leads back to this proxy."""
        self._connecting = None
        self._refuse(508, f"{self.listener.upstream.origin} leads back to this proxy")

    # -- the end ------------------------------------------------------------------------------------------

    def finish(self, *, abrupt: bool) -> None:
        """End this side in the way in which the server has ended its own."""
        self._over = True
        if self.transport is None:
            return
        if not abrupt:
            self.transport.close()
        else:
            self.listener.spawn(reset_when_flushed(self.transport))

    def _refuse(self, status: int, why: str) -> None:
        """Answer in the server's place if no answer has begun, and end both sides."""
        # There is no place for it behind another answer, or within one.
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
        self.listener.count_refusal(status)
        if late:
            reset(transport)
            return
        transport.resume_reading()
        transport.write(error_answer(status, why))
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(_LINGERING, transport.close)

    def _conclude(self, how: str) -> None:
        for exchange in self.waiting:
            exchange.copy.end(how)
        self.waiting.clear()

    def conclude(self, *, abrupt: bool) -> None:
        """End the exchanges that are not whole, by how the server's side has ended."""
        if self.waiting and not abrupt:
            first = self.waiting[0]
            if first.answering is not None and first.answering.until_close:
                self.waiting.popleft().copy.end("complete")
        self._conclude("complete" if self.tunnel and not abrupt else "upstream_reset")


_LINGER: Final = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which closing sends a reset and does not wait."""
_FLUSH: Final = 5.0
"""Seconds to deliver what was sent before a reset."""


def reset(transport: asyncio.Transport) -> None:
    """End a connection so that the other side notices that it did not end well."""
    opened: Any = transport.get_extra_info("socket")
    if opened is not None and transport.get_extra_info("sslcontext") is None:
        with suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    transport.abort()


async def reset_when_flushed(transport: asyncio.Transport) -> None:
    """Reset a connection once what was sent is delivered, as a reset would drop it; wait `_FLUSH` at most."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _FLUSH
    opened: Any = transport.get_extra_info("socket")
    pause = 0.001
    while not transport.is_closing() and loop.time() < until:
        if not transport.get_write_buffer_size() and not _undelivered(opened):
            break
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.1)
    reset(transport)


def _undelivered(opened: Any) -> int:
    """Return the bytes that the other side has not acknowledged; 0 where that is unknown."""
    import fcntl
    import termios

    command: Callable[..., Any] = fcntl.ioctl
    try:
        return int(struct.unpack("i", command(opened.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    except (OSError, ValueError):
        return 0


class Exchange:
    """A request that is being relayed, until its answer is whole."""

    __slots__ = ("answering", "copy", "request", "sent")

    def __init__(self, request: Request, copy: Copy) -> None:
        self.request = request
        self.copy = copy
        self.sent = False
        self.answering: Body | None = None
        """The body of its answer, once the head has come."""


class Server(_End):
    """The server's side of a relayed connection: passes its bytes on, and finds the answers in them."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self.blind = False
        """Whether bytes are passed on without looking for answers in them."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the new connection."""
        self.transport = cast("asyncio.Transport", transport)
        if self._connection.listener.is_own(transport.get_extra_info("peername")):
            self._connection.server_is_proxy()
            reset(self.transport)
            return
        self._connection.server_connected(self)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, and find the messages in them."""
        connection = self._connection
        if connection.transport is not None and not connection.transport.is_closing():
            connection.transport.write(data)
            connection.answered = True
        if self.blind:
            if connection.socket is not None:
                connection.socket.from_server(data)
            return
        try:
            self._look(data)
        except MalformedError:
            self._give_up("malformed")
        except Exception:
            # The fault is in this code, and the bytes were passed on already.
            connection.listener.faults += 1
            self._give_up("malformed")

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other side as well; with `exc`, by a reset."""
        self.transport = None
        self._connection.conclude(abrupt=exc is not None)
        self._connection.finish(abrupt=exc is not None)

    def pause_writing(self) -> None:
        """Stop reading at the other end: this one does not take it as fast."""
        self._connection.stop_reading()

    def resume_writing(self) -> None:
        """Read on at the other end."""
        self._connection.read_on()

    def send(self, data: bytes) -> None:
        """Pass on what the program sends."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def end(self) -> bool:
        """End the direction to the server, as the program sends no more; False: it cannot be ended alone.

        TLS cannot end one direction alone: a client that closes is gone.
        """
        if self.transport is not None and self.transport.can_write_eof():
            self.transport.write_eof()
            return True
        return False

    def leave(self, *, abrupt: bool) -> None:
        """Close the connection to the server, as the program is gone."""
        if self.transport is None:
            return
        if abrupt:
            reset(self.transport)
        else:
            self.transport.close()

    # -- looking --------------------------------------------------------------------------------------------

    def _give_up(self, how: str) -> None:
        self.blind, self._head = True, bytearray()
        for exchange in self._connection.waiting:
            exchange.copy.end(how)

    def _look(self, data: bytes) -> None:
        """Find the answers in the bytes that came."""
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
        """Take an answer's head; return what came behind it, or None if it is not whole yet."""
        cut = self._cut_head(data)
        if cut is None:
            return None
        head, rest = cut
        answer = messages.parse_answer(head, exchange.request.method)
        if answer.interim:
            return rest
        exchange.answering = answer.body
        if answer.status == 101:
            self._switch(exchange, answer, rest)
            return None
        exchange.copy.head(answer.status, answer.fields)
        return rest

    def _switch(self, exchange: Exchange, answer: Answer, rest: bytes) -> None:
        """Let both sides go on with another protocol; `rest` came behind the head."""
        connection = self._connection
        connection.tunnel = self.blind = True
        if not exchange.request.asks_over_socket:
            connection.listener.tunnels += 1
            exchange.copy.head(answer.status, answer.fields)
            return
        connection.socket = exchange.copy
        exchange.copy.switched(answer.fields)
        if rest:
            exchange.copy.from_server(rest)

"""Passes bytes on between a program and a server, and looks at copies of them afterwards.

A connection of the program has one connection to the server, begun with its first request and ended with
it, so that keeping alive, closing, resetting and waiting mean the same on both.  What is changed on the way
is one line of each request's head, `Host`, and in its first line the path, where the provider spells it
otherwise.
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
"""Bytes that are taken from the program while there is no connection to the server."""
_LINGERING: Final = 2.0
"""Seconds in which the program may read an answer of ours while it is still sending."""


class Listener(Protocol):
    """What a connection needs of the port that it came to."""

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
        """Where copies go."""
        ...

    def url(self, request: Request) -> str:
        """Where a request goes, for the recorder."""
        ...

    async def connect(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Connect to the server.  Raises OSError."""
        ...

    def is_own(self, peer: object) -> bool:
        """Whether an address is one of the proxy's own ports."""
        ...

    def spawn(self, task: Coroutine[Any, Any, None]) -> None:
        """Run something beside."""
        ...

    def connect_failed(self, error: BaseException) -> None:
        """Note that no connection to the server could be made."""
        ...

    def failure_text(self, error: BaseException) -> str:
        """Why there is no connection to the server, as one line."""
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
        """Read again."""
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
        """Whether any byte went to the program since its last request was whole."""
        self.tunnel = False
        """Both sides go on with another protocol, or with something that is not understood."""
        self.socket: Copy | None = None
        """Takes copies of both sides, where the other protocol is a WebSocket with requests to a model."""
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
        self.transport = cast("asyncio.Transport", transport)
        self.listener.connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
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
            self._server.stop_reading()

    def resume_writing(self) -> None:
        """It has been taken."""
        if self._server is not None:
            self._server.read_on()

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
                exchange.copy.request_sent()

    def _begin(self, data: bytes) -> bytes | None:
        """Take a head; returns what came behind it, None if there is none yet."""
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
            # Not before: who does not read does not learn that the program has given up.
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

    def server_is_proxy(self) -> None:
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
        """Say how what was not whole ended, as the server's side has ended."""
        if self.waiting and not abrupt:
            first = self.waiting[0]
            if first.answering is not None and first.answering.until_close:
                self.waiting.popleft().copy.end("complete")
        self._conclude("complete" if self.tunnel and not abrupt else "upstream_reset")


_LINGER: Final = struct.pack("ii", 1, 0)
"""Closing sends a reset, and does not wait."""
_FLUSH: Final = 5.0
"""Seconds that what came before a reset has to be delivered."""


def reset(transport: asyncio.Transport) -> None:
    """End a connection so that the other side notices that it did not end well."""
    opened: Any = transport.get_extra_info("socket")
    if opened is not None and transport.get_extra_info("sslcontext") is None:
        with suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    transport.abort()


async def reset_when_flushed(transport: asyncio.Transport) -> None:
    """A reset throws away what was not delivered: wait for that, and not forever."""
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
    """Bytes that the other side's system has not got; 0 where that cannot be told."""
    import fcntl
    import termios

    command: Callable[..., Any] = fcntl.ioctl
    try:
        return int(struct.unpack("i", command(opened.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    except (OSError, ValueError):
        return 0


class Exchange:
    """A request on its way, until its answer is whole."""

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
        """What comes is passed on and no longer looked at."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self.transport = cast("asyncio.Transport", transport)
        if self._connection.listener.is_own(transport.get_extra_info("peername")):
            self._connection.server_is_proxy()
            reset(self.transport)
            return
        self._connection.server_connected(self)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
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
            # Whatever goes wrong here is ours; the bytes are where they belong.
            connection.listener.faults += 1
            self._give_up("malformed")

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone; `exc`: not in good order."""
        self.transport = None
        self._connection.conclude(abrupt=exc is not None)
        self._connection.finish(abrupt=exc is not None)

    def pause_writing(self) -> None:
        """More has been written than is taken."""
        self._connection.stop_reading()

    def resume_writing(self) -> None:
        """It has been taken."""
        self._connection.read_on()

    def send(self, data: bytes) -> None:
        """Pass on what the program sends."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def end(self) -> bool:
        """The program sends nothing more; False: nor does it wait for anything.

        TLS knows no such thing as one direction alone: a client that closes is gone.
        """
        if self.transport is not None and self.transport.can_write_eof():
            self.transport.write_eof()
            return True
        return False

    def leave(self, *, abrupt: bool) -> None:
        """The program is gone."""
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
            exchange.copy.from_server(rest)

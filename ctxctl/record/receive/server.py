"""The HTTP server of the receivers: checks requests, bounds their bodies, and handles one after the other.

A request that does not come from a program of this machine is refused unread (`record.guard`).  A sender can
learn nothing but the fate of what it sent.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from ctxctl.record import guard
from ctxctl.record.receive.replies import Reply, error_reply

HEAD_SECONDS: Final = 10.0
"""Seconds for the head of a connection's first request."""
BODY_SECONDS: Final = 60.0
_IDLE_SECONDS: Final = 75.0
MAX_HELD: Final = 2 * guard.MAX_BODY
"""Bytes of the bodies of all requests that are being read or wait for the disk."""
_BUSY_SECONDS: Final = 1.0

_logger = logging.getLogger("ctxctl.record.receive")
_logger.addHandler(logging.NullHandler())
_logger.propagate = False


class Route(NamedTuple):
    """Handles the requests to one path."""

    take: Callable[[bytes, str], Reply]
    """Takes the decoded body and the content type; called in a worker thread, never twice at a time."""
    media: frozenset[str]
    refuse: Callable[[int, str, str], Reply] | None = None
    """Makes an answer of status, reason and content type, in the protocol's own shape."""
    wait: Callable[[], int | None] = lambda: None
    """Gives the seconds until a body is worth reading; None: now."""


class ReceiverServer:
    """Listens on a loopback port.

    Args:
        routes: The handlers by path; all of them take POST.
        report: Takes a line for the user, each line once.
    """

    def __init__(self, routes: dict[str, Route], report: Callable[[str], None]) -> None:
        self._routes = routes
        self._report = report
        self._reported: set[str] = set()
        self._held = 0
        self._hosts: frozenset[str] = frozenset()
        self._servers: list[asyncio.Server] = []
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="ctxctl-receive")
        self._factory: _Factory | None = None
        self.port = 0

    async def open(self, sockets: list[socket.socket]) -> None:
        """Listen on these sockets (`guard.loopback`)."""
        loop = asyncio.get_running_loop()
        self.port = sockets[0].getsockname()[1]
        self._hosts = guard.own_hosts(self.port)
        self._factory = _Factory(self._answer, self.report_once, loop, guard.room_for_connections())
        for one in sockets:
            self._servers.append(await loop.create_server(self._factory, sock=one))

    async def close(self) -> None:
        """Take no more requests; bodies that were read are still written."""
        for server in self._servers:
            server.close()
        if self._factory is not None:
            self._factory.pre_shutdown()
            await self._factory.shutdown(5.0)
        await asyncio.get_running_loop().run_in_executor(None, self._worker.shutdown)

    async def run_in_worker(self, work: Callable[[], Any]) -> Any:
        """Do work in the worker thread, between two requests."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    def report_once(self, line: str) -> None:
        """Report a line to the user, unless it was reported before."""
        if line not in self._reported and len(self._reported) < 100:
            self._reported.add(line)
            self._report(line)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        reply = await self._reply(request)
        headers = {"Server": "ctxctl", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        if reply.retry_after is not None:
            headers["Retry-After"] = str(reply.retry_after)
        if reply.status == 405:
            headers["Allow"] = "POST"
        response = web.Response(
            body=reply.body, status=reply.status, content_type=reply.media, headers=headers
        )
        if not request.content.at_eof():
            response.force_close()  # the rest of the body is not read
        return response

    async def _reply(self, request: web.BaseRequest) -> Reply:
        why = guard.refused(request.headers, self._hosts)
        if why is not None:
            self.report_once(f"refused a request: {why}")
            status = 421 if "Host" in why else 403
            return error_reply(status, why)
        route = self._routes.get(request.path)
        if route is None:
            paths = ", ".join(sorted(self._routes))
            return error_reply(404, f"nothing is here; there is POST {paths}")
        if request.method != "POST":
            return error_reply(405, "only POST; a trace is not read over HTTP")
        media = guard.media_type(request.headers)
        if media not in route.media:
            return error_reply(415, f"the Content-Type must be one of {', '.join(sorted(route.media))}")
        refuse = route.refuse or (lambda status, why, media: error_reply(status, why))
        wait = route.wait()
        if wait is not None:
            return refuse(503, "the trace cannot be written to", media)._replace(retry_after=wait)
        return await self._read(request, route, media, refuse)

    async def _read(
        self, request: web.BaseRequest, route: Route, media: str, refuse: Callable[[int, str, str], Reply]
    ) -> Reply:
        """Read the body within the limits, and hand it on."""
        if (request.content_length or 0) > guard.MAX_BODY:
            return refuse(413, f"more than {guard.MAX_BODY >> 20} MiB", media)
        held, parts = 0, []
        if request.headers.get("Expect", "").lower() == "100-continue" and request.version >= (1, 1):
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for part in request.content.iter_any():
                    held += len(part)
                    self._held += len(part)
                    if held > guard.MAX_BODY:
                        return refuse(413, f"more than {guard.MAX_BODY >> 20} MiB", media)
                    if self._held > MAX_HELD:
                        busy = refuse(503, "too much is waiting to be written", media)
                        return busy._replace(retry_after=int(_BUSY_SECONDS))
                    parts.append(part)
            body = b"".join(parts)
            parts.clear()
            reply: Reply = await self.run_in_worker(
                lambda: _handed(body, request.headers, route, media, refuse)
            )
            return reply
        except TimeoutError:
            return refuse(408, "the body did not come in time", media)
        finally:
            self._held -= held


def _handed(
    body: bytes, headers: Any, route: Route, media: str, refuse: Callable[[int, str, str], Reply]
) -> Reply:
    """Decode a body and handle it; in the worker thread, as decoding takes time."""
    try:
        body = guard.inflate(body, headers.get("Content-Encoding"))
    except guard.UnsupportedError as error:
        return refuse(415, f"Content-Encoding: {error}", media)
    except guard.UndecodableError as error:
        return refuse(400, f"Content-Encoding: {error}", media)
    except guard.TooLargeError as error:
        return refuse(413, str(error), media)
    try:
        return route.take(body, media)
    except Exception as error:  # one request must not end the receiver
        return refuse(500, f"a fault of ctxctl: {type(error).__name__}", media)


class _Factory(web.Server):
    """Makes the protocol of each connection."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Any], report_once: Callable[[str], None],
        loop: asyncio.AbstractEventLoop, most: int,
    ) -> None:  # fmt: skip
        super().__init__(handler, loop=loop)
        self.report_once = report_once
        self.most = most
        """Connections at a time."""
        self._settings: dict[str, Any] = {
            "access_log": None, "logger": _logger, "auto_decompress": False,
            "keepalive_timeout": _IDLE_SECONDS, "lingering_time": 1.0, "max_line_size": 8190,
            "max_field_size": 16_384, "read_bufsize": 1 << 16,
        }  # fmt: skip

    def __call__(self) -> RequestHandler:
        """The protocol of a new connection."""
        return _Connection(self, loop=self._loop, **self._settings)


class _Connection(RequestHandler):
    """A connection that is closed if no request comes; of an error it sends only the status."""

    __slots__ = ("_patience", "_server")

    def __init__(self, server: _Factory, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._server = server
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a new connection, unless there are too many."""
        super().connection_made(transport)
        if len(self._server.connections) > self._server.most:
            self._server.report_once(
                f"more than {self._server.most:,} connections at a time; the others are closed"
            )
            transport.abort()  # type: ignore[attr-defined]
            return
        self._patience = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Stop the timer of the connection, which is closed."""
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        if not self._request_count and self.transport is not None:
            self.transport.abort()

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """Answer what is no HTTP, or an internal error, with the status alone."""
        if message and "PRI" in message:
            self._server.report_once(
                "a gRPC client tried to connect; set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf (or http/json)"
            )
        response = web.Response(status=status, text=f"{status}\n", headers={"Server": "ctxctl"})
        response.force_close()
        return response

"""The relaying proxy: a loopback port for each server that requests go to, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from ctxctl.errors import UsageError
from ctxctl.record.guard import loopback, new_event_loop, own_hosts
from ctxctl.record.proxy.connection import Connection
from ctxctl.record.proxy.upstreams import NetworkProxy, connect, network_proxy_of, trusted_context
from ctxctl.record.proxy.writer_client import Copies

if TYPE_CHECKING:
    from ctxctl.record.proxy.messages import Bases, Request
    from ctxctl.record.proxy.upstreams import Upstream


_ADDRESSES: Final = ("127.0.0.1", "::1")


class Listener:
    """One listening port, and the server that its requests go to."""

    def __init__(
        self,
        proxy: Proxy,
        upstream: Upstream,
        network_proxy: NetworkProxy | None,
        port: int,
        bases: Bases | None = None,
    ) -> None:
        self._proxy = proxy
        self.upstream = upstream
        self.bases: Bases = bases or {}
        self.network_proxy = network_proxy
        self.sockets: list[socket.socket] = loopback(port)
        self.port: int = self.sockets[0].getsockname()[1]
        self.hosts = own_hosts(self.port)
        self.connections: set[Connection] = set()
        self.tunnels = 0
        """The number of connections that went on with another protocol, and were not copied."""
        self.respelled = 0
        """The number of requests whose path was put into the provider's spelling."""
        self.faults = 0
        """The number of answers that a fault in ctxctl left unread; they were passed on."""

    @property
    def copies(self) -> Copies:
        """The copies that are sent to the writer process."""
        return self._proxy.copies

    def url(self, request: Request) -> str:
        """Return the address that a request goes to, for the recorder."""
        return self.upstream.origin + request.target.decode("latin-1")

    async def connect(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Connect to the server.  Raises OSError."""
        await connect(self.upstream, self.network_proxy, self._proxy.trust, protocol)

    def is_own(self, peer: object) -> bool:
        """Whether an address is one of the proxy's own ports."""
        return isinstance(peer, tuple) and peer[0] in _ADDRESSES and peer[1] in self._proxy.ports

    def spawn(self, task: Coroutine[Any, Any, None]) -> None:
        """Run a task in the proxy's loop."""
        self._proxy.spawn(task)

    def connect_failed(self, error: BaseException) -> None:
        """Note that no connection to the server could be made, and why."""
        self._proxy.unreachable[self.upstream.origin] = self.failure_text(error)

    def failure_text(self, error: BaseException) -> str:
        """Return why there is no connection to the server, as one line."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({error.verify_message})"
        if isinstance(error, socket.gaierror):
            return (
                f"no address for {(self.network_proxy.server if self.network_proxy else self.upstream).host}"
            )
        return str(getattr(error, "strerror", None) or error or type(error).__name__)

    def count_refusal(self, status: int) -> None:
        """Count a request that was not passed on."""
        if status in (403, 421, 405):
            self._proxy.refusals += 1

    @property
    def busy(self) -> int:
        """The number of connections that wait for an answer."""
        return sum(bool(connection.waiting) for connection in list(self.connections))


class Proxy:
    """Relays requests from its creation until `stop`.

    Args:
        upstreams: The servers that requests go to.
        port: The port for the first server, the others follow; 0: any.
        copies: The socket to the writer process; None: nothing is copied.
        bases: By server, the paths of the providers' addresses there, by which paths are put right.

    Raises:
        UsageError: `port-taken`, `proxy-loop`, `bad-network-proxy`.
    """

    def __init__(
        self, upstreams: list[Upstream], port: int = 0, copies: socket.socket | None = None,
        bases: Mapping[Upstream, Bases] | None = None,
    ) -> None:  # fmt: skip
        self.trust = trusted_context()
        self.refusals = 0
        """The number of requests from browsers, or for other servers."""
        self.unreachable: dict[str, str] = {}
        """The servers that could not be reached, each with the reason."""
        self.listeners: dict[Upstream, Listener] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        network_proxies = {upstream: network_proxy_of(upstream) for upstream in upstreams}
        try:
            for number, upstream in enumerate(network_proxies):
                self.listeners[upstream] = Listener(
                    self,
                    upstream,
                    network_proxies[upstream],
                    port and port + number,
                    (bases or {}).get(upstream),
                )
        except (OSError, OverflowError):
            self._close()
            taken = port + len(self.listeners)
            raise UsageError(
                "port-taken", f"cannot listen on port {taken} of 127.0.0.1",
                hint="another program may listen there; give another one with --port N",
            ) from None  # fmt: skip
        self.ports = {listener.port for listener in self.listeners.values()}
        for upstream in upstreams:
            if upstream.port in self.ports and upstream.host in (*_ADDRESSES, "localhost"):
                self._close()
                raise UsageError(
                    "proxy-loop", f"{upstream.origin} is this proxy itself",
                    hint="an environment variable still holds the proxy's address: unset it",
                )  # fmt: skip
        self.copies = Copies(copies)
        try:
            self._loop = new_event_loop()
        except OSError:
            self._close()
            raise
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ctxctl-proxy", daemon=True)
        self._thread.start()
        self._began.wait()

    def _close(self) -> None:
        for listener in self.listeners.values():
            for one in listener.sockets:
                one.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._listen())
        self._began.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for listener in self.listeners.values():
            for one in listener.sockets:
                await loop.create_server(lambda listener=listener: Connection(listener), sock=one)  # type: ignore[misc]

    def spawn(self, task: Coroutine[Any, Any, None]) -> None:
        """Run a task in the proxy's loop."""
        made = asyncio.ensure_future(task)
        self._tasks.add(made)
        made.add_done_callback(self._tasks.discard)

    @property
    def busy(self) -> int:
        """The number of connections that wait for an answer."""
        return sum(listener.busy for listener in list(self.listeners.values()))

    @property
    def tunnels(self) -> int:
        """The number of connections relayed without a record, as WebSockets."""
        return sum(listener.tunnels for listener in self.listeners.values())

    @property
    def requests(self) -> int:
        """The number of requests that came, of any kind."""
        return self.copies.begun

    @property
    def respelled(self) -> int:
        """The number of requests whose path was put right."""
        return sum(listener.respelled for listener in self.listeners.values())

    def stop(self, *, over: bool = False) -> None:
        """End all connections and ports, and send the copies to the writer process.

        Args:
            over: Whether the program has ended, and its sessions with it.
        """
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._stop(over), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._close()

    async def _stop(self, over: bool) -> None:
        for listener in self.listeners.values():
            for connection in list(listener.connections):
                if connection.transport is not None:
                    connection.transport.abort()
        await asyncio.sleep(0)
        for task in list(self._tasks):
            task.cancel()
        await self.copies.close(_COPIED, over=over)


_COPIED: Final = 10.0
"""Seconds for the writer process to take the copies."""

"""Connections to the servers that requests are passed on to: TLS, and the network's own proxy."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from ctxctl.errors import UsageError
from ctxctl.record.proxy.upstreams import Upstream

_EYEBALLS: Final = 0.25
"""Seconds until the next address of a name is tried beside the first (RFC 8305)."""
_MAX_HEAD: Final = 64 << 10
_BUNDLES: Final = (
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Where macOS and Linux distributions keep the authorities that they trust."""
_MORE_CAS: Final = ("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Files of authorities that the program may trust besides; `SSL_CERT_FILE` is OpenSSL's own."""


class Via(NamedTuple):
    """A proxy of the network, as the environment names it."""

    server: Upstream
    credentials: bytes | None
    """For `Proxy-Authorization`."""


class RefusedError(OSError):
    """The network's proxy does not let us through."""


def via_of(upstream: Upstream) -> Via | None:
    """The proxy that a program would use for this server (`https_proxy`, `all_proxy`, `no_proxy`).

    Raises:
        UsageError: `bad-network-proxy`: one that is not spoken here, as SOCKS.
    """
    from urllib import request as network

    proxies = network.getproxies_environment()
    url = proxies.get(upstream.scheme) or proxies.get("all")
    if not url or upstream.host in ("127.0.0.1", "localhost", "::1"):
        return None
    bypass: Callable[[str, dict[str, str]], bool] = network.proxy_bypass_environment  # type: ignore[attr-defined]
    if bypass(upstream.host, proxies):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            "bad-network-proxy",
            f"the environment's proxy for {upstream.origin} is not an HTTP proxy",
            hint=f"no_proxy={upstream.host} goes there directly",
        )
    server = Upstream(parts.scheme, parts.hostname, port or (443 if parts.scheme == "https" else 80))
    credentials = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        credentials = b"Basic " + base64.b64encode(pair.encode())
    return Via(server, credentials)


def trust() -> ssl.SSLContext:
    """Verifies names and certificates, as the system and the environment have them."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    paths = ssl.get_default_verify_paths()
    if not paths.cafile and not paths.capath:
        # Some builds of Python look for the system's authorities in another place.
        bundle = next((path for path in _BUNDLES if os.path.exists(path)), None)
        if bundle is not None:
            context.load_verify_locations(bundle)
    for name in _MORE_CAS:
        if path := os.environ.get(name):
            with suppress(OSError, ssl.SSLError):
                context.load_verify_locations(**{"capath" if os.path.isdir(path) else "cafile": path})
    return context


async def connect(
    upstream: Upstream, via: Via | None, context: ssl.SSLContext, protocol: Callable[[], asyncio.Protocol]
) -> None:
    """Connect a protocol to a server.  Raises OSError, among them what TLS finds."""
    loop = asyncio.get_running_loop()
    server = upstream if via is None else via.server
    if via is None or upstream.scheme == "http":
        await loop.create_connection(
            protocol, server.host, server.port, ssl=context if server.scheme == "https" else None,
            happy_eyeballs_delay=_EYEBALLS,
        )  # fmt: skip
        return
    transport, asking = await loop.create_connection(
        _Asking, server.host, server.port, ssl=context if server.scheme == "https" else None
    )
    try:
        transport.write(_connect_head(upstream, via))
        status = await asking.status
        if not status.startswith(b"2"):
            raise RefusedError(
                f"the network's proxy answered {status.decode('ascii', 'replace') or 'nothing'}"
            )
        made = protocol()
        inner = await loop.start_tls(transport, made, context, server_hostname=upstream.host)
    except BaseException:
        transport.abort()
        raise
    made.connection_made(cast(asyncio.Transport, inner))


class _Asking(asyncio.Protocol):
    """Reads what the network's proxy says to CONNECT."""

    def __init__(self) -> None:
        self.status: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The answer's status; empty: there was none."""
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """Bytes came; what stands behind the head is not there before TLS has begun."""
        self._head += data
        if (b"\r\n\r\n" in self._head or len(self._head) > _MAX_HEAD) and not self.status.done():
            self.status.set_result(self._head.split(b" ", 2)[1][:3] if b" " in self._head else b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        if not self.status.done():
            self.status.set_result(b"")


def _connect_head(upstream: Upstream, via: Via) -> bytes:
    name = f"[{upstream.host}]" if ":" in upstream.host else upstream.host
    place = f"{name}:{upstream.port}".encode("ascii" if name.isascii() else "idna")
    asked = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n" % (place, place)
    if via.credentials is not None:
        asked += b"Proxy-Authorization: " + via.credentials + b"\r\n"
    return asked + b"\r\n"

"""Guards the HTTP servers of a recorder against web pages and against decompression bombs.

A page in a browser can send to a loopback port, and read from it once its host name points there.  So every
request with an `Origin` is refused, and every `Host` that is not the server's own; no answer ever carries a
CORS header.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

MAX_BODY: Final = 64 << 20
"""Bytes of one body at most, as it comes and decoded."""
_RATIO: Final = 300
_RATIO_FROM: Final = 4 << 20
_PIECE: Final = 64 << 10
_CODINGS: Final = 3
"""Encodings of one body at most, one over the other."""
_MEMBERS: Final = 1000
"""Compressed streams of one body at most, one behind the other."""
_SAME: Final = frozenset(("", "identity"))
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
MAX_CONNECTIONS: Final = 4096
_SPARE_DESCRIPTORS: Final = 64
"""Descriptors that are left for the trace, the writer process and what is asked of the cache."""


class UndecodableError(ValueError):
    """A body is not what its Content-Encoding says."""


class UnsupportedError(UndecodableError):
    """A Content-Encoding is unknown, or its package is not installed."""


class TooLargeError(ValueError):
    """A body is larger than its limit, or grows suspiciously when it is decoded."""


# -- how many may send ------------------------------------------------------------------------------------


def room_for_connections(each: int = 1) -> int:
    """Raise this process's limit on descriptors as far as it may be; return how many connections fit it.

    Many systems begin with 1,024 and allow far more.  `each`: descriptors that a connection takes.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS * each + _SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(min(MAX_CONNECTIONS, (soft - _SPARE_DESCRIPTORS) // each), 1)


def new_event_loop() -> AbstractEventLoop:
    """Return an event loop; raises OSError where there are no descriptors for it.

    They are asked for beforehand: a loop that gets only some of them prints a traceback when it is deleted.
    """
    import asyncio

    with ExitStack() as stack:
        for _ in range(2):  # the loop takes a pair of sockets and a selector
            for one in socket.socketpair():
                stack.enter_context(one)
    return asyncio.new_event_loop()


# -- who may send -----------------------------------------------------------------------------------------


def own_hosts(port: int) -> frozenset[str]:
    """Return the values of `Host` that name a loopback server on this port."""
    bare = _LOOPBACK if port == 80 else ()
    return frozenset((*(f"{name}:{port}" for name in _LOOPBACK), *bare))


def refused(headers: Mapping[str, str], hosts: frozenset[str], *, hostless: bool = False) -> str | None:
    """Return why a request must not be answered, as one line without any of its text; None: it may be.

    Args:
        headers: The request's; all of one name count, if the mapping gives them (`getall`).
        hosts: The values of `Host` that are allowed, in lower case (`own_hosts`).
        hostless: Whether a request may lack `Host` (HTTP/1.0); a browser always sends one.
    """
    named = _all(headers, "Host")
    if len(named) > 1:
        return "more than one Host header"
    if not named and not hostless:
        return "no Host header"
    if named and named[0].strip().lower() not in hosts:
        return "the Host header names another server"
    if _all(headers, "Origin"):
        return "web pages may not talk to this server (Origin header)"
    if _all(headers, "Sec-Fetch-Site"):
        return "browsers may not talk to this server (Sec-Fetch-Site header)"
    return None


def _all(headers: Mapping[str, str], name: str) -> list[str]:
    getall = getattr(headers, "getall", None)
    if getall is not None:
        return list(getall(name, ()))
    lower = name.lower()
    return [value for key, value in headers.items() if key.lower() == lower]


def media_type(headers: Mapping[str, str]) -> str:
    """Return the content type in lower case, without parameters; empty where it is missing or given twice."""
    named = _all(headers, "Content-Type")
    return named[0].partition(";")[0].strip().lower() if len(named) == 1 else ""


# -- listening --------------------------------------------------------------------------------------------


def loopback(port: int) -> list[socket.socket]:
    """Return sockets that listen on 127.0.0.1 and, where there is IPv6, on ::1.

    `port` 0: any free port, the same on both.

    Raises:
        OSError: the port is taken on 127.0.0.1.
    """
    first = _bound(socket.AF_INET, "127.0.0.1", port)
    made = [first]
    with suppress(OSError):  # no IPv6 here, or the port is taken: `localhost` still reaches the first one
        made.append(_bound(socket.AF_INET6, "::1", first.getsockname()[1]))
    return made


def _bound(family: int, address: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(1024)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


# -- bodies -------------------------------------------------------------------------------------------------


def inflate(data: bytes, encoding: str | None, limit: int = MAX_BODY) -> bytes:
    """Return a body without its Content-Encoding; never much more than `limit` bytes are in memory.

    Args:
        data: The body as it came over the wire, whole.
        encoding: The header's value: `gzip`, `deflate`, `br`, `zstd`, several of them, or nothing.
        limit: Bytes of the result, and of the data between two encodings, at most.

    Raises:
        UndecodableError: damaged, cut off, or followed by something else.
        UnsupportedError: an unknown encoding, or more than three.
        TooLargeError: more than `limit`, or more than 300 times what came.
    """
    names = [name.strip().lower() for name in (encoding or "").split(",")]
    names = [name for name in names if name not in _SAME]
    if len(names) > _CODINGS:
        raise UnsupportedError(f"{len(names)} encodings, one over the other")
    for name in reversed(names if data else ()):
        most = min(limit, max(_RATIO_FROM, _RATIO * len(data)))
        data = _joined(pieces(data, name), most)
    if len(data) > limit:
        raise TooLargeError(f"more than {limit} bytes")
    return data


def _joined(pieces: Iterable[bytes], most: int) -> bytes:
    made, size = [], 0
    for piece in pieces:
        size += len(piece)
        if size > most:
            raise TooLargeError(f"more than {most} bytes when decoded")
        made.append(piece)
    return b"".join(made)


def pieces(data: bytes, name: str) -> Iterator[bytes]:
    """Yield a body without one encoding, in small pieces; those that come before an error are right.

    Raises UndecodableError or UnsupportedError, at once or while it is iterated.  `data` is not empty.
    """
    if name in ("gzip", "x-gzip"):
        return _zlib(data, 16 + zlib.MAX_WBITS, _MEMBERS)
    if name == "deflate":
        # The name means raw or wrapped data; the first two bytes of zlib's wrapper show which.
        wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return _zlib(data, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS, 1)
    if name == "br":
        return _brotli(data)
    if name == "zstd":
        return _zstd(data)
    raise UnsupportedError("an encoding that is not known")


def _zlib(data: bytes, bits: int, members: int) -> Iterator[bytes]:
    """Decode up to `members` streams, one behind the other."""
    at, end = 0, len(data)
    try:
        while at < end:
            if not members:
                raise UndecodableError("something follows the encoded body")
            members -= 1
            engine = zlib.decompressobj(bits)
            while not engine.eof:
                if at >= end:
                    raise UndecodableError("cut off")
                tail = data[at : at + _PIECE]
                at += len(tail)
                while tail and not engine.eof:
                    yield engine.decompress(tail, _PIECE)
                    tail = engine.unconsumed_tail
            at -= len(engine.unused_data)
    except zlib.error as error:
        raise UndecodableError(f"not what its encoding says: {error}") from None


def _brotli(data: bytes) -> Iterator[bytes]:
    try:
        import brotli
    except ImportError:
        raise UnsupportedError("brotli is not installed") from None
    engine: Any = brotli.Decompressor()
    try:
        piece = engine.process(data, output_buffer_limit=_PIECE)
        while piece or not engine.can_accept_more_data():
            yield piece
            piece = engine.process(b"", output_buffer_limit=_PIECE)
        if not engine.is_finished():
            raise UndecodableError("cut off")
    except brotli.error:
        raise UndecodableError("not what its encoding says") from None


def _zstd(data: bytes) -> Iterator[bytes]:
    try:
        import zstandard
    except ImportError:
        raise UnsupportedError("zstandard is not installed") from None
    whole, at, members = zstandard.ZstdDecompressor(max_window_size=8 << 20), 0, _MEMBERS
    try:
        while at < len(data):
            if not members:
                raise UndecodableError("something follows the encoded body")
            members -= 1
            frame = whole.decompressobj()
            while not frame.eof:
                if at >= len(data):
                    raise UndecodableError("cut off")
                # 4 bytes may decode to 128 KiB, and only short inputs bound the output.
                piece = data[at : at + 256]
                at += len(piece)
                yield frame.decompress(piece)
            at -= len(frame.unused_data)
    except zstandard.ZstdError as error:
        raise UndecodableError(f"not what its encoding says: {error}") from None

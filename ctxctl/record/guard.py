"""What keeps web pages, bombs and slow clients away from the HTTP servers of a recorder.

A page in a browser can send to a loopback port, and read from it once its host name is made to point there.
So what has an `Origin` is refused, whatever it is, and so is a `Host` that is not the server's own; no answer
ever carries a CORS header.
"""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

MAX_BODY: Final = 64 << 20
"""Bytes of a body, as it comes and decoded."""
_RATIO: Final = 300
_RATIO_FROM: Final = 4 << 20
_PIECE: Final = 64 << 10
_CODINGS: Final = 3
"""Encodings of one body, one over the other."""
_MEMBERS: Final = 1000
"""Compressed streams of one body, one behind the other."""
_SAME: Final = frozenset(("", "identity"))
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


class UndecodableError(ValueError):
    """A body is not what its Content-Encoding says."""


class UnsupportedError(UndecodableError):
    """A Content-Encoding that is not known, or whose package is not installed."""


class TooLargeError(ValueError):
    """A body that is larger than its limit, or grows suspiciously when it is decoded."""


# -- who may talk to us -------------------------------------------------------------------------------------


def own_hosts(port: int) -> frozenset[str]:
    """The values of `Host` that mean a server of ours on this port."""
    bare = _LOOPBACK if port == 80 else ()
    return frozenset((*(f"{name}:{port}" for name in _LOOPBACK), *bare))


def refused(headers: Mapping[str, str], hosts: frozenset[str], *, hostless: bool = False) -> str | None:
    """Why a request must not be answered, as one line without anything of it; None: it may be.

    Args:
        headers: Of the request; all of one name are looked at if the mapping gives them (`getall`).
        hosts: Values of `Host` that are ours, in lower case (`own_hosts`).
        hostless: Let pass what has no `Host` at all (HTTP/1.0); a browser always sends one.
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
    """The content type in lower case, without parameters; empty where it is lacking or told twice."""
    named = _all(headers, "Content-Type")
    return named[0].partition(";")[0].strip().lower() if len(named) == 1 else ""


# -- where we listen ----------------------------------------------------------------------------------------


def loopback(port: int) -> list[socket.socket]:
    """Sockets that listen on 127.0.0.1 and, where that is there, on ::1; nobody else can reach them.

    `port` 0: any that is free, the same on both.

    Raises:
        OSError: the port is taken on 127.0.0.1.
    """
    first = _bound(socket.AF_INET, "127.0.0.1", port)
    made = [first]
    with suppress(OSError):  # no IPv6 here, or taken: `localhost` reaches us by the first one
        made.append(_bound(socket.AF_INET6, "::1", first.getsockname()[1]))
    return made


def _bound(family: int, address: str, port: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(128)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


# -- bodies -------------------------------------------------------------------------------------------------


def inflate(data: bytes, encoding: str | None, limit: int = MAX_BODY) -> bytes:
    """A body without its Content-Encoding; at no time much more than `limit` bytes are in memory.

    Args:
        data: The body as it came over the wire, whole.
        encoding: The header: `gzip`, `deflate`, `br`, `zstd`, several of them, or nothing.
        limit: Bytes that the result may have, and what lies between two encodings.

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
    """What one encoding stands for, in small pieces; those that come before an error are right.

    Raises UndecodableError or UnsupportedError, while it is iterated or at once.  `data` is not empty.
    """
    """A body without one encoding, piece by piece; raises as `inflate`, after what could be decoded."""
    if name in ("gzip", "x-gzip"):
        return _zlib(data, 16 + zlib.MAX_WBITS, _MEMBERS)
    if name == "deflate":
        # Two things go by this name; the first two bytes of zlib's say which it is.
        wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
        return _zlib(data, zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS, 1)
    if name == "br":
        return _brotli(data)
    if name == "zstd":
        return _zstd(data)
    raise UnsupportedError("an encoding that is not known")


def _zlib(data: bytes, bits: int, members: int) -> Iterator[bytes]:
    """Up to `members` streams, one behind the other."""
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
                # 4 bytes may stand for 128 KiB, and what an input gives cannot be bounded otherwise.
                piece = data[at : at + 256]
                at += len(piece)
                yield frame.decompress(piece)
            at -= len(frame.unused_data)
    except zstandard.ZstdError as error:
        raise UndecodableError(f"not what its encoding says: {error}") from None

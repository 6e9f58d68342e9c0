"""Finds HTTP/1 messages in relayed bytes, checks requests, and changes their path and host.

A parsing library gives what a message means, but not the stretch of bytes that it is.  Requests are read
strictly (RFC 9112), since one that another server might cut in another place must not be passed on; answers
are read leniently, as they are passed on in any case.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.record.guard import refused

if TYPE_CHECKING:
    from ctxctl.record.proxy.upstreams import NetworkProxy, Upstream


MAX_HEAD: Final = 1 << 20
"""Bytes of a head at most; servers take some ten thousand."""
_MAX_LINE: Final = 16 << 10
"""Bytes of a chunk's first line, or of a line of a trailer, at most."""
_END: Final = re.compile(rb"\r?\n\r?\n")
_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(rb"[^\x00\r\n]*")
_TARGET: Final = re.compile(rb"[^\x00-\x20\x7f]+")
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: .*)?", re.DOTALL)
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00\r\n]*)?")
_DIGITS: Final = re.compile(rb"[0-9]{1,18}")

Fields = list[tuple[bytes, bytes]]


class MalformedError(ValueError):
    """It is no message, or one that can be understood in two ways."""


class Body:
    """Finds the end of one body.

    Args:
        length: The body's bytes; None: it is chunked, or lasts until the connection ends.
        chunked: Whether it is chunked.
    """

    __slots__ = ("_left", "_line", "_stage", "chunked", "until_close")

    def __init__(self, length: int | None = None, *, chunked: bool = False) -> None:
        self.chunked = chunked
        self.until_close = length is None and not chunked
        self._left = length or 0
        self._stage = "size"
        self._line = b""

    @property
    def done(self) -> bool:
        """Whether its end has been found."""
        return self._stage == "done" if self.chunked else not self.until_close and self._left == 0

    def feed(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        """Read data from `at` on, adding its content to `pieces`; return where the body's part of it ends.

        Raises MalformedError.
        """
        if self.chunked:
            return self._chunks(data, at, pieces)
        end = len(data) if self.until_close else min(len(data), at + self._left)
        if end > at:
            pieces.append(data[at:end])
        self._left -= 0 if self.until_close else end - at
        return end

    def _chunks(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        while at < len(data) and self._stage != "done":
            if self._stage == "data":
                end = min(len(data), at + self._left)
                pieces.append(data[at:end])
                self._left -= end - at
                at = end
                if not self._left:
                    self._stage = "gap"
                continue
            newline = data.find(b"\n", at)
            end = newline + 1 if newline >= 0 else len(data)
            self._line += data[at:end]
            at = end
            if len(self._line) > _MAX_LINE:
                raise MalformedError("a line of a chunked body that is too long")
            if newline >= 0:
                line, self._line = self._line, b""
                self._take(line)
        return at

    def _take(self, line: bytes) -> None:
        """Read a whole line between the data of two chunks."""
        if not line.endswith(b"\r\n"):
            raise MalformedError("a line of a chunked body that ends without CR")
        line = line[:-2]
        if self._stage == "gap":
            if line:
                raise MalformedError("a chunk that is longer than it says")
            self._stage = "size"
        elif self._stage == "size":
            found = _SIZE.fullmatch(line)
            if found is None:
                raise MalformedError("a chunk without a size")
            self._left = int(found[1], 16)
            self._stage = "data" if self._left else "trailer"
        elif not line:
            self._stage = "done"


class Request(NamedTuple):
    """The head of a request."""

    method: bytes
    target: bytes
    version: bytes
    """`HTTP/1.0` or `HTTP/1.1`."""
    fields: Fields
    body: Body

    @property
    def upgrades(self) -> bool:
        """Whether it asks to go on with another protocol (WebSocket)."""
        return b"upgrade" in field_tokens(self.fields, b"connection") and bool(
            field_values(self.fields, b"upgrade")
        )

    @property
    def asks_over_socket(self) -> bool:
        """Whether it asks for a WebSocket with Responses: their address is that of the HTTP requests."""
        path = self.target.partition(b"?")[0].rstrip(b"/")
        return path.endswith(b"/responses") and b"websocket" in field_tokens(self.fields, b"upgrade")


class Answer(NamedTuple):
    """The head of an answer."""

    status: int
    fields: Fields
    body: Body

    @property
    def interim(self) -> bool:
        """Whether another answer follows (100, 103)."""
        return 100 <= self.status < 200 and self.status != 101


def head_end(data: bytes | bytearray, start: int = 0) -> int:
    """Return where the head ends, behind its blank line; -1 if it is not whole."""
    # The blank line may have begun in what was searched before.
    found = _END.search(data, max(0, start - 3))
    return -1 if found is None else found.end()


def field_values(fields: Fields, name: bytes) -> list[bytes]:
    """Return the values of a field, by its name in lower case."""
    return [value for key, value in fields if key.lower() == name]


def field_tokens(fields: Fields, name: bytes) -> list[bytes]:
    """Return the members of a field that is a list, in lower case."""
    return [part.strip().lower() for value in field_values(fields, name) for part in value.split(b",")]


def parse_request(head: bytes) -> Request:
    """Read the head of a request.

    Raises MalformedError, also for what servers are known to cut differently.
    """
    if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r") != head.count(b"\r\n"):
        raise MalformedError("a line that ends with CR or LF alone")
    first, *lines = head[:-4].split(b"\r\n")
    parts = first.split(b" ")
    if len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or not _TARGET.fullmatch(parts[1]):
        raise MalformedError("no request line")
    method, target, version = parts
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        raise MalformedError("another protocol than HTTP/1.1 and 1.0")
    fields = [_field(line) for line in lines]
    if len(field_values(fields, b"host")) > 1:
        raise MalformedError("more than one Host")
    return Request(method, target, version, fields, _request_body(fields, version))


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        raise MalformedError("a header field that is none")
    return name, value.strip(b" \t")


def _request_body(fields: Fields, version: bytes) -> Body:
    lengths, encodings = field_values(fields, b"content-length"), field_values(fields, b"transfer-encoding")
    if len(lengths) + len(encodings) > 1:
        raise MalformedError("more than one length (Content-Length, Transfer-Encoding)")
    if encodings:
        if encodings[0].lower() != b"chunked" or version == b"HTTP/1.0":
            raise MalformedError("a Transfer-Encoding other than chunked")
        return Body(chunked=True)
    if lengths:
        if not _DIGITS.fullmatch(lengths[0]):
            raise MalformedError("a Content-Length that is no number")
        return Body(int(lengths[0]))
    return Body(0)


def parse_answer(head: bytes, method: bytes) -> Answer:
    """Read the head of an answer to a request with this method.  Raises MalformedError."""
    lines = re.split(rb"\r?\n", head)
    found = _STATUS.fullmatch(lines[0])
    if found is None:
        raise MalformedError("no status line")
    status = int(found[1])
    fields: Fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if line[:1] in (b" ", b"\t") and fields:
            # A folded line, as old servers send.
            fields[-1] = fields[-1][0], fields[-1][1] + b" " + line.strip()
        elif colon and _TOKEN.fullmatch(name.rstrip(b" \t")):
            fields.append((name.rstrip(b" \t"), value.strip(b" \t")))
    return Answer(status, fields, _answer_body(status, fields, method))


def _answer_body(status: int, fields: Fields, method: bytes) -> Body:
    if method == b"HEAD" or status < 200 or status in (204, 304):
        return Body(0)
    encodings = field_tokens(fields, b"transfer-encoding")
    if encodings:
        return Body(chunked=True) if encodings[-1] == b"chunked" else Body()
    lengths = set(field_tokens(fields, b"content-length"))
    if not lengths:
        return Body()
    if len(lengths) > 1 or not _DIGITS.fullmatch(length := lengths.pop()):
        raise MalformedError("a Content-Length that is no number")
    return Body(int(length))


_HOST: Final = re.compile(rb"(\r\n[Hh][Oo][Ss][Tt]:[ \t]*)[^\r]*")
_ORIGIN: Final = re.compile(rb"(?i)(\r\norigin:[ \t]*)[^\r]*")


class MisdirectedError(Exception):
    """A request is not passed on, and is answered with `status`."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def check_request(request: Request, hosts: frozenset[str]) -> None:
    """Raise MisdirectedError for a request that no program sends to its API.

    A web page sends such, or a program that takes this for a proxy of the network.  Some libraries name the
    address that they connect to as the origin of a WebSocket; no page's origin is this relay.
    """
    if request.method.upper() == b"CONNECT":
        raise MisdirectedError(405, "this is no proxy for other servers (CONNECT)")
    if not request.target.startswith(b"/") and request.target != b"*":
        raise MisdirectedError(421, "this is no proxy for other servers (an address in the request line)")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.fields}
    origins = [value.lower().decode("latin-1") for value in field_values(request.fields, b"origin")]
    if request.upgrades and all(origin.removeprefix("http://") in hosts for origin in origins):
        headers = {name: value for name, value in headers.items() if name.lower() != "origin"}
    why = refused(headers, hosts, hostless=request.version == b"HTTP/1.0")
    if why is not None:
        raise MisdirectedError(403 if "Origin" in why or "Sec-Fetch" in why else 421, why)


def with_provider_path(head: bytes, request: Request, bases: Bases) -> tuple[bytes, Request]:
    """Return the head and the request with the provider's spelling of the path (`provider_path`)."""
    target = provider_path(request.target, bases)
    if target == request.target:
        return head, request
    _, crlf, rest = head.partition(b"\r\n")
    line = b"%b %b %b" % (request.method, target, request.version)
    return line + crlf + rest, request._replace(target=target)


def addressed_to(
    head: bytes, request: Request, upstream: Upstream, network_proxy: NetworkProxy | None
) -> bytes:
    """Return the head with the server's name in `Host`, and in `Origin` where there is one.

    `network_proxy`: the network's own proxy, which needs the whole address.
    """
    name = upstream.authority.encode("idna" if not upstream.host.isascii() else "ascii")
    head = _HOST.sub(lambda found: found[1] + name, head, count=1)
    head = _ORIGIN.sub(lambda found: b"%b%b://%b" % (found[1], upstream.scheme.encode(), name), head)
    if network_proxy is None or upstream.scheme != "http" or not request.target.startswith(b"/"):
        return head
    line, crlf, rest = head.partition(b"\r\n")
    line = b"%b http://%b%b %b" % (request.method, name, request.target, request.version)
    credentials = (
        b"Proxy-Authorization: " + network_proxy.credentials + b"\r\n"
        if network_proxy.credentials is not None
        else b""
    )
    return line + crlf + credentials + rest


def error_answer(status: int, why: str) -> bytes:
    """Return an answer in the server's place, an error as the APIs write it; it ends the connection."""
    import orjson

    error = {"type": "ctxctl_proxy_error", "message": f"ctxctl: {why}"}
    body = orjson.dumps({"type": "error", "error": error})
    fields = b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n" % len(body)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, HTTPStatus(status).phrase.encode(), fields, body)


_ENDPOINTS: Final = {
    "anthropic": re.compile(rb"/messages(?:/count_tokens|/batches(?:/.*)?)?"),
    "openai": re.compile(
        rb"/(?:chat/completions|responses(?:/.*)?|completions|embeddings|models(?:/[^:]*)?)"
    ),
    "gemini": re.compile(rb"/models/[^/]+:[A-Za-z]+"),
}
_VERSIONS: Final = {"anthropic": b"/v1", "openai": b"/v1", "gemini": b"/v1beta"}
_VERSION: Final = re.compile(rb"/v[0-9]+(?:alpha|beta)?[0-9]*\Z")

Bases = Mapping[str, bytes]
"""The paths of the addresses of the providers behind one server: `{"openai": b"/v1"}`."""


def provider_path(target: bytes, bases: Bases) -> bytes:
    """Return the request's target, a path and perhaps a query, as the provider spells it.

    Programs leave the version of an API out or give it twice: one appends `/messages` to the address that it
    is given, another one `/v1/messages`; some that are given `https://api.openai.com/v1` append
    `/v1/chat/completions` to it.  Behind a variable that many programs read, one of the spellings would not
    be answered, so the relay takes both.  All else of a path stays.

    Only a known endpoint right behind the address is changed:

    - `/messages` becomes `/v1/messages`, Gemini's `/models/M:generateContent` gets `/v1beta`: these APIs have
      a version in every path, whoever offers them.
    - A version that the address has and the path lacks, or has twice, is put right.  OpenAI's, without one in
      the address, stays without (`https://api.deepseek.com/chat/completions`): it may be meant so.
    """
    path, question, query = target.partition(b"?")
    for family, base in bases.items():
        made = _spelled(path, family, base.rstrip(b"/"))
        if made != path:
            return made + question + query
    return target


def _spelled(path: bytes, family: str, base: bytes) -> bytes:
    endpoint, version = _ENDPOINTS[family], _VERSIONS[family]
    own = _VERSION.search(base)
    root, version = (base[: own.start()], own[0]) if own is not None else (base, version)
    if not path.startswith(root):
        return path
    rest = path[len(root) :]
    if rest.startswith(version * 2 + b"/") and endpoint.fullmatch(rest[2 * len(version) :]):
        return root + rest[len(version) :]
    if (own is not None or family != "openai") and endpoint.fullmatch(rest):
        return root + version + rest
    return path

"""Where HTTP/1 messages begin and end, in bytes that are relayed as they are.

Nothing here makes a message: a library that parses gives what a message means, and not the stretch of bytes
that it is.  Requests are read strictly (RFC 9112), since what another server might cut in another place must
not be passed on; answers are only looked at.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_HEAD: Final = 1 << 20
"""Bytes of a head; servers take some ten thousand."""
_MAX_LINE: Final = 16 << 10
"""Bytes of a chunk's first line, or of a line of a trailer."""
_END: Final = re.compile(rb"\r?\n\r?\n")
_TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(rb"[^\x00\r\n]*")
_TARGET: Final = re.compile(rb"[^\x00-\x20\x7f]+")
_STATUS: Final = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: .*)?", re.DOTALL)
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\x00\r\n]*)?")
_DIGITS: Final = re.compile(rb"[0-9]{1,18}")

Fields = list[tuple[bytes, bytes]]


class MalformedError(ValueError):
    """It is no message, or one that could be understood in two ways."""


class Body:
    """Finds the end of one body.

    Args:
        length: Its bytes; None: it is chunked, or lasts until the connection ends.
        chunked: It is chunked.
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
        """Go through data from `at` on; returns where the body's part of it ends, what it holds in `pieces`.

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
        """A whole line between two chunks' data."""
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
        return b"upgrade" in tokens(self.fields, b"connection") and bool(values(self.fields, b"upgrade"))

    @property
    def asks_over_socket(self) -> bool:
        """Whether it asks for a WebSocket with Responses: their address is that of the HTTP requests."""
        path = self.target.partition(b"?")[0].rstrip(b"/")
        return path.endswith(b"/responses") and b"websocket" in tokens(self.fields, b"upgrade")


class Answer(NamedTuple):
    """The head of an answer."""

    status: int
    fields: Fields
    body: Body

    @property
    def interim(self) -> bool:
        """Whether another one follows (100, 103)."""
        return 100 <= self.status < 200 and self.status != 101


def head_end(data: bytes | bytearray, start: int = 0) -> int:
    """Where the head ends, its blank line included; -1 if it has not come whole."""
    # The blank line may have begun in what was searched before.
    found = _END.search(data, max(0, start - 3))
    return -1 if found is None else found.end()


def values(fields: Fields, name: bytes) -> list[bytes]:
    """The values of a field, by its name in lower case."""
    return [value for key, value in fields if key.lower() == name]


def tokens(fields: Fields, name: bytes) -> list[bytes]:
    """The members of a field that is a list, in lower case."""
    return [part.strip().lower() for value in values(fields, name) for part in value.split(b",")]


def request(head: bytes) -> Request:
    """The request whose head this is.

    Raises MalformedError: also for all that servers are known to cut differently.
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
    if len(values(fields, b"host")) > 1:
        raise MalformedError("more than one Host")
    return Request(method, target, version, fields, _request_body(fields, version))


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
        raise MalformedError("a header field that is none")
    return name, value.strip(b" \t")


def _request_body(fields: Fields, version: bytes) -> Body:
    lengths, encodings = values(fields, b"content-length"), values(fields, b"transfer-encoding")
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


def answer(head: bytes, method: bytes) -> Answer:
    """The answer whose head this is, to a request with this method.  Raises MalformedError."""
    lines = re.split(rb"\r?\n", head)
    found = _STATUS.fullmatch(lines[0])
    if found is None:
        raise MalformedError("no status line")
    status = int(found[1])
    fields: Fields = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if line[:1] in (b" ", b"\t") and fields:
            # Folded, as old servers do; nobody asks for the value.
            fields[-1] = fields[-1][0], fields[-1][1] + b" " + line.strip()
        elif colon and _TOKEN.fullmatch(name.rstrip(b" \t")):
            fields.append((name.rstrip(b" \t"), value.strip(b" \t")))
    return Answer(status, fields, _answer_body(status, fields, method))


def _answer_body(status: int, fields: Fields, method: bytes) -> Body:
    if method == b"HEAD" or status < 200 or status in (204, 304):
        return Body(0)
    encodings = tokens(fields, b"transfer-encoding")
    if encodings:
        return Body(chunked=True) if encodings[-1] == b"chunked" else Body()
    lengths = set(tokens(fields, b"content-length"))
    if not lengths:
        return Body()
    if len(lengths) > 1 or not _DIGITS.fullmatch(length := lengths.pop()):
        raise MalformedError("a Content-Length that is no number")
    return Body(int(length))

"""Reads the Responses API over a WebSocket: each `response.create` is a request, answered by events.

A request that names an earlier response sends only what is new.  What stands before that was seen on the
wire (the earlier request's input, and its answer), so the request is recorded whole, marked as derived.  A
message with `generate: false` warms the provider's cache, and is answered with an id that the next request
names: it is a request with a bill of its own, in a thread of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ctxctl.ingest.parts import listed
from ctxctl.record.proxy.writer_client import MAX_BODY

if TYPE_CHECKING:
    from websockets.extensions.permessage_deflate import PerMessageDeflate

    from ctxctl.ingest.build import Json
    from ctxctl.record.exchange import Exchange, Exchanges


_REMEMBERED: Final = 128 << 20
"""Bytes of conversations that are remembered."""
_NAME: Final = 200
"""Bytes that each id is counted as."""

Key = tuple[Hashable, str]
"""The scope of an id (a connection, a server), and the id."""


class _History:
    """The items of one conversation."""

    __slots__ = ("items", "names", "size")

    def __init__(self, items: list[bytes]) -> None:
        self.items = items
        self.names: list[Key] = []
        self.size = sum(map(len, items))


class _Position(NamedTuple):
    line: _History
    length: int
    """The number of its items when the response was over."""


class Histories:
    """Remembers input items by the id of the response that they led to.

    Memory: 128 MB; the conversation used least recently goes first.  A conversation that goes on costs what
    is new in it; one that goes on from its middle costs all that came before.
    """

    def __init__(self) -> None:
        self._places: dict[Key, _Position] = {}
        self._lines: OrderedDict[int, _History] = OrderedDict()
        self._size = 0
        self._connections = 0

    def connection(self) -> int:
        """Return a number for a new connection."""
        self._connections += 1
        return self._connections

    def find(self, keys: Sequence[Key]) -> list[bytes] | None:
        """Return the items, each as JSON, under the first known key: those that stand before what is new."""
        place = self._place(keys)
        if place is None:
            return None
        self._lines.move_to_end(id(place.line))
        return place.line.items[: place.length]

    def keep(self, keys: Sequence[Key], before: Sequence[Key], new: Sequence[bytes]) -> None:
        """Remember a response.

        Args:
            keys: The response's keys from now on.
            before: The keys of the response that its request named; where none is known, `new` is all of it.
            new: The items of the request and of its answer, each as JSON.
        """
        place = self._place(before)
        if place is None:
            line = self._begin(list(new))
        else:
            line = place.line
            if place.length < len(line.items):
                line = self._begin(line.items[: place.length])
            line.items += new
            line.size += sum(map(len, new))
            self._size += sum(map(len, new))
        for key in keys:
            self._places[key] = _Position(line, len(line.items))
            line.names.append(key)
            line.size += _NAME
            self._size += _NAME
        self._lines.move_to_end(id(line))
        while self._size > _REMEMBERED and self._lines:
            self._drop(self._lines.popitem(last=False)[1])

    def _place(self, keys: Sequence[Key]) -> _Position | None:
        return next((place for key in keys if (place := self._places.get(key)) is not None), None)

    def _begin(self, items: list[bytes]) -> _History:
        line = _History(items)
        self._lines[id(line)] = line
        self._size += line.size
        return line

    def _drop(self, line: _History) -> None:
        self._size -= line.size
        for key in line.names:
            place = self._places.get(key)
            if place is not None and place.line is line:
                del self._places[key]


_PIECE: Final = 1 << 16
_PREFIX: Final = {True: "client", False: "server"}


class UnreadableError(ValueError):
    """The bytes are no frames, or frames of an unknown kind."""


class MessageReader:
    """Reads the messages of one direction of a WebSocket from copies of its bytes.

    Nothing is answered or sent: each direction is read alone, as its other end reads it.  The codec is that
    of `websockets`: frames, fragments and permessage-deflate, each bounded.

    Memory: one message, as it came and decoded.

    Args:
        extensions: Values of the answer's `Sec-WebSocket-Extensions`.
        masked: Whether the direction is the one from the client.
        limit: Bytes of one message at most, decompressed.

    Raises:
        UnreadableError: an extension that is not known here.
        ModuleNotFoundError: `websockets` is not installed.
    """

    def __init__(self, extensions: Iterable[str], *, masked: bool, limit: int) -> None:
        from websockets.protocol import Protocol, Side

        self._protocol = Protocol(Side.SERVER if masked else Side.CLIENT, max_size=limit)
        deflate = _deflate(extensions, _PREFIX[masked])
        self._protocol.extensions = [deflate] if deflate is not None else []
        self._parts: list[bytes] = []
        self._text = False
        self.pending = 0
        """Bytes that came since the last whole message: an upper bound of what is held."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the texts that are whole with these bytes, in order; binary messages are left out.

        Raises:
            UnreadableError: neither these bytes nor later ones can be read.
        """
        from websockets.exceptions import PayloadTooBig
        from websockets.frames import Frame, Opcode

        found: list[bytes] = []
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            self.pending += len(piece)
            self._protocol.receive_data(piece)
            # Pongs and closing are left to the two ends.
            self._protocol.data_to_send()
            for frame in self._protocol.events_received():
                if not isinstance(frame, Frame) or frame.opcode not in (
                    Opcode.TEXT,
                    Opcode.BINARY,
                    Opcode.CONT,
                ):
                    continue
                if frame.opcode is not Opcode.CONT:
                    self._text, self._parts = frame.opcode is Opcode.TEXT, []
                if self._text:
                    self._parts.append(bytes(frame.data))
                if frame.fin:
                    if self._text:
                        found.append(b"".join(self._parts))
                    self._parts, self.pending = [], 0
            if self._protocol.parser_exc is not None:
                large = isinstance(self._protocol.parser_exc, PayloadTooBig)
                raise UnreadableError("a message that is too large" if large else "no frames of a WebSocket")
        return found


def _deflate(extensions: Iterable[str], side: str) -> PerMessageDeflate | None:
    """Return what undoes the agreed compression; None: none was agreed."""
    from websockets.exceptions import InvalidHeader
    from websockets.extensions.permessage_deflate import PerMessageDeflate
    from websockets.headers import parse_extension

    try:
        agreed = [one for value in extensions for one in parse_extension(value)]
    except InvalidHeader:
        raise UnreadableError("an extension header that is none") from None
    if not agreed:
        return None
    if len(agreed) > 1 or agreed[0][0].lower() != "permessage-deflate":
        raise UnreadableError("an extension that is not known")
    given = dict(agreed[0][1])
    bits = given.get(f"{side}_max_window_bits") or "15"
    if bits not in map(str, range(8, 16)):
        raise UnreadableError("a window of a size that there is not")
    return PerMessageDeflate(
        remote_no_context_takeover=f"{side}_no_context_takeover" in given,
        local_no_context_takeover=True,
        remote_max_window_bits=int(bits),
        local_max_window_bits=15,
    )


WARM_UP: Final = "warm-up"
"""The thread of requests that only warm a cache."""
CLOSED: Final = "websocket_closed"
_STREAM: Final = [("content-type", "text/event-stream")]
_JSON: Final = [("content-type", "application/json")]
_NOT_BODY: Final = frozenset(("type", "generate", "event_id", "previous_response_id"))
_ENDS: Final = frozenset(
    ("response.completed", "response.incomplete", "response.failed", "response.done", "response.cancelled")
)
_OVER: Final = ("completed", "incomplete", "failed", "cancelled")
_SENT_AT: Final = "x-codex-ws-stream-request-start-ms"
"""The time of sending, which is left out: with it, no repeated request would equal the first."""
_WAITING: Final = 64
"""Requests of one connection that wait for an answer at most; the API takes one at a time."""


class _PendingRequest:
    """A request that waits for its answer."""

    __slots__ = ("before", "begun", "exchange", "items", "new", "response_id", "warms")

    def __init__(self, exchange: Exchange, before: list[Key], new: list[bytes], *, warms: bool) -> None:
        self.exchange = exchange
        self.before = before
        """Keys of its history; empty: it sent all of it."""
        self.new = new
        self.warms = warms
        self.begun = False
        self.response_id: str | None = None
        self.items: list[Any] = []
        """The answer's items so far, where they come one by one."""


class ResponsesSocket:
    """Records the requests of one WebSocket connection.

    Args:
        exchanges: Where its requests are recorded.
        url: The server's address.
        headers: The headers of the request that it began with.
        answer: The headers of the answer.
        histories: The histories of all connections.
        begun: Called with each request that is recorded.

    Raises:
        UnreadableError: an extension that is not known here.
        ModuleNotFoundError: `websockets` is not installed.
    """

    def __init__(
        self, exchanges: Exchanges, url: str, headers: Iterable[tuple[str, str]],
        answer: Iterable[tuple[str, str]], histories: Histories, begun: Callable[[Exchange], None],
    ) -> None:  # fmt: skip
        agreed = [value for name, value in answer if name.lower() == "sec-websocket-extensions"]
        self._from_program = MessageReader(agreed, masked=True, limit=MAX_BODY)
        self._from_server = MessageReader(agreed, masked=False, limit=MAX_BODY)
        self._exchanges = exchanges
        self._url = url
        self._server = "/".join(url.split("/", 3)[:3])
        self._headers = _named(dict(headers))
        self._histories = histories
        self._number = histories.connection()
        self._begun = begun
        self._waiting: list[_PendingRequest] = []
        self._last: tuple[Json, list[Key]] | None = None
        """The last request's fields without its input, and the keys of its response."""

    @property
    def pending(self) -> int:
        """Bytes of messages that are not whole yet."""
        return self._from_program.pending + self._from_server.pending

    def from_program(self, data: bytes) -> None:
        """Take bytes that the program sent.  Raises UnreadableError."""
        for text in self._from_program.feed(data):
            message = _loaded(text)
            if message.get("type") in ("response.create", "response.append"):
                self._ask(message)

    def from_server(self, data: bytes) -> None:
        """Take bytes that the server sent.  Raises UnreadableError."""
        for text in self._from_server.feed(data):
            if self._waiting:
                self._answer(text, _loaded(text))

    def end(self, how: str) -> None:
        """End the unanswered requests: the connection is closed, or read no further."""
        waiting, self._waiting = self._waiting, []
        for asked in waiting:
            asked.exchange.end(CLOSED if how == "complete" else how)

    # -- requests -------------------------------------------------------------------------------------------

    def _ask(self, message: Json) -> None:
        inner = message.get("response")
        body = inner if isinstance(inner, dict) and "input" in inner else message
        new = _items(body.get("input"))
        named = body.get("previous_response_id")
        keys = self._keys(named) if isinstance(named, str) else []
        if message["type"] == "response.append":
            # As early versions of Codex sent: it goes on with the connection's last response, and names none.
            if self._last is None:
                return
            body, keys = {**self._last[0], **body}, self._last[1]
        before = self._histories.find(keys)
        fields = {name: value for name, value in body.items() if name not in _NOT_BODY}
        if before is None and isinstance(named, str):
            # The named response was not seen here: the provider has its history.
            fields["previous_response_id"] = named
        warms = body.get("generate") is False
        made = {**fields, "input": [orjson.Fragment(item) for item in (*(before or ()), *new)]}
        made["client_metadata"] = metadata = _without_time(made.get("client_metadata"))
        if metadata is None:
            del made["client_metadata"]
        if before is None and not isinstance(body.get("input"), list | str):
            # A stored prompt, or something unknown.
            made.pop("input")
        self._last = fields, []
        exchange = self._exchanges.begin(
            "POST", self._url, {**self._headers, **_named(metadata)}.items(), orjson.dumps(made),
            apart=WARM_UP if warms else None, derived=before is not None,
        )  # fmt: skip
        if exchange is None:
            return
        self._begun(exchange)
        self._waiting.append(_PendingRequest(exchange, keys if before is not None else [], new, warms=warms))
        if len(self._waiting) > _WAITING:
            self._waiting.pop(0).exchange.end("no_answer")

    def _keys(self, response_id: str) -> list[Key]:
        """Return a response's keys: its connection's first, as a server's ids may begin anew on each."""
        return [(self._number, response_id), (self._server, response_id)]

    # -- answers --------------------------------------------------------------------------------------------

    def _answer(self, text: bytes, event: Json) -> None:
        kind = event.get("type")
        if not isinstance(kind, str) or not kind.startswith(("response.", "error")):
            return
        asked = self._request_answered_by(event, kind)
        if asked is None:
            return
        exchange = asked.exchange
        status = event.get("status", event.get("status_code"))
        if kind == "error" and not asked.begun and isinstance(status, int) and 300 <= status < 600:
            exchange.head(status, _JSON)
            exchange.data(text)
            self._finish(asked)
            return
        if not asked.begun:
            asked.begun = True
            exchange.head(200, _STREAM)
        exchange.data(b"data: " + text.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n\n")
        if kind == "response.output_item.done":
            asked.items.append(event.get("item"))
        response = event.get("response")
        if kind in _ENDS or (isinstance(response, dict) and response.get("status") in _OVER):
            self._keep(asked, response if isinstance(response, dict) else {})
            self._finish(asked)
        elif kind == "error":
            self._finish(asked)

    def _request_answered_by(self, event: Json, kind: str) -> _PendingRequest | None:
        """Return the request that an event answers: by the response's id, else the one being answered."""
        response = event.get("response")
        named = response.get("id") if isinstance(response, dict) else event.get("response_id")
        if isinstance(named, str):
            known = next((one for one in self._waiting if one.response_id == named), None)
            if known is None:
                known = next((one for one in self._waiting if one.response_id is None), None)
                if known is not None:
                    known.response_id = named
            return known
        begun = (one for one in reversed(self._waiting) if one.response_id is not None)
        return next(begun, self._waiting[0] if self._waiting else None)

    def _keep(self, asked: _PendingRequest, response: Json) -> None:
        """Remember a response, for requests that go on from it."""
        if asked.response_id is None:
            return
        output = [] if asked.warms else listed(response.get("output")) or asked.items
        keys = self._keys(asked.response_id)
        self._histories.keep(keys, asked.before, [*asked.new, *map(orjson.dumps, output)])
        if self._last is not None:
            self._last = self._last[0], keys

    def _finish(self, asked: _PendingRequest) -> None:
        asked.exchange.end("complete")
        self._waiting.remove(asked)


def _items(given: Any) -> list[bytes]:
    if isinstance(given, str):
        given = [{"type": "message", "role": "user", "content": given}]
    return [orjson.dumps(item) for item in listed(given)]


def _loaded(text: bytes) -> Json:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _without_time(metadata: Any) -> Any:
    if not isinstance(metadata, dict):
        return metadata
    return {name: value for name, value in metadata.items() if name != _SENT_AT}


def _named(metadata: Any) -> Mapping[str, str]:
    """Return metadata that stand for a request's own headers: Codex names session and thread there."""
    if not isinstance(metadata, dict):
        return {}
    return {
        name.lower(): value
        for name, value in metadata.items()
        if isinstance(value, str) and not name.lower().startswith("content-")
    }


__all__ = ["CLOSED", "WARM_UP", "ResponsesSocket", "UnreadableError"]

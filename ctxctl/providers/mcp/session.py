"""Reads a log of JSON-RPC messages: what the server offered, and what each call brought."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from ctxctl.ingest.build import Json, Place
from ctxctl.ingest.document import document
from ctxctl.ingest.lines import Line, Report, lines, values_of_line
from ctxctl.ingest.parts import Part, listed, mapping, string
from ctxctl.ingest.run import Run
from ctxctl.model import vocab
from ctxctl.providers.mcp.parts import call, contents, instructions, scoped_id, tool
from ctxctl.trace.source import Source

_PREFIX: Final = re.compile(rb"\s*(STDIN|STDOUT|STDERR):\s?", re.IGNORECASE)
_DOCUMENT: Final = re.compile(rb"\s*[\[{]\s*\n")
"""A document over several lines, and no JSON Lines."""
_WRAPPED: Final = ("message", "payload", "data", "msg", "rpc", "raw", "body", "request", "response")
"""Fields of a log's record that a message stands in: as an object, as JSON, or as events of a stream."""
_LEVELS: Final = 4
"""Records inside of records that are opened."""
_OVER_HTTP: Final = ("GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT")
_STREAMED: Final = re.compile(r"^data: ?(\{.*)$", re.MULTILINE)
_BY_FIELD: Final = {
    "tools": "tools/list",
    "serverInfo": "initialize",
    "contents": "resources/read",
    "messages": "prompts/get",
    "model": "sampling/createMessage",
    "content": "tools/call",
}
"""The method that an answer belongs to, by a field that only its answers have."""
_KEPT: Final = 10_000
"""Open requests that are remembered; a log in which nothing is ever answered must not fill the memory."""


class McpSession(Run):
    """Reads the messages of one MCP session."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report)
        self._server: str | None = None
        self._home: str | None = None
        """The session: the server by which it was begun."""
        self._open: dict[str, tuple[Json, int]] = {}
        """Requests without an answer yet and their lines, by JSON-RPC id."""
        self._asked = 0
        """The line of the request that is being answered."""
        self._offered: dict[str, str] = {}
        """Offered items and the list that they are from."""
        self._page: dict[str, set[str]] = {}
        self._uses = self._samplings = self._lists = 0
        self._name = "offer"
        """Turn and step that the next event belongs to."""
        self._answers: dict[str, Callable[[Json, Json], None]] = {
            "initialize": self._initialized,
            "tools/list": self._tools,
            "tools/call": self._called,
            "resources/read": self._read,
            "prompts/get": self._prompt,
            "sampling/createMessage": self._sampled,
        }

    def events(self, source: Source) -> Iterator[Json]:
        """Everything that the log tells, in line order."""
        if _DOCUMENT.match(source.read(0, 256)):
            self._take(document(source, self.report))
        else:
            for line in lines(source, self.report):
                self.line = line
                for value in self._values(line):
                    self._take(value)
                yield from self.drain()
        for request, asked in self._open.values():
            self._asked = asked
            if request.get("method") == "tools/call":  # never answered
                self._called(request, {})
        yield from self.finish()

    def _values(self, line: Line) -> list[Any]:
        """The messages of a line, without the name of the stream in front of it."""
        prefix = _PREFIX.match(line.data)
        if prefix is None:
            if line.data.lstrip()[:1] not in (b"{", b"["):
                return []  # what a server prints beside the protocol
            return values_of_line(line, self.report)
        if prefix.group(1).upper() == b"STDERR" or line.data[prefix.end() :].lstrip()[:1] not in (b"{", b"["):
            return []
        return values_of_line(
            Line(line.number, line.offset + prefix.end(), line.data[prefix.end() :]), self.report
        )

    def _take(self, value: Any, depth: int = 0) -> None:
        if isinstance(value, list):
            for one in value:
                self._take(one, depth)
            return
        if not isinstance(value, dict):
            return
        for key in ("timestamp", "time", "ts"):
            self.make.at(value.get(key))
        known = any(name in value for name in ("method", "result", "error"))
        if "jsonrpc" not in value and (not known or value.get("method") in _OVER_HTTP):
            if depth < _LEVELS:
                self._unwrap(value, depth)
            return
        method, native = value.get("method"), value.get("id")
        if isinstance(method, str):
            if native is not None and len(self._open) < _KEPT:
                self._open[str(native)] = value, self.line.number
            return
        request, self._asked = self._open.pop(str(native), (None, 0))
        result = value.get("result")
        if isinstance(result, dict):
            self._answered(request, result)
        elif request is not None and request.get("method") == "tools/call":
            self._called(request, {"content": [value.get("error")], "isError": True})

    def _unwrap(self, value: Json, depth: int) -> None:
        """Messages inside a record of the log, or a saved result of a call."""
        inner = [one for key in _WRAPPED for one in _inside(value.get(key))]
        for one in inner:
            self._take(one, depth + 1)
        if not inner and isinstance(value.get("content"), list):
            self._called({}, value)

    def _answered(self, request: Json | None, result: Json) -> None:
        method = string(request.get("method")) if request is not None else None
        if method is None:  # the question is lost: the answer says what it is by its fields
            method = next((name for field, name in _BY_FIELD.items() if field in result), "")
        handler = self._answers.get(method)
        if handler is not None:
            handler(request or {}, result)

    # -- what is offered ------------------------------------------------------------------------------------

    def _initialized(self, _request: Json, result: Json) -> None:
        info = result.get("serverInfo")
        self._server = string(info.get("name")) if isinstance(info, dict) else None
        self._settle_in()
        text = string(result.get("instructions"))
        if text is not None:
            self._announce(instructions(self._server, text), "initialize")
            self._surface()

    def _settle_in(self) -> None:
        """Begin another session where another server answers.

        One that gets its name late, or is asked again and gives none, goes on with what it offered.
        """
        if not self.make.count:
            self._home = self._server
        elif self._home is not None and self._server is not None and self._server != self._home:
            self._home = self._server
            self._offered.clear()
            self._page.clear()

    def _tools(self, request: Json, result: Json) -> None:
        found = listed(result.get("tools"))
        parts = [tool(one, self._server) for one in found if isinstance(one, dict)]
        params = request.get("params")
        first = not (isinstance(params, dict) and params.get("cursor"))
        if first:
            self._lists += 1
            if self._lists > 1:
                self._name = f"offer-{self._lists}"
        page = self._page["tools"] = set() if first else self._page.get("tools", set())
        for part in parts:
            page.add(part.item)
            self._announce(part, "tools")
        if not result.get("nextCursor"):
            for name in [n for n, of in self._offered.items() if of == "tools" and n not in page]:
                del self._offered[name]
                gone = Part("tool_definition", None, "system", key=name).record(derived_identity=False)
                gone["metadata"] = {"cause": "detached"}
                self.emit(vocab.ITEM_REMOVED, gone, self._place())
            self._surface()

    def _announce(self, part: Part, offered: str) -> None:
        known = part.item in self._offered
        self._offered[part.item] = offered
        record = part.record(derived_identity=False)
        self.emit(vocab.ITEM_UPDATED if known else vocab.ITEM_ADDED, record, self._place())

    def _surface(self) -> None:
        self.make.count_work(len(self._offered))
        record = self.make.record(
            surface_id=f"offered-{self.line.number}",
            scope="session",
            surface_kind="tool_surface",
            available_item_refs=list(self._offered),
        )
        self.emit(vocab.SURFACE_CREATED, record, self._place())

    # -- what is used ---------------------------------------------------------------------------------------

    def _place(self) -> Place:
        return Place(self._home, None, self._name, self._name)

    def _use(self, parts: list[Part]) -> None:
        """One use of the server: a step of its own."""
        self._uses += 1
        self._name = f"call-{self._uses}"
        for part in parts:
            record = part.record(derived_identity=False)
            line = part.line or self.line.number
            self.out.append(self.make.event(vocab.ITEM_ADDED, record, self._place(), line))

    def _called(self, request: Json, result: Json) -> None:
        params = mapping(request.get("params"))
        name = string(params.get("name"))
        key = f"{self._uses + 1}:{request.get('id', '')}"
        made = [call(key, name, params.get("arguments"), self._server)] if name is not None else []
        for part in made:
            part.line = self._asked
        title = made[0].title if made else None
        native: Json = {"type": "tool_result"}
        if result.get("isError") is True:
            native["is_error"] = True
        fields = {"source": self._server, "title": title, "native": native}
        found = contents(result.get("content") or [], f"{key}/result", "tool_result", "tool", **fields)
        self._use([*made, *found])

    def _read(self, request: Json, result: Json) -> None:
        params = request.get("params")
        uri = string(params.get("uri")) if isinstance(params, dict) else None
        key = scoped_id(self._server, uri or f"resource-{self.line.number}")
        fields = {"source": self._server, "title": uri}
        self._use(contents(result.get("contents") or [], key, "external_resource", "user", **fields))

    def _prompt(self, request: Json, result: Json) -> None:
        params = request.get("params")
        name = string(params.get("name")) if isinstance(params, dict) else None
        made: list[Part] = []
        messages = result.get("messages")
        for index, message in enumerate(messages if isinstance(messages, list) else ()):
            if isinstance(message, dict):
                key = f"{scoped_id(self._server, f'prompt:{name}')}:{self._uses + 1}:{index}"
                kind = "assistant_message" if message.get("role") == "assistant" else "user_message"
                made += contents(message.get("content"), key, kind, "user", source=self._server, title=name)
        self._use(made)

    def _sampled(self, request: Json, result: Json) -> None:
        """The server had the client ask its model: a request that the log holds whole."""
        params = mapping(request.get("params"))
        self._samplings += 1
        self.session = self._home
        thread = self.thread(f"sampling-{self._samplings}")
        thread.turn = f"sampling-{self._samplings}"
        system = string(params.get("systemPrompt"))
        if system is not None:
            thread.append(Part("system_prompt", system, "system", key="system"))
        messages = params.get("messages")
        for message in messages if isinstance(messages, list) else ():
            if isinstance(message, dict):
                thread.append(*_said(message))
        thread.request(thread.turn, line=self.line.number, model=string(result.get("model")))
        thread.append(*_said({"role": "assistant", **result}))


def _inside(value: Any) -> list[Any]:
    """What a field of a record holds: an object, JSON in a text, or the events of a stream."""
    if isinstance(value, dict):
        return [value]
    if not isinstance(value, str):
        return []
    texts = [value] if value[:1] in ("{", "[") else _STREAMED.findall(value)
    found = []
    for text in texts:
        try:
            found.append(orjson.loads(text))
        except orjson.JSONDecodeError:
            continue
    return found


def _said(message: Json) -> list[Part]:
    role = "assistant" if message.get("role") == "assistant" else "user"
    made = contents(message.get("content"), "", f"{role}_message", role)
    for part in made:
        part.item = ""
    return made

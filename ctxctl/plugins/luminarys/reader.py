"""Reads captures of skill calls: msgpack streams, JSON lines of decoded calls, directories of either."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from ctxctl.errors import UnreadableError
from ctxctl.ingest.build import Json
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.lines import Line, Report
from ctxctl.ingest.parts import shallow
from ctxctl.ingest.run import Run
from ctxctl.plugins.luminarys import messages
from ctxctl.plugins.luminarys.calls import Call, Calls
from ctxctl.plugins.luminarys.messages import Request
from ctxctl.trace.source import Source

NAME: Final = "luminarys"
_HEAD: Final = 1 << 16
_START: Final = Line(1, 0, b"")
_MAX_OPEN: Final = 1024
_MAX_STRAYS: Final = 1000
"""Values in a stream that are neither maps nor lists, after which it is taken for something else."""
_RETURNED: Final = ("mcp_result", "mcp", "tool_result", "returned", "result")
_ROLE: Final = re.compile(r"^(?P<stem>.*?)[._-](?P<role>request|response|req|resp|mcp|result)(?:\.[\w.]+)?$")
_NUMBER: Final = re.compile(r"(\d+)")


class Reader(Run):
    """Reads one capture of a Luminarys wire."""

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(name, report, "lu")
        self._calls = Calls(self.make, self.out)
        self._open: list[Call] = []
        """Requests without a response yet, innermost last."""
        self._held: Call | None = None
        """The last whole call: what the host returned for it may follow."""
        self._seen: set[str] = set()
        self._found = 0

    def events(self, source: Source) -> Iterator[Json]:
        """The events of one file."""
        yield from self._file(source)
        yield from self._end()

    def folder_events(self, folder: Folder) -> Iterator[Json]:
        """The events of a directory: pairs of files in the order of their numbers, then files of whole calls.

        A call that a pair has shown is not read again from a log beside it.
        """
        pairs: dict[str, dict[str, str]] = {}
        whole: list[str] = []
        for name in folder.files:
            match = _ROLE.match(name)
            if match is None:
                whole.append(name)
            else:
                pairs.setdefault(match["stem"], {})[match["role"][:3]] = name
        for stem in sorted(pairs, key=_natural):
            files = pairs[stem]
            for role in ("req", "res", "mcp"):
                if role in files:
                    yield from self._named(folder, files[role])
            self._unanswered()
        for name in whole:
            if folder.head(name, _HEAD).lstrip()[:1] == b"{" or is_message(folder.head(name, _HEAD)):
                yield from self._named(folder, name)
        self.make.file = None
        yield from self._end()

    def _named(self, folder: Folder, name: str) -> Iterator[Json]:
        self.make.file = name
        try:
            source = folder.open(name)
        except UnreadableError as error:
            self.problem(error.slug, str(error), _START)
            return
        with source:
            yield from self._file(source)

    def _file(self, source: Source) -> Iterator[Json]:
        if source.read(0, _HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
            for record in self.records(source):
                self._value(shallow(record, self.line.data))
                yield from self.drain()
            return
        # Messages stand for lines: a stream of msgpack has none.
        self.line = _START
        strays = 0
        for number, (offset, value) in enumerate(messages.unpacked_messages(source, self._damaged), 1):
            self.line = Line(number, offset, b"")
            strays += not isinstance(value, dict | list)
            if strays > _MAX_STRAYS:
                self._damaged(offset, f"more than {_MAX_STRAYS} values that are no messages")
                break
            self._value(value)
            yield from self.drain()
        yield from self.drain()

    def _damaged(self, offset: int, why: str) -> None:
        number = self.line.number + (offset > self.line.offset)
        message = f"not valid msgpack ({why}); what follows is not read"
        self.problem("bad-msgpack", message, Line(number, offset, b""))

    def _end(self) -> Iterator[Json]:
        self._unanswered()
        self._release()
        if not self._found:
            self.problem("no-calls", "the capture holds no call of a skill: nothing to replay", _START)
        yield from self.drain()

    # -- messages ---------------------------------------------------------------------------------------

    def _value(self, value: Any, depth: int = 0) -> None:
        if isinstance(value, list) and depth < 3:
            for one in value:
                self._value(one, depth + 1)
        elif messages.is_request(value):
            self._asked(messages.request(value))
        elif messages.is_response(value):
            self._answered(value)
        elif isinstance(value, dict):
            self._pair(value)

    def _pair(self, value: Json) -> None:
        """A log's record of one call, or what the host returned for the call before."""
        request, response = value.get("request"), value.get("response")
        self.make.at(value.get("time", value.get("timestamp")))
        texts = next((t for key in _RETURNED if (t := _texts(value.get(key)))), ()) or _texts(value)
        if isinstance(request, dict) and messages.is_request(request):
            found = messages.request(request)
            name = found.text("request_id")
            if name is not None and name in self._seen and self.make.file is not None:
                return
            self._asked(found)
        if isinstance(response, dict):
            self._answered(response)
        if texts:
            self._returned(texts)

    def _asked(self, request: Request) -> None:
        self._found += 1
        name = request.text("request_id")
        if name is not None and self.make.file is not None:
            self._seen.add(name)
        self._open.append(Call(request, None, self.line.number, self.make.file))
        if len(self._open) > _MAX_OPEN:
            self._give(self._open.pop(0))

    def _answered(self, value: Json) -> None:
        """The response of the request that was opened last: calls nest."""
        self._found += 1
        asked = self._open.pop() if self._open else Call(None, None, self.line.number, self.make.file)
        self._release()
        self._held = asked._replace(response=messages.response(value))

    def _returned(self, texts: tuple[str, ...]) -> None:
        if self._held is not None and not self._held.returned:
            self._held = self._held._replace(returned=texts)

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._give(held)

    def _unanswered(self) -> None:
        """Requests to which no response will come any more."""
        if self._open:
            self._release()
        for call in self._open:
            name = call.request.text("request_id") if call.request is not None else None
            self.problem("no-answer", f"the call {name or 'without an id'} has no response in the capture")
            self._give(call)
        self._open.clear()

    def _give(self, call: Call) -> None:
        file = self.make.file
        for said in self._calls.add(call):
            self.problem("state-too-large", said, Line(call.line, 0, b""))
        self.make.file = file


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a tool result's content blocks, as MCP returns them."""
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        value = value["result"]
    content = value.get("content") if isinstance(value, dict) else None
    blocks = content if isinstance(content, list) else ()
    return tuple(b["text"] for b in blocks if isinstance(b, dict) and isinstance(b.get("text"), str))


def _natural(name: str) -> list[tuple[int, str]]:
    """Numbers in a name by their value: call-2 before call-10."""
    return [(int(part[:18]), "") if part.isdigit() else (-1, part) for part in _NUMBER.split(name)]


def is_message(head: bytes) -> bool:
    """Whether a file holds msgpack messages of skills."""
    from ctxctl.plugins.luminarys import packed

    return packed(head) >= 50

"""Reads captures that are one JSON document of any layout, damaged ones as far as possible.

A document may be cut off, or have lines lost, doubled or cut in the middle.  In an indented document the
indentation says what belongs where, so damage stays where it is.  Otherwise what is sound is decoded as it
stands, and only the containers around the damage are gone through member by member; a container whose end is
lost ends where something follows that cannot belong to it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.ingest.lines import Line, Report
from ctxctl.model.problem import Problem
from ctxctl.trace.source import Source

if TYPE_CHECKING:
    from ctxctl.ingest.folder import Folder
    from ctxctl.ingest.run import Run

MAX_DOCUMENT: Final = 512 << 20
"""Bytes of the largest document that is read; it has to be in memory whole."""
_MAX_REPAIR: Final = 32 << 20
_BOM: Final = b"\xef\xbb\xbf"


def document(source: Source, report: Report) -> Any:
    """The value of a file that is one JSON document; None if nothing of it can be read.

    A damaged document is repaired as far as it goes (`repaired-document`): what stands before the damage
    comes out as it is, what follows as well as can be told.  Problems: `document-too-large`, `bad-json`.
    """
    data = source.read(0, MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        limit = MAX_DOCUMENT >> 20
        report(Problem(1, 0, "document-too-large", f"one JSON document of more than {limit} MiB; not read"))
        return None
    data = data.removeprefix(_BOM)
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _repaired(data, error, report)


def document_of_file(run: Run, folder: Folder, name: str) -> Any:
    """The value of a file of a directory, which events and problems name from here on; None if unreadable."""
    run.make.file = name
    try:
        with folder.open(name) as source:
            return document(source, run.report)
    except CtxctlError as error:
        run.problem(error.slug, error.message)
        return None


_PIECE: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
_PLACED_DEPTH: Final = 4
"""Keys and indexes of the longest path whose place is known."""
_MAX_PLACES: Final = 200_000


class Places:
    """Where the values of a document stand, for problems: found in one pass, at the first question."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: dict[tuple[str | int, ...], Line] | None = None

    def at(self, *path: str | int) -> Line:
        """The line and byte at which a value begins, by its keys and indexes (`at("runs", 2, "name")`).

        Where that is not known (deeper than four levels, or in a part that was repaired), those of the value
        that it is in.
        """
        if self._found is None:
            self._found = self._places()
        while path not in self._found and path:
            path = path[:-1]
        return self._found.get(path, Line(1, 0, b""))

    def _places(self) -> dict[tuple[str | int, ...], Line]:
        data = self._source.read(0, MAX_DOCUMENT)
        start = len(_BOM) if data.startswith(_BOM) else 0
        found: dict[tuple[str | int, ...], Line] = {}
        path: list[str | int] = []
        key_next, line, counted = False, 1, 0
        for piece in _PIECE.finditer(data, start):
            first = data[piece.start() : piece.start() + 1]
            if first in b"}]":
                del path[-1:]
                key_next = False
            elif first == b",":
                if path and isinstance(path[-1], int):
                    path[-1] += 1
                else:
                    key_next = bool(path)
            elif key_next and first == b'"':
                path[-1], key_next = _key_of(piece.group()), False
            elif first != b":":
                if len(path) <= _PLACED_DEPTH and len(found) < _MAX_PLACES:
                    line += data.count(b"\n", counted, piece.start())
                    counted = piece.start()
                    found.setdefault(tuple(path), Line(line, counted, b""))
                if first in b"{[":
                    key_next = first == b"{"
                    path.append("" if key_next else 0)
        return found


def _key_of(quoted: bytes) -> str:
    try:
        return str(orjson.loads(quoted))
    except orjson.JSONDecodeError:
        return quoted.decode("utf-8", "replace").strip('"')


def _repaired(data: bytes, error: orjson.JSONDecodeError, report: Report) -> Any:
    line = error.lineno or 1
    at = len(error.doc[: error.pos].encode("utf-8", "replace")) if isinstance(error.doc, str) else 0
    if len(data) > _MAX_REPAIR:
        report(Problem(line, at, "bad-json", f"not valid JSON ({error.msg}); too large to repair"))
        return None
    value = mended_document(data.decode("utf-8", "replace"))
    if not isinstance(value, dict | list) or not value:
        report(Problem(line, at, "bad-json", f"not valid JSON ({error.msg}); not read"))
        return None
    report(Problem(line, at, "repaired-document", f"not valid JSON ({error.msg}); read as far as it goes"))
    return value


_DECODE = json.JSONDecoder(strict=False).raw_decode
_BETWEEN: Final = re.compile(r"[\s,:\0]*")
_KEY: Final = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"\s*:')
_TORN: Final = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)')
_ESCAPE: Final = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|"
    r'(["\\/bfnrt])|u[0-9a-fA-F]{0,3}\Z)'
)
_SHORT: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LOST: Final = "\ufffd"
_RESYNC: Final = re.compile(r'[\]}\[{"\n]')
_NOTHING: Final = object()
_MAX_FAULTS: Final = 200
_MAX_DEPTH: Final = 60


def mended_document(text: str) -> Any:
    """The value of a damaged document as far as it can be read; None if nothing can."""
    lines = text.split("\n")
    if len(lines) > 3 and sum(line[:1] in " \t" for line in lines[1:-1]) > len(lines) // 2:
        return _indented(lines)
    value = _Mended(text).value
    return None if value is _NOTHING else value


# -- by indentation -------------------------------------------------------------------------------------


class _Open:
    """A container that is being read, and the indentation of the line that began it and of its members."""

    __slots__ = ("inner", "outer", "value")

    def __init__(self, value: Any, outer: int) -> None:
        self.value = value
        self.outer = outer
        self.inner: int | None = None


def _indented(lines: list[str]) -> Any:
    outermost: Any = None
    stack: list[_Open] = []
    for line in lines:
        body = line.strip()
        if not body:
            continue
        indent = len(line) - len(line.lstrip())
        while len(stack) > 1 and stack[-1].outer >= indent:
            stack.pop()
        if not stack:
            outermost = [] if body[0] == "[" else {}
            stack.append(_Open(outermost, -1 if body[0] not in "[{" else indent))
            if body[0] in "[{":
                continue
        top = stack[-1]
        if body[0] in "]}":
            continue
        if top.inner is None or indent < top.inner:
            top.inner = indent  # what was further in belonged to a container whose first line is lost
        if indent == top.inner:
            _member(top.value, body, indent, stack)
    return outermost


def _member(container: Any, body: str, indent: int, stack: list[_Open]) -> None:
    """Put what a line says into its container; a line that begins another container opens it."""
    key = _KEY.match(body)
    if (key is None) == isinstance(container, dict):
        return
    rest = body[key.end() :].strip() if key is not None else body
    value = _on_line(rest)
    if value is _NOTHING:
        return
    if key is not None:
        container[_unescaped(key.group(1))] = value
    else:
        container.append(value)
    if rest in ("{", "["):
        stack.append(_Open(value, indent))


def _on_line(rest: str) -> Any:
    if rest in ("{", "["):
        return {} if rest == "{" else []
    return _Mended(rest.rstrip(",")).value if rest else _NOTHING


# -- by brackets ----------------------------------------------------------------------------------------


class _Mended:
    """A document as far as it could be read; None where there is no value at all."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._faults = 0
        self._depth = 0
        self.value: Any = _NOTHING
        start = _between(text, 0)
        if start < len(text):
            self.value = self._value(start)[0]

    def _value(self, at: int) -> tuple[Any, int]:
        """The value that begins at `at`, and where it ends; `_NOTHING` where there is none."""
        text = self._text
        if self._faults > _MAX_FAULTS:
            return _NOTHING, len(text)
        try:
            value, end = _DECODE(text, at)
        except (ValueError, RecursionError):
            self._faults += 1
        else:
            # A string that runs over a line end has lost its closing quote.
            if not (isinstance(value, str) and "\n" in text[at:end]):
                return value, end
        first = text[at]
        if self._depth < _MAX_DEPTH and first in "[{":
            self._depth += 1
            found = self._array(at + 1) if first == "[" else self._object(at + 1)
            self._depth -= 1
            return found
        if first == '"' and (torn := _TORN.match(text, at)):
            return _unescaped(torn.group(1)), torn.end()
        following = _RESYNC.search(text, at + 1)
        return _NOTHING, following.start() if following else len(text)

    def _array(self, at: int) -> tuple[list[Any], int]:
        text = self._text
        found: list[Any] = []
        while (at := _between(text, at)) < len(text):
            char = text[at]
            if char == "]":
                return found, at + 1
            if char == "}":
                after = _between(text, at + 1)
                if not (found and isinstance(found[-1], dict) and text[after : after + 1] == "{"):
                    return found, at  # the array's own end is lost
                at = after
                continue
            # A key where an element should begin: the brace before it is lost.
            value, at = self._object(at) if _KEY.match(text, at) else self._value(at)
            if value is not _NOTHING:
                found.append(value)
        return found, at

    def _object(self, at: int) -> tuple[dict[str, Any], int]:
        text = self._text
        found: dict[str, Any] = {}
        while (at := _between(text, at)) < len(text):
            char = text[at]
            if char == "}":
                return found, at + 1
            if char in "{]":
                return found, at  # the object's own end is lost
            key = _KEY.match(text, at)
            if key is None:
                following = _RESYNC.search(text, at + 1)
                at = following.start() if following else len(text)
                continue
            start = _between(text, key.end())
            if start >= len(text) or text[start] in "]}":
                at = start
                continue
            value, at = self._value(start)
            if value is not _NOTHING:
                found[_unescaped(key.group(1))] = value
        return found, at


def _between(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def _unescaped(text: str) -> str:
    """The text of a string that is not closed, or damaged; an escape that is cut off becomes U+FFFD."""
    return _ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    high, low, code, short = escape.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code is not None:
        return _LOST if 0xD800 <= int(code, 16) < 0xE000 else chr(int(code, 16))
    return _LOST if short is None else _SHORT[short]

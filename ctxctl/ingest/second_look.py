"""Looks through a capture for facts that its importer did not find, before they are called not recorded.

It is a second look, at a bounded part of the file, and only for what is missing from every request: files of
many gigabytes repeat their layout, and the first pass must not cost more for what is nearly always there.  A
line is opened only if it has a word that such a fact has in its keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from ctxctl.errors import CtxctlError
from ctxctl.ingest import database
from ctxctl.ingest.folder import Folder
from ctxctl.ingest.key_shapes import FactFinder, FoundFact, occurrence
from ctxctl.ingest.lines import Line
from ctxctl.trace.source import Source

HEAD: Final = 3 << 20
TAIL: Final = 1 << 20
"""The most bytes of JSON lines that are looked through at the beginning of a file, and at its end."""
PARSED: Final = 1 << 20
"""The most bytes of such lines that are parsed; a quarter of these is kept for the end."""
MAX_DOCUMENT: Final = 4 << 20
"""Bytes of the largest JSON document, and of the largest database, that is opened."""
MAX_TEXT: Final = 1 << 20
"""The most bytes of other text that are looked through."""
MAX_FOLDER: Final = 16 << 20
"""The most bytes that are looked through of all files of a directory."""
_SNIFF: Final = 1 << 16
_MOST_FILES: Final = 64
_ROWS: Final = 256
"""The most rows that are looked through of each table of a database."""
_NEEDLES: Final = {
    "system_prompt": (b"system", b"instruction", b"developer"),
    "tool_definitions": (b"schema", b"parameters"),
    "model": (b"model",),
    "input_tokens": (b"token", b"usage"),
    "output_tokens": (b"token", b"usage"),
    "cached_tokens": (b"cache",),
    "messages": (b"role",),
}
"""By fact, what stands in small letters in each line that has it."""
_BETWEEN: Final = rb"(?:\s|\\+[nrt])*"
_ROLE: Final = rb'role\\*"' + _BETWEEN + rb":" + _BETWEEN + rb'\\*"'
_SPELLED: Final = {
    b"system": (rb'system[^"]{0,200}"' + _BETWEEN + rb":", _ROLE + rb"system"),
    b"instruction": (rb'instruction[^"]{0,200}"' + _BETWEEN + rb":",),
    b"developer": (rb'developer[^"]{0,200}"' + _BETWEEN + rb":", _ROLE + rb"developer"),
    b"schema": (rb'schema\\*"' + _BETWEEN + rb":" + _BETWEEN + rb"\{",),
    b"parameters": (rb'parameters\\*"' + _BETWEEN + rb":" + _BETWEEN + rb"\{",),
}
"""How words of facts that most captures lack stand in their keys, in JSON and in strings of JSON: a line
that has them otherwise only is not parsed, as most lines with them merely speak of such things."""
_PLAIN: Final = {
    "system_prompt": (
        rb'role["\']?\s*:\s*["\']?(?:system|developer)\b|system_?(?:prompt|instructions?)["\']?\s*:\s*\S'
    ),
    "tool_definitions": rb'(?:input_?schema|parameters)["\']?\s*:\s*(?:\{|\n)',
    "model": rb'\bmodel(?:_?(?:id|name))?["\']?\s*:\s*["\']?\w',
    "input_tokens": rb'(?:input|prompt)_?tokens?\w*["\']?\s*:\s*[1-9]',
    "output_tokens": rb'(?:output|completion|candidates)_?tokens?\w*["\']?\s*:\s*[1-9]',
    "cached_tokens": rb'cached?_?\w*tokens?\w*["\']?\s*:\s*[1-9]',
    "messages": rb'role["\']?\s*:\s*["\']?(?:user|assistant)\b',
}
"""By fact, what tells of it in a text that is not JSON."""
_KEY: Final = re.compile(rb"[\w.]+")
_BLOCK: Final = 1 << 20


class Sighting(NamedTuple):
    """A place that looks as if it held a fact."""

    fact: str
    key: str
    """The keys from the outermost on, with dots between them; of a database, the table first."""
    line: int
    """1-based; of a database, the row of the table; 0 where there is none."""
    byte: int
    file: str | None = None
    """The file of the directory."""

    def place(self) -> str:
        """The key and the line in words."""
        where = f" of {self.file}" if self.file is not None else ""
        return f"{self.key or '(the outermost list)'} on line {self.line:,}{where}"


class SecondLook(NamedTuple):
    """What a look through a capture found."""

    hits: dict[str, Sighting]
    """By fact, the first place."""
    looked: int
    """Bytes that were looked through."""
    of: int
    """Bytes of the capture."""


def look_again(
    source: Source | Folder, facts: tuple[str, ...], beside: Mapping[str, tuple[str, ...]]
) -> SecondLook:
    """Look for facts in a capture; nothing in it raises, and a bounded part of it is read.

    `beside`: by fact, keys that are known to be something else (`about.Claim`).
    """
    search = _Search(facts, beside)
    if isinstance(source, Source):
        search.file(source, None)
        return SecondLook(search.hits, min(search.looked, source.size), source.size)
    of = 0
    for name in source.files[:_MOST_FILES]:
        if not search.wanted:
            break
        try:
            with source.open(name) as opened:
                of += opened.size
                search.file(opened, name)
        except (CtxctlError, OSError):
            continue
    return SecondLook(search.hits, min(search.looked, of), of)


class _Search:
    """One look: what is still wanted, and how much has been read."""

    def __init__(self, facts: tuple[str, ...], beside: Mapping[str, tuple[str, ...]]) -> None:
        self.hits: dict[str, Sighting] = {}
        self.looked = 0
        self._facts = facts
        self._finder = FactFinder(facts)
        self._beside = {fact: tuple(f"{key}." for key in keys) for fact, keys in beside.items() if keys}
        self._opened = 0
        self._needles = {fact: _NEEDLES[fact] for fact in facts if fact in _NEEDLES}

    @property
    def wanted(self) -> bool:
        """Whether something is still to be found, and something left to spend on it."""
        return len(self.hits) < len(self._facts) and self.looked < MAX_FOLDER and self._finder.left > 0

    def file(self, source: Source, name: str | None) -> None:
        """Look through one file."""
        head = source.read(0, _SNIFF).lstrip(b"\xef\xbb\xbf \t\r\n\0")
        if head.startswith(database.MAGIC):
            self._database(source, name)
        elif head[:1] not in (b"{", b"["):
            self._look_through_text(source, name)
        elif _is_lines(head):
            self._lines(source, name)
        elif source.size > MAX_DOCUMENT:
            # One document, or lines of which each is very long.
            (self._lines if b"\n{" in source.read(0, HEAD) else self._look_through_text)(source, name)
        elif not self._document(source, name):
            self._lines(source, name)

    def _take(self, value: Any, line: Line, file: str | None, lead: str = "") -> None:
        for one in self._finder.find(value):
            if one.fact not in self.hits and not self._is_beside(one.fact, ".".join(one.keys)):
                self._needles.pop(one.fact, None)
                key = f"{lead}{one.path}"
                self.hits[one.fact] = Sighting(one.fact, key, *_place(value, one, line), file)
            if not self._needles:
                return

    def _is_beside(self, fact: str, path: str) -> bool:
        return f"{path}.".startswith(self._beside.get(fact, ()) or "\n")

    def _telling(self, data: bytes) -> bool:
        small = data.lower()
        return any(needle in small for needles in self._needles.values() for needle in needles)

    def _document(self, source: Source, name: str | None) -> bool:
        """Whether the file is one JSON document."""
        data = source.read(0, MAX_DOCUMENT).lstrip(b"\xef\xbb\xbf")
        try:
            value = orjson.loads(data) if self._telling(data) else None
        except orjson.JSONDecodeError:
            return False
        self.looked += source.size
        self._take(value, Line(1, source.size - len(data), data), name)
        return True

    def _lines(self, source: Source, name: str | None) -> None:
        whole = source.size <= HEAD + TAIL
        self._look_through_part(
            source, 0, source.size if whole else HEAD, PARSED if whole else PARSED - PARSED // 4, name
        )
        if not whole and self.wanted:
            self._look_through_part(source, source.size - TAIL, TAIL, PARSED // 4, name)

    def _look_through_part(
        self, source: Source, start: int, size: int, opened: int, name: str | None
    ) -> None:
        """Open the telling lines of a part of the file; what is torn at its ends is no JSON, and skipped."""
        data = source.read(start, size)
        small = data.lower()
        number, counted, at = 1, 0, 0
        ahead: dict[bytes, int] = {}
        while (found := self._next_telling(small, at, ahead)) < len(small):
            first = small.rfind(b"\n", at, found) + 1 or at
            at = small.find(b"\n", found) + 1 or len(data) + 1
            part = data[first : at - 1]
            if len(part) > opened:
                self.looked += first
                return
            opened -= len(part)
            if self._is_spelled(small, first, at - 1, ahead):
                number, counted = number + data.count(b"\n", counted, first), first
                self._line(source, Line(number if start == 0 else 0, start + first, part), name)
            if not self.wanted:
                self.looked += first
                return
        self.looked += len(data)

    def _next_telling(self, small: bytes, at: int, ahead: dict[bytes, int]) -> int:
        """Where the next word stands that a fact has in its keys; the end where none does.

        `ahead`: by word, where it stands next behind an earlier place; kept from call to call.
        """
        found = len(small)
        for needles in self._needles.values():
            for needle in needles:
                place = ahead.get(needle, -1)
                if place < at:
                    place = small.find(needle, at)
                    place = ahead[needle] = place if place >= 0 else len(small)
                found = min(found, place)
        return found

    def _is_spelled(self, small: bytes, first: int, end: int, ahead: dict[bytes, int]) -> bool:
        """Whether a line may hold one of the facts that are still looked for; `ahead` as it was found."""
        for needles in self._needles.values():
            for needle in needles:
                if ahead[needle] < end:
                    spelled = _SPELLED.get(needle)
                    if spelled is None or any(
                        re.compile(pattern).search(small, first, end) for pattern in spelled
                    ):
                        return True
        return False

    def _line(self, source: Source, line: Line, name: str | None) -> None:
        try:
            value = orjson.loads(line.data)
        except orjson.JSONDecodeError:
            return
        known = len(self.hits)
        self._take(value, line._replace(data=b""), name)
        if line.number or len(self.hits) == known:
            return
        # At the end of a long file: lines are counted only now that one is to be named.
        ahead = range(0, line.offset, _BLOCK)
        number = 1 + sum(source.read(at, min(_BLOCK, line.offset - at)).count(b"\n") for at in ahead)
        self.hits = {fact: hit if hit.line else hit._replace(line=number) for fact, hit in self.hits.items()}

    def _look_through_text(self, source: Source, name: str | None) -> None:
        """YAML, Markdown and other text: keys by their spelling, one at a time."""
        data = source.read(0, MAX_TEXT)
        self.looked += len(data)
        for fact in self._facts:
            match = re.search(_PLAIN[fact], data, re.IGNORECASE) if fact not in self.hits else None
            if match is not None:
                said = _KEY.match(match.group())
                key = said.group().decode("utf-8", "replace") if said else fact
                if self._is_beside(fact, key):
                    continue
                self._needles.pop(fact, None)
                self.hits[fact] = Sighting(
                    fact, key, data.count(b"\n", 0, match.start()) + 1, match.start(), name
                )

    def _database(self, source: Source, name: str | None) -> None:
        if source.size > MAX_DOCUMENT:
            return
        self.looked += source.size
        with closing(database.rows_of_tables(source, _ROWS)) as rows:
            for table, number, fields in rows:
                self._take(fields, Line(number, 0, b""), name, f"{table}.")
                if not self._needles or self._finder.left <= 0:
                    return


def _is_lines(head: bytes) -> bool:
    """Whether the first line of a file is a value, and another line follows."""
    first, _, rest = head.partition(b"\n")
    return bool(rest.strip()) and first.rstrip()[-1:] in (b"}", b"]")


def _place(value: Any, found: FoundFact, line: Line) -> tuple[int, int]:
    """Line and byte of what was found; in a document of several lines by counting the keys of its name."""
    if found.member is None or not line.data:
        return line.number, line.offset
    number = occurrence(value, found.member)
    spelled = re.compile(rb'"' + re.escape(orjson.dumps(found.member[1])[1:-1]) + rb'"\s*:')
    match = next(islice(spelled.finditer(line.data), number, None), None)
    at = match.start() if match is not None else 0
    return line.number + line.data.count(b"\n", 0, at), line.offset + at

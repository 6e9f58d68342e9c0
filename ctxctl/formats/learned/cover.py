"""What of a learned text a log holds itself: that part is not shown a second time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from ctxctl.formats.build import digest_of
from ctxctl.formats.learned.frames import Held

_TELLING: Final = 24
"""Characters of the shortest text that is looked for inside others."""
_LINE: Final = 12
"""Characters of the shortest line that says where it is from."""
_DEEP: Final = 12


class Own:
    """The texts of a log's own frame."""

    def __init__(self, window: Iterable[Held]) -> None:
        self._digests: set[str] = set()
        self._tools: set[str] = set()
        self._lines: set[str] = set()
        self._long: list[str] = []
        for held in window:
            if not held.text:
                continue
            self._digests.add(digest_of(held.text))
            if held.kind == "tool_definition" and held.title:
                self._tools.add(held.title)
            for text in _texts(held.text):
                self._lines.update(_lines(text))
                if len(text.strip()) >= _TELLING:
                    self._long.append(text.strip())
        self._long.sort(key=len, reverse=True)

    def lacks(self, kind: str, title: str | None, text: str) -> list[str]:
        """The pieces of a learned text that the log does not hold, in order; none if it holds all of it.

        A tool is held if one of its name is.  A text is held if all its lines are (or, of JSON, its strings);
        else what the log has as a text of its own is cut out of it.
        """
        if digest_of(text) in self._digests or (kind == "tool_definition" and title in self._tools):
            return []
        lines = {line for one in _texts(text) for line in _lines(one)}
        if lines and lines <= self._lines:
            return []
        if kind == "tool_definition":
            return [text]
        pieces = [text]
        for own in self._long:
            pieces = [rest for piece in pieces for rest in piece.split(own)]
        return [piece for piece in pieces if piece.strip()]


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        line = line.strip()
        if len(line) >= _LINE:
            yield line


def _texts(text: str) -> Iterator[str]:
    """The text itself, or the strings in it if it is JSON."""
    if text[:1] in "{[":
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            yield from _strings(value, _DEEP)
            return
    yield text


def _strings(value: Any, deep: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif deep and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner, deep - 1)

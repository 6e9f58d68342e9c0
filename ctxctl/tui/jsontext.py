"""JSON laid out over lines, with its colours and what of it can be folded.  Plain Python.

The text is not decoded and written again: strings, numbers and repeated keys stand as they were spelled, and
only the blanks between them are ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ctxctl.tui.document import Fold, FoldRegions, hint
from ctxctl.tui.spans import Spans

LARGEST: Final = 1 << 20
"""Characters of JSON up to which it is laid out."""
_MOST: Final = 4 << 20
"""Characters that it may take up laid out: deep nesting makes much of little."""
_COLOURED: Final = 1 << 18
"""Characters laid out up to which strings and numbers have colours."""
_INDENT: Final = 2
_DEEPEST: Final = 40
"""Levels after which nothing is indented further."""
_CHECK: Final = 4096
"""Tokens between two checks whether the answer is still wanted."""
_LONG: Final = 4096
"""Characters of a base64 string from which only its beginning is shown."""
_KEPT: Final = 60

_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
_BASE64: Final = re.compile(r'"(?:data:[\w.+-]+/[\w.+-]+;base64,)?[A-Za-z0-9+/_-]{64}')
_TAIL: Final = re.compile(r'[A-Za-z0-9+/_-]*={0,2}"\Z')

Check = Callable[[], None]


class LaidOut(NamedTuple):
    """JSON that is laid out over lines."""

    text: str
    spans: Spans
    fold_regions: FoldRegions
    elided: bool
    """Whether long base64 strings are shown by their beginning only."""


def is_json(text: str, *, check: Check | None = None) -> bool:
    """Whether a text is a JSON object or array of a size that can be laid out."""
    if not 2 <= len(text) <= LARGEST or text.lstrip()[:1] not in ("{", "["):
        return False
    if check is not None:
        check()
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def dumped(value: object) -> str:
    """The JSON of a decoded value."""
    return json.dumps(value, ensure_ascii=False, default=str)


def laid_out(
    text: str, *, check: Check | None = None, before: str = "", spans: Spans | None = None
) -> LaidOut | None:
    """Well-formed JSON over lines; None where that takes up too much room.

    `before`: lines to stand in front of it, with their `spans`.
    """
    return _Layout(check, before, spans or Spans()).made(text)


class _Open:
    """An object or array that has begun."""

    __slots__ = ("count", "line", "word")

    def __init__(self, line: int, word: str) -> None:
        self.line = line
        self.word = word
        self.count = 0


class _Layout:
    def __init__(self, check: Check | None, before: str, spans: Spans) -> None:
        self._check = check
        self._out = [before]
        self._at = len(before)
        self._line = before.count("\n")
        self._stack: list[_Open] = []
        self._fold_regions: list[tuple[_Open, int, int, int, str]] = []
        self._spans = spans
        self._elided = False

    def made(self, text: str) -> LaidOut | None:
        if len(text) > LARGEST:
            return None
        tokens = _TOKEN.findall(text)
        for n, token in enumerate(tokens):
            if n % _CHECK == 0:
                if self._check is not None:
                    self._check()
                if self._at > _MOST:
                    return None
            self._token(token, tokens[n + 1 : n + 2])
        return LaidOut("".join(self._out), self._spans, FoldRegions(self._folded()), self._elided)

    def _folded(self) -> Sequence[Fold]:
        return [
            Fold(opened.line, last, end, depth, hint(opened.count, opened.word, closing))
            for opened, last, end, depth, closing in self._fold_regions
        ]

    def _token(self, token: str, following: list[str]) -> None:
        after = following[0] if following else ""
        if token in "{[":
            self._counted()
            self._put(token)
            if after not in ("}", "]"):
                self._stack.append(_Open(self._line, "key" if token == "{" else "value"))
                self._feed()
            else:
                self._stack.append(_Open(-1, ""))
        elif token in "}]":
            opened = self._stack.pop() if self._stack else _Open(-1, "")
            if opened.line >= 0:
                self._feed()
            self._put(token)
            if opened.line >= 0:
                comma = "," if after == "," else ""
                end = self._at + len(comma)
                self._fold_regions.append((opened, self._line, end, len(self._stack), token + comma))
        elif token == ",":
            self._put(",")
            self._feed()
        elif token == ":":
            self._put(": ")
        elif after == ":":
            self._put(token, "syntax-key")
        else:
            self._counted()
            self._scalar(token)

    def _counted(self) -> None:
        if self._stack:
            self._stack[-1].count += 1

    def _scalar(self, token: str) -> None:
        if token.startswith('"'):
            if len(token) > _LONG and _BASE64.match(token) and _TAIL.search(token):
                self._put(token[:_KEPT], "syntax-string")
                self._put(f'…"  ({len(token) - 2:,} characters of base64)', "muted")
                self._elided = True
            else:
                self._put(token, "syntax-string")
        else:
            self._put(token, "syntax-keyword" if token[:1].isalpha() else "syntax-number")

    def _put(self, text: str, style: str = "") -> None:
        self._out.append(text)
        if style and self._at < _COLOURED:
            self._spans.add(self._at, self._at + len(text), style)
        self._at += len(text)

    def _feed(self) -> None:
        indent = "\n" + " " * (_INDENT * min(len(self._stack), _DEEPEST))
        self._out.append(indent)
        self._at += len(indent)
        self._line += 1

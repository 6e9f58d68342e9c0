"""A text to read, and its rows at a given width.  Plain Python; wrapping goes on in slices of bounded work.

A row is a slice of the text, never a copy of it: a text of ten megabytes costs itself and two integers a row.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

from ctxctl.text import cells, visible

SLICE: Final = 3000
"""Work of one `Wrap.extend`: about this many plain rows, some milliseconds."""
_HARD: Final = 20
"""Work of a row that holds anything but printable ASCII, in plain rows."""
_JOINERS: Final = "\u200d\ufe0f"


class Document:
    """Lines of text, each with a kind that the view turns into a sign and a style.

    Kinds of a diff are those of `textdiff` (blank, `+`, `-`, `@`); `!` is a remark of ours.
    """

    __slots__ = ("kinds", "numbered", "text")

    def __init__(self, text: str, *, kinds: bytes | None = None, numbered: bool = False) -> None:
        self.text = text
        self.kinds = kinds
        """One byte a line, or None: all lines are blank."""
        self.numbered = numbered
        """Whether the view shows line numbers."""

    @classmethod
    def of_lines(cls, lines: Iterable[tuple[str, str]]) -> Document:
        """A document of (kind, text) lines; a line feed inside a line becomes its picture."""
        kinds = bytearray()
        texts = []
        for kind, text in lines:
            kinds.append(ord(kind) if len(kind) == 1 and kind.isascii() else 0x20)
            texts.append(text.replace("\n", "␊") if "\n" in text else text)
        return cls("\n".join(texts), kinds=bytes(kinds))

    def kind(self, line: int) -> str:
        """The kind of a 0-based line."""
        return " " if self.kinds is None or line >= len(self.kinds) else chr(self.kinds[line])


class WrappedRow(NamedTuple):
    """One row: its text (raw), its 0-based line, and whether the line begins here."""

    text: str
    line: int
    first: bool


class Wrap:
    """The rows of a document at a width; `extend` until `done`."""

    def __init__(self, document: Document, width: int) -> None:
        self.document = document
        self.width = max(width, 1)
        self.done = False
        self._starts = array("Q")
        self._lines = array("Q")
        self._at = 0
        self._line = 0

    @property
    def count(self) -> int:
        """Rows found so far."""
        return len(self._starts)

    @property
    def lines(self) -> int:
        """Lines of which all rows are found."""
        return self._line

    def row_of(self, line: int) -> int:
        """The first row of a line, or of the last line found so far."""
        return min(bisect_left(self._lines, line), max(self.count - 1, 0))

    def row(self, n: int) -> WrappedRow:
        """Row `n` (0 ≤ n < count)."""
        start, line = self._starts[n], self._lines[n]
        end = self._starts[n + 1] if n + 1 < len(self._starts) else self._at
        text = self.document.text[start:end]
        if text.endswith("\n") or (end < len(self.document.text) and text.endswith(" ")):
            text = text[:-1]
        return WrappedRow(text, line, n == 0 or self._lines[n - 1] != line)

    def extend(self, work: int = SLICE) -> None:
        """Find more rows, at a bounded cost."""
        text = self.document.text
        size = len(text)
        while work > 0 and not self.done:
            line_end = text.find("\n", self._at)
            line_end = size if line_end < 0 else line_end
            work = self._wrap_line(line_end, work)
            if self._at < line_end:
                return
            self.done = line_end == size
            self._at = min(line_end + 1, size)
            self._line += 1

    def _wrap_line(self, end: int, work: int) -> int:
        """Rows of the current line up to `end` or until the work is spent; what is left of it is returned."""
        if self._at == end:
            self._add()
            return work - 1
        while self._at < end and work > 0:
            self._add()
            piece = self.document.text[self._at : min(self._at + self.width, end)]
            if piece.isascii() and piece.isprintable():
                taken = len(piece)
                work -= 1
            else:
                taken = self._fitting(piece)
                work -= _HARD
            stop = self._at + taken
            self._at = stop if stop >= end else self._at_word(stop)
        return work

    def _add(self) -> None:
        self._starts.append(self._at)
        self._lines.append(self._line)

    def _fitting(self, piece: str) -> int:
        """How many characters of the piece fit into the width once they are made visible; at least one."""
        if cells(visible(piece, newline=True)) <= self.width:
            return len(piece)
        low, high = 1, len(piece) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if cells(visible(piece[:middle], newline=True)) <= self.width:
                low = middle
            else:
                high = middle - 1
        while low > 1 and (
            unicodedata.combining(piece[low]) or piece[low] in _JOINERS or piece[low - 1] in _JOINERS
        ):
            low -= 1
        return low

    def _at_word(self, stop: int) -> int:
        """Where the next row begins: after the last blank of the row's second half, else at `stop`."""
        blank = self.document.text.rfind(" ", self._at + (stop - self._at) // 2 + 1, stop + 1)
        return stop if blank < 0 else blank + 1

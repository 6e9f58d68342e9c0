"""The rows of an assembled text: each block begins on a row of its own, under a heading.  Plain Python.

A heading is no part of the text: the rows' stretches put together are the text, character for character.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from ctxctl.tui.document import SLICE, Wrap, WrappedRow, fitting
from ctxctl.tui.screens.assembled.values import BlockDocument

HEADING: Final = 1
"""Row that names a block; the one above it that tells where the prefix ended is `BREAK`."""
BREAK: Final = 2
TEXT: Final = 0


class BlockWrap(Wrap):
    """The rows of a `BlockDocument` at a width; `extend` until `done`.  Lines are those of the whole text."""

    def __init__(self, document: BlockDocument, width: int, *, broken: bool = True) -> None:
        super().__init__(document, width, broken=broken)
        self.blocks = document.blocks
        self._rows = bytearray()
        """What each row is."""
        self._firsts = array("Q")
        """The first row of each block known so far: that above its text."""
        self._in_line = False
        """Whether the row before ends inside a line."""
        if not self.blocks:
            self.done = True

    def kind_of(self, n: int) -> int:
        """What row `n` is: `TEXT`, `HEADING` or `BREAK`."""
        return self._rows[n]

    def block_of(self, n: int) -> int:
        """The block that row `n` belongs to."""
        return max(bisect_right(self._firsts, n) - 1, 0)

    def first_of(self, block: int) -> int | None:
        """The first row of a block, None where it is not found yet."""
        return self._firsts[block] if block < len(self._firsts) else None

    def row_of(self, line: int) -> int:
        """The first row of a line, or of the last line found so far."""
        return min(bisect_left(self._lines, line), max(self.count - 1, 0))

    def row(self, n: int, left: int = 0) -> WrappedRow:
        """Row `n`; a heading has no text."""
        if self._rows[n] != TEXT:
            start = self._starts[n]
            return WrappedRow("", self._lines[n], True, False, start)
        return super().row(n, left)

    def stretch(self, n: int) -> str:
        """All of the text that row `n` stands for."""
        if self._rows[n] != TEXT:
            return ""
        end = self._starts[n + 1] if n + 1 < self.count else self._at
        return self.document.text[self._starts[n] : end]

    def extend(self, work: int = SLICE) -> None:
        """Find more rows, at a bounded cost."""
        text = self.document.text
        while work > 0 and not self.done:
            block = len(self._firsts) - 1
            if block < 0 or self._at >= self.blocks[block].end:
                if block + 1 == len(self.blocks):
                    self.done = True
                    return
                self._head(block + 1)
                work -= 2
                continue
            end = self.blocks[block].end
            feed = text.find("\n", self._at, end)
            work = self._line_on(end if feed < 0 else feed, feed >= 0, work)

    def _head(self, block: int) -> None:
        self._firsts.append(self.count)
        for kind in (BREAK, HEADING) if self.blocks[block].breaks else (HEADING,):
            self._add_row(kind)

    def _add_row(self, kind: int) -> None:
        self._starts.append(self._at)
        self._lines.append(self._line)
        self._rows.append(kind)

    def _line_on(self, end: int, feed: bool, work: int) -> int:
        """Rows up to `end`, where a line feed is or the block ends, or until the work is spent."""
        text = self.document.text
        if self._at == end or not self.broken:
            self._add_row(TEXT)
            self._at = end
            work -= 1
        while self._at < end and work > 0:
            self._add_row(TEXT)
            piece = text[self._at : min(self._at + self.width, end)]
            if piece.isascii() and piece.isprintable():
                taken = len(piece)
                work -= 1
            else:
                taken, cost = fitting(piece, self.width)
                work -= cost
            stop = self._at + taken
            if stop < end:
                blank = text.rfind(" ", self._at + taken // 2 + 1, stop + 1)
                stop = stop if blank < 0 else blank + 1
            self._at = stop
        if self._at == end and feed:
            self._at += 1
            self._line += 1
        return work

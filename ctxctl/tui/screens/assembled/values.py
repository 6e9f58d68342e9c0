"""The assembled text of a frame: one text, which stretch of it is whose, and its rows.  Plain Python.

Each block begins on a row of its own, under a heading.  A heading is no part of the text: the rows' stretches
put together are the text, character for character.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from ctxctl.model.vocab import MODEL, UsedMethod
from ctxctl.tui.document import SLICE, Document, Wrap, WrappedRow
from ctxctl.tui.spans import Spans


class Block(NamedTuple):
    """One placement's stretch of the text: from `start` to `end`, the joint behind it included."""

    start: int
    end: int
    item: str
    kind: str
    title: str
    """The item's title, else its first words, else its id."""
    segment: str
    tokens: int
    counted: bool
    cached: bool
    """It is part of the possible cache prefix."""
    notes: tuple[str, ...] = ()
    """What is special about it: a stale copy, derived, redacted, not recorded …"""
    breaks: str = ""
    """What ended the possible prefix in front of it."""


class BlockDocument(Document):
    """The exact text of a step, with its blocks in order."""

    __slots__ = ("blocks", "starts")

    def __init__(self, text: str, blocks: Sequence[Block], spans: Spans) -> None:
        super().__init__(text, spans=spans)
        self.blocks = tuple(blocks)
        self.starts = array("Q", [block.start for block in blocks])

    @property
    def gutter(self) -> int:
        """Cells in front of the text: the current block's mark, the prefix bar, the segment, a blank."""
        return 4

    def block_at(self, offset: int) -> int:
        """The block that holds an offset."""
        return max(bisect_right(self.starts, offset) - 1, 0)


@dataclass(frozen=True, slots=True)
class Assembled:
    """What the screen shows: the text, and the facts above it."""

    ordinal: int
    document: BlockDocument | None
    trace: str = ""
    address: str = ""
    thread: str = ""
    model: str | None = None
    layer: str = ""
    basis: str = ""
    recorded: int = 0
    """Tokens of the blocks."""
    sent: int = 0
    """What the request came to; as `recorded` where nothing was billed."""
    method: UsedMethod = "recorded"
    """How `sent` is known."""
    uncounted: int = 0
    prefix: int | None = None
    """Tokens of the possible prefix; None in a thread's first request, and of what is no model's."""
    first: bool = False
    """It is its thread's first request."""
    broken: str = ""
    """What ended it; empty where all of the previous request was kept."""
    break_block: int | None = None
    """The block in front of which it ended; None where that is behind the last one."""
    again: int = 0
    """Tokens behind the break that the previous request held too: no cache can give them."""
    reported: int | None = None
    """What the provider said it read from its cache."""
    missed: str = ""
    """What it could have read and did not, where nothing recorded explains it; empty where it is nothing."""
    target: str = MODEL
    """Whose view it is."""
    joint_known: bool = True
    """Whether the trace records what stands between the blocks."""
    joint_name: str = ""
    """What the trace calls it, where it says no more than that."""
    remarks: tuple[str, ...] = ()
    error: str = ""

    @property
    def label(self) -> str:
        """The address of the frame."""
        return f"{self.trace}@{self.address}"


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
            self._add(kind)

    def _add(self, kind: int = TEXT) -> None:
        super()._add()
        self._rows.append(kind)

    def _line_on(self, end: int, feed: bool, work: int) -> int:
        """Rows up to `end`, where a line feed is or the block ends, or until the work is spent."""
        work = self._wrap_line(end, work)
        if self._at == end and feed:
            self._at += 1
            self._line += 1
        return work

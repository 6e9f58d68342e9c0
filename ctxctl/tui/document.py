"""A text to read, and its rows at a given width.  Plain Python; wrapping goes on in slices of bounded work.

A row is a slice of the text, never a copy of it: a text of ten megabytes costs itself and two integers a row.
Lines can be folded away under the line that they belong to.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from ctxctl.text import TAB, cells, visible
from ctxctl.tui.spans import Spans
from ctxctl.wording import plural

SLICE: Final = 3000
"""Work of one `Wrap.extend`: about this many plain rows, some milliseconds."""
_HARD: Final = 4
"""Work of a row that holds anything but printable ASCII, in plain rows."""
_CHARS: Final = 8
"""Characters of such a row that cost as much as a plain row."""
_JOINED: Final = 4
"""What a word with joined characters costs, in plain rows."""
_HALVED: Final = 6
"""What it costs to break such a word, in words."""
_WORDS: Final = re.compile(r"[\t ]|[^\t ]+")
_JOINERS: Final = "\u200d\ufe0f"


class Document:
    """Lines of text, each with a kind that the view turns into a sign and a style.

    Kinds of a diff are those of `textdiff` (blank, `+`, `-`, `@`); `!` is a remark of ours.
    """

    __slots__ = (
        "fold_regions", "folded", "hangs", "kinds", "lines", "links", "numbered", "remark", "spans", "text",
    )  # fmt: skip

    def __init__(
        self,
        text: str,
        *,
        kinds: bytes | None = None,
        numbered: bool = False,
        spans: Spans | None = None,
        fold_regions: FoldRegions | None = None,
        folded: frozenset[int] = frozenset(),
        links: Sequence[int] | None = None,
        hangs: Sequence[int] = (),
        remark: str = "",
    ) -> None:
        self.text = text
        self.kinds = kinds
        """One byte a line, or None: all lines are blank."""
        self.numbered = numbered
        """Whether the view shows line numbers."""
        self.lines = text.count("\n") + 1 if numbered else 0
        """Number of lines; counted where they are numbered."""
        self.spans = spans
        """Stretches with a style of their own."""
        self.fold_regions = fold_regions if fold_regions else None
        self.folded = folded
        """Lines that are folded to begin with."""
        self.links = links
        """By line, the number of what it leads to, such as a step's ordinal; -1: to nothing."""
        self.hangs = hangs
        """By line, the cells by which its further rows are moved in; lines without one: by none."""
        self.remark = remark
        """What to know of how the text is shown."""

    @property
    def pointed(self) -> bool:
        """Whether single lines can be acted on, so that one of them has to be pointed at."""
        return self.fold_regions is not None or self.links is not None

    @property
    def gutter(self) -> int:
        """Number of cells in front of the text."""
        if self.kinds is not None:
            return 2
        if not self.numbered:
            return 1 if self.fold_regions is None else 3
        digits = max(len(str(self.lines)), 5)
        return digits + (2 if self.fold_regions is None else 3)

    @classmethod
    def of_lines(cls, lines: Iterable[tuple[str, str]], hangs: Sequence[int] = ()) -> Document:
        """A document of (kind, text) lines; a line feed inside a line becomes its picture."""
        kinds = bytearray()
        texts = []
        for kind, text in lines:
            kinds.append(ord(kind) if len(kind) == 1 and kind.isascii() else 0x20)
            texts.append(text.replace("\n", "␊") if "\n" in text else text)
        return cls("\n".join(texts), kinds=bytes(kinds), hangs=hangs)

    @property
    def is_remark(self) -> bool:
        """Whether the document is nothing but a sentence of ours."""
        return self.kind(0) == "!" and "\n" not in self.text

    def kind(self, line: int) -> str:
        """The kind of a 0-based line."""
        return " " if self.kinds is None or line >= len(self.kinds) else chr(self.kinds[line])


_MOST_HANG: Final = 3 / 5
"""Of the width: a row of a narrow view keeps room for its text."""


class WrappedRow(NamedTuple):
    """One row: its text (raw), its 0-based line, whether the line begins and ends here, its offset, and by
    how many cells it is moved in.
    """

    text: str
    line: int
    first: bool
    last: bool
    start: int
    hang: int = 0


class Wrap:
    """The rows of a document at a width; `extend` until `done`.

    With `broken` false every line is one row, however long; `folded` lines stand for those folded below them.
    """

    def __init__(
        self, document: Document, width: int, *, broken: bool = True, folded: frozenset[int] = frozenset()
    ) -> None:
        self.document = document
        self.width = max(width, 1)
        self.broken = broken
        self.folded = folded
        self.done = False
        self._starts = array("Q")
        self._lines = array("Q")
        self._at = 0
        self._line = 0

    @property
    def count(self) -> int:
        """Number of rows found so far."""
        return len(self._starts)

    @property
    def lines(self) -> int:
        """Number of lines of which all rows are found."""
        return self._line

    def row_of(self, line: int) -> int:
        """The first row of a line, or of the last line found so far."""
        return min(bisect_left(self._lines, line), max(self.count - 1, 0))

    def row_at(self, offset: int) -> int | None:
        """The row that holds an offset of the text; None where it is not found yet."""
        if offset >= self._at and not self.done:
            return None
        return max(bisect_right(self._starts, offset) - 1, 0)

    def line_of(self, n: int) -> int:
        """The line of row `n`."""
        return self._lines[n]

    def start(self, n: int) -> int:
        """Where row `n` begins in the text."""
        return self._starts[n]

    def row(self, n: int, left: int = 0) -> WrappedRow:
        """Row `n` (0 ≤ n < count), without its first `left` characters; never more than a view can show."""
        start, line = self._starts[n], self._lines[n]
        end = self._starts[n + 1] if n + 1 < len(self._starts) else self._at
        text = self.document.text
        feed = text.find("\n", start, end)
        last = feed >= 0 or end >= len(text)
        end = feed if feed >= 0 else end
        if not last and text.endswith(" ", start, end):
            end -= 1
        start = min(start + left, end)
        if not self.broken:
            end = min(end, start + self.width)
        first = n == 0 or self._lines[n - 1] != line
        return WrappedRow(text[start:end], line, first, last, start, 0 if first else self._hang(line))

    def _hang(self, line: int) -> int:
        """By how many cells the rows of a line are moved in that are not its first."""
        hangs = self.document.hangs
        return min(hangs[line], int(self.width * _MOST_HANG)) if line < len(hangs) else 0

    def refold(self, folded: frozenset[int], line: int) -> None:
        """Find the rows from a line on anew, with other lines folded; the line itself is not hidden."""
        self.folded = folded
        n = bisect_left(self._lines, line)
        if n >= len(self._lines):
            return
        self._at, self._line = self._starts[n], self._lines[n]
        del self._starts[n:], self._lines[n:]
        self.done = False

    def extend(self, work: int = SLICE) -> None:
        """Find more rows, at a bounded cost."""
        text = self.document.text
        size = len(text)
        regions = self.document.fold_regions
        while work > 0 and not self.done:
            line_end = text.find("\n", self._at)
            line_end = size if line_end < 0 else line_end
            work = self._wrap_line(line_end, work)
            if self._at < line_end:
                return
            fold = regions.at(self._line) if regions is not None and self._line in self.folded else None
            if fold is not None:
                line_end, self._line = fold.end, fold.last
            self.done = line_end == size
            self._at = min(line_end + 1, size)
            self._line += 1

    def _wrap_line(self, end: int, work: int) -> int:
        """Rows of the current line up to `end` or until the work is spent; what is left of it is returned."""
        if self._at == end or not self.broken:
            self._add()
            self._at = end
            return work - 1
        while self._at < end and work > 0:
            first = not self._lines or self._lines[-1] != self._line
            width = self.width if first else self.width - self._hang(self._line)
            self._add()
            piece = self.document.text[self._at : min(self._at + width, end)]
            if piece.isascii() and piece.isprintable():
                taken = len(piece)
                work -= 1
            else:
                taken, cost = fitting_length(piece, width)
                work -= cost
            stop = self._at + taken
            self._at = stop if stop >= end else self._at_word(stop)
        return work

    def _add(self) -> None:
        self._starts.append(self._at)
        self._lines.append(self._line)

    def _at_word(self, stop: int) -> int:
        """Where the next row begins: after the last blank of the row's second half, else at `stop`."""
        blank = self.document.text.rfind(" ", self._at + (stop - self._at) // 2 + 1, stop + 1)
        return stop if blank < 0 else blank + 1


def fitting_length(piece: str, width: int) -> tuple[int, int]:
    """How many characters of a piece fit into the width once they are made visible, at least one; and what
    it cost to find out, in plain rows.
    """
    cost = _HARD + len(piece) // _CHARS
    if not any(joiner in piece for joiner in _JOINERS) and "\t" not in piece:
        taken = bisect_right(list(accumulate(map(_width, piece))), width)
    else:
        taken, joined = _by_words(piece, width)
        cost += _JOINED * joined
    while 1 < taken < len(piece) and unicodedata.combining(piece[taken]):
        taken -= 1
    return max(taken, 1), cost


def _by_words(piece: str, width: int) -> tuple[int, int]:
    """As `fitting_length`, word by word; also how many words had to be looked at as a whole.

    What a character looks like depends on those of its word only, how wide a tab is on what stands before it.
    """
    taken = at = joined = 0
    for match in _WORDS.finditer(piece):
        word = match.group()
        whole = any(joiner in word for joiner in _JOINERS)
        joined += whole
        size = _word(word) if whole else TAB - at % TAB if word == "\t" else sum(map(_width, word))
        if at + size > width:
            rest = width - at
            if whole:
                return taken + _halving(word, rest), joined + _HALVED
            return taken + bisect_right(list(accumulate(map(_width, word))), rest) * (word != "\t"), joined
        at += size
        taken += len(word)
    return taken, joined


@lru_cache(maxsize=1 << 14)
def _width(char: str) -> int:
    """Cells of a character on its own, made visible; of a tab it says nothing."""
    return cells(visible(char, newline=True))


@lru_cache(maxsize=1 << 10)
def _word(word: str) -> int:
    return cells(visible(word, newline=True))


def _halving(word: str, width: int) -> int:
    """How many characters of a word fit, where what one looks like depends on those around it."""
    low, high = 0, len(word) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if cells(visible(word[:middle], newline=True)) <= width:
            low = middle
        else:
            high = middle - 1
    while low > 0 and (
        unicodedata.combining(word[low]) or word[low] in _JOINERS or word[low - 1] in _JOINERS
    ):
        low -= 1
    return low


class Fold(NamedTuple):
    """The lines behind `line` up to and with `last`; folded, `line` stands for all of them."""

    line: int
    last: int
    end: int
    """Offset at which the last line ends, its line feed not counted."""
    depth: int
    """0 for one that no other holds."""
    hint: str
    """What stands behind the folded line, such as ``… 12 keys }``."""


def hint(count: int, word: str, closing: str) -> str:
    """What stands behind the opening bracket of a folded value: how much it holds, and the closing one."""
    return f" … {plural(count, word)} {closing}"


class FoldRegions:
    """All that can be folded in one text; of two of them, either one holds the other or they lie apart."""

    __slots__ = ("_by_line", "_lines", "_parents")

    def __init__(self, folds: Iterable[Fold]) -> None:
        self._by_line = {fold.line: fold for fold in sorted(folds) if fold.last > fold.line}
        self._lines = array("Q", self._by_line)
        self._parents: dict[int, Fold] = {}
        around: list[Fold] = []
        for fold in self._by_line.values():
            while around and around[-1].last < fold.line:
                around.pop()
            if around:
                self._parents[fold.line] = around[-1]
            around.append(fold)

    def __len__(self) -> int:
        return len(self._by_line)

    def at(self, line: int) -> Fold | None:
        """The region that can be folded under a line."""
        return self._by_line.get(line)

    def around(self, line: int) -> Fold | None:
        """What a line can be folded with: what begins there, else the innermost that holds it."""
        n = bisect_right(self._lines, line) - 1
        fold = self._by_line[self._lines[n]] if n >= 0 else None
        while fold is not None and fold.last < line:
            fold = self._parents.get(fold.line)
        return fold

    def deeper(self, depth: int, least: int = 0) -> frozenset[int]:
        """The first lines of the regions at this depth that hide more than `least` lines."""
        folds = self._by_line.values()
        return frozenset(f.line for f in folds if f.depth == depth and f.last - f.line > least)


class Reading(NamedTuple):
    """A text for the full-screen reader."""

    title: str
    document: Document

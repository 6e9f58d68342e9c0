"""A text diff laid out as lines, in one column or in two side by side, and what each row of it says.

Plain Python and immutable once made, in a thread; `SheetRows` wraps it at a width in slices of bounded work.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.engine.textdiff.line_pairs import DiffEffort, Span, changed_words, line_pairs
from ctxctl.engine.textdiff.line_pairs import Span as Words
from ctxctl.text import cells, pad, visible
from ctxctl.tui.document import SLICE, Document, Wrap
from ctxctl.tui.layout import Parts
from ctxctl.tui.spans import styled_pieces
from ctxctl.wording import MINUS

if TYPE_CHECKING:
    from ctxctl.engine.textdiff.unified import DiffLine, TextDiff

BOTH: Final = "~"
"""Kind of a line that stands in both columns, changed; two lines that only share the row are `|`."""
HEADING: Final = "#"
"""Kind of a line that names the item below it; a hunk's head is `@`, a remark of ours `!`."""
_LONGEST: Final = 1000
"""Characters of a line across both columns that are shown."""
OVER: Final = frozenset("@#!")
"""Kinds of lines that go across the columns."""


class Section(NamedTuple):
    """One item's part of a sheet."""

    heading: str | None
    diff: TextDiff | None
    remarks: Sequence[str] = ()


class Sheet:
    """Lines of one or two columns.  Each column has the same number of lines; where a side has none, an empty
    one stands in.
    """

    __slots__ = ("changes", "columns", "ends", "kinds", "numbers", "words")

    def __init__(
        self,
        columns: tuple[Document, ...],
        kinds: bytes,
        numbers: tuple[array[int], array[int]],
        words: tuple[dict[int, list[Span]], ...],
        changes: array[int],
        ends: array[int],
    ) -> None:
        self.columns = columns
        self.kinds = kinds
        """One byte a line: blank, `-`, `+`, `~`, `|`, `@`, `#`, `!`."""
        self.numbers = numbers
        """1-based line numbers in the old and in the new text; 0 where it is no line of it."""
        self.words = words
        """For each column, what is emphasised in some of its lines."""
        self.changes = changes
        """First lines of the changes, ascending: a change is what changed lines stand together."""
        self.ends = ends
        """For each change, the line after its last one."""

    @property
    def split(self) -> bool:
        """Whether there are two columns."""
        return len(self.columns) == 2

    def kind(self, line: int) -> str:
        """The kind of a line."""
        return chr(self.kinds[line]) if line < len(self.kinds) else " "

    @property
    def lines(self) -> int:
        """Number of lines of a column."""
        return len(self.kinds)

    def text(self) -> str:
        """The sheet as a unified diff, or as the lines of two columns one below the other."""
        columns = [column.text.split("\n") for column in self.columns]
        out: list[str] = []
        for n in range(self.lines):
            kind = self.kind(n)
            if kind in OVER or kind in " -+":
                side = columns[1][n] if kind == "+" and self.split else columns[0][n]
                out.append({"@": "@@ ", "#": "", "!": "! "}.get(kind, kind) + side)
            else:
                out += [f"-{columns[0][n]}", f"+{columns[1][n]}"]
        return "\n".join(out) + "\n" if out else ""


class _Maker:
    """Collects lines."""

    def __init__(self, split: bool, effort: DiffEffort) -> None:
        self.split = split
        self.effort = effort
        self.left: list[str] = []
        self.right: list[str] = []
        self.kinds = bytearray()
        self.old = array("I")
        self.new = array("I")
        self.words: tuple[dict[int, list[Span]], ...] = ({}, {}) if split else ({},)
        self.changes = array("Q")
        self.ends = array("Q")
        self._in_change = False

    def line(self, kind: str, left: str, right: str, old: int = 0, new: int = 0) -> int:
        changed = kind in "-+~|"
        if changed and not self._in_change:
            self.changes.append(len(self.kinds))
            self.ends.append(0)
        if changed:
            self.ends[-1] = len(self.kinds) + 1
        self._in_change = changed
        self.left.append(left)
        if self.split:
            self.right.append(right)
        self.kinds.append(ord(kind))
        self.old.append(old)
        self.new.append(new)
        return len(self.kinds) - 1

    def over(self, kind: str, text: str) -> None:
        self.line(kind, text.replace("\n", "␊"), "")

    def block(self, minus: list[str], plus: list[str], old: int, new: int) -> None:
        """Lines `minus`, from number `old` on, became lines `plus`, from number `new` on."""
        found = line_pairs(minus, plus, self.effort)
        if not self.split:
            of_old: dict[int, list[Span]] = {}
            of_new: dict[int, list[Span]] = {}
            for a, b in found:
                if a is not None and b is not None:
                    of_old[a], of_new[b] = changed_words(minus[a], plus[b], self.effort)
            for n, text in enumerate(minus):
                self._mark(0, self.line("-", text, "", old + n), of_old.get(n))
            for n, text in enumerate(plus):
                self._mark(0, self.line("+", text, "", 0, new + n), of_new.get(n))
            return
        versions = {(pair.old, pair.new) for pair in found}
        for a, b in _shared_rows(found):
            if a is None or b is None:
                kind = "+" if a is None else "-"
            else:
                kind = BOTH if (a, b) in versions else "|"
            line = self.line(
                kind,
                "" if a is None else minus[a],
                "" if b is None else plus[b],
                0 if a is None else old + a,
                0 if b is None else new + b,
            )
            if kind == BOTH and a is not None and b is not None:
                left, right = changed_words(minus[a], plus[b], self.effort)
                self._mark(0, line, left)
                self._mark(1, line, right)

    def _mark(self, column: int, line: int, spans: list[Span] | None) -> None:
        if spans:
            self.words[column][line] = spans

    def sheet(self) -> Sheet:
        columns = [Document("\n".join(self.left))]
        if self.split:
            columns.append(Document("\n".join(self.right)))
        return Sheet(
            tuple(columns), bytes(self.kinds), (self.old, self.new), self.words, self.changes, self.ends
        )


class _Sides(NamedTuple):
    """A pair of a block's lines; of two that only share a row, both are set."""

    old: int | None
    new: int | None


def _shared_rows(found: Sequence[tuple[int | None, int | None]]) -> Iterator[_Sides]:
    """The pairs, with lines that have no counterpart put beside each other where they stand together."""
    minus: list[int] = []
    plus: list[int] = []
    for old, new in [*found, (-1, -1)]:
        if old is not None and new is not None:
            for n in range(max(len(minus), len(plus))):
                yield _Sides(
                    minus[n] if n < len(minus) else None,
                    plus[n] if n < len(plus) else None,
                )
            minus, plus = [], []
            if old >= 0:
                yield _Sides(old, new)
        elif old is not None:
            minus.append(old)
        elif new is not None:
            plus.append(new)


def make(
    sections: Iterable[Section], *, split: bool, whole: bool = False, effort: DiffEffort | None = None
) -> Sheet:
    """Lay out diffs of texts; with `whole`, a diff is one hunk and needs no head."""
    maker = _Maker(split, effort or DiffEffort())
    for section in sections:
        if section.heading is not None:
            maker.over(HEADING, section.heading)
        for remark in section.remarks:
            maker.over("!", remark)
        if section.diff is not None:
            _lay(maker, section.diff.lines, heads=not whole)
    return maker.sheet()


def _lay(maker: _Maker, lines: Sequence[DiffLine], *, heads: bool) -> None:
    old = new = 1
    minus: list[str] = []
    plus: list[str] = []

    def flush() -> None:
        nonlocal old, new
        if minus or plus:
            maker.block(minus, plus, old, new)
            old, new = old + len(minus), new + len(plus)
            minus.clear()
            plus.clear()

    for kind, text in lines:
        if kind == "-":
            if plus:
                flush()
            minus.append(text)
        elif kind == "+":
            plus.append(text)
        else:
            flush()
            if kind == "@":
                old, new = _starts(text)
                if heads:
                    maker.over("@", f"{text} @@")
            else:
                maker.line(" ", text, text, old, new)
                old, new = old + 1, new + 1
    flush()


def _starts(head: str) -> tuple[int, int]:
    """The first line of each side of a hunk ``-a,b +c,d``; of an empty side, the one that would follow."""
    starts = []
    for span in head.split():
        first, _, length = span[1:].partition(",")
        starts.append(int(first) + (length == "0"))
    return starts[0], starts[1]


class SheetRow(NamedTuple):
    """One row on the screen: for each column its text (raw) and where in its line that begins; None where the
    column has no more text on this line.
    """

    line: int
    first: bool
    cells: tuple[tuple[str, int] | None, ...]


class SheetRows:
    """The rows of a sheet at given widths of its columns; `extend` until `done`."""

    def __init__(self, sheet: Sheet, widths: Sequence[int]) -> None:
        self.sheet = sheet
        self.widths = tuple(widths)
        self._wraps = [Wrap(column, width) for column, width in zip(sheet.columns, widths, strict=True)]
        self._tops = array("Q", [0])
        """First row of each line, the one after the last that is known included."""
        self._firsts = [array("Q", [0]) for _ in self._wraps]
        """For each column, the first of its own rows of each line."""
        self._ends = [0] * len(self._wraps)
        self._open = 0
        """Rows known of the line after the last complete one."""
        self.done = not sheet.lines

    @property
    def count(self) -> int:
        """Number of rows known so far."""
        return self._tops[-1] + self._open

    def extend(self, work: int = SLICE // 2) -> None:
        """Find more rows, at a bounded cost."""
        if self.done:
            return
        for wrap in self._wraps:
            if not wrap.done:
                wrap.extend(max(work // len(self._wraps), 1))
        while self._line_on():
            pass

    def _line_on(self) -> bool:
        """Take in what is known of the next line; whether all of it is."""
        line = len(self._tops) - 1
        if line >= self.sheet.lines:
            self.done = True
            return False
        height = 0
        for k, wrap in enumerate(self._wraps):
            end = self._ends[k]
            while end < wrap.count and wrap.line_of(end) == line:
                end += 1
            self._ends[k] = end
            height = max(height, end - self._firsts[k][line])
        if self._across(line):
            height = min(height, 1)
        if not all(wrap.lines > line for wrap in self._wraps):
            self._open = height
            return False
        self._tops.append(self._tops[line] + height)
        for first, end in zip(self._firsts, self._ends, strict=True):
            first.append(end)
        self._open = 0
        return True

    def _across(self, line: int) -> bool:
        """Whether a line goes across two columns: it is one row, and cut where it is longer."""
        return len(self._wraps) > 1 and self.sheet.kind(line) in OVER

    def row_of(self, line: int) -> int:
        """The first row of a line, or of the last line known."""
        return self._tops[min(line, len(self._tops) - 1)]

    def line_at(self, row: int) -> int:
        """The line on a row."""
        return max(min(bisect_right(self._tops, row) - 1, self.sheet.lines - 1), 0)

    @property
    def lines(self) -> int:
        """Number of lines of which all rows are known."""
        return len(self._tops) - 1

    def row(self, n: int) -> SheetRow:
        """Row `n` (0 ≤ n < count)."""
        line = self.line_at(n)
        below = n - self._tops[line]
        if self._across(line):
            whole, start = self.sheet.columns[0].text, self._wraps[0].start(self._firsts[0][line])
            end = whole.find("\n", start)
            text = whole[start : min(len(whole) if end < 0 else end, start + _LONGEST)]
            return SheetRow(line, True, ((text, 0), None))
        cells: list[tuple[str, int] | None] = []
        for k, wrap in enumerate(self._wraps):
            at = self._firsts[k][line] + below
            end = self._firsts[k][line + 1] if line + 1 < len(self._firsts[k]) else self._ends[k]
            if at < end:
                start = wrap.start(at) - wrap.start(self._firsts[k][line])
                cells.append((wrap.row(at).text, start))
            else:
                cells.append(None)
        return SheetRow(line, below == 0, tuple(cells))


DIVIDER: Final = "│"
MARK: Final = "▌"
_OVER_STYLES: Final = {"@": "hunk", "#": "block", "!": "remark"}
_NARROW: Final = 60
"""Cells below which a unified diff has one line number for each line instead of two."""


class Layout(NamedTuple):
    """How the cells of a row are shared out."""

    width: int
    digits: int
    """Cells of a line number; 0: none are shown."""
    texts: tuple[int, ...]
    """Cells of the text of each column."""
    numbers: int
    """Line numbers in front of a unified line."""


def layout(sheet: Sheet, width: int) -> Layout:
    """The shares of a row of this many cells."""
    highest = max((max(side, default=0) for side in (_last(sheet, 0), _last(sheet, 1))), default=0)
    digits = max(len(str(highest)), 2) if width >= 30 else 0
    room = width - 1
    if sheet.split:
        each = digits + 3
        left = (room - 1) // 2
        texts = (max(left - each, 1), max(room - 1 - left - each, 1))
        return Layout(width, digits, texts, 1)
    numbers = 0 if not digits else 1 if width < _NARROW else 2
    return Layout(width, digits, (max(room - numbers * (digits + 1) - 2, 1),), numbers)


def _last(sheet: Sheet, side: int) -> Sequence[int]:
    """The last line numbers of a side; numbers only grow, but begin again with each item of several."""
    numbers = sheet.numbers[side]
    return numbers if len(numbers) < 5000 else numbers[:: len(numbers) // 2500] + numbers[-2500:]


def row_parts(sheet: Sheet, row: SheetRow, lay: Layout, *, current: bool) -> Parts:
    """The parts of a row; `current` says that it belongs to the change in front."""
    kind = sheet.kind(row.line)
    parts: Parts = [(MARK if current else " ", "mark")]
    if kind in OVER:
        text = row.cells[0][0] if row.cells[0] is not None else ""
        shown = "@@ " + text if kind == "@" and row.first else text
        return [*parts, (pad(visible(shown, newline=True), lay.width - 1), _OVER_STYLES[kind])]
    if not sheet.split:
        return [*parts, *_unified(sheet, row, lay, kind)]
    for side in (0, 1):
        if side:
            parts.append((DIVIDER, "gutter"))
        parts += _column(sheet, row, lay, kind, side)
    return parts


def _unified(sheet: Sheet, row: SheetRow, lay: Layout, kind: str) -> Parts:
    style = {"-": "del", "+": "add"}.get(kind, "")
    old, new = sheet.numbers[0][row.line], sheet.numbers[1][row.line]
    shown = [old, new] if lay.numbers == 2 else [new or old][: lay.numbers]
    parts: Parts = [(_number(n, row.first, lay.digits) + " ", "line-number") for n in shown]
    sign = {"-": MINUS, "+": "+"}.get(kind, " ") if row.first else " "
    parts.append((sign + " ", style))
    return parts + _cell(row.cells[0], sheet.words[0].get(row.line), lay.texts[0], style)


def _column(sheet: Sheet, row: SheetRow, lay: Layout, kind: str, side: int) -> Parts:
    number = sheet.numbers[side][row.line]
    changed = kind in ("-", "+", BOTH, "|") and bool(number)
    style = ("del", "add")[side] if changed else ""
    sign = (MINUS, "+")[side] if changed and row.first else " "
    parts: Parts = []
    if lay.digits:
        parts.append((_number(number, row.first, lay.digits) + " ", "line-number"))
    else:
        parts.append((" ", "gutter"))
    parts.append((sign + " ", style))
    return parts + _cell(row.cells[side], sheet.words[side].get(row.line), lay.texts[side], style)


def _number(n: int, first: bool, digits: int) -> str:
    return f"{n:>{digits}}" if n and first else " " * digits


def _cell(cell: tuple[str, int] | None, spans: list[Words] | None, width: int, style: str) -> Parts:
    """A row's text of one column in exactly `width` cells, with what is emphasised in it."""
    if cell is None:
        return [(" " * width, style)]
    text, start = cell
    marks = [(first, last, f"{style}-word" if style else "strong") for first, last in spans or ()]
    parts = [(visible(part, newline=True), name) for part, name in styled_pieces(text, start, marks, style)]
    used = sum(cells(part) for part, _ in parts)
    if used > width:
        return [(pad(visible(text, newline=True), width), style)]
    return [*parts, (" " * (width - used), style)]

"""What each row of a sheet says, as parts: (text, style name).  Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctxctl.engine.textpairs import Span as Words
from ctxctl.labels import MINUS
from ctxctl.text import cells, pad, visible
from ctxctl.tui.diff.sheet import BOTH, OVER, Sheet, SheetRow
from ctxctl.tui.lines import Parts
from ctxctl.tui.spans import pieces

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
    """One row; `current`: it belongs to the change in front."""
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
    parts: Parts = [(_number(n, row.first, lay.digits) + " ", "gutter") for n in shown]
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
        parts.append((_number(number, row.first, lay.digits) + " ", "gutter"))
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
    parts = [(visible(part, newline=True), name) for part, name in pieces(text, start, marks, style)]
    used = sum(cells(part) for part, _ in parts)
    if used > width:
        return [(pad(visible(text, newline=True), width), style)]
    return [*parts, (" " * (width - used), style)]

"""The window by turn, small.  Plain Python."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Final

from ctxctl.labels import short
from ctxctl.tui.lines.layout import Parts
from ctxctl.tui.series import COMPACTED, Figures, Series, column_of

LEVELS: Final = "▁▂▃▄▅▆▇█"
LIMIT: Final = "┄"
CUT: Final = "╵"
"""A compaction."""

_FEW: Final = 4
"""Turns in a column up to which a compaction stands in place of its height: the turns before and after it
show what it did.
"""


def level(part: int, whole: int) -> str:
    """One cell that shows how full something is."""
    if whole <= 0 or part <= 0:
        return " " if part <= 0 else LEVELS[-1]
    return LEVELS[min(part * len(LEVELS) // whole, len(LEVELS) - 1)]


def sparkline(series: Series, current: int | None, width: int, rows: int = 1) -> list[Parts]:
    """Lines from the top down: a column for each turn, or for several, as high as what was sent.

    The top is the limit, or the most that was sent where none is known.  At the right stands the limit, as
    `┄` with its tokens.  What nobody billed is dimmed; `current` is painted reverse.
    """
    whole = series.over(0, len(series))
    top = max(whole.cap, whole.used)
    label = f"{LIMIT}{short(whole.cap)}" if whole.cap else ""
    room = width - len(label)
    if not len(series) or top <= 0 or room < 4:
        return [[(" " * width, "")]] * rows
    columns = series.columns(room)
    at = None if current is None else column_of(current, len(series), room)
    few = len(series) <= _FEW * len(columns)
    made = []
    for row in range(rows):
        cells = list(_cells(tuple(columns), top, rows, row, few))
        if at is not None:
            cells[at] = _cell(columns[at], top, rows, row, here=True, few=few)
        parts = _joined(cells)
        tail = room - len(columns)
        if row == 0:
            parts.append((label + " " * tail, "muted"))
        else:
            parts.append((" " * (tail + len(label)), ""))
        made.append(parts)
    return made


def _joined(cells: Parts) -> Parts:
    """Neighbours of one style as one part."""
    return [("".join(text for text, _ in run), style) for style, run in groupby(cells, itemgetter(1))]


@lru_cache(maxsize=8)
def _cells(
    columns: tuple[Figures, ...], top: int, rows: int, row: int, few: bool
) -> tuple[tuple[str, str], ...]:
    """A row without the place where one is: the same from turn to turn."""
    return tuple(_cell(figures, top, rows, row, here=False, few=few) for figures in columns)


def _cell(figures: Figures, top: int, rows: int, row: int, *, here: bool, few: bool) -> tuple[str, str]:
    """One column in one of the rows; row 0 is the upper one."""
    steps = len(LEVELS)
    filled = -(-figures.used * steps * rows // top) - steps * (rows - 1 - row)
    text = " " if filled <= 0 else LEVELS[min(filled, steps) - 1]
    over = bool(figures.cap) and figures.used * 20 >= figures.cap * 17
    style = "gauge-full" if over else "gauge" if figures.method == "reported" else "gauge-unbilled"
    if figures.marks & COMPACTED and ((few and row == rows - 1) or (rows > 1 and row == 0 and text == " ")):
        text, style = CUT, "warning"
    if rows > 1 and row == 0 and text == " " and figures.cap == top:
        text, style = LIMIT, "muted"
    return (text if not here or text != " " else "▁", f"{style}-here" if here else style)

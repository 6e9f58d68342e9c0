"""The window by turn, large: bars, what they may not go beyond, and what happened there.  Plain Python."""

from __future__ import annotations

from typing import Final, NamedTuple

from ctxctl.labels import BREAK, COMPACTION, SIGNS, WARNING, number, short
from ctxctl.tui.layout import Parts
from ctxctl.tui.series import BROKEN, COMPACTED, FLAGGED, LEVELS, OMITTED, Figures, Series, column_of

AXIS: Final = 8
"""Cells at the left for the tokens."""
_BROADEST: Final = 16
"""Cells of a turn's bar where there are few turns."""
_LIMIT: Final = "┄"
_RESERVE: Final = "\u2571"
COMPACTS: Final = "╌"
"""Where the runtime compacts by itself."""

MARKS: Final = ((WARNING, FLAGGED), (COMPACTION, COMPACTED), (BREAK, BROKEN), (SIGNS["omitted"], OMITTED))
"""What is shown below the bars, the most important first."""


class Layout(NamedTuple):
    """How a chart of some turns is laid out in some cells."""

    columns: int
    broad: int
    """Cells of a column."""
    rows: int
    """Lines of the bars."""
    marked: int
    """Lines of marks."""


def layout(count: int, width: int, height: int) -> Layout:
    """The layout for so many turns: one column for each, or one for several."""
    room = max(width - AXIS - 1, 1)
    columns = min(count, room)
    broad = min(max(room // columns, 1), _BROADEST) if columns else 1
    marked = len(MARKS) if height >= 16 else 1 if height >= 5 else 0
    return Layout(columns, broad, max(height - marked - 1, 1), marked)


def chart(series: Series, cursor: int, width: int, height: int) -> list[Parts]:
    """Lines from the top down: bars with the tokens at the left, marks, and the turns' numbers.

    `┄` is the limit, slashes what is reserved below it, `╌` where the runtime compacts by itself.  `▲` stands
    below the turn that `cursor` names; what nobody billed is dimmed.
    """
    shape = layout(len(series), width, height)
    if not shape.columns or width <= AXIS + 1:
        return [[(" " * width, "")]] * height
    columns = series.columns(shape.columns)
    whole = series.over(0, len(series))
    top = max(whole.limit, whole.cap, whole.threshold, whole.used, 1)
    here = column_of(cursor, len(series), shape.columns)
    made = [_bars(columns, shape, top, row, here, width) for row in range(shape.rows)]
    made += _marks(columns, shape, width)
    made.append(_numbers(len(series), shape, here, width))
    return made[:height]


def _bars(columns: list[Figures], shape: Layout, top: int, row: int, here: int, width: int) -> Parts:
    parts: Parts = [(_label(columns, shape, top, row), "muted"), ("│", "muted")]
    base = shape.rows - 1 - row
    for n, figures in enumerate(columns):
        text, style = _cell(figures, shape.rows, base, top)
        gap = text if text in (_LIMIT, _RESERVE, COMPACTS) else " "
        body = text * (shape.broad - 1) + gap if shape.broad > 2 else text * shape.broad
        parts.append((body, f"{style}-here" if n == here and style.startswith("gauge") else style))
    return _filled(parts, shape, width)


def _cell(figures: Figures, rows: int, base: int, top: int) -> tuple[str, str]:
    """What one column shows in the row that is `base` rows above the axis."""
    steps = len(LEVELS)
    filled = -(-figures.used * steps * rows // top) - steps * base
    if filled > 0:
        full = figures.cap or figures.limit
        style = "gauge" if figures.method == "reported" else "gauge-unbilled"
        near = "gauge-full" if full and figures.used * 20 >= full * 17 else style
        return LEVELS[min(filled, steps) - 1], near
    if figures.limit and _row(figures.limit, rows, top) == base:
        return _LIMIT, "warning"
    if figures.cap and not figures.limit and _row(figures.cap, rows, top) == base:
        return _LIMIT, "warning"
    if figures.threshold and _row(figures.threshold, rows, top) == base:
        return COMPACTS, "threshold"
    reserved = figures.limit and 0 < figures.cap < figures.limit
    if reserved and _row(figures.cap, rows, top) <= base < _row(figures.limit, rows, top):
        return _RESERVE, "reserve"
    return " ", ""


def _row(tokens: int, rows: int, top: int) -> int:
    """The row, from the axis up, in which an amount lies; an amount on an edge belongs below it."""
    return max((tokens * rows - 1) // top, 0)


def _label(columns: list[Figures], shape: Layout, top: int, row: int) -> str:
    """The tokens at the upper edge of a row, for a few of them, and for those of the limits."""
    base = shape.rows - 1 - row
    last = columns[-1]
    lines = (last.limit, last.cap, last.threshold)
    for tokens in lines:
        if tokens and _row(tokens, shape.rows, top) == base:
            return f"{short(tokens):>{AXIS - 1}} "
    every = max(shape.rows // 4, 2)
    if row == 0 or base % every == every - 1:
        near = any(
            t and abs(_row(t, shape.rows, top) - base) <= 1 for t in (last.limit, last.cap, last.threshold)
        )
        return " " * AXIS if near and row else f"{short(round(top * (base + 1) / shape.rows)):>{AXIS - 1}} "
    return " " * AXIS


def _marks(columns: list[Figures], shape: Layout, width: int) -> list[Parts]:
    made = []
    for line in range(shape.marked):
        signs = MARKS if shape.marked == 1 else MARKS[line : line + 1]
        parts: Parts = [(" " * AXIS, ""), (" ", "")]
        for figures in columns:
            sign = next((sign for sign, mark in signs if figures.marks & mark), " ")
            parts.append((sign + " " * (shape.broad - 1), "warning"))
        made.append(_filled(parts, shape, width))
    return made


def _numbers(count: int, shape: Layout, here: int, width: int) -> Parts:
    """The axis: the first and the last turn's number, and where the cursor is."""
    size = shape.columns * shape.broad
    line = ["─"] * size
    first, last = "1", number(count)
    if size > len(last) + 4:
        line[-len(last) :] = last
        line[: len(first)] = first
    line[min(here * shape.broad, size - 1)] = "▲"
    parts: Parts = [(" " * (AXIS - 5) + "turn ", "muted"), ("└", "muted"), ("".join(line), "muted")]
    return _filled(parts, shape, width)


def _filled(parts: Parts, shape: Layout, width: int) -> Parts:
    parts.append((" " * max(width - AXIS - 1 - shape.columns * shape.broad, 0), ""))
    return parts

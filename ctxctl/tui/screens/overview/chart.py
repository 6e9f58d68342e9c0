"""The overview's chart: a thread's window by turn or by step, its limits, and what happened there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctxctl.text import clip, pad
from ctxctl.tui.layout import Parts
from ctxctl.tui.series import BROKEN, COMPACTED, FLAGGED, LEVELS, OMITTED, Figures, Series, column_of
from ctxctl.tui.step_series import StepSeries
from ctxctl.wording import BREAK, COMPACTION, SIGNS, WARNING, number, short

AXIS: Final = 8
"""Cells at the left for the tokens."""
_BROADEST: Final = 16
"""Cells of a turn's bar where there are few turns."""
_TURNED: Final = 8
"""Lines of a chart by step from which on it says where turns begin."""
_LIMIT: Final = "┄"
_RESERVE: Final = "\u2571"
COMPACTS: Final = "╌"
"""Where the runtime compacts by itself."""
_LOW: Final = 6
"""How often the highest bar fits below the limit where the chart is not drawn up to that."""
_SCALED: Final = 6
"""Rows that a chart needs for one of them to say so."""

MARKS: Final = ((WARNING, FLAGGED), (COMPACTION, COMPACTED), (BREAK, BROKEN), (SIGNS["omitted"], OMITTED))
"""What is shown below the bars, the most important first."""


class Axis(NamedTuple):
    """What has a column in a chart: the turns of a thread, or its steps."""

    series: Series
    at: int
    """The place in front."""
    steps: StepSeries | None = None
    """The steps, where they have the columns."""
    starts: Sequence[tuple[int, int]] = ()
    """Then, by turn, the place of its first step, and its number."""


class Layout(NamedTuple):
    """How a chart of some turns is laid out in some cells."""

    columns: int
    broad: int
    """Cells of a column."""
    rows: int
    """Lines of the bars."""
    marked: int
    """Lines of marks."""
    turned: int = 0
    """Lines that say where turns begin, where the columns are steps."""


def chart_room(width: int) -> int:
    """The cells for bars in a chart of a width."""
    return max(width - AXIS - 1, 1)


def layout(count: int, width: int, height: int, *, turned: bool = False) -> Layout:
    """The layout for so many turns or steps: one column for each, or one for several.

    `turned`: with a line that says where turns begin, where there is room.
    """
    room = chart_room(width)
    columns = min(count, room)
    broad = min(max(room // columns, 1), _BROADEST) if columns else 1
    marked = len(MARKS) if height >= 16 else 1 if height >= 5 else 0
    turns = int(turned and height >= _TURNED)
    return Layout(columns, broad, max(height - marked - turns - 1, 1), marked, turns)


def chart(axis: Axis, width: int, height: int) -> list[Parts]:
    """Lines from the top down: bars with the tokens at the left, marks, and the numbers of turns or steps.

    `┄` is the limit, slashes what is reserved below it, `╌` where the runtime compacts by itself; where the
    highest bar would be less than a sixth of the limit, that is above the chart, which says so.  `▲` stands
    below the turn or step in front; what nobody billed is dimmed.
    """
    series = axis.series
    shape = layout(len(series), width, height, turned=axis.steps is not None)
    if not shape.columns or width <= AXIS + 1:
        return [[(" " * width, "")]] * height
    columns = series.columns(shape.columns)
    top = _top(columns, series.over(0, len(series)), shape)
    here = column_of(axis.at, len(series), shape.columns)
    made = [_bars(columns, shape, top, row, here, width) for row in range(shape.rows)]
    if top < (lowest := _lowest(columns))[0]:
        made[0] = _above(*lowest, width)
    made += _marks(columns, shape, width)
    made.append(_numbers(axis, shape, here, width))
    if shape.turned:
        made.append(_turn_starts(axis, shape, width))
    return made[:height]


def _top(columns: Sequence[Figures], whole: Figures, shape: Layout) -> int:
    """The tokens that the uppermost row ends at: the limit, unless the bars would be low before any line."""
    lines = [line for one in columns for line in (one.limit, one.cap, one.threshold) if line]
    if shape.rows >= _SCALED and lines and 0 < whole.used * _LOW < min(lines):
        return -(-whole.used * shape.rows // (shape.rows - 1))
    return max(whole.used, *lines, 1)


def _lowest(columns: Sequence[Figures]) -> tuple[int, str]:
    """The lowest limit, and how it is told; where there is none, the lowest point of compaction, else 0."""
    limits = [limit for one in columns if (limit := one.limit or one.cap)]
    if limits:
        return min(limits), f"{_LIMIT} the limit of"
    return min((one.threshold for one in columns if one.threshold), default=0), f"{COMPACTS} compaction at"


def _above(limit: int, what: str, width: int) -> Parts:
    """The uppermost row where the limit is above it: no bar comes up to there."""
    said = clip(f" {what} {number(limit)} is above this", width - AXIS - 1)
    return [(f"{'↑':>{AXIS - 1}} ", "muted"), ("│", "muted"), (pad(said, width - AXIS - 1), "warning")]


def _bars(columns: list[Figures], shape: Layout, top: int, row: int, here: int, width: int) -> Parts:
    parts: Parts = [(_label(columns, shape, top, row), "muted"), ("│", "muted")]
    base = shape.rows - 1 - row
    for n, figures in enumerate(columns):
        text, style = _cell(figures, shape.rows, base, top)
        gap = text if text in (_LIMIT, _RESERVE, COMPACTS) else " "
        shown = "gauge-front" if n == here and style.startswith("gauge") else style
        parts.append((text * (shape.broad - 1 if shape.broad > 2 else shape.broad), shown))
        if shape.broad > 2:
            parts.append((gap, style))
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
    """The tokens of the limits and of a few round amounts, each beside the row in which it lies."""
    base, rows = shape.rows - 1 - row, shape.rows
    last = columns[-1]
    lines = {_row(t, rows, top): t for t in (last.threshold, last.cap, last.limit) if t}
    amount = lines.get(base, 0)
    if not amount and not any(abs(at - base) <= 1 for at in lines):
        each = _round_up(top * max(rows // 4, 2) // rows)
        found = (base + 1) * top // (rows * each) * each
        amount = found if found * rows > base * top else 0
    amount = amount or (top if not row else 0)
    return f"{short(amount):>{AXIS - 1}} " if amount else " " * AXIS


def _round_up(amount: int) -> int:
    """The next of 1, 2, 5, 10, 20, …."""
    scale: int = 10 ** max(len(str(amount)) - 1, 0)
    return next(scale * n for n in (1, 2, 5, 10) if scale * n >= amount)


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


def _numbers(axis: Axis, shape: Layout, here: int, width: int) -> Parts:
    """The axis: what the columns are, the first and the last one's number, and where the cursor is."""
    size = shape.columns * shape.broad
    line = ["─"] * size
    first, last = "1", number(len(axis.series))
    at = min(here * shape.broad, size - 1)
    if size > len(last) + 4:
        line[: len(first)] = first
        if at < size - len(last):  # a number with a piece missing is another number
            line[-len(last) :] = last
    line[at] = "▲"
    unit = "turn" if axis.steps is None else "step"
    parts: Parts = [(f"{unit:>{AXIS - 1}} ", "muted"), ("└", "muted"), ("".join(line), "muted")]
    return _filled(parts, shape, width)


def _turn_starts(axis: Axis, shape: Layout, width: int) -> Parts:
    """Below an axis of steps, the numbers of the turns where they begin, as far as there is room for them."""
    size = shape.columns * shape.broad
    line = [" "] * size
    free = 0
    for start, turn in axis.starts:
        at = column_of(start, len(axis.series), shape.columns) * shape.broad
        said = number(turn)
        if at >= free and at + len(said) <= size:
            line[at : at + len(said)] = said
            free = at + len(said) + 1
    parts: Parts = [(f"{'turn':>{AXIS - 1}} ", "muted"), (" ", ""), ("".join(line), "muted")]
    return _filled(parts, shape, width)


def _filled(parts: Parts, shape: Layout, width: int) -> Parts:
    parts.append((" " * max(width - AXIS - 1 - shape.columns * shape.broad, 0), ""))
    return parts

"""The lines at the top: which trace and frame this is, what it holds, and how full it is.  Plain Python.

One of them is the strip: the stages of a step, each with its verdict.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from ctxctl.item_names import both_ends
from ctxctl.model.results import StageView, Step, Window
from ctxctl.model.vocab import STAGES, UsedMethod, Verdict
from ctxctl.report.bill_notes import miss_text, paid_text, partial_text
from ctxctl.report.sent import NOT_RECORDED
from ctxctl.text import cells
from ctxctl.tui.layout import Parts, Piece, one_line, spread
from ctxctl.tui.screens.turns.state import State
from ctxctl.tui.series import COMPACTED, LEVELS, Figures, Series, column_of
from ctxctl.tui.sizes import EXPECTED, NOTHING_KNOWN, capacity_of, is_unknown, method_of, share_of
from ctxctl.tui.thread_names import holds_id
from ctxctl.tui.thread_tree import Place, TurnEntry
from ctxctl.tui.watching import LOST, watching_phrase
from ctxctl.wording import LIMIT_SOURCES, NOT_KNOWN, methods, number, plural, progress, short


def sent_pieces(window: Window) -> list[Piece]:
    """Phrases for what was sent, what is free and who says so; each is true without the others."""
    method, full = method_of(window), capacity_of(window)
    style = "warning" if window.over else "strong"
    sign = EXPECTED if method == "expected" else ""
    of = "" if full is None else f" of {number(full)}"
    done = " recorded (no bill read)" if method == "recorded" else " sent"
    if is_unknown(window.used, window.uncounted, method):
        return _nothing_known(window, full)
    pieces = [Piece(f"{sign}{number(window.used)}{of}{done}", style, 10)]
    if method == "expected":
        error = window.used_error
        pieces.append(Piece("expected" + (f" ±{number(error)}" if error is not None else ""), "muted", 8))
    if full is None:
        return [*pieces, Piece("limit unknown", "muted", 4), *_uncounted(window, method)]
    least, most = ("at least ", "at most ") if method == "recorded" else (sign, sign)
    part = share_of(window, full)
    pieces.append(Piece("" if part is None else least + part, style, 6))
    if window.over:
        pieces.append(Piece(f"over by {least}{number(window.over)}", "warning", 9))
    elif window.free is not None:
        pieces.append(Piece(f"{most}{number(window.free)} free", "", 5))
    pieces += _uncounted(window, method)
    if window.limit_source is not None:
        pieces.append(Piece(f"limit: {LIMIT_SOURCES[window.limit_source]}", "muted", 4))
    return pieces


def _nothing_known(window: Window, full: int | None) -> list[Piece]:
    """Phrases for a request of which nothing is recorded that could be counted."""
    pieces = [Piece(NOTHING_KNOWN, "warning", 10), *_uncounted(window, "recorded")]
    if full is not None:
        pieces.append(Piece(f"limit {number(full)}", "", 5))
    if window.limit_source is not None:
        pieces.append(Piece(f"limit: {LIMIT_SOURCES[window.limit_source]}", "muted", 4))
    return pieces


def _uncounted(window: Window, method: UsedMethod) -> list[Piece]:
    """A phrase for what nobody counted; it is a warning where no bill includes it."""
    if not window.uncounted:
        return []
    text = f"{number(window.uncounted)} uncounted"
    return [Piece(text, "muted", 2) if method == "reported" else Piece(text, "warning", 7)]


def content_pieces(window: Window) -> list[Piece]:
    """Phrases for what of the request is recorded and what is not; none where nothing was billed."""
    if window.unrecorded is None:
        return []
    pieces = [Piece(f"recorded {number(window.recorded)}", "muted", 3)]
    if window.unrecorded < 0:
        than = "billed" if window.used_method == "reported" else "expected"
        return [*pieces, Piece(f"{number(-window.unrecorded)} more than {than}", "warning", 3)]
    return [*pieces, Piece(f"{NOT_RECORDED} {number(window.unrecorded)}", "muted", 3)]


LIMIT: Final = "┄"
CUT: Final = "╵"
"""A compaction."""

BY_STEP: Final = " by step"
"""Behind the limit where the columns are steps."""
_PLACE: Final = 36
_NAME: Final = 12
"""Cells that turn, step and thread need beside the trace's name, and that it has at least."""
_SESSION: Final = 40
"""Cells of a session's name."""
_NAMED: Final = 24
"""Cells from which on there is room to say it."""

_FEW: Final = 4
"""Turns in a column up to which a compaction stands in place of its height: the turns before and after it
show what it did.
"""


def sparkline(series: Series, current: int | None, width: int, rows: int = 1, unit: str = "") -> list[Parts]:
    """Lines from the top down: a column for each turn, or for several, as high as what was sent.

    The top is the limit, or the most that was sent where none is known.  At the right stands the limit, as
    `┄` with its tokens, and `unit`: what has a column, where that is not a turn.  What nobody billed is
    dimmed; `current` has a ground of its own, so that its height can still be told.
    """
    whole = series.over(0, len(series))
    top = max(whole.cap, whole.used)
    label = f"{LIMIT}{short(whole.cap)}" if whole.cap else ""
    if width >= _NAMED:
        label += unit
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
    return text, f"{style}-here" if here else style


_SPARK: Final = 120
_LEAST: Final = 6
"""Cells that the window by turn takes at most and at least."""
_SIDE: Final = 14
_SAID: Final = 44
"""Cells that are left to the window by turn, where as many are left to say how full it is."""


def head(state: State, width: int, *, tall: bool = False) -> list[Parts]:
    """What is open and where in it; the window by turn and its use; the stages of the step.

    Three lines, four where it is `tall`.
    """
    step = None if state.detail is None else state.detail.step
    return [_where(state, width), *_use(state, width, 2 if tall else 1), stage_strip(step, width)]


def _where(state: State, width: int) -> Parts:
    name = state.trace.name.rpartition("/")[2] or state.trace.name
    left = [Piece(both_ends(one_line(name), max(width - _PLACE, _NAME)), "name", 9)]
    if state.trace.format not in ("native", ""):
        left.append(Piece(state.trace.format, "muted", 2))
    if state.trace.late:
        left.append(Piece(f"{plural(state.trace.late, 'late event')} · p", "warning", 8))
    entry, step = state.entry, None if state.detail is None else state.detail.step
    right: list[Piece] = []
    if state.trace.policy != "recorded":
        left.append(Piece(f"policy {state.trace.policy}", "warning", 8))
    if state.trace.live:
        left.append(_following(state))
        watching = state.trace.watching
        if watching is not None:
            lost = watching.state in LOST
            left.append(Piece(watching_phrase(watching), "warning" if lost else "muted", 10 if lost else 8))
    if entry is not None:
        tree = state.list.turns.tree
        if len(tree.sessions) > 1:
            left.append(Piece(tree.session_name(entry.session, _SESSION), "muted", 1))
        elif entry.session and not holds_id(entry.session):
            left.append(Piece(entry.session, "muted", 1))
        left.append(Piece(tree.names.of(entry.session, entry.thread), "thread", 7))
        total = state.list.turns.total(entry)
        right.append(Piece(f"turn {number(entry.turn)}/{number(total)}", "strong", 10))
        right.append(Piece(f"step {number(_step(state, entry))}/{number(entry.steps)}", "", 8))
        right.append(Piece(_cost(state, entry), "", 5))
    if step is not None:
        left.append(Piece(step.model or "", "", 6))
        mode = step.mode if step.mode_declared else f"{step.mode} (inferred)"
        right.append(Piece(mode, "muted", 4))
    methods_said = "" if step is None else methods(step.window.by_method)
    right.append(Piece(methods_said or state.trace.encoding, "muted", 3))
    return spread(left, right, width)


def _cost(state: State, entry: TurnEntry) -> str:
    """What the turn, or the step, under the cursor cost; empty where nobody knows."""
    target = state.target
    if not state.costs.is_priced or target is None:
        return ""
    if target.whole_turn:
        paid = state.costs.sum((entry.session, entry.thread, entry.turn), entry.steps)
    else:
        paid = state.costs.step(target.ordinal)
    said = NOT_KNOWN if paid is None else paid_text(paid)
    return "" if said == NOT_KNOWN else said


def _following(state: State) -> Piece:
    """Whether the cursor goes with the newest turn, and what it has missed otherwise."""
    if state.following:
        return Piece("following", "good", 9)
    if state.newer:
        return Piece(f"+{plural(state.newer, 'newer turn')} · F", "warning", 9)
    return Piece("F follows", "muted", 5)


def _step(state: State, entry: TurnEntry) -> int:
    """Which of the turn's steps the frame shown is, from 1."""
    target = state.target
    if target is None or target.whole_turn or target.ordinal >= len(state.list.turns.rows):
        return entry.steps
    return state.list.turns.rows[target.ordinal].step


def _use(state: State, width: int, rows: int) -> list[Parts]:
    """The window by turn, and beside it how full it is now."""
    step = None if state.detail is None else state.detail.step
    said = _reading(state) + ([] if step is None else sent_pieces(step.window))
    held = [] if step is None else content_pieces(step.window)
    if rows == 1 and _needed(said + held) <= width - _SIDE:
        said, held = said + held, []
    needed = max(_needed(said), _needed(held) if rows > 1 else 0)
    right = spread([], said, max(min(needed, max(width - _SIDE, min(width, _SAID))), width - _SPARK))
    if rows == 1:
        right = _tight(right)
    size = sum(cells(text) for text, _ in right)
    lines = _spark(state, width - size - 1, rows)
    last = [(" ", ""), *lines[-1], *right] if width > size else right
    return [*([(" ", ""), *line, *spread([], held, size)] for line in lines[:-1]), last]


def _tight(parts: Parts) -> Parts:
    """Phrases at the right edge without the blanks before them, but for two: those are the chart's."""
    said = next((n for n, (text, _) in enumerate(parts) if text.strip()), len(parts))
    blanks = sum(cells(text) for text, _ in parts[:said])
    return [(" " * min(blanks, 2), ""), *parts[said:]]


def _needed(pieces: list[Piece]) -> int:
    return sum(cells(piece.text) + 2 for piece in pieces) + 2


def _spark(state: State, width: int, rows: int) -> list[Parts]:
    place = state.place
    if place is None or width < _LEAST:
        return [[(" " * max(width, 0), "")]] * rows
    thread = state.list.turns.tree.thread_of(place.turn)
    steps = thread.steps_for(width)
    if steps is not None:
        return sparkline(steps.series, steps.at(_ordinal_at(state, place)), width, rows, BY_STEP)
    return sparkline(thread.series, bisect_left(thread.turns, place.turn), width, rows)


def _ordinal_at(state: State, place: Place) -> int:
    """The step under the cursor, or the last one of the turn there."""
    entry = state.list.turns.entries[place.turn]
    return entry.last if place.step is None or place.step < 0 else entry.ordinals[place.step]


def _reading(state: State) -> list[Piece]:
    """How much of the trace is read, until all of it is."""
    if state.phase == "opening":
        watched = state.trace.watching is not None
        return [] if watched else [Piece("opening the trace…", "muted", 9)]
    if state.progress is None:
        return []
    return [Piece(f"reading the trace… {progress(state.progress)}", "muted", 9)]


# The stages ------------------------------------------------------------------------------------------------

VERDICTS: Final[dict[Verdict, str]] = {
    "recorded": "✓",
    "matches": "✓",
    "differs": "≠",
    "cannot_tell": "?",
    "not_recorded": "·",
}
"""What a verdict looks like without colour."""

_STYLES: Final[dict[Verdict, str]] = {
    "recorded": "good",
    "matches": "good",
    "differs": "warning",
    "cannot_tell": "muted",
    "not_recorded": "muted",
}


class _Words(NamedTuple):
    """A stage in words of three lengths."""

    whole: str
    brief: str
    least: str


_WORDS: Final[dict[str, _Words]] = {
    "surface": _Words("surface", "surf", "s"),
    "selection": _Words("selected", "sel", "l"),
    "budget": _Words("budget", "bud", "b"),
    "window": _Words("window", "win", "w"),
    "assembly": _Words("assembly", "asm", "a"),
    "injection": _Words("injected", "inj", "i"),
    "evidence": _Words("billed", "bill", "$"),
}


class _Form(NamedTuple):
    """How much is said."""

    length: int
    """Which of a stage's words."""
    figures: int
    """2: all figures; 1: the most telling ones, short; 0: none."""
    arrow: str


_FORMS: Final = (
    _Form(0, 2, " ─▶ "),
    _Form(0, 2, " ▶ "),
    _Form(0, 1, " ▶ "),
    _Form(1, 1, " ▶ "),
    _Form(1, 0, " ▶ "),
    _Form(1, 0, "▶"),
    _Form(2, 0, " "),
    _Form(2, 0, ""),
)
"""From the most that can be said to the least: words go before verdicts."""


def stage_strip(step: Step | None, width: int) -> Parts:
    """All stages from left to right; where there is little room, words are shortened, then figures go."""
    if step is None:
        return [(" " * width, "")]
    room = max(width - 2, 0)
    made = next((made for form in _FORMS if _size(made := _stages(step, form)) <= room), None)
    if made is None:
        return [(" " * width, "")]
    return [(" " * min(width, 1), ""), *made, (" " * (width - min(width, 1) - _size(made)), "")]


def _size(parts: Parts) -> int:
    return sum(cells(text) for text, _ in parts)


def _stages(step: Step, form: _Form) -> Parts:
    parts: Parts = []
    for name in STAGES:
        view = step.stages.get(name, StageView("not_recorded"))
        if parts:
            parts.append((form.arrow, "muted"))
        style, sign = _STYLES[view.verdict], VERDICTS[view.verdict]
        if name == "budget" and step.window.over and view.verdict != "differs":
            style, sign = "warning", "!"  # a tick beside a share above 100 % would be read as "all is well"
        word = _WORDS[name][form.length]
        said = _figure(name, view, step, form.figures) if form.figures else ""
        parts.append((word, "muted" if view.verdict == "not_recorded" else ""))
        parts.append(((" " if form.length < 2 else "") + sign, style))
        if said:
            parts.append((f" {said}" if form.figures == 2 else said, ""))
    return parts


def _figure(name: str, view: StageView, step: Step, figures: int) -> str:
    """The number that tells most of a stage."""
    facts = view.facts
    if name == "surface":
        return _count(facts.get("items") or facts.get("sources"))
    if name == "selection":
        return _count(facts.get("selected"))
    if name == "budget":
        return _share(step)
    if name == "assembly":
        return _count(facts.get("blocks")) if figures == 2 else ""
    if name == "evidence":
        return _bill(step, whole=figures == 2)
    return ""


def _count(value: Any) -> str:
    return number(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _share(step: Step) -> str:
    window = step.window
    full = capacity_of(window)
    sign = {"reported": "", "expected": EXPECTED, "recorded": "≥"}[method_of(window)]
    part = share_of(window, full) if full else None
    return "" if part is None else sign + part


def _bill(step: Step, *, whole: bool) -> str:
    """What the provider billed, and how much of it came from its cache."""
    usage = step.usage
    if usage is None or usage.reported_input is None:
        return ""
    how = "" if usage.provenance == "native" else f"({usage.provenance}) " if whole else "≈"
    text = how + (number if whole else short)(usage.reported_input)
    if whole and usage.reported_cached is not None:
        text += f", {number(usage.reported_cached)} cached"
    if whole and step.cache.miss is not None:
        text += f", {miss_text(step.cache.miss)}"
    if whole and (partial := partial_text(usage)) is not None:
        text += f"; {partial}"
    return text

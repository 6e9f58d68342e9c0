"""The whole trace on one screen: what is shown, and what each line says.  Plain Python.

The largest part is the chart, the window by turn, or by step where turns are few: bars, what they may not go
beyond, and what happened there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.report.bill_notes import paid_text
from ctxctl.text import cells, clip
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, one_line, spread
from ctxctl.tui.outline import Turns, step_entry
from ctxctl.tui.screens.overview.chart import COMPACTS, Axis
from ctxctl.tui.screens.turns.view import State
from ctxctl.tui.series import (
    Figures,
    Series,
    column_of,
    turns_of,
)
from ctxctl.tui.sizes import NOTHING_KNOWN, amount, compaction_phrase
from ctxctl.tui.thread_tree import Thread, ThreadTree, TurnEntry
from ctxctl.wording import (
    APPROXIMATE,
    BREAK,
    COMPACTION,
    NOT_KNOWN,
    SIGNS,
    number,
    plural,
    progress,
    share,
    short,
    signed,
)


@dataclass(frozen=True, slots=True)
class View:
    """Which thread is in front, and which of its turns."""

    threads: tuple[tuple[Thread, int], ...] = ()
    """Threads with how many others each is below, parents before what they set off."""
    line: int = 0
    """The thread in front, by its place in the table."""
    turn: int = 0
    """By its place in the thread."""
    ordinal: int | None = None
    """The step in front; None: the last one of the turn."""
    told: frozenset[str] = frozenset()
    """The columns of the table in which something stands for any thread."""

    @property
    def thread(self) -> Thread | None:
        """The thread in front."""
        return self.threads[self.line][0] if self.threads else None

    @property
    def at(self) -> int:
        """The turn in front, of those that there still are: one that was being written may be gone."""
        return min(self.turn, max(len(self.thread.turns) - 1, 0)) if self.thread else 0


def opened(state: State) -> View:
    """The overview, with the turn in front that is looked at."""
    threads = _listed(state.list.turns)
    view = View(threads, told=_told(threads))
    place = state.place
    if place is None:
        return view
    own = state.list.turns.tree.thread_of(place.turn)
    line = next(n for n, (thread, _) in enumerate(view.threads) if thread is own)
    step = place.step if place.step is not None and place.step >= 0 else None
    ordinal = None if step is None else state.list.turns.entries[place.turn].ordinals[step]
    return replace(view, line=line, turn=bisect_left(own.turns, place.turn), ordinal=ordinal)


def grown(view: View, turns: Turns) -> View:
    """The view when more is known; the thread in front stays, if it is still one."""
    threads = _listed(turns)
    line = next((n for n, (thread, _) in enumerate(threads) if thread is view.thread), 0)
    known = view.ordinal is not None and view.ordinal < len(turns.rows)
    ordinal = view.ordinal if known else None
    return _clamped(replace(view, threads=threads, line=line, ordinal=ordinal, told=_told(threads)))


def to_thread(view: View, line: int) -> View:
    """The view with another thread in front, at its last turn."""
    if not 0 <= line < len(view.threads) or line == view.line:
        return view
    return replace(view, line=line, turn=max(len(view.threads[line][0].turns) - 1, 0), ordinal=None)


def to_turn(view: View, by: int) -> View:
    """Go some turns on, or back."""
    return _clamped(replace(view, turn=view.turn + by, ordinal=None))


def to_column(view: View, turns: Turns, by: int, room: int) -> View:
    """Go some columns of a chart of `room` cells on, or back: to what is of note in it, else to its first."""
    thread = view.thread
    if thread is None or not thread.turns:
        return view
    axis = axis_of(view, turns, room)
    count = len(axis.series)
    column = min(max(column_of(axis.at, count, room) + by, 0), min(room, count) - 1)
    held = turns_of(column, count, room)
    noted = (n for n in held if axis.series.over(n, n + 1).marks) if len(held) <= _SOUGHT else iter(())
    found = next(noted, held.start)
    if axis.steps is None:
        return replace(view, turn=found, ordinal=None)
    ordinal = axis.steps.ordinals[found]
    turn = bisect_right(axis.starts, found, key=itemgetter(0)) - 1
    return replace(view, turn=max(turn, 0), ordinal=ordinal)


def to_edge(view: View, last: bool) -> View:
    """Go to the first turn or the last."""
    return _clamped(replace(view, turn=len(view.thread.turns) if last and view.thread else 0, ordinal=None))


def axis_of(view: View, turns: Turns, room: int) -> Axis:
    """What a chart of so many cells shows of the thread in front."""
    thread = view.thread
    if thread is None or not thread.turns:
        return Axis(Series(), 0)
    steps = thread.steps_for(room)
    if steps is None:
        return Axis(thread.series, view.at)
    entries = [turns.entries[turn] for turn in thread.turns]
    ordinal = entries[view.at].last if view.ordinal is None else view.ordinal
    starts = [(steps.at(entry.ordinals[0]), entry.turn) for entry in entries]
    return Axis(steps.series, steps.at(ordinal), steps, starts)


_SOUGHT: Final = 2000
"""Turns in a column that are looked through for one of note."""


def _clamped(view: View) -> View:
    count = len(view.thread.turns) if view.thread else 0
    return replace(view, turn=min(max(view.turn, 0), max(count - 1, 0)))


def _listed(turns: Turns) -> tuple[tuple[Thread, int], ...]:
    """All threads, each below the one that set it off."""
    tree = turns.tree
    below: dict[int | None, list[Thread]] = {}
    for thread in tree.threads.values():
        parent = None if thread.at is None else id(tree.thread_of(thread.at.turn))
        below.setdefault(parent, []).append(thread)
    made: list[tuple[Thread, int]] = []
    left = [(thread, 0) for thread in reversed(below.get(None, []))]
    while left:
        thread, depth = left.pop()
        made.append((thread, depth))
        left += [(kid, depth + 1) for kid in reversed(below.get(id(thread), []))]
    return tuple(made)


# Lines ------------------------------------------------------------------------------------------------------


def total_lines(state: State, view: View, width: int) -> list[Parts]:
    """Two lines: what the trace holds, and what happened in it, of what is read so far."""
    threads = [thread for thread, _ in view.threads]
    trace, most = state.trace, _highest(threads)
    left = [Piece(trace.name.rpartition("/")[2] or trace.name, "name", 9), Piece("overview", "strong", 8)]
    if state.progress is not None:
        left.append(Piece(f"reading the trace… {progress(state.progress)}", "warning", 9))
    sessions = len({thread.name[0] for thread in threads})
    steps, freed = sum(t.steps for t in threads), sum(t.freed for t in threads)
    right = [
        Piece(plural(sessions, "session"), "", 4),
        Piece(plural(len(threads), "thread"), "", 5),
        Piece(plural(len(state.list.turns.entries), "turn"), "strong", 7),
        Piece(plural(steps, "step"), "", 6),
    ]
    paid = state.costs.sum(None, steps) if state.costs.is_priced else None
    happened = [
        Piece(_peak(most) if threads else "", "strong", 10),
        Piece("" if paid is None else paid_text(paid), "strong", 10),
        *_compacts(state, view),
        Piece(f"{signed(sum(t.new for t in threads))} new" if most.used else "", "new", 8),
        Piece(f"{number(-freed)} freed" if freed else "", "freed", 8),
        *_turns_with(COMPACTION, sum(t.compactions for t in threads), "compactions", 6),
        *_turns_with(BREAK, sum(t.breaks for t in threads), "cache breaks or misses", 5),
        *_turns_with("!", sum(t.warnings for t in threads), "warnings", 7),
        *_turns_with(SIGNS["omitted"], sum(t.omissions for t in threads), "omissions", 4),
    ]
    return [spread(left, right, width), spread(happened, [], width)]


def _turns_with(sign: str, turns: int, what: str, rank: int) -> list[Piece]:
    """How many turns have something, where any has."""
    return [Piece(f"{sign} {plural(turns, 'turn')} with {what}", "", rank)] if turns else []


def _peak(most: Figures) -> str:
    """The most that was sent; where nothing was counted and nothing billed, that it is not known."""
    if not most.used:
        return NOTHING_KNOWN
    done = "recorded" if most.method == "recorded" else "sent"
    return f"peak {amount(most.used, most.method, content=False)} {done}"


def _highest(threads: list[Thread]) -> Figures:
    """The most that any thread sent, in tokens, and whether that was billed."""
    found = [thread.series.over(0, len(thread.turns)) for thread in threads]
    return max(found, key=lambda figures: figures.used, default=Figures())


def _most(figures: Figures, billed: bool, *, brief: bool = False) -> str:
    """The most that was sent; among billed sizes, one that nobody billed has a sign."""
    return amount(figures.used, figures.method, brief=brief, content=billed)


def _compacts(state: State, view: View) -> list[Piece]:
    """The line of the thread in front at which its runtime compacts by itself."""
    thread = view.thread
    if thread is None or not thread.turns:
        return []
    entry = state.list.turns.entries[thread.turns[view.at]]
    if entry.threshold is None:
        return []
    return [Piece(f"{COMPACTS} {compaction_phrase(entry.threshold, entry.threshold_source)}", "threshold", 9)]


def turn_in_front(state: State, view: View, width: int, room: int) -> Parts:
    """The turn or step under the cursor in one line, and the column's if it holds several.

    `room`: cells that the chart has for bars.
    """
    thread, turns = view.thread, state.list.turns
    if thread is None or not thread.turns:
        return spread([Piece("no turn is known yet", "muted")], [], width)
    entry = turns.entries[thread.turns[view.at]]
    axis = axis_of(view, turns, room)
    held = turns_of(column_of(axis.at, len(axis.series), room), len(axis.series), room)
    if axis.steps is None:
        paid = state.costs.sum((entry.session, entry.thread, entry.turn), entry.steps)
        left = [Piece(f"turn {number(entry.turn)}", "strong", 10), *_figures(entry)]
    else:
        row = turns.rows[axis.steps.ordinals[axis.at]]
        paid = state.costs.step(row.ordinal)
        left = [Piece(f"step {row.turn}.{row.step}", "strong", 10), *_figures(step_entry(row))]
    if paid is not None and state.costs.is_priced:
        left.append(Piece(paid_text(paid), "", 8))
    if len(held) > 1:
        most = _most(axis.series.over(held.start, held.stop), turns.tree.billed > 0)
        unit = "turn" if axis.steps is None else "step"
        left.append(Piece(f"▲ {plural(len(held), unit)}, up to {most}", "muted", 4))
    return spread(left, [Piece(one_line(entry.title or ""), "muted", 3)], width)


def _figures(entry: TurnEntry) -> list[Piece]:
    part = f" ({share(entry.used, entry.cap)} of {number(entry.cap)})" if entry.cap else ""
    how = "recorded" if entry.method == "recorded" else "sent"
    over = entry.cap is not None and entry.used > entry.cap
    peak = amount(entry.peak, entry.peak_method, content=entry.method != "recorded")
    signs = [
        ("! over", over),
        ("! warning", entry.flagged and not over),
        (f"{COMPACTION} compaction", entry.compacted),
        (f"{BREAK} cache break", entry.broken),
        (f"{BREAK} missed {number(entry.missed)}", entry.missed > 0),
        (f"{SIGNS['omitted']} {entry.omitted} omitted", entry.omitted > 0),
    ]
    known = entry.used or entry.method != "recorded"
    size = f"{amount(entry.used, entry.method, content=False)} {how}{part}"
    return [
        Piece(size if known else NOTHING_KNOWN, "", 9),
        Piece(f"peak {peak}" if entry.peak > entry.used else "", "", 8),
        Piece(f"{signed(entry.new)} new" if known else "", "new", 7),
        Piece(f"{number(-entry.freed)} freed" if entry.freed else "", "freed", 7),
        *(Piece(words, "warning", 8) for words, applies in signs if applies),
    ]


_COLUMNS: Final = {
    "turns": 7, "steps": 7, "peak": 8, "new": 8, "freed": 8,
    COMPACTION: 5, BREAK: 5, "!": 5, SIGNS["omitted"]: 5, "cost": 11,
    "input": 9, "cached": 9, "output": 9, "model": 18,
}  # fmt: skip
"""Columns of the table, and the cells of each at least."""
_WANTED: Final = (
    "turns", "steps", "peak", "new", "freed", COMPACTION, BREAK, "!", "cost", SIGNS["omitted"],
    "model", "input", "cached", "output",
)  # fmt: skip
"""The same, the most wanted first."""
_THREAD: Final = 18
"""Cells of a thread's name at least, and"""
_NAMED: Final = 40
"""from which on the names of models have the rest."""


def _told(threads: Sequence[tuple[Thread, int]]) -> frozenset[str]:
    """The columns in which something stands for any of the threads, but for those that always do."""
    found: set[str] = set()
    for thread, _ in threads:
        told = (
            ("freed", thread.freed), (COMPACTION, thread.compactions), (BREAK, thread.breaks),
            ("!", thread.warnings), (SIGNS["omitted"], thread.omissions), ("model", thread.models),
            ("input", thread.reported is not None), ("cached", thread.cached is not None),
            ("output", thread.answered is not None),
        )  # fmt: skip
        found.update(name for name, any_ in told if any_)
    return frozenset(found)


def _columns(view: View, state: State, width: int) -> dict[str, int]:
    """Which columns there is room for, with their cells; what would be empty gives its room to others."""
    kept = view.told | {"turns", "steps", "peak", "new"} | ({"cost"} if state.costs.is_priced else set())
    left = width - _THREAD - 1
    found: dict[str, int] = {}
    for name in _WANTED:
        if name in kept and _COLUMNS[name] <= left:
            found[name] = _COLUMNS[name]
            left -= _COLUMNS[name]
    if "model" in found:
        found["model"] += max(left - (_NAMED - _THREAD), 0)
    return {name: found[name] for name in _COLUMNS if name in found}


def table_heading(view: View, state: State, width: int) -> Parts:
    """The names of the columns of threads."""
    columns = [Column(" thread", "muted")]
    for name, size in _columns(view, state, width).items():
        columns.append(_cell_of(name, name, "muted", size))
    return laid_out([*columns, Column("", "", 1)], width)


def _cell_of(name: str, text: str, style: str, size: int) -> Column:
    """A cell of a column: figures stand at its right, names of models at its left."""
    if name != "model":
        return Column(text, style, size, right=True)
    return Column(text, style, size, fit=lambda room: "  " + clip(text, room - 2))


def thread_line(view: View, line: int, width: int, state: State) -> Parts:
    """The line of a thread: its name below what set it off, and its sums."""
    thread, depth = view.threads[line]
    paid = state.costs.sum(thread.name, thread.steps)
    most = thread.series.over(0, len(thread.turns))
    figures = {
        "turns": number(len(thread.turns)),
        "steps": number(thread.steps),
        "peak": _most(most, thread.reported is not None, brief=True) if most.used else NOT_KNOWN,
        "new": signed(thread.new, brief=True) if most.used else NOT_KNOWN,
        "freed": short(-thread.freed) if thread.freed else "·" if most.used else NOT_KNOWN,
        COMPACTION: str(thread.compactions or "·"),
        BREAK: str(thread.breaks or "·"),
        "!": str(thread.warnings or "·"),
        SIGNS["omitted"]: str(thread.omissions or "·"),
        "cost": "" if paid is None else paid_text(paid),
        "input": _known(thread.reported),
        "cached": _known(thread.cached),
        "output": (APPROXIMATE if thread.partial else "") + _known(thread.answered),
        "model": one_line(_models(thread)),
    }
    styles = {"new": "new", "freed": "freed", "!": "warning", "model": "muted"}
    lead = "  " * min(depth, 4) + ("↳" if depth else "")
    shown = _columns(view, state, width)
    room = width - sum(shown.values()) - 2 - cells(lead)
    name = lead + _name(state.list.turns.tree, thread, depth, room)
    columns = [Column(f" {name}", "thread" if depth else "strong")]
    for column, size in shown.items():
        text = figures[column]
        style = "muted" if text in ("·", NOT_KNOWN) else styles.get(column, "")
        columns.append(_cell_of(column, text, style, size))
    return laid_out([*columns, Column("", "", 1)], width)


def _name(tree: ThreadTree, thread: Thread, depth: int, room: int) -> str:
    """The thread, with its session where there are several."""
    session, name = thread.name
    shown = one_line(tree.names.of(session, name))
    if depth:
        said = shown if name != MAIN_THREAD else tree.session_name(session, room)
        return said + ("" if thread.recorded else " ≈")
    if len(tree.sessions) < _SEVERAL:
        return shown
    return f"{tree.session_name(session, max(room - 1 - cells(shown), _SESSION))} {shown}"


def _models(thread: Thread) -> str:
    names = sorted(thread.models, key=lambda name: (-thread.models[name], name))
    return ", ".join(names)


def _known(tokens: int | None) -> str:
    return "·" if tokens is None else short(tokens)


_SESSION: Final = 12
"""Least cells of a session's name beside its threads."""
_SEVERAL: Final = 2

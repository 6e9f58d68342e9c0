"""The lines of the list of turns: turns, their steps, sessions.  Plain Python."""

from __future__ import annotations

from typing import Final, Protocol

from ctxctl.labels import BREAK, COMPACTION, SIGNS, WRITTEN, plural, short, signed
from ctxctl.model.outline import Row
from ctxctl.model.vocab import MAIN_THREAD, UsedMethod
from ctxctl.tui.lines.layout import Column, Parts, laid_out, one_line
from ctxctl.tui.nest import HEADING, Place
from ctxctl.tui.outline import TurnEntry, warned
from ctxctl.tui.sizes import amount
from ctxctl.tui.spark import level
from ctxctl.tui.state import State, row_of

_TIGHT: Final = 20
"""Cells below which a step's line keeps its number and its tokens only."""
_COUNTED: Final = 62
"""Cells from which a turn's line says how many items were added, updated …"""
_OVER: Final = frozenset({"over_budget", "still_over_budget"})
"""Flags that say it already."""
_DEEP: Final = 3
"""Levels that are shown by indenting; deeper ones stand below each other."""


def turn_line(state: State, line: int, width: int) -> Parts:
    """One line of the list of turns: a turn, a step of an unfolded one, or a session."""
    place = state.list.at(line)
    entry = state.list.turns.entries[place.turn]
    if place.step == HEADING:
        return _session_line(state, entry, width)
    depth = min(state.list.turns.nest.depth(place.turn), _DEEP)
    if place.step is not None:
        return _step_line(state, entry, place, width, depth)
    full = state.list.turns.peak if entry.cap is None else entry.cap
    digits = max(len(str(state.list.turns.highest)), 2)
    indent = (2 if width >= _TIGHT else 1) * depth
    signs = [
        ("m", _holds(entry, state.marked)),
        ("!", entry.flagged),
        (COMPACTION, entry.compacted),
        (BREAK, entry.rewritten),
        (SIGNS["omitted"], entry.omitted > 0 and width < _COUNTED),
    ]
    columns = [
        Column(" " * indent + _fold(state, place.turn), "mark", 1 + indent),
        Column(str(entry.turn), "number", digits + 1, right=True),
        Column(" " + level(entry.used, full), _heat(entry, entry.cap), 2),
        *_signs(signs, width),
        *_written(state, entry.last, width),
        Column(_turn_title(state, place.turn, entry), "" if entry.thread == MAIN_THREAD else "thread"),
    ]
    if width >= _COUNTED:
        columns.append(Column(_counts(entry), "muted", 14, right=True))
    return laid_out(columns + _amounts(state, entry, width), width)


def _holds(entry: TurnEntry, ordinal: int | None) -> bool:
    return ordinal is not None and entry.ordinals[0] <= ordinal <= entry.last and ordinal in entry.ordinals


def _fold(state: State, turn: int) -> str:
    """Whether there is something to unfold: a thread's further turns, or a turn's steps."""
    listing = state.list
    thread = listing.leads(turn)
    if thread is not None and thread.name in listing.shut:
        return "▸"
    if listing.turns.entries[turn].steps > 1:
        return "▾" if listing.is_unfolded(turn) else "▸"
    return "▾" if thread is not None else " "


def _signs(signs: list[tuple[str, bool]], width: int) -> list[Column]:
    """The first signs of those that apply, as many as there is room for."""
    room = 2 if width < _COUNTED else 3
    found = "".join(sign for sign, applies in signs if applies)[:room]
    return [Column(found, "warning", room + 1)]


def _written(state: State, ordinal: int, width: int) -> list[Column]:
    """The sign of a step that is still being written, or of a turn with such a step at its end."""
    if not state.trace.live or width < _TIGHT:
        return []
    return [Column(WRITTEN if ordinal >= state.list.turns.settled else "", "warning", 2)]


def _turn_title(state: State, turn: int, entry: TurnEntry) -> str:
    """The prompt's first words; on the first turn of a thread below another one, the thread comes first."""
    title = one_line(entry.title or "")
    nest = state.list.turns.nest
    thread = nest.thread_of(turn)
    if thread.at is None:
        # The only thread there is says nothing: the head names it too.
        named = entry.thread != MAIN_THREAD and state.list.turns.several
        return f"{entry.thread} {title}" if named else title
    if thread.turns[0] != turn:
        return title
    hidden = f" ({plural(len(thread.turns), 'turn')})" if thread.name in state.list.shut else ""
    derived = "" if thread.recorded else " ≈"
    name = entry.thread if entry.thread != MAIN_THREAD else (entry.session or MAIN_THREAD)[:12]
    return f"↳{name}{derived}{hidden} {title}"


def _session_line(state: State, entry: TurnEntry, width: int) -> Parts:
    """A session's heading: its name, and how many turns stand at its top."""
    session = state.list.turns.nest.sessions[entry.session]
    mark = "▸" if entry.session in state.list.closed else "▾"
    name = one_line(entry.session or "no session id")
    turns = plural(len(session.roots), "turn")
    return laid_out(
        [
            Column(mark, "mark", 2),
            Column(f"session {name}" if width >= _TIGHT else name, "strong"),
            Column(f" {turns}", "muted", len(turns) + 1),
        ],
        width,
    )


def _counts(entry: TurnEntry) -> str:
    told = (
        (SIGNS["added"], entry.added),
        (SIGNS["updated"], entry.updated),
        (SIGNS["removed"], entry.removed),
        (SIGNS["omitted"], entry.omitted),
        (SIGNS["skipped"], entry.skipped),
    )
    return " ".join(f"{sign}{short(count)}" for sign, count in told if count)


def _step_line(state: State, entry: TurnEntry, place: Place, width: int, depth: int) -> Parts:
    row = row_of(state, place)
    full = state.list.turns.peak if entry.cap is None else entry.cap
    last = place.step == entry.steps - 1
    if width < _TIGHT:
        columns = [Column(" └" if last else " ├", "mark", 2), Column(f".{row.step}", "step")]
        return laid_out(columns + _amounts(state, row, width), width)
    signs = [
        ("m", state.marked == row.ordinal),
        ("!", warned(row)),
        (COMPACTION, row.compacted),
        (BREAK, row.broken or row.missed > 0),
    ]
    columns = [
        Column(" " * 2 * depth + ("  └" if last else "  ├"), "mark", 3 + 2 * depth),
        Column(f"{row.turn}.{row.step}", "step", 6),
        Column(level(row.used, full), _heat(row, entry.cap), 1),
        *_signs(signs, width),
        *_written(state, row.ordinal, width),
        Column(_step_title(row), "muted"),
    ]
    return laid_out(columns + _amounts(state, row, width), width)


def _step_title(row: Row) -> str:
    counts = row.counts
    told = ((SIGNS[s], getattr(counts, s)) for s in ("added", "updated", "removed", "omitted"))
    entered = " ".join(f"{sign}{count}" for sign, count in told if count)
    over = ["over"] if row.over and not _OVER.intersection(row.flags) else []
    return "  ".join([entered, *over, *(flag.replace("_", " ") for flag in row.flags)])


class _Sized(Protocol):
    """A turn or a step."""

    @property
    def used(self) -> int: ...
    @property
    def new(self) -> int: ...
    @property
    def freed(self) -> int: ...
    @property
    def method(self) -> UsedMethod: ...


def _heat(of: _Sized, cap: int | None) -> str:
    """The style of a gauge: how near to its cap a request was, or that nobody billed its size."""
    if cap and of.used * 20 >= cap * 12:
        return "gauge-full" if of.used * 20 >= cap * 17 else "gauge-high"
    return "gauge" if of.method == "reported" else "gauge-unbilled"


def _amounts(state: State, of: _Sized, width: int) -> list[Column]:
    """As many of the token columns as the width has room for."""
    new, freed = of.new, of.freed
    columns = [Column(signed(new, brief=True) if new else "·", "new" if new else "muted", 7, right=True)]
    if width >= 34:
        columns.append(Column(short(-freed) if freed else "·", "freed" if freed else "muted", 7, right=True))
    if width >= 44:
        size = amount(of.used, of.method, brief=True, content=_billed(state))
        style = "muted" if of.method == "recorded" and _billed(state) else ""
        columns.insert(0, Column(size, style, 7, right=True))
    return columns


def _billed(state: State) -> bool:
    """Whether anything was billed: then the column is of what was sent."""
    return state.list.turns.nest.billed > 0


def turn_heading(state: State, width: int) -> Parts:
    """The names of the columns above the list of turns."""
    columns = [Column("  turn", "muted", 7), Column("", "muted"), Column("new", "muted", 7, right=True)]
    if width >= 34:
        columns.append(Column("freed", "muted", 7, right=True))
    if width >= 44:
        columns.insert(2, Column("sent" if _billed(state) else "record", "muted", 7, right=True))
    if width >= _COUNTED:
        columns.insert(2, Column("items", "muted", 14, right=True))
    return laid_out(columns, width)

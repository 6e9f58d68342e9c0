"""The lines of the list of turns and of the table of changes, as parts: (text, style name).  Plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ctxctl.item_names import both_ends
from ctxctl.model.cost_sums import Paid
from ctxctl.model.outline import Row
from ctxctl.model.results import Change
from ctxctl.model.vocab import MAIN_THREAD, UsedMethod
from ctxctl.report.bill_notes import paid_text
from ctxctl.text import cells, pad
from ctxctl.tui.changes import NONE, ChangeTable, Group, Holding, Note, flags_told, size_of
from ctxctl.tui.finding_marks import NO_MARKS, FindingMarks, Marks
from ctxctl.tui.finding_marks import style as found_style
from ctxctl.tui.layout import Column, Parts, laid_out, one_line
from ctxctl.tui.outline import warned
from ctxctl.tui.screens.turns.state import State, row_of
from ctxctl.tui.series import level_sign, size_bar
from ctxctl.tui.sizes import amount
from ctxctl.tui.step_words import StepWords
from ctxctl.tui.thread_tree import HEADING, Place, TurnEntry
from ctxctl.wording import (
    AT_LEAST,
    BREAK,
    COMPACTION,
    FINDING,
    MINUS,
    NOT_KNOWN,
    SIGNS,
    WRITTEN,
    brief_kind,
    flag_words,
    number,
    plural,
    short,
    signed,
)

_SIGNED: Final = 40
"""Cells from which on there is room for three signs."""
_BRIEF: Final = 12
"""Cells of a session's name in front of a prompt."""
_BOTH: Final = 24
"""Cells from which on a thread's name and a prompt share a line."""
_TIGHT: Final = 20
"""Cells below which a step's line keeps its number and its tokens only."""
_PLAIN: Final = 10
"""Cells of a turn's line that are neither words nor amounts."""


class _Extra(NamedTuple):
    """A column of the list of turns, which is there where as many cells are left for words."""

    name: str
    cells: int
    words: int


_EXTRAS: Final = (
    _Extra("new", 7, 0),
    _Extra("cost", 10, 14),
    _Extra("sent", 7, 16),
    _Extra("freed", 7, 18),
    _Extra("items", 14, 28),
)
"""The most wanted first."""
_SIZED: Final = 24
"""Cells of an omitted item's size and reason, where there is no column for either."""
_PHRASE: Final = 12
"""Cells that the words of a step are worth beside what is of note."""
_OVER: Final = frozenset({"over_budget", "still_over_budget"})
"""Flags that say it already."""
_NOTHING_CAME: Final = "no change recorded"
_NO_PROMPT: Final = "(no prompt recorded)"
_DEEP: Final = 3
"""Levels that are shown by indenting; deeper ones stand below each other."""


def turn_line(state: State, line: int, width: int) -> Parts:
    """One line of the list of turns: a turn, a step of an unfolded one, or a session."""
    place = state.list.at(line)
    entry = state.list.turns.entries[place.turn]
    if place.step == HEADING:
        return _session_line(state, entry, width)
    depth = min(state.list.turns.tree.depth(place.turn), _DEEP)
    if place.step is not None:
        return _step_line(state, entry, place, width, depth)
    full = state.list.turns.peak if entry.cap is None else entry.cap
    digits = max(len(str(state.list.turns.highest)), 2)
    indent = (2 if width >= _TIGHT else 1) * depth
    extras = _extras(state, width)
    signs = [
        ("m", _holds(entry, state.marked)),
        ("!", entry.flagged),
        (COMPACTION, entry.compacted),
        (BREAK, entry.rewritten),
        (FINDING, (entry.session, entry.thread, entry.turn) in state.findings.turns),
        (SIGNS["omitted"], entry.omitted > 0 and "items" not in extras),
    ]
    columns = [
        Column(" " * indent + _fold(state, place.turn), "mark", 1 + indent),
        Column(str(entry.turn), "number", digits + 1, right=True),
        Column(" " + level_sign(entry.used, full), _heat(entry, entry.cap), 2),
        *_signs(signs, width, width - indent - digits - 4 - sum(extras.values())),
        *_written(state, entry.last, width),
        Column("", _title_style(entry), fit=lambda room: _turn_title(state, place.turn, entry, room)),
    ]
    paid = state.costs.sum((entry.session, entry.thread, entry.turn), entry.steps)
    return laid_out(columns + _amounts(state, entry, extras, paid, _counts(entry)), width)


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


def _signs(signs: list[tuple[str, bool]], width: int, left: int = _SIGNED) -> list[Column]:
    """The first signs of those that apply, as many as fit; `left`: cells that nothing else needs."""
    room = min(2 if width < _SIGNED else 3, left - 1)
    if room < 1:
        return []
    found = "".join(sign for sign, applies in signs if applies)[:room]
    return [Column(found, "warning", room + 1)]


def _written(state: State, ordinal: int, width: int) -> list[Column]:
    """The sign of a step that is still being written, or of a turn with such a step at its end."""
    if not state.trace.live or width < _TIGHT:
        return []
    return [Column(WRITTEN if ordinal >= state.list.turns.settled else "", "warning", 2)]


def _turn_title(state: State, turn: int, entry: TurnEntry, room: int) -> str:
    """The prompt's first words; on the first turn of a thread below another one, the thread comes first.

    Where there is little room, the prompts of its other turns tell more than its name again.
    """
    title = one_line(entry.title or "") or _NO_PROMPT
    tree = state.list.turns.tree
    thread = tree.thread_of(turn)
    if thread.at is None:
        # The only thread there is says nothing: the head names it too.
        named = entry.thread != MAIN_THREAD and state.list.turns.several
        first = thread.turns[0] == turn
        return _led(_thread(state, entry), title, room) if named and (first or room >= _BOTH) else title
    if thread.turns[0] != turn:
        return title
    hidden = f" ({plural(len(thread.turns), 'turn')})" if thread.name in state.list.shut else ""
    derived = "" if thread.recorded else " ≈"
    return _led(f"↳{_thread(state, entry)}{derived}{hidden}", title, room)


def _led(name: str, title: str, room: int) -> str:
    """A name with a prompt behind it, which has half of the room where there is enough for both."""
    if room >= _BOTH and cells(name) + 1 + cells(title) > room:
        name = both_ends(name, max(room - 1 - cells(title), room // 2))
    return f"{name} {title}"


def _thread(state: State, entry: TurnEntry) -> str:
    """What the turn's thread is called; of one that is another session's main one, that session."""
    tree = state.list.turns.tree
    if entry.thread == MAIN_THREAD and entry.session:
        return tree.names.session(entry.session, None, _BRIEF)
    return tree.names.of(entry.session, entry.thread)


def _title_style(entry: TurnEntry) -> str:
    if entry.thread != MAIN_THREAD:
        return "thread"
    return "" if entry.title else "muted"


def _session_line(state: State, entry: TurnEntry, width: int) -> Parts:
    """A session's heading: its name, and how many turns stand at its top."""
    tree = state.list.turns.tree
    mark = "▸" if entry.session in state.list.closed else "▾"
    turns = f" {plural(len(tree.sessions[entry.session].roots), 'turn')}" if width >= _TIGHT else ""
    return laid_out(
        [
            Column(mark, "mark", 2),
            Column("", "strong", fit=lambda room: tree.session_name(entry.session, room)),
            *([Column(turns, "muted", len(turns))] if turns else []),
        ],
        width,
    )


def _counts(entry: TurnEntry) -> str:
    counted = (
        (SIGNS["added"], entry.added),
        (SIGNS["updated"], entry.updated),
        (SIGNS["removed"], entry.removed),
        (SIGNS["omitted"], entry.omitted),
        (SIGNS["skipped"], entry.skipped),
    )
    return " ".join(f"{sign}{short(count)}" for sign, count in counted if count)


def _step_line(state: State, entry: TurnEntry, place: Place, width: int, depth: int) -> Parts:
    row = row_of(state, place)
    full = state.list.turns.peak if entry.cap is None else entry.cap
    last = place.step == entry.steps - 1
    if width < _TIGHT:
        whole = f"{row.turn}.{row.step}"
        room = width - 2 - sum(_extras(state, width).values())
        said = Column(whole if cells(whole) < room else f".{row.step}", "step")
        columns = [Column(" └" if last else " ├", "mark", 2), said]
        return laid_out(columns + _amounts(state, row, _extras(state, width)), width)
    signs = [
        ("m", state.marked == row.ordinal),
        ("!", warned(row)),
        (COMPACTION, row.compacted),
        (BREAK, row.broken or row.missed > 0),
        (FINDING, row.ordinal in state.findings.steps),
    ]
    columns = [
        Column(" " * 2 * depth + ("  └" if last else "  ├"), "mark", 3 + 2 * depth),
        Column(f"{row.turn}.{row.step}", "step", 6),
        Column(level_sign(row.used, full), _heat(row, entry.cap), 1),
        *_signs(signs, width),
        *_written(state, row.ordinal, width),
        _step_title(state, row),
    ]
    paid = state.costs.step(row.ordinal)
    return laid_out(columns + _amounts(state, row, _extras(state, width), paid), width)


def _step_title(state: State, row: Row) -> Column:
    """What was done in the step, and what is of note; until that is known, how many items came and left."""
    words = state.said.of(row.ordinal)
    over = ["over"] if row.over and not _OVER.intersection(row.flags) else []
    told = [*over, *(flag_words(flag) for flag in row.flags if flag != "compacted" or words is None)]
    noted = "  ".join(told)
    if words is None or row.compacted:
        counts = row.counts
        counted = ((SIGNS[s], getattr(counts, s)) for s in ("added", "updated", "removed", "omitted"))
        noted = "  ".join(
            filter(None, [" ".join(f"{sign}{count}" for sign, count in counted if count), noted])
        )
    if words is None:
        return Column(noted or _NOTHING_CAME * (state.phase == "ready"), "muted")
    return Column("", fit=lambda room: _said(words, noted, room))


def _said(words: StepWords, noted: str, room: int) -> str:
    """The words of a step and what is of note, side by side where there is room; else what is of note."""
    if not noted:
        return words.at(room)
    left = room - cells(noted) - 2
    return f"{pad(words.at(left), left)}  {noted}" if left >= _PHRASE else noted


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


def _extras(state: State, width: int) -> dict[str, int]:
    """Which amounts there is room for, with their cells, from left to right.

    A column that would be empty gives its room to words.
    """
    tree, left = state.list.turns.tree, width - _PLAIN
    unsized = not state.list.turns.peak
    empty = {
        "new": unsized, "sent": unsized, "freed": not tree.freed, "cost": not state.costs.is_priced,
    }  # fmt: skip
    found = {}
    for name, size, words in _EXTRAS:
        if not empty.get(name) and (not words or left - size >= words):
            found[name] = size
            left -= size
    return {name: found[name] for name in ("items", "sent", "new", "freed", "cost") if name in found}


def _amounts(
    state: State, of: _Sized, extras: Mapping[str, int], paid: Paid | None = None, items: str = ""
) -> list[Column]:
    """The columns of amounts; `paid`: None where it is not known yet."""
    sent = amount(of.used, of.method, brief=True, content=_billed(state))
    if not of.used and of.method == "recorded":
        sent = "·"  # nothing could be counted: that is not nothing
    said = {
        "items": (items, "muted"),
        "sent": (sent, "muted" if of.method == "recorded" and _billed(state) else ""),
        "new": (signed(of.new, brief=True), "new") if of.new else ("·", "muted"),
        "freed": (short(-of.freed), "freed") if of.freed else ("·", "muted"),
        "cost": ("" if paid is None else paid_text(paid), ""),
    }
    return [Column(*said[name], size, right=True) for name, size in extras.items()]


def _billed(state: State) -> bool:
    """Whether anything was billed: then the column is of what was sent."""
    return state.list.turns.tree.billed > 0


def turn_heading(state: State, width: int) -> Parts:
    """The names of the columns above the list of turns."""
    signs = 0 if width < _TIGHT else (2 if width < _SIGNED else 3) + 2 * state.trace.live
    columns = [Column("  turn", "muted", 7), Column("", "", signs), Column("prompt", "muted")]
    for name, size in _extras(state, width).items():
        title = "record" if name == "sent" and not _billed(state) else name
        columns.append(Column(title, "muted", size, right=True))
    return laid_out(columns, width)


class _Widths(NamedTuple):
    """Cells of the columns of the changes at one width of the pane."""

    kind: int
    amount: int
    cause: int
    bar: int
    brief: bool

    @property
    def whole_kind(self) -> bool:
        """Whether kinds have room for their whole names."""
        return self.kind > 8


def _widths(table: ChangeTable, width: int) -> _Widths:
    """The columns at a width; one for causes only where there are any, for the words of items need room, and
    one for bars where there are sizes to compare.
    """
    widths = _widest(width)
    # Of what was omitted, the reason can stand in the place of other amounts.
    alone = table.causes == "none" or (table.causes == "omitted" and width < _ROOMY)
    widths = widths._replace(cause=0) if alone else widths
    return widths if table.largest else widths._replace(bar=0)


_ROOMY: Final = 84


def _widest(width: int) -> _Widths:
    if width >= 110:
        return _Widths(kind=18, amount=10, cause=26, bar=8, brief=False)
    if width >= _ROOMY:
        return _Widths(kind=16, amount=9, cause=16, bar=6, brief=False)
    if width >= 64:
        return _Widths(kind=7, amount=8, cause=14, bar=4, brief=True)
    if width >= 46:
        return _Widths(kind=7, amount=7, cause=14 if width >= 54 else 9, bar=3, brief=True)
    if width >= 34:
        return _Widths(kind=7, amount=7, cause=0, bar=2 if width >= 40 else 0, brief=True)
    return _Widths(kind=0, amount=6, cause=0, bar=0, brief=True)


class _Amounts(NamedTuple):
    """Tokens of an item or of a group, as texts."""

    window: str
    new: str
    freed: str
    net: str
    """What entered less what left, where there is no room for both."""
    saved: str
    stale: str


_NAMES: Final = _Amounts("window", "new", "freed", "net", "saved", "stale")


_WORDS: Final = 24
"""Cells that an item's name is left before what entered and what left have a column each."""


def _columns(table: ChangeTable, width: int) -> tuple[str, ...]:
    """Which amounts there is room for; what no item has is left out."""
    if width < 34:
        return ("new", "freed")
    extra = []
    if width >= 74:
        extra += ["saved"] if any(group.saved is not None for group in table.groups) else []
        extra += ["stale"] if any(group.stale for group in table.groups) else []
    moved = [name for name in ("new", "freed") if any(getattr(group, name) for group in table.groups)]
    widths = _widths(table, width)
    taken = 3 + widths.kind + widths.bar + 1 + widths.cause + widths.amount * (1 + len(moved) + len(extra))
    if len(moved) == 2 and width - taken < _WORDS:
        moved = ["net"]
    return ("window", *moved, *extra)


def _table_line(
    table: ChangeTable,
    first: Sequence[Column],
    amounts: _Amounts,
    cause: str,
    width: int,
    style: str = "",
    *,
    out: bool = False,
    bar: Column | None = None,
) -> Parts:
    """`out`: nothing entered or left, so that the cause may stand there where it has no column of its own."""
    widths = _widths(table, width)
    styles = {"new": "new", "freed": "freed", "net": "freed" if amounts.net[:1] == MINUS else "new"}
    columns = [*first]
    shown = _columns(table, width)
    if out and not widths.cause and not {"new", "freed"} <= set(shown):
        said = f"{amounts.window} {cause}".strip()
        return laid_out([*columns, Column(f" {said}", "muted", min(cells(said) + 1, _SIZED))], width)
    if widths.bar:
        columns += [Column("", "", 1), bar or Column("", "", widths.bar)]
    if out and not widths.cause:
        shown = tuple(name for name in shown if name not in ("new", "freed", "net"))
    for name in shown:
        text = getattr(amounts, name)
        named = style or styles.get(name, "")
        columns.append(Column(text, named if text not in ("·", "") else "muted", widths.amount, right=True))
    if out and not widths.cause:
        room = widths.amount * (len(_columns(table, width)) - len(shown))
        columns += [Column("", "", 1), Column(cause, "muted", room - 1, right=True)] if room else []
    if widths.cause:
        columns += [Column("", "", 1), Column(cause, "muted", widths.cause - 1)]
    return laid_out(columns, width)


def change_heading(table: ChangeTable, width: int) -> Parts:
    """The names of the columns above the changes."""
    widths = _widths(table, width)
    kind = [Column("kind", "muted", widths.kind)] if widths.kind else []
    if widths.whole_kind:
        first = [Column("   item", "muted"), *kind]
    else:
        first = [Column("", "", 3), *kind, Column("item", "muted")]
    return _table_line(table, first, _NAMES, "cause", width, "muted")


def change_line(table: ChangeTable, line: int, width: int, findings: FindingMarks = NO_MARKS) -> Parts:
    """One line of the changes: a note, a group's heading or a change."""
    found = table.at(line)
    if isinstance(found, Note):
        mark = "! " if found.warning else "· "
        return laid_out([Column(mark + found.text, "warning" if found.warning else "muted")], width)
    if isinstance(found, Group):
        return _group_line(table, found, width)
    return _change_line(table, found, width, findings.items.get(found.item, ()))


def _group_line(table: ChangeTable, group: Group, width: int) -> Parts:
    widths = _widths(table, width)
    fold = "▸" if group.folded else "▾"
    sign = f"{SIGNS[group.status]} " if group.status else ""
    some = len(group.noted) if group.folded else 0
    count = f"{number(some)} of {number(group.count)}" if 0 < some < group.count else number(group.count)
    cause = f" {one_line(group.cause)}" if group.cause and not widths.cause else ""
    name = f"{sign}{one_line(group.key)} {count} {fold}{cause}"
    blank = [Column("", "", widths.kind)] if widths.whole_kind else []
    style = f"heading-{group.status}" if group.status else "muted" if group.key in NONE.values() else "strong"
    amounts = _change_amounts(group.in_window, group.new, group.freed, group.saved, group.stale, widths.brief)
    if group.uncounted:  # what nobody counted is not nothing
        amounts = amounts._replace(window=f"{AT_LEAST}{amounts.window}" if group.in_window else NOT_KNOWN)
    return _table_line(table, [Column(name, style), *blank], amounts, "", width, "strong")


def _kind(change: Change, widths: _Widths) -> str:
    return change.kind if widths.whole_kind else brief_kind(change.kind)


def _change_line(table: ChangeTable, change: Change, width: int, marks: Marks = ()) -> Parts:
    widths = _widths(table, width)
    mark = {"native": " ", "derived": "d", "simulated": "s"}[change.provenance]
    first = [
        Column(f"{SIGNS[change.status]}", f"sign-{change.status}", 1),
        Column(mark, "muted", 1),
        Column(FINDING, found_style(marks), 1) if marks else Column("", "", 1),
    ]
    kind = [Column(_kind(change, widths), "muted", widths.kind)] if widths.kind else []
    style = "skipped" if change.status == "skipped" else ""
    name = [Column("", style, fit=lambda room: table.name(change, room))]
    first += name + kind if widths.whole_kind else kind + name
    held = table.holdings.get(change.item, Holding())
    amounts = _change_amounts(
        change.in_window, change.new, change.freed, held.saved, held.stale, widths.brief
    )
    if held.uncounted and not size_of(change):
        amounts = amounts._replace(**{_UNSIZED.get(change.status, "window"): NOT_KNOWN})
    into = table.names.at_ref(change.into) if change.into else ""
    cause = why(change, into, brief=widths.cause < 20)
    if held.stale and not cause and "stale" not in _columns(table, width):
        cause = f"stale {short(held.stale)}"
    omitted = change.status == "omitted"
    if omitted and change.tokens:
        amounts = amounts._replace(window=f"({(short if widths.brief else number)(change.tokens)})")
    bar = _bar(table, change, widths.bar)
    return _table_line(table, first, amounts, cause, width, out=omitted, bar=bar)


_UNSIZED: Final = {"removed": "freed"}
"""The amount of which it is said that it is not known, where that is not the item's size in the window."""


def _bar(table: ChangeTable, change: Change, width: int) -> Column:
    """How large an item is beside the largest one listed."""
    style = {"removed": "freed", "omitted": "muted", "skipped": "muted"}.get(change.status, "new")
    return Column(size_bar(size_of(change), table.largest, width), style, width)


def _change_amounts(
    in_window: int, new: int, freed: int, saved: int | None, stale: int, brief: bool
) -> _Amounts:
    show = short if brief else number
    return _Amounts(
        show(in_window) if in_window else "·",
        signed(new, brief=brief) if new else "·",
        show(-freed) if freed else "·",
        signed(new - freed, brief=brief) if new or freed else "·",
        show(saved) if saved else "·",
        show(stale) if stale else "·",
    )


def why(change: Change, into: str = "", *, brief: bool = False) -> str:
    """Cause, reason and flags of a change in one phrase; `brief` keeps the most telling one.

    `into` is what the summary is called, by default its id.
    """
    said = [change.cause, change.reason]
    if brief and change.cause in ("omitted", "truncated") and change.reason:
        said = [change.reason]
    phrase = ": ".join(dict.fromkeys(word for word in said if word))
    if change.into and not brief:
        phrase += f" into {into or change.into}"
    flags = [flag_words(flag) for flag in flags_told(change)]
    if phrase and brief:
        return phrase
    return ", ".join(word for word in (phrase, *flags) if word)


def pane_titles(state: State) -> dict[str, str]:
    """Titles of the panes."""
    turns = len(state.list.turns.entries)
    change = state.selected
    return {
        "turns": f"turns {number(turns)}" if turns else "turns",
        "changes": _changes_title(state) + arrangement(state),
        "item": "item" if change is None else state.table.name(change),
    }


def _changes_title(state: State) -> str:
    """What the table speaks of: while the next frame is on its way, still of the one before."""
    detail = state.detail
    if detail is None or detail.target.ordinal >= len(state.list.turns.rows):
        return "changes"
    turns = state.list.turns
    row = turns.rows[detail.target.ordinal]
    written = " so far" if detail.target.ordinal >= turns.settled else ""
    if not detail.target.whole_turn:
        return f"what changed in step {row.turn}.{row.step}{written}"
    steps = 1 if detail.turn is None else detail.turn.steps
    steps_named = f" ({plural(steps, 'step')})" if steps > 1 else ""
    return f"what changed in turn {row.turn}{written}{steps_named}"


def arrangement(state: State) -> str:
    """How the changes that are shown are sorted and grouped, where that is not the usual way."""
    arrangement = state.table.arrangement
    said = [] if arrangement.only is None else [f"only {arrangement.only}"]
    if arrangement.by != "status":
        said.append("not grouped" if arrangement.by == "none" else f"by {arrangement.by}")
    down = arrangement.order in ("window", "new", "freed")
    if arrangement.order != "frame":
        said.append(f"{'↓' if down != arrangement.reverse else '↑'} {arrangement.order}")
    elif arrangement.reverse:
        said.append("reversed")
    return "".join(f" · {words}" for words in said)

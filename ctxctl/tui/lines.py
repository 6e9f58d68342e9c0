"""What each line of a view says, as parts: (text, style name).  Plain Python, and so are its tests.

Style names are component classes of the widgets (see ``app.tcss``).  Text from the trace is made visible here
because its width matters; `literal` does it again for everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ctxctl.model.outline import Row
from ctxctl.model.results import Change
from ctxctl.text import cells, clip, pad, preview, visible
from ctxctl.tui.changes import ChangeTable, Group, Note
from ctxctl.tui.figures import KINDS, MINUS, SIGNS, counted, level, number, short, signed
from ctxctl.tui.outline import WARNINGS, Place, TurnEntry
from ctxctl.tui.state import State, row_of

Parts = list[tuple[str, str]]


class Column(NamedTuple):
    """One cell of a line; `width` 0 takes what the others leave, at least nothing."""

    text: str
    style: str = ""
    width: int = 0
    right: bool = False


_TIGHT: Final = 20
"""Cells below which a step's line keeps its number and its tokens only."""

_LEAST: Final = 3
"""Cells below which a text is left out: it would be an ellipsis and little more."""


def laid_out(columns: Sequence[Column], width: int) -> Parts:
    """The columns side by side in `width` cells; texts are raw and become visible, clipped and padded."""
    rest = max(width - sum(column.width for column in columns), 0)
    parts: Parts = []
    room = width
    for column in columns:
        size = min(column.width or rest, max(room, 0))
        if not column.width and size < _LEAST:
            column = column._replace(text="")
        parts.append((pad(_visible(column.text, size), size, right=column.right), column.style))
        room -= size
    return parts


def _visible(text: str, size: int) -> str:
    """Enough of a text to fill `size` cells, on one line."""
    return visible(text[: size * 2 + 64])


def one_line(text: str) -> str:
    """A text of the trace as a phrase: blanks and line ends run together, and no longer than any pane."""
    return preview(text, 400)


class Piece(NamedTuple):
    """A phrase of a header line; the ones of the lowest rank go first where there is no room."""

    text: str
    style: str = ""
    rank: int = 5
    key: str = ""
    """The key that does what the phrase says; stands before it."""


def spread(left: Sequence[Piece], right: Sequence[Piece], width: int) -> Parts:
    """Phrases from the left and from the right edge, two blanks apart, with one blank at either edge."""
    sides = [[p._replace(text=one_line(p.text)) for p in side if p.text] for side in (left, right)]
    while sum(map(len, sides)) > 1 and sum(_length(side) for side in sides) + 4 > width:
        lowest = min((piece.rank, side, n) for side in (0, 1) for n, piece in enumerate(sides[side]))
        del sides[lowest[1]][lowest[2]]
    parts: Parts = [(" ", "")]
    room = max(width - 2, 0)
    for n, side in enumerate(sides):
        if n == 1:
            gap = max(room - _length(side), 0)
            parts.append((" " * gap, ""))
            room -= gap
        for k, piece in enumerate(side):
            key = clip(f"{piece.key} ", room) if piece.key else ""
            text = clip(piece.text, room - cells(key))
            gap = min(2 if k < len(side) - 1 else 0, room - cells(key) - cells(text))
            parts += [(key, "key"), (text, piece.style), (" " * gap, "")]
            room -= cells(key) + cells(text) + gap
    parts.append((" " * (room + 1), ""))
    return parts


def _length(side: Sequence[Piece]) -> int:
    """Cells of some phrases with two blanks between them."""
    keys = sum(cells(piece.key) + 1 for piece in side if piece.key)
    return sum(cells(piece.text) for piece in side) + keys + 2 * max(len(side) - 1, 0)


# The list of turns ------------------------------------------------------------------------------------------


def turn_line(state: State, line: int, width: int) -> Parts:
    """One line of the list of turns: a turn, or a step of an unfolded one."""
    place = state.list.at(line)
    entry = state.list.turns.entries[place.turn]
    if place.step is not None:
        return _step_line(state, entry, place, width)
    full = state.list.turns.peak if entry.cap is None else entry.cap
    several = entry.steps > 1
    mark = ("▾" if state.list.is_unfolded(place.turn) else "▸") if several else " "
    digits = max(len(str(state.list.turns.highest)), 2)
    columns = [
        Column(mark, "mark", 1),
        Column(str(entry.turn), "number", digits + 1, right=True),
        Column(" " + level(entry.used, full), _heat(entry.used, entry.cap), 2),
        Column(_warning(entry.compacted, entry.flagged), "warning", 2),
        Column(_turn_title(state, entry), "" if entry.thread == "main" else "thread"),
    ]
    return laid_out(columns + _amounts(entry.used, entry.new, entry.freed, width), width)


def _turn_title(state: State, entry: TurnEntry) -> str:
    """The prompt's first words; where a trace has several threads, which one this is comes first."""
    title = one_line(entry.title or "")
    if not state.list.turns.several:
        return title
    session = f"{entry.session[:8]} " if entry.session and len(state.list.turns.sessions) > 1 else ""
    thread = "" if entry.thread == "main" else f"↳{entry.thread} "
    return f"{session}{thread}{title}"


def _step_line(state: State, entry: TurnEntry, place: Place, width: int) -> Parts:
    row = row_of(state, place)
    full = state.list.turns.peak if entry.cap is None else entry.cap
    last = place.step == entry.steps - 1
    if width < _TIGHT:
        columns = [Column(" └" if last else " ├", "mark", 2), Column(f".{row.step}", "step")]
        return laid_out(columns + _amounts(row.used, row.new, row.freed, width), width)
    columns = [
        Column("  └" if last else "  ├", "mark", 3),
        Column(f"{row.turn}.{row.step}", "step", 6),
        Column(level(row.used, full), _heat(row.used, entry.cap), 1),
        Column(_warning(row.compacted, any(flag in WARNINGS for flag in row.flags)), "warning", 2),
        Column(_step_title(row), "muted"),
    ]
    return laid_out(columns + _amounts(row.used, row.new, row.freed, width), width)


def _step_title(row: Row) -> str:
    counts = row.counts
    told = (("+", counts.added), ("~", counts.updated), (MINUS, counts.removed), ("∅", counts.omitted))
    entered = " ".join(f"{sign}{count}" for sign, count in told if count)
    return "  ".join([entered, *(flag.replace("_", " ") for flag in row.flags)])


def _heat(used: int, cap: int | None) -> str:
    """The style of a gauge: how near the window is to its cap; without one, it says nothing."""
    if not cap:
        return "gauge"
    return "gauge-full" if used * 20 >= cap * 17 else "gauge-high" if used * 20 >= cap * 12 else "gauge"


def _warning(compacted: bool, flagged: bool) -> str:
    return "!" if flagged else "◇" if compacted else ""


def _amounts(used: int, new: int, freed: int, width: int) -> list[Column]:
    """As many of the token columns as the width has room for."""
    columns = [Column(signed(new, brief=True) if new else "·", "new" if new else "muted", 7, right=True)]
    if width >= 34:
        columns.append(Column(short(-freed) if freed else "·", "freed" if freed else "muted", 7, right=True))
    if width >= 44:
        columns.insert(0, Column(short(used), "", 7, right=True))
    return columns


def turn_heading(width: int) -> Parts:
    """The names of the columns above the list of turns."""
    columns = [Column("  turn", "muted", 7), Column("", "muted"), Column("new", "muted", 7, right=True)]
    if width >= 34:
        columns.append(Column("freed", "muted", 7, right=True))
    if width >= 44:
        columns.insert(2, Column("window", "muted", 7, right=True))
    return laid_out(columns, width)


# The table of changes ---------------------------------------------------------------------------------------


class _Widths(NamedTuple):
    """Cells of the columns of the changes at one width of the pane."""

    kind: int
    amount: int
    cause: int
    brief: bool

    @property
    def whole_kind(self) -> bool:
        """Whether kinds have room for their whole names."""
        return self.kind > 8


def _widths(width: int) -> _Widths:
    if width >= 110:
        return _Widths(kind=18, amount=10, cause=26, brief=False)
    if width >= 84:
        return _Widths(kind=16, amount=9, cause=16, brief=False)
    if width >= 64:
        return _Widths(kind=6, amount=8, cause=14, brief=True)
    if width >= 46:
        return _Widths(kind=6, amount=7, cause=13 if width >= 54 else 9, brief=True)
    return _Widths(kind=6 if width >= 34 else 0, amount=7 if width >= 34 else 6, cause=0, brief=True)


def _table_line(
    first: Sequence[Column],
    amounts: tuple[str, str, str],
    cause: str,
    width: int,
    *,
    style: str = "",
    cause_style: str = "muted",
) -> Parts:
    widths = _widths(width)
    texts = (*amounts,) if width >= 34 else amounts[1:]
    styles = (style or "", style or "new", style or "freed")[-len(texts) :]
    columns = [*first]
    columns += [
        Column(text, name if text not in ("·", "") else "muted", widths.amount, right=True)
        for text, name in zip(texts, styles, strict=True)
    ]
    if widths.cause:
        columns += [Column("", "", 1), Column(cause, cause_style, widths.cause - 1)]
    return laid_out(columns, width)


def change_heading(width: int) -> Parts:
    """The names of the columns above the changes."""
    widths = _widths(width)
    kind = [Column("kind", "muted", widths.kind)] if widths.kind else []
    if widths.whole_kind:
        first = [Column("   item", "muted"), *kind]
    else:
        first = [Column("", "", 3), *kind, Column("item", "muted")]
    return _table_line(first, ("window", "new", "freed"), "cause", width, style="muted")


def change_line(table: ChangeTable, line: int, width: int) -> Parts:
    """One line of the changes: a note, a group's heading or a change."""
    found = table.at(line)
    if isinstance(found, Note):
        mark = "! " if found.warning else "· "
        return laid_out([Column(mark + found.text, "warning" if found.warning else "muted")], width)
    if isinstance(found, Group):
        return _group_line(found, width)
    return _change_line(found, table.labels.get(found.item, ""), width)


def _group_line(group: Group, width: int) -> Parts:
    brief = _widths(width).brief
    fold = "▸" if group.folded else "▾"
    name = f"{SIGNS[group.status]} {group.status} {number(group.count)} {fold}"
    widths = _widths(width)
    blank = [Column("", "", widths.kind)] if widths.whole_kind else []
    first = [Column(name, f"heading-{group.status}"), *blank]
    return _table_line(
        first, _three(group.in_window, group.new, group.freed, brief), "", width, style="strong"
    )


def _name(change: Change, words: str) -> str:
    """The item's title, else its first words, else its id."""
    if change.title or not words.strip():
        return one_line(change.title or change.item)
    return f"“{one_line(words)}”"


def _kind(change: Change, widths: _Widths) -> str:
    return change.kind if widths.whole_kind else KINDS.get(change.kind, change.kind[:5])


def _change_line(change: Change, words: str, width: int) -> Parts:
    widths = _widths(width)
    mark = {"native": " ", "derived": "d", "simulated": "s"}[change.provenance]
    first = [
        Column(f"{SIGNS[change.status]}", f"sign-{change.status}", 1),
        Column(mark, "muted", 2),
    ]
    kind = [Column(_kind(change, widths), "muted", widths.kind)] if widths.kind else []
    name = [Column(_name(change, words), "skipped" if change.status == "skipped" else "")]
    first += name + kind if widths.whole_kind else kind + name
    amounts = _three(change.in_window, change.new, change.freed, widths.brief)
    return _table_line(first, amounts, why(change, brief=widths.cause < 20), width)


def _three(in_window: int, new: int, freed: int, brief: bool) -> tuple[str, str, str]:
    show = short if brief else number
    return (
        show(in_window) if in_window else "·",
        signed(new, brief=brief) if new else "·",
        show(-freed) if freed else "·",
    )


def why(change: Change, *, brief: bool = False) -> str:
    """Cause, reason and flags of a change in one phrase; `brief` keeps the most telling one."""
    said = [change.cause, change.reason]
    if brief and change.cause == "omitted" and change.reason:
        said = [change.reason]
    phrase = ": ".join(dict.fromkeys(word for word in said if word))
    if change.into and not brief:
        phrase += f" into {change.into}"
    flags = [
        flag.replace("_", " ") for flag in change.flags if flag not in ("derived-identity", change.cause)
    ]
    if phrase and brief:
        return phrase
    return ", ".join(word for word in (phrase, *flags) if word)


# The item ---------------------------------------------------------------------------------------------------


def item_head(change: Change, tab: str, width: int) -> tuple[Parts, Parts, Parts]:
    """Three lines above an item's text: status and tabs, tokens, versions and origin."""
    tabs = [_tab(name, name == tab) for name in TABS]
    status = Piece(f"{SIGNS[change.status]} {change.status}", f"heading-{change.status}", 10)
    first = spread([status, Piece(why(change), "warning", 8)], tabs, width)
    tokens = [
        Piece(f"{number(change.in_window)} in window", "", 8),
        Piece(signed(change.new) + " new" if change.new else "", "new", 7),
        Piece(number(-change.freed) + " freed" if change.freed else "", "freed", 7),
        Piece(f"size {number(change.tokens)}", "muted", 5),
    ]
    second = spread(tokens, [Piece(change.kind, "muted", 6)], width)
    origin = [
        Piece(versions(change), "", 6),
        Piece(change.provenance, "muted", 5),
        Piece(change.source or "", "muted", 4),
    ]
    line = Piece(f"line {number(change.line)}" if change.line else "", "muted", 3)
    return first, second, spread(origin, [line], width)


def _tab(name: str, shown: bool) -> Piece:
    """The name of a tab; the one not shown is left out where there is no room."""
    return Piece(f"[{name}]", "tab", 9) if shown else Piece(f" {name} ", "muted", 2)


TABS = ("content", "diff")


def versions(change: Change) -> str:
    """The item's version, and what it was before where it changed; long ones by their beginning."""
    now = _brief(change.version or change.previous_version)
    if change.version is None or change.previous_version is None or change.previous_version == change.version:
        return f"version {now}"
    return f"version {_brief(change.previous_version)} → {now}"


def _brief(version: str | None) -> str:
    if version is None:
        return "unknown"
    return version if len(version) <= 12 else f"{version[:8]}…"


def pane_titles(state: State) -> dict[str, str]:
    """Titles of the panes' borders."""
    turns = len(state.list.turns.entries)
    change = state.selected
    return {
        "turns": f"turns {number(turns)}" if turns else "turns",
        "changes": _changes_title(state),
        "item": "item" if change is None else (change.title or change.item),
    }


def _changes_title(state: State) -> str:
    """What the table speaks of: while the next frame is on its way, still of the one before."""
    detail = state.detail
    if detail is None:
        return "changes"
    row = state.list.turns.rows[detail.target.ordinal]
    if not detail.target.whole_turn:
        return f"what changed in step {row.turn}.{row.step}"
    steps = 1 if detail.turn is None else detail.turn.steps
    return f"what changed in turn {row.turn}" + (f" ({counted(steps, 'step')})" if steps > 1 else "")

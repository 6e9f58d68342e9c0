"""The lines of the table of changes: notes, headings of groups, changes.  Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxctl.labels import SIGNS, brief_kind, number, plural, short, signed
from ctxctl.model.results import Change
from ctxctl.tui.changes import NONE, ChangeTable, Group, Holding, Note
from ctxctl.tui.lines.layout import Column, Parts, laid_out, one_line
from ctxctl.tui.state import State


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
        return _Widths(kind=6, amount=7, cause=14 if width >= 54 else 9, brief=True)
    return _Widths(kind=6 if width >= 34 else 0, amount=7 if width >= 34 else 6, cause=0, brief=True)


class _Amounts(NamedTuple):
    """Tokens of an item or of a group, as texts."""

    window: str
    new: str
    freed: str
    saved: str
    stale: str


_NAMES = _Amounts("window", "new", "freed", "saved", "stale")


def _columns(table: ChangeTable, width: int) -> tuple[str, ...]:
    """Which amounts there is room for; what no item has is left out."""
    if width < 34:
        return ("new", "freed")
    extra = []
    if width >= 74:
        extra += ["saved"] if any(group.saved is not None for group in table.groups) else []
        extra += ["stale"] if any(group.stale for group in table.groups) else []
    return ("window", "new", "freed", *extra)


def _table_line(
    table: ChangeTable,
    first: Sequence[Column],
    amounts: _Amounts,
    cause: str,
    width: int,
    style: str = "",
    *,
    out: bool = False,
) -> Parts:
    """`out`: nothing entered or left, so that the cause may stand there where it has no column of its own."""
    widths = _widths(width)
    styles = {"new": "new", "freed": "freed"}
    columns = [*first]
    shown = _columns(table, width)
    if out and not widths.cause:
        shown = tuple(name for name in shown if name not in ("new", "freed"))
    for name in shown:
        text = getattr(amounts, name)
        named = style or styles.get(name, "")
        columns.append(Column(text, named if text not in ("·", "") else "muted", widths.amount, right=True))
    if out and not widths.cause:
        columns += [Column("", "", 1), Column(cause, "muted", 2 * widths.amount - 1, right=True)]
    if widths.cause:
        columns += [Column("", "", 1), Column(cause, "muted", widths.cause - 1)]
    return laid_out(columns, width)


def change_heading(table: ChangeTable, width: int) -> Parts:
    """The names of the columns above the changes."""
    widths = _widths(width)
    kind = [Column("kind", "muted", widths.kind)] if widths.kind else []
    if widths.whole_kind:
        first = [Column("   item", "muted"), *kind]
    else:
        first = [Column("", "", 3), *kind, Column("item", "muted")]
    return _table_line(table, first, _NAMES, "cause", width, "muted")


def change_line(table: ChangeTable, line: int, width: int) -> Parts:
    """One line of the changes: a note, a group's heading or a change."""
    found = table.at(line)
    if isinstance(found, Note):
        mark = "! " if found.warning else "· "
        return laid_out([Column(mark + found.text, "warning" if found.warning else "muted")], width)
    if isinstance(found, Group):
        return _group_line(table, found, width)
    return _change_line(table, found, width)


def _group_line(table: ChangeTable, group: Group, width: int) -> Parts:
    widths = _widths(width)
    fold = "▸" if group.folded else "▾"
    sign = f"{SIGNS[group.status]} " if group.status else ""
    some = len(group.noted) if group.folded else 0
    count = f"{number(some)} of {number(group.count)}" if 0 < some < group.count else number(group.count)
    name = f"{sign}{one_line(group.key)} {count} {fold}"
    blank = [Column("", "", widths.kind)] if widths.whole_kind else []
    style = f"heading-{group.status}" if group.status else "muted" if group.key in NONE.values() else "strong"
    amounts = _amounts(group.in_window, group.new, group.freed, group.saved, group.stale, widths.brief)
    return _table_line(table, [Column(name, style), *blank], amounts, "", width, "strong")


def _name(change: Change, words: str) -> str:
    """The item's title, else its first words, else its id."""
    if change.title or not words.strip():
        return one_line(change.title or change.item)
    return f"“{one_line(words)}”"


def _kind(change: Change, widths: _Widths) -> str:
    return change.kind if widths.whole_kind else brief_kind(change.kind)


def _change_line(table: ChangeTable, change: Change, width: int) -> Parts:
    widths = _widths(width)
    mark = {"native": " ", "derived": "d", "simulated": "s"}[change.provenance]
    first = [
        Column(f"{SIGNS[change.status]}", f"sign-{change.status}", 1),
        Column(mark, "muted", 2),
    ]
    words = table.labels.get(change.item, "")
    kind = [Column(_kind(change, widths), "muted", widths.kind)] if widths.kind else []
    name = [Column(_name(change, words), "skipped" if change.status == "skipped" else "")]
    first += name + kind if widths.whole_kind else kind + name
    held = table.holdings.get(change.item, Holding())
    amounts = _amounts(change.in_window, change.new, change.freed, held.saved, held.stale, widths.brief)
    cause = why(change, brief=widths.cause < 20)
    if held.stale and not cause and "stale" not in _columns(table, width):
        cause = f"stale {short(held.stale)}"
    omitted = change.status == "omitted"
    if omitted and change.tokens:
        size = (short if widths.brief else number)(change.tokens)
        amounts = amounts._replace(window=f"({size})")
    return _table_line(table, first, amounts, cause, width, out=omitted)


def _amounts(in_window: int, new: int, freed: int, saved: int | None, stale: int, brief: bool) -> _Amounts:
    show = short if brief else number
    return _Amounts(
        show(in_window) if in_window else "·",
        signed(new, brief=brief) if new else "·",
        show(-freed) if freed else "·",
        show(saved) if saved else "·",
        show(stale) if stale else "·",
    )


def why(change: Change, *, brief: bool = False) -> str:
    """Cause, reason and flags of a change in one phrase; `brief` keeps the most telling one."""
    said = [change.cause, change.reason]
    if brief and change.cause in ("omitted", "truncated") and change.reason:
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


def pane_titles(state: State) -> dict[str, str]:
    """Titles of the panes."""
    turns = len(state.list.turns.entries)
    change = state.selected
    return {
        "turns": f"turns {number(turns)}" if turns else "turns",
        "changes": _changes_title(state) + arrangement(state),
        "item": "item" if change is None else (change.title or change.item),
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
    told = f" ({plural(steps, 'step')})" if steps > 1 else ""
    return f"what changed in turn {row.turn}{written}{told}"


def arrangement(state: State) -> str:
    """How the changes that are shown are sorted and grouped, where that is not the usual way."""
    how = state.table.arrangement
    said = [] if how.only is None else [f"only {how.only}"]
    if how.by != "status":
        said.append("not grouped" if how.by == "none" else f"by {how.by}")
    down = how.order in ("window", "new", "freed")
    if how.order != "frame":
        said.append(f"{'↓' if down != how.reverse else '↑'} {how.order}")
    elif how.reverse:
        said.append("reversed")
    return "".join(f" · {words}" for words in said)

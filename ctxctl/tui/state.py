"""What is being looked at: one immutable value, and the functions that lead from one to the next.

Plain Python: no widget, no event loop, no file.  A screen keeps a `State`, replaces it by what a function
here returns, and paints it; nothing here costs more than the number of unfolded turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from ctxctl.model.outline import Row
from ctxctl.model.results import Change, Step, Turn, Window
from ctxctl.model.vocab import Status
from ctxctl.tui.changes import ChangeTable, Group
from ctxctl.tui.document import Document
from ctxctl.tui.outline import Folding, Growth, Place, TurnEntry, Turns

Pane = Literal["turns", "changes", "item"]
PANES: Final[tuple[Pane, ...]] = ("turns", "changes", "item")
Tab = Literal["content", "diff"]
Phase = Literal["opening", "reading", "ready"]


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of the open trace as a whole."""

    name: str
    format: str = "native"
    encoding: str = ""
    """Counting method and encoding, such as ``exact:o200k_base``."""
    assumed: str = ""
    """One sentence where the encoding was assumed, else empty."""
    policy: str = "recorded"
    problems: int = 0


@dataclass(frozen=True, slots=True)
class Target:
    """What the cursor in the list of turns asks for: a step, or a whole turn (its last step's frame)."""

    ordinal: int
    whole_turn: bool
    first: int
    """The step whose previous frame is compared with: the turn's first, or the step itself."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One frame's facts, or why there are none.  `turn` is None where a single step was asked for."""

    target: Target
    step: Step | None
    turn: Turn | None
    table: ChangeTable
    with_skipped: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ItemKey:
    """Which item's text is wanted, and in which comparison."""

    target: Target
    change: Change

    def same(self, other: ItemKey | None) -> bool:
        """Whether both ask for the same text."""
        return other is not None and self.target == other.target and self.change == other.change


@dataclass(frozen=True, slots=True)
class ItemText:
    """An item's text and its difference to the version in the frame before; None with a reason in words."""

    key: ItemKey
    content: Document | None
    diff: Document | None
    note: str = ""
    """Why there is no content."""
    diff_note: str = ""
    """Why there is no diff, or what is special about it."""


@dataclass(frozen=True, slots=True)
class State:
    """The whole view; see the fields' types for what each part holds."""

    trace: Trace
    phase: Phase = "opening"
    progress: float | None = None
    """Part of the trace read, 0 to 1, while `phase` is `reading`."""
    list: Folding = field(default_factory=lambda: Folding(Turns()))
    cursor: int = 0
    """Line in the list of turns."""
    held: tuple[Place, Target] | None = None
    """A turn that went on while its changes were being looked at, and what is shown of it until the user
    comes back to the list or moves on.
    """
    pane: Pane = "turns"
    detail: Detail | None = None
    change: int = 0
    """Line in the table of changes."""
    item: str | None = None
    """Item that the cursor in the changes stays on when the frame changes."""
    folded: frozenset[Status] = frozenset()
    skipped: bool = False
    """Whether skipped items are listed."""
    tab: Tab | None = None
    """None: the diff of what was updated, the content of everything else."""
    text: ItemText | None = None

    @property
    def place(self) -> Place | None:
        """The turn or step under the cursor."""
        return self.list.at(self.cursor) if self.list.count else None

    @property
    def entry(self) -> TurnEntry | None:
        """The turn under the cursor, or that of the step under it."""
        place = self.place
        return None if place is None else self.list.turns.entries[place.turn]

    @property
    def target(self) -> Target | None:
        """The frame that the cursor asks for; of a turn that is still being read, its first step's."""
        place, entry = self.place, self.entry
        if place is None or entry is None:
            return None
        if self.held is not None and self.held[0] == place and self.pane != "turns":
            return self.held[1]
        first = entry.ordinals[0]
        if place.step is not None:
            ordinal = entry.ordinals[place.step]
            return Target(ordinal, whole_turn=False, first=ordinal)
        if entry.whole:
            return Target(entry.last, whole_turn=True, first=first)
        return Target(first, whole_turn=False, first=first)

    @property
    def shown(self) -> Detail | None:
        """The detail, if it is the one that the cursor asks for."""
        return self.detail if self.detail is not None and self.detail.target == self.target else None

    @property
    def table(self) -> ChangeTable:
        """The changes to show; those of the last frame stay until the next ones are there."""
        return ChangeTable() if self.detail is None else self.detail.table

    @property
    def selected(self) -> Change | None:
        """The change under the cursor."""
        return self.table.change_at(self.change)

    @property
    def wanted(self) -> ItemKey | None:
        """The text that the item pane asks for."""
        detail, change = self.shown, self.selected
        return None if detail is None or change is None else ItemKey(detail.target, change)

    @property
    def shown_text(self) -> ItemText | None:
        """The item's text, if it is the one asked for."""
        wanted = self.wanted
        return self.text if self.text and wanted and wanted.same(self.text.key) else None

    @property
    def shown_tab(self) -> Tab:
        """Which of content and diff is in view."""
        if self.tab is not None:
            return self.tab
        return "diff" if self.selected is not None and self.selected.status == "updated" else "content"

    @property
    def window(self) -> Window | None:
        """The window of the frame shown."""
        return None if self.detail is None or self.detail.step is None else self.detail.step.window


# What the loader says ---------------------------------------------------------------------------------------


def opened(state: State, trace: Trace) -> State:
    """The trace is open; its steps are being read."""
    return replace(state, trace=trace, phase="reading", progress=0.0)


def progressed(state: State, part: float) -> State:
    """A part of the trace, 0 to 1, has been read."""
    return state if state.phase == "ready" else replace(state, progress=min(max(part, 0.0), 1.0))


def grown(state: State, growth: Growth) -> State:
    """More turns are known; the cursor stays on the turn or step it was on."""
    place, target = state.place, state.target
    state.list.turns.grow(growth)
    folding = state.list.with_turns(state.list.unfolded)
    state = replace(state, list=folding)
    if place is None or target is None:
        return state
    state = replace(state, cursor=folding.line(place))
    if state.pane != "turns" and state.target != target:
        return replace(state, held=(place, target))
    return state


def outlined(state: State, growth: Growth, trace: Trace) -> State:
    """All turns are known."""
    return replace(grown(state, growth), trace=trace, phase="ready", progress=None)


def detailed(state: State, detail: Detail) -> State:
    """A frame's changes have arrived; late ones of another frame are ignored.

    The cursor stays on the item it was on, if that item is in this frame's table.
    """
    if detail.target != state.target:
        return state
    table = detail.table
    for status in state.folded:
        table = table.folded(status, True)
    if detail.with_skipped and not state.skipped:
        table = table.folded("skipped", True)
    found = None if state.item is None else table.find(state.item)
    change = table.first() if found is None else found
    same = state.detail is not None and state.detail.target == detail.target
    if same and found is None:
        change = min(state.change, max(table.count - 1, 0))
    return replace(state, detail=replace(detail, table=table), change=change)


def texted(state: State, text: ItemText) -> State:
    """An item's text has arrived."""
    wanted = state.wanted
    return replace(state, text=text) if wanted is not None and wanted.same(text.key) else state


# The list of turns ------------------------------------------------------------------------------------------


def to_line(state: State, line: int) -> State:
    """Move the cursor in the list of turns to a line, or to the nearest there is."""
    return replace(state, cursor=_clamped(line, state.list.count), held=None)


def next_turn(state: State, by: int) -> State:
    """Go `by` turns on, to the turn's own line; back from a step line leads to its turn first."""
    place = state.place
    if place is None:
        return state
    if place.step is not None and by < 0:
        by += 1
    turn = _clamped(place.turn + by, len(state.list.turns.entries))
    if turn == place.turn and by > 0:
        return state
    return replace(state, cursor=state.list.line(Place(turn, None)), held=None)


def toggle_steps(state: State, unfold: bool | None = None) -> State:
    """Fold or unfold the turn under the cursor; the cursor stays on the turn.

    From a step line, folding leads to its turn.  A turn of one step has nothing to unfold.
    """
    place = state.place
    if place is None:
        return state
    is_unfolded = state.list.is_unfolded(place.turn)
    wanted = not is_unfolded if unfold is None else unfold
    if place.step is not None and wanted:
        return state
    if wanted == is_unfolded or (wanted and state.list.turns.entries[place.turn].steps < 2):
        return replace(state, cursor=state.list.line(Place(place.turn, None)))
    folding = state.list.toggled(place.turn)
    return replace(state, list=folding, cursor=folding.line(Place(place.turn, None)))


def row_of(state: State, place: Place) -> Row:
    """The outline row of a step line, or of a turn's last step."""
    turns = state.list.turns
    entry = turns.entries[place.turn]
    return turns.rows[entry.last if place.step is None else entry.ordinals[place.step]]


# The table of changes ---------------------------------------------------------------------------------------


def to_change(state: State, line: int) -> State:
    """Move the cursor in the changes to a line, or to the nearest there is; it remembers the item there."""
    moved = replace(state, change=_clamped(line, state.table.count))
    return replace(moved, item=moved.selected.item) if moved.selected is not None else moved


def toggle_group(state: State) -> State:
    """Fold or unfold the group whose heading is under the cursor."""
    if state.detail is None or not 0 <= state.change < state.table.count:
        return state
    group = state.table.at(state.change)
    if not isinstance(group, Group):
        return state
    if group.status == "skipped":
        return toggle_skipped(state)
    folded = not group.folded
    table = state.table.folded(group.status, folded)
    statuses = state.folded | {group.status} if folded else state.folded - {group.status}
    return replace(state, detail=replace(state.detail, table=table), folded=statuses)


def toggle_skipped(state: State) -> State:
    """List the skipped items, or only their number; the loader is asked where they are not there yet."""
    shown = not state.skipped
    state = replace(state, skipped=shown)
    if state.detail is None or not state.detail.with_skipped:
        return state
    table = state.table.folded("skipped", not shown)
    return replace(
        state,
        detail=replace(state.detail, table=table),
        change=_clamped(state.change, table.count),
    )


# Panes ------------------------------------------------------------------------------------------------------


def enter(state: State) -> State:
    """Go one level in: from the turns to the changes, from a change to its text; a heading folds."""
    if state.pane == "turns":
        return replace(state, pane="changes") if state.place is not None else state
    if state.pane == "changes":
        if state.selected is None:
            return toggle_group(state)
        return replace(to_change(state, state.change), pane="item")
    return state


def back(state: State) -> State:
    """Go one level out."""
    return focused(state, PANES[max(PANES.index(state.pane) - 1, 0)])


def cycle(state: State, by: int, panes: Sequence[Pane] = PANES) -> State:
    """Focus the next pane of those there are."""
    at = panes.index(state.pane) if state.pane in panes else 0
    return focused(state, panes[(at + by) % len(panes)])


def focused(state: State, pane: Pane) -> State:
    """Focus a pane; back in the list of turns, what is known by now is shown."""
    return replace(state, pane=pane, held=None if pane == "turns" else state.held)


def toggle_tab(state: State) -> State:
    """Show the diff instead of the content, or the other way round; the choice stays for the next items."""
    return replace(state, tab="content" if state.shown_tab == "diff" else "diff")


def _clamped(line: int, count: int) -> int:
    return min(max(line, 0), max(count - 1, 0))

"""What leads from one view to the next.

A screen keeps a `State`, replaces it by what a function here returns, and paints it.

Plain Python.  Nothing here costs more than what is unfolded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ctxctl.model.outline import Row
from ctxctl.tui.changes import FACETS, ORDERS, Note
from ctxctl.tui.cost_column import Paids
from ctxctl.tui.document import Document
from ctxctl.tui.folding import Folding
from ctxctl.tui.outline import Growth, Turns
from ctxctl.tui.screens.turns.view import PANES as PANES
from ctxctl.tui.screens.turns.view import Detail as Detail
from ctxctl.tui.screens.turns.view import ItemKey as ItemKey
from ctxctl.tui.screens.turns.view import ItemText as ItemText
from ctxctl.tui.screens.turns.view import Pane as Pane
from ctxctl.tui.screens.turns.view import State as State
from ctxctl.tui.screens.turns.view import Target as Target
from ctxctl.tui.screens.turns.view import Trace as Trace
from ctxctl.tui.screens.turns.view import Visit as Visit
from ctxctl.tui.thread_names import ThreadName
from ctxctl.tui.thread_tree import HEADING, Place, TurnEntry
from ctxctl.tui.watching import Watching

# What the loader says ---------------------------------------------------------------------------------------


def opened(state: State, trace: Trace) -> State:
    """The trace is open; its steps are being read."""
    return replace(state, trace=trace, phase="reading", progress=0.0, following=trace.live)


def progressed(state: State, part: float) -> State:
    """A part of the trace, 0 to 1, has been read."""
    return state if state.phase == "ready" else replace(state, progress=min(max(part, 0.0), 1.0))


def grown(state: State, growth: Growth) -> State:
    """More turns are known; the cursor stays on the turn or step it was on, unless it follows the newest."""
    place, target, entry, turns = state.place, state.target, state.entry, state.list.turns
    known, marked = len(turns.entries), _named(turns, state.marked)
    turns.grow(growth)
    listing = state.list.grown()
    more = max(len(turns.entries) - known, 0)
    state = replace(state, list=listing, newer=state.newer + more if state.trace.live else 0)
    if _named(turns, state.marked) != marked:
        state = replace(state, marked=None)
    place = None if place is None or entry is None else _again(turns, place, entry)
    if state.following and growth.entries:
        told = {index for index, _ in growth.entries} | ({place.turn} if place is not None else set())
        return followed(state, max(told, key=lambda index: begun(turns, index)))
    if target is None:
        return state
    if place is None:
        return replace(state, cursor=max(listing.count - 1, 0), held=None)
    state = replace(state, cursor=listing.line(place))
    if state.pane != "turns" and state.target != target and not state.trace.live:
        return replace(state, held=(place, target))
    return state


def _named(turns: Turns, ordinal: int | None) -> object:
    """Which step an ordinal is: of one that is still being written, another one may get it."""
    if ordinal is None or ordinal >= len(turns.rows):
        return None
    row = turns.rows[ordinal]
    return row.session, row.thread, row.turn, row.step


def _again(turns: Turns, place: Place, entry: TurnEntry) -> Place | None:
    """Where a turn stands now, whose place another one may have taken; None where it is gone."""
    wanted = (entry.session, entry.thread, entry.turn)
    entries = turns.entries
    if place.turn < len(entries):
        found = entries[place.turn]
        if (found.session, found.thread, found.turn) == wanted:
            return place
    thread = turns.tree.threads.get(wanted[:2])
    places = () if thread is None else reversed(thread.turns)
    return next((place._replace(turn=turn) for turn in places if entries[turn].turn == entry.turn), None)


def begun(turns: Turns, turn: int) -> tuple[int, int]:
    """Orders turns by when their last step began: a thread that is still open may have fallen silent."""
    last = turns.entries[turn].last
    return turns.rows[last].first_line, last


def outdated(state: State, target: Target, kept: int) -> bool:
    """Whether what was told of a frame may be told otherwise now: only the first `kept` steps are the same.

    Of a turn that goes on, every step that is over changes what the turn comes to.
    """
    entry = state.entry
    return target.ordinal >= kept or (target.whole_turn and entry is not None and not entry.whole)


def followed(state: State, newest: int | None = None) -> State:
    """With the cursor on a turn, the last one where none is named, or on its last step if they are listed."""
    turns = state.list.turns
    if not turns.entries:
        return replace(state, following=True, newer=0)
    if newest is None:
        newest = max(range(len(turns.entries)), key=lambda turn: begun(turns, turn))
    step = turns.entries[newest].steps - 1 if state.list.is_unfolded(newest) else None
    line = state.list.line(Place(newest, step))
    return replace(state, cursor=line, held=None, following=True, newer=0)


def anew(state: State, name: str) -> State:
    """Another session is watched, or the file was replaced: nothing of what was shown is true any more."""
    trace = replace(state.trace, name=name, problems=0, late=0)
    fresh = State(trace, state.epoch + 1, pane=state.pane, tab=state.tab, following=state.trace.live)
    return replace(fresh, order=state.order, reverse=state.reverse, by=state.by, only=state.only)


def watched(state: State, watching: Watching, problems: int) -> State:
    """How the watch stands; what there is when nothing is left to be read is shown as ready."""
    trace = replace(state.trace, live=True, watching=watching, problems=problems)
    if watching.steady and state.phase == "reading":
        ready = with_steps_listed(replace(state, trace=trace, phase="ready", progress=None))
        return followed(ready) if ready.following else ready
    return replace(state, trace=trace)


def costed(state: State, told: Paids) -> State:
    """More is known of what steps cost."""
    state.costs.take(told, state.list.turns.rows)
    return replace(state, priced=len(state.costs))


def outlined(state: State, growth: Growth, trace: Trace) -> State:
    """All turns are known."""
    known = replace(grown(state, growth), trace=trace, phase="ready", progress=None)
    return known if state.phase == "ready" else with_steps_listed(known)


_FEW: Final = 3
"""Turns at the top up to which their steps are listed from the beginning."""
_MANY: Final = 4
"""Steps of one of them from which on they are."""


def with_steps_listed(state: State) -> State:
    """With the steps of all turns at the top listed, where turns are few and one has many steps: an agent's
    session, of which a list of turns tells nothing.  What somebody has folded or unfolded stays.
    """
    listing = state.list
    roots = [turn for session in listing.turns.tree.sessions.values() for turn in session.roots[: _FEW + 1]]
    steps = [listing.turns.entries[turn].steps for turn in roots]
    if listing.unfolded or listing.shut or len(roots) > _FEW or max(steps, default=0) < _MANY:
        return state
    place = state.place
    listing = listing.with_turns(turn for turn, count in zip(roots, steps, strict=True) if count > 1)
    return replace(state, list=listing, cursor=0 if place is None else listing.line(place))


def detailed(state: State, detail: Detail) -> State:
    """A frame's changes have arrived; late ones of another frame are ignored.

    The cursor stays on the item it was on, if that item is in this frame's table.
    """
    if detail.target != state.target:
        return state
    table = detail.table
    for key in state.folded:
        table = table.folded(key, True)
    if detail.with_skipped and not state.skipped and table.arrangement.by == "status":
        table = table.folded("skipped", True)
    found = None if state.item is None else table.find(state.item)
    if found is None and state.seeking and not state.skipped:
        state = replace(state, skipped=True)  # the screen asks again
    else:
        state = replace(state, seeking=False)
    change = table.first() if found is None else found
    same = state.detail is not None and state.detail.target == detail.target
    if same and found is None:
        change = min(state.change, max(table.count - 1, 0))
    return replace(state, detail=replace(detail, table=table), change=change)


def texted(state: State, text: ItemText) -> State:
    """An item's text has arrived."""
    wanted, before = state.wanted, state.text
    if wanted is None or not wanted.same(text.key):
        return state
    if before is not None and before.key.change.item == text.key.change.item:
        content, diff = _kept(before.content, text.content), _kept(before.diff, text.diff)
        text = replace(text, content=content, diff=diff)
    return replace(state, text=text)


def _kept(before: Document | None, now: Document | None) -> Document | None:
    """The document of before where it says the same: what is being read stays where it is."""
    same = before is not None and now is not None and before.remark == now.remark and before.text == now.text
    return before if same else now


# The list of turns ------------------------------------------------------------------------------------------


def to_line(state: State, line: int) -> State:
    """Move the cursor in the list of turns to a line, or to the nearest there is; that ends following."""
    return replace(state, cursor=_clamped(line, state.list.count), held=None, following=False)


def next_turn(state: State, by: int) -> State:
    """Go `by` turns on in the list, to the turn's own line; back from a step line leads to its turn first."""
    line = state.cursor
    for _ in range(abs(by)):
        found = _turn_line(state, line, by > 0)
        if found is None:
            break
        line = found
    return state if line == state.cursor else to_line(state, line)


def _turn_line(state: State, line: int, forward: bool) -> int | None:
    """The nearest line of a turn behind a line, or before it."""
    listing = state.list
    while True:
        here = listing.at(line) if 0 <= line < listing.count else None
        if here is not None and here.step is not None and here.step >= 0 and not listing.turns.tree.kids:
            steps = listing.turns.entries[here.turn].steps
            line += steps - here.step if forward else -here.step - 1
        else:
            line += 1 if forward else -1
        if not 0 <= line < listing.count:
            return None
        if listing.at(line).step is None:
            return line


def toggle_steps(state: State, unfold: bool | None = None) -> State:
    """Fold or unfold what is under the cursor, which stays there: a turn's steps, a thread, a session.

    From a step, folding leads to its turn; from a thread that is folded, or has nothing to fold, to the turn
    that set it off.  A turn of one step has no steps to unfold.
    """
    place = state.place
    if place is None:
        return state
    listing, turn = state.list, place.turn
    entry = listing.turns.entries[turn]
    if place.step == HEADING:
        closed = entry.session in listing.closed
        return (
            state
            if unfold is not None and unfold != closed
            else _at(state, listing.toggled_session(entry.session), place)
        )
    thread = listing.leads(turn)
    shut = thread is not None and thread.name in listing.shut
    own = Place(turn, None)
    if place.step is not None:
        return state if unfold else _at(state, listing.toggled(turn), own)
    if thread is not None and shut and unfold is not False:
        return _at(state, listing.toggled_thread(thread.name), own)
    if listing.is_unfolded(turn):
        return state if unfold else _at(state, listing.toggled(turn), own)
    if unfold is not False and entry.steps > 1:
        return _at(state, listing.toggled(turn), own)
    if unfold:
        return state
    if thread is not None and not shut:
        return _at(state, listing.toggled_thread(thread.name), own)
    above = listing.turns.tree.thread_of(turn).at
    return state if unfold is None or above is None else _at(state, listing, Place(above.turn, None))


def _at(state: State, listing: Folding, place: Place) -> State:
    return replace(state, list=listing, cursor=listing.line(place), following=False)


def toggle_threads(state: State) -> State:
    """Fold all threads below others, or unfold them where all are."""
    place, listing = state.place, state.list
    tree = listing.turns.tree
    below: frozenset[ThreadName] = frozenset(t.name for t in tree.threads.values() if t.at is not None)
    if place is None or not below:
        return state
    return _at(state, listing.with_threads(frozenset() if below <= listing.shut else below), place)


def row_of(state: State, place: Place) -> Row:
    """The outline row of a step line, or of a turn's last step."""
    turns = state.list.turns
    entry = turns.entries[place.turn]
    step = place.step if place.step is not None and place.step >= 0 else entry.steps - 1
    return turns.rows[entry.ordinals[step]]


# The table of changes ---------------------------------------------------------------------------------------


def to_change(state: State, line: int) -> State:
    """Move the cursor in the changes to a line, or to the nearest there is; it remembers the item there."""
    moved = replace(state, change=_clamped(line, state.table.count))
    return replace(moved, item=moved.selected.item) if moved.selected is not None else moved


def toggle_group(state: State) -> State:
    """Fold or unfold the group whose heading is under the cursor, or that of the change there."""
    detail = state.detail
    if detail is None or not 0 <= state.change < state.table.count:
        return state
    group = state.table.group_at(state.change)
    if group is None:
        return state
    if group.key == "skipped":
        state = replace(state, change=state.table.heading(group))
        return toggle_skipped(state)
    folded = not group.folded
    table = state.table.folded(group.key, folded)
    keys = state.folded | {group.key} if folded else state.folded - {group.key}
    return replace(state, detail=replace(detail, table=table), folded=keys, change=table.heading(group))


def toggle_groups(state: State) -> State:
    """Fold all groups but what was skipped, or unfold them where all are; the cursor stays in its group."""
    table, detail = state.table, state.detail
    if detail is None:
        return state
    keys = {group.key for group in table.groups if group.key != "skipped"}
    fold = not all(table.is_folded(key) for key in keys)
    here = table.group_at(state.change)
    for key in keys:
        table = table.folded(key, fold)
    folded = state.folded | keys if fold else state.folded - keys
    change = table.first() if here is None else table.heading(here)
    if not fold and state.item is not None:
        change = table.find(state.item) or change
    return replace(state, detail=replace(detail, table=table), folded=folded, change=change)


def toggle_skipped(state: State) -> State:
    """List the skipped items, or only their number; the loader is asked where they are not there yet."""
    shown = not state.skipped
    state = replace(state, skipped=shown)
    if state.detail is None or not state.detail.with_skipped:
        return state
    if state.by != "status":
        return state
    table = state.table.folded("skipped", not shown)
    return replace(
        state,
        detail=replace(state.detail, table=table),
        change=_clamped(state.change, table.count),
    )


def sort(state: State) -> State:
    """Sort the changes by the next thing; they are shown as they were until they are sorted."""
    return replace(state, order=ORDERS[(ORDERS.index(state.order) + 1) % len(ORDERS)], reverse=False)


def reverse(state: State) -> State:
    """Sort the changes the other way round."""
    return replace(state, reverse=not state.reverse)


def group(state: State) -> State:
    """Group the changes by the next thing; the groups that were folded by another stay known."""
    return replace(state, by=FACETS[(FACETS.index(state.by) + 1) % len(FACETS)])


# Panes ------------------------------------------------------------------------------------------------------


def notes_at(state: State) -> Sequence[Note]:
    """All notes above the changes, where the cursor is on one of them."""
    notes = state.table.notes
    return notes if state.pane == "changes" and state.change < len(notes) else ()


def enter(state: State) -> State:
    """Go one level in: from the turns to the changes, from a change to its text; a heading folds."""
    if state.pane == "turns":
        return replace(state, pane="changes", following=False) if state.place is not None else state
    if state.pane == "changes":
        if state.selected is None:
            return toggle_group(state)
        return replace(to_change(state, state.change), pane="item")
    return state


def back(state: State) -> State:
    """Go one level out; from changes of which only some are listed, to all of them."""
    if state.pane != "item" and state.only is not None:
        return replace(state, only=None)
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

"""Going further than a line: to what is of note, to a step that something names, and back.  Plain Python.

Also what is kept of a trace when it is left, and how one comes back to that place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import fields, replace
from typing import Any, Final

from ctxctl.model.vocab import STATUSES
from ctxctl.tui.changes import FACETS, ORDERS
from ctxctl.tui.folding import Folding
from ctxctl.tui.memory import Left
from ctxctl.tui.outline import Turns
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.state import PANES, State, detailed, to_line
from ctxctl.tui.screens.turns.view import Visit
from ctxctl.tui.thread_tree import HEADING, Place

_KEPT: Final = 100
"""Jumps that can be gone back."""


def place_of(turns: Turns, ordinal: int) -> Place | None:
    """The turn and step of an ordinal; None where it is not known."""
    if not 0 <= ordinal < len(turns.rows):
        return None
    row = turns.rows[ordinal]
    thread = turns.tree.threads.get((row.session, row.thread))
    if thread is None:
        return None
    entries = turns.entries
    at = bisect_right(thread.turns, ordinal, key=lambda turn: entries[turn].ordinals[0]) - 1
    if at < 0:
        return None
    entry = entries[thread.turns[at]]
    step = bisect_left(entry.ordinals, ordinal, 0, entry.steps)
    if step == entry.steps or entry.ordinals[step] != ordinal:
        return None
    return Place(thread.turns[at], step)


def unfolded_to(listing: Folding, place: Place) -> Folding:
    """The list with a place in it: unfolded as far as that needs."""
    tree, entries = listing.turns.tree, listing.turns.entries
    session = entries[tree.root(place.turn)].session
    if session in listing.closed:
        listing = listing.toggled_session(session)
    turn: int | None = place.turn
    while turn is not None:
        thread = tree.thread_of(turn)
        if thread.name in listing.shut and thread.turns[0] != turn:
            listing = listing.toggled_thread(thread.name)
        turn = None if thread.at is None else thread.at.turn
    if place.step is not None and place.step >= 0 and not listing.is_unfolded(place.turn):
        listing = listing.toggled(place.turn)
    return listing


def jump(state: State, ordinal: int, item: str | None = None) -> State:
    """Go to a step, and to an item in it, even one that was skipped; remember where from."""
    place = place_of(state.list.turns, ordinal)
    if place is None:
        return state
    if state.list.turns.entries[place.turn].steps == 1:
        place = Place(place.turn, None)
    here = here_of(state)
    visits = state.visits if here is None else (*state.visits, here)[-_KEPT:]
    gone = _to(state, place)
    if item is None:
        return replace(gone, visits=visits)
    return _found(replace(gone, visits=visits, pane="changes", item=item, seeking=True))


def here_of(state: State) -> Visit | None:
    """Where the cursor is."""
    place, target = state.place, state.target
    if place is None or target is None:
        return None
    return Visit(target.ordinal, place.step is not None and place.step >= 0, state.pane, state.item)


def jump_back(state: State) -> State:
    """Go back to where the last jump came from; a step that is gone since is passed over."""
    visits = state.visits
    while visits:
        visit, visits = visits[-1], visits[:-1]
        place = place_of(state.list.turns, visit.ordinal)
        if place is not None:
            gone = _to(state, place if visit.step else Place(place.turn, None))
            gone = replace(gone, visits=visits, pane=visit.pane, item=visit.item)
            return _found(replace(gone, seeking=visit.item is not None))
    return replace(state, visits=())


def _found(state: State) -> State:
    """Put the cursor on the item where its frame is shown already: its changes are not sent again."""
    return state if state.shown is None else detailed(state, state.shown)


def _to(state: State, place: Place) -> State:
    listing = unfolded_to(state.list, place)
    return to_line(replace(state, list=listing), listing.line(place))


def next_notable(state: State, by: int) -> State:
    """Go to the next turn with something of note (+1), or to the one before it (-1); stay where none is."""
    place = state.place
    if place is None:
        return state
    found = _in_block(state, by)
    if found is None:
        root = _next_root(state, place.turn, by)
        if root is None:
            return state
        listing = unfolded_to(state.list, Place(root, None))
        state = to_line(replace(state, list=listing), listing.line(Place(root, None)))
        found = _edge(state, root, by)
    return to_line(state, found)


def _of_note(state: State, line: int) -> bool:
    place = state.list.at(line)
    return place.step is None and state.list.turns.entries[place.turn].notable


def _in_block(state: State, by: int) -> int | None:
    """The nearest line of note before or behind the cursor, below the same turn at the top."""
    root, line = _root(state, state.cursor), state.cursor + by
    while 0 <= line < state.list.count and _root(state, line) == root:
        if _of_note(state, line):
            return line
        line += by
    return None


def _root(state: State, line: int) -> int | None:
    place = state.list.at(line)
    return None if place.step == HEADING else state.list.turns.tree.root(place.turn)


def _edge(state: State, root: int, by: int) -> int:
    """The first line of note below a turn at the top, going on, or the last one, going back."""
    first = line = state.cursor
    found = [first] if _of_note(state, first) else []
    while not (found and by > 0):
        line += 1
        if line >= state.list.count or _root(state, line) != root:
            break
        if _of_note(state, line):
            found.append(line)
    return found[0 if by > 0 else -1] if found else first


def _next_root(state: State, turn: int, by: int) -> int | None:
    """The next turn at the top with something of note in or below it, in the order of the list."""
    tree = state.list.turns.tree
    root = tree.root(turn)
    sessions = list(tree.sessions.values())
    here = sessions.index(tree.session_of(root))
    heading = state.place is not None and state.place.step == HEADING
    own = sessions[here].notable
    if by > 0:
        at = 0 if heading else bisect_right(own, root)
        if at < len(own):
            return own[at]
        return next((session.notable[0] for session in sessions[here + 1 :] if session.notable), None)
    at = 0 if heading else bisect_left(own, root)
    if at > 0:
        return own[at - 1]
    return next((session.notable[-1] for session in reversed(sessions[:here]) if session.notable), None)


_CHOICES: Final[dict[str, dict[str, Any]]] = {
    "skipped": {"listed": True},
    "tab": {"content": "content", "diff": "diff"},
    "order": {order: order for order in ORDERS[1:]},
    "reverse": {"reversed": True},
    "by": {facet: facet for facet in FACETS[1:]},
}
"""Fields of the state that are chosen, and by which word each value is kept; others are not kept."""


def position_left(state: State) -> Left | None:
    """How a trace is left; None where nothing of it is known yet."""
    here = here_of(state)
    if here is None or state.entry is None:
        return None
    choices = {}
    for name in _known():
        for word, value in _CHOICES[name].items():
            if getattr(state, name) == value:
                choices[name] = word
    if statuses := state.folded & set(STATUSES):
        choices["folded"] = " ".join(sorted(statuses))
    return Left(here.ordinal if here.step else state.entry.ordinals[0], here.step, state.pane, choices)


def with_choices(state: State, was: Left) -> State:
    """The state with what had been chosen; what is not known to this version is passed over."""
    values: dict[str, Any] = {
        name: _CHOICES[name][word]
        for name, word in was.choices.items()
        if name in _known() and word in _CHOICES[name]
    }
    folded = {status for status in STATUSES if status in was.choices.get("folded", "").split()}
    if folded:
        values["folded"] = state.folded | folded
    return replace(state, **values)


def back_at(state: State, was: Left) -> State | None:
    """The state at the turn that had been left; None while that turn is not known."""
    found = at_step(state, was.ordinal, step=was.step)
    if found is None:
        return None
    pane = next((pane for pane in PANES if pane == was.pane), state.pane)
    return replace(found, pane="changes" if pane == "item" else pane)


def at_step(state: State, ordinal: int, *, step: bool) -> State | None:
    """The state at a step's own line, or at its turn's; None where the step is not known."""
    place = place_of(state.list.turns, ordinal)
    if place is None:
        return None
    if not step or state.list.turns.entries[place.turn].steps == 1:
        place = Place(place.turn, None)
    listing = unfolded_to(state.list, place)
    return moves.to_line(replace(state, list=listing), listing.line(place))


def _known() -> list[str]:
    names = {field.name for field in fields(State)}
    return [name for name in _CHOICES if name in names]

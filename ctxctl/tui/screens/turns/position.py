"""Leaving a trace, and coming back to where it was left.  Plain Python."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from ctxctl.model.vocab import STATUSES
from ctxctl.tui.changes import FACETS, ORDERS
from ctxctl.tui.memory import Left
from ctxctl.tui.screens.turns import navigation
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.state import PANES, State
from ctxctl.tui.thread_tree import Place

_CHOICES: Final[dict[str, dict[str, Any]]] = {
    "skipped": {"listed": True},
    "tab": {"content": "content", "diff": "diff"},
    "order": {order: order for order in ORDERS[1:]},
    "reverse": {"reversed": True},
    "by": {facet: facet for facet in FACETS[1:]},
}
"""Fields of the state that are chosen, and by which word each value is kept; others are not kept."""


def left(state: State) -> Left | None:
    """How a trace is left; None where nothing of it is known yet."""
    here = navigation.here_of(state)
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


def chosen(state: State, was: Left) -> State:
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


def back(state: State, was: Left) -> State | None:
    """The state at the turn that had been left; None while that turn is not known."""
    found = at(state, was.ordinal, step=was.step)
    if found is None:
        return None
    pane = next((pane for pane in PANES if pane == was.pane), state.pane)
    return replace(found, pane="changes" if pane == "item" else pane)


def at(state: State, ordinal: int, *, step: bool) -> State | None:
    """The state at a step's own line, or at its turn's; None where the step is not known."""
    place = navigation.place_of(state.list.turns, ordinal)
    if place is None:
        return None
    if not step or state.list.turns.entries[place.turn].steps == 1:
        place = Place(place.turn, None)
    listing = navigation.shown(state.list, place)
    return moves.to_line(replace(state, list=listing), listing.line(place))


def _known() -> list[str]:
    names = {field.name for field in fields(State)}
    return [name for name in _CHOICES if name in names]

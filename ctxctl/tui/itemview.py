"""The item pane as functions of the state: which tab it shows, and what it lacks.  Plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ctxctl.tui import lines
from ctxctl.tui.document import Document
from ctxctl.tui.itemhead import item_head
from ctxctl.tui.lines import Parts
from ctxctl.tui.state import ItemKey, State, enter
from ctxctl.tui.tabs import Tab, Tabs

_EMPTY: Final = Document("")
_MOMENT: Final = Document.of_lines([("!", "one moment…")])
_REMARKS: Final[dict[str, Document]] = {}


def tabs(state: State) -> Tabs:
    """What is known of the selected item beside its text."""
    wanted = state.wanted
    return state.tabs.of(wanted) if wanted is not None else Tabs()


def to_tab(state: State, tab: Tab) -> State:
    """Show a tab; the one in view goes back to the item's text."""
    return replace(state, tab=None if state.shown_tab == tab else tab)


def opened(state: State, tab: Tab) -> State:
    """Go into the selected item, to a tab."""
    if state.selected is None:
        return state
    return replace(enter(enter(state) if state.pane == "turns" else state), tab=tab)


def to_version(state: State, by: int) -> State:
    """Compare with an older (+1) or a newer version."""
    if state.wanted is None:
        return state
    return replace(state, tab="diff", tabs=tabs(state).stepped(by))


def told(state: State, key: ItemKey, **found: object) -> State:
    """A tab has arrived; that of another item than the selected one is dropped."""
    return replace(state, tabs=tabs(state).told(key, **found))


def document(state: State) -> Document | None:
    """What the pane shows; None while what it showed before may stay until the text arrives."""
    if state.wanted is None:
        return _EMPTY
    known, tab = tabs(state), state.shown_tab
    if tab == "life":
        return known.life or _MOMENT
    if tab == "record":
        return known.record or _MOMENT
    if tab == "diff" and known.back:
        against = known.against
        return _MOMENT if against is None else against.document or _remark(against.note)
    text = state.shown_text
    if text is None:
        return None
    if tab == "diff" and text.diff is not None:
        return text.diff
    if tab == "diff" and text.diff_note:
        return _remark(text.diff_note)
    return text.content or _remark(text.note)


def _remark(text: str) -> Document:
    """A sentence as a document; the same one each time, so that showing it again changes nothing."""
    found = _REMARKS.get(text)
    if found is None:
        if len(_REMARKS) > 100:
            _REMARKS.clear()
        found = _REMARKS[text] = Document.of_lines([("!", text)])
    return found


def head(state: State, width: int, keys: Mapping[str, str]) -> tuple[Parts, ...]:
    """The lines above the text; `keys`: by tab, the key that leads there."""
    change = state.selected
    if change is None:
        return (lines.spread([lines.Piece("choose an item", "muted")], [], width),)
    known = tabs(state)
    against = ""
    if state.shown_tab == "diff" and known.back:
        found = known.against
        against = f"to {found.label}" if found is not None and found.label else "to an older version"
    shown = document(state)
    remark = "" if shown is None else shown.remark
    return item_head(
        change, state.shown_tab, width, keys=keys, against=against, remark=remark, window=state.window
    )

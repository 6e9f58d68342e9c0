"""The item pane as functions of the state: its tabs, what it lacks, the lines above it.  Plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ctxctl.model.results import Change, Window
from ctxctl.tui.document import Document
from ctxctl.tui.layout import Parts, Piece, spread
from ctxctl.tui.screens.turns.lines import why
from ctxctl.tui.screens.turns.state import ItemKey, State, enter
from ctxctl.tui.sizes import EXPECTED, capacity_of, method_of
from ctxctl.tui.tabs import TABS, Tab, Tabs
from ctxctl.tui.versions import change_of
from ctxctl.wording import SIGNS, number, signed

NOT_IN_FRAME = ("omitted", "removed")
"""Statuses of what is not in the frame."""


def keep_cost(change: Change, window: Window | None) -> list[Piece]:
    """Phrases for an item that is not in the frame; none for one that is.

    Its size, the limits and the tokens that were sent are the step's.  That it alone is kept, and all
    else is as it was, is supposed: the phrases begin with the sign of what is derived.
    """
    if change.status not in NOT_IN_FRAME or window is None:
        return []
    if not change.tokens:
        return [Piece("size not recorded: what keeping it would take is not known", "", 10)]
    size = Piece(f"≈ {number(change.tokens)} tokens to keep it", "", 10)
    full, method = capacity_of(window), method_of(window)
    if full is None:
        return [size, Piece("no limit known: not known whether it fits", "muted", 9)]
    # A bill holds what nobody could count, too; without one there is more in the window than is recorded.
    most = "at most " if method == "recorded" or (window.uncounted and method != "reported") else ""
    free, sign = full - window.used, EXPECTED if method == "expected" else ""
    room = f"{most}{sign}{number(free)} free" if free >= 0 else f"over by {sign}{number(-free)}"
    if change.tokens <= free:
        return [size, Piece(room, "", 6), Piece("may fit" if most or sign else "it would fit", "good", 9)]
    return [
        size,
        Piece(room, "", 6),
        Piece(f"needs {_needed(window, full, change.tokens - free)}", "warning", 9),
    ]


def _needed(window: Window, full: int, more: int) -> str:
    """Which limit would have to be how high: the window, unless the prompt has a limit of its own."""
    if window.limit is not None and full >= window.limit - (window.reserved or 0):
        return f"a window of {number(window.limit + more)}"
    return f"{number(full + more)} of input"


def item_head(
    change: Change,
    tab: str,
    width: int,
    *,
    keys: Mapping[str, str] | None = None,
    against: str = "",
    remark: str = "",
    into: str = "",
    window: Window | None = None,
    unknown: bool = False,
) -> tuple[Parts, Parts, Parts]:
    """Three lines above an item's text: status and tabs, tokens, versions and origin.

    `keys`: by tab, the key that leads there; `against`: what the diff is to, where that is not the version of
    the frame before; `remark`: how the text is shown; `into`: what the summary is called; `window`: that of
    the frame, for what is not in it; `unknown`: no text of it is recorded, and no size.
    """
    names = [_tab(name, name == tab, (keys or {}).get(name, "")) for name, _ in TABS]
    status = Piece(f"{SIGNS[change.status]} {change.status}", f"heading-{change.status}", 10)
    first = spread([status, Piece(why(change, into), "warning", 8)], names, width)
    kept_out = keep_cost(change, window)
    tokens = [
        *kept_out,
        Piece(
            "size not known" if unknown else _held(change) if not kept_out or change.in_window else "", "", 8
        ),
        Piece(signed(change.new) + " new" if change.new else "", "new", 7),
        Piece(number(-change.freed) + " freed" if change.freed else "", "freed", 5 if kept_out else 7),
        Piece("" if kept_out or unknown else f"size {number(change.tokens)}", "muted", 5),
    ]
    second = spread(tokens, [Piece(change.kind, "muted", 4 if kept_out else 6)], width)
    origin = [
        Piece(against or versions(change), "strong" if against else "", 7),
        Piece(change.provenance, "muted", 5),
        Piece(change.source or "", "muted", 4),
    ]
    line = Piece(f"line {number(change.line)}" if change.line else "", "muted", 3)
    return first, second, spread(origin, [Piece(remark, "remark", 6), line], width)


def _held(change: Change) -> str:
    return f"{number(change.in_window)} in window"


def _tab(name: str, shown: bool, key: str) -> Piece:
    """The name of a tab; the one not shown is left out where there is no room."""
    return Piece(f"[{name}]", "tab", 9) if shown else Piece(name, "muted", 2, key)


def versions(change: Change) -> str:
    """The item's version, and what it was before where it changed."""
    if change.version is None and change.previous_version is None:
        return "version unknown"
    return change_of(change.previous_version, change.version)


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


def with_answer(state: State, key: ItemKey, **found: object) -> State:
    """The state with a tab that has arrived; one of another item than the selected one is dropped."""
    return replace(state, tabs=tabs(state).with_answer(key, **found))


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
        return (spread([Piece("choose an item", "muted")], [], width),)
    known = tabs(state)
    against = ""
    if state.shown_tab == "diff" and known.back:
        found = known.against
        against = f"to {found.label}" if found is not None and found.label else "to an older version"
    shown = document(state)
    remark = "" if shown is None else shown.remark
    into = state.table.names.at_ref(change.into) if change.into else ""
    return item_head(
        change, state.shown_tab, width, keys=keys, against=against, remark=remark, into=into,
        window=state.window, unknown=not change.tokens and shown is not None and shown.is_remark,
    )  # fmt: skip

"""What it would have taken to keep what was left out, in words.  Plain Python."""

from __future__ import annotations

from ctxctl.labels import number
from ctxctl.model.results import Change, Window
from ctxctl.tui.lines.layout import Piece
from ctxctl.tui.sizes import EXPECTED, full_of, method_of

OUT = ("omitted", "removed")
"""Statuses of what is not in the frame."""


def cost(change: Change, window: Window | None) -> list[Piece]:
    """Phrases for an item that is not in the frame; none for one that is.

    Its size, the limits and the tokens that were sent are the step's.  That it alone is kept, and all
    else is as it was, is supposed: the phrases begin with the sign of what is derived.
    """
    if change.status not in OUT or window is None:
        return []
    if not change.tokens:
        return [Piece("size not recorded: what keeping it would take is not known", "", 10)]
    size = Piece(f"≈ {number(change.tokens)} tokens to keep it", "", 10)
    full, method = full_of(window), method_of(window)
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

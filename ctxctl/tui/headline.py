"""What a request came to, in the head of the main screen.  Plain Python."""

from __future__ import annotations

from ctxctl.labels import number, share
from ctxctl.model.results import Window
from ctxctl.model.vocab import UsedMethod
from ctxctl.report.unrecorded import NOT_RECORDED
from ctxctl.tui.lines.layout import Piece
from ctxctl.tui.sizes import EXPECTED, full_of, method_of


def sent(window: Window) -> list[Piece]:
    """What was sent of what may be, what is free, and who says so; true as it stands."""
    method, full = method_of(window), full_of(window)
    style = "warning" if window.over else "strong"
    sign = EXPECTED if method == "expected" else ""
    of = "" if full is None else f" of {number(full)}"
    done = " recorded (no bill read)" if method == "recorded" else " sent"
    pieces = [Piece(f"{sign}{number(window.used)}{of}{done}", style, 10)]
    if method == "expected":
        error = window.used_error
        pieces.append(Piece("expected" + (f" ±{number(error)}" if error is not None else ""), "muted", 8))
    if full is None:
        return [*pieces, Piece("limit unknown", "muted", 4), *_uncounted(window, method)]
    least, most = ("at least ", "at most ") if method == "recorded" else (sign, sign)
    pieces.append(Piece(least + share(window.used, full), style, 6))
    if window.over:
        pieces.append(Piece(f"over by {least}{number(window.over)}", "warning", 9))
    elif window.free is not None:
        pieces.append(Piece(f"{most}{number(window.free)} free", "", 5))
    pieces += _uncounted(window, method)
    if window.limit_source is not None:
        pieces.append(Piece(f"limit: {window.limit_source}", "muted", 4))
    return pieces


def _uncounted(window: Window, method: UsedMethod) -> list[Piece]:
    """Of a bill, what nobody counted is a part."""
    if not window.uncounted:
        return []
    text = f"{number(window.uncounted)} uncounted"
    return [Piece(text, "muted", 2) if method == "reported" else Piece(text, "warning", 7)]


def kept(window: Window) -> list[Piece]:
    """What of that is recorded, and what is not; none where nothing was billed to tell by."""
    if window.unrecorded is None:
        return []
    pieces = [Piece(f"recorded {number(window.recorded)}", "muted", 3)]
    if window.unrecorded < 0:
        than = "billed" if window.used_method == "reported" else "expected"
        return [*pieces, Piece(f"{number(-window.unrecorded)} more than {than}", "warning", 3)]
    return [*pieces, Piece(f"{NOT_RECORDED} {number(window.unrecorded)}", "muted", 3)]

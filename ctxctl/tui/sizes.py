"""How large a request was, in words: what was sent and how that is known, and what of it is recorded.

Plain Python.
"""

from __future__ import annotations

from typing import Final

from ctxctl.model.results import Window
from ctxctl.model.vocab import UsedMethod
from ctxctl.report.unrecorded import NOT_RECORDED
from ctxctl.tui.figures import number, percent, short
from ctxctl.tui.lines.layout import Piece, one_line

EXPECTED: Final = "≈"
"""In front of a size that nobody billed, but that follows from the last bill."""
RECORDED: Final = "r"
"""In front of a size of what is recorded, in a list of sizes that were sent."""
COMPACTS: Final = "┆"
"""In the bar: where the runtime compacts by itself."""


def method_of(window: Window) -> UsedMethod:
    """How a window's size is known; a what-if's with what was not recorded of the last bill is expected."""
    if window.used_method == "recorded" and window.unrecorded is not None:
        return "expected"
    return window.used_method


def amount(tokens: int, method: UsedMethod, *, brief: bool = False, content: bool = True) -> str:
    """A size with the sign of how it is known; `content`: those of what is recorded stand among sizes that
    were sent, and need one."""
    sign = EXPECTED if method == "expected" else RECORDED if content and method == "recorded" else ""
    return sign + (short if brief else number)(tokens)


def full_of(window: Window) -> int | None:
    """What a request may hold: the cap, else the window."""
    return window.limit if window.cap is None else window.cap


def sent(window: Window) -> list[Piece]:
    """What was sent of what may be, what is free, and who says so; true as it stands."""
    method, full = method_of(window), full_of(window)
    style = "warning" if window.over else "strong"
    sign = EXPECTED if method == "expected" else ""
    of = "" if full is None else f" of {number(full)}"
    done = " recorded (nothing billed)" if method == "recorded" else " sent"
    pieces = [Piece(f"{sign}{number(window.used)}{of}{done}", style, 10)]
    if method == "expected":
        error = window.used_error
        pieces.append(Piece("expected" + (f" ±{number(error)}" if error is not None else ""), "muted", 8))
    if full is None:
        return [*pieces, Piece("limit unknown", "muted", 4), *_uncounted(window, method)]
    least, most = ("at least ", "at most ") if method == "recorded" else (sign, sign)
    pieces.append(Piece(least + percent(window.used, full), style, 6))
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


def parts(window: Window) -> list[Piece]:
    """What of that is recorded, and what is not; none where nothing was billed to tell by."""
    if window.unrecorded is None:
        return []
    pieces = [Piece(f"recorded {number(window.recorded)}", "muted", 3)]
    if window.unrecorded < 0:
        than = "billed" if window.used_method == "reported" else "expected"
        return [*pieces, Piece(f"{number(-window.unrecorded)} more than {than}", "warning", 3)]
    return [*pieces, Piece(f"{NOT_RECORDED} {number(window.unrecorded)}", "muted", 3)]


def compacts(tokens: int, source: str | None) -> str:
    """Where a runtime compacts by itself, and who says so."""
    said = f"compacts at {number(tokens)}"
    return f"{said} ({one_line(source)})" if source else said

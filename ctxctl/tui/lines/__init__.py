"""What each line of a view says, as parts: (text, style name).  Plain Python, and so are its tests."""

from __future__ import annotations

from ctxctl.tui.lines.changes import change_heading, change_line, pane_titles, why
from ctxctl.tui.lines.layout import Column, Parts, Piece, laid_out, one_line, spread
from ctxctl.tui.lines.turns import turn_heading, turn_line

__all__ = [
    "Column", "Parts", "Piece", "change_heading", "change_line", "laid_out", "one_line", "pane_titles",
    "spread", "turn_heading", "turn_line", "why",
]  # fmt: skip

"""The whole session on one screen."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("overview.right", ("l", "right"), "column(1)", "the next column of the chart", "overview"),
    Action("overview.left", ("h", "left"), "column(-1)", "the column before", "overview", "chart"),
    Action(
        "overview.next",
        ("right_square_bracket",),
        "turn(1)",
        "the next turn of the thread",
        "overview",
        "turn",
    ),
    Action("overview.previous", ("left_square_bracket",), "turn(-1)", "the turn before", "overview"),
    Action("overview.first", ("0",), "end(False)", "the thread's first turn", "overview"),
    Action("overview.last", ("dollar_sign",), "end(True)", "the thread's last turn", "overview"),
    Action("overview.open", ("enter",), "open", "go to the turn", "overview", "go there"),
    Action("overview.close", ("escape", "q", "v"), "close", "back to the turns", "overview", "back"),
)

"""Two frames held against each other."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("diff.text", ("enter",), "enter", "an item's text at both ends", "diff", "text", ("items",)),
    Action(
        "diff.back", ("escape",), "back", "back to the items, then to where you came from", "diff", "back"
    ),
    Action("diff.close", ("q",), "close", "leave the comparison, from its texts too", "diff"),
    Action("diff.next", ("n", "right_square_bracket"), "change(1)", "the next change", "diff", "change"),
    Action("diff.previous", ("N", "left_square_bracket"), "change(-1)", "the change before", "diff"),
    Action(
        "diff.together", ("a",), "together", "all changed items as one text, or one by one", "diff", "all"
    ),
    Action(
        "diff.unchanged",
        ("c",),
        "unchanged",
        "only changes, or unchanged items and lines too",
        "diff",
        "unchanged",
    ),
    Action("diff.unified", ("u",), "unified", "unified, or side by side", "diff", "unified", ("text",)),
    Action("diff.swap", ("x",), "swap", "swap the two sides", "diff", "swap"),
    Action("diff.pane", ("tab", "shift+tab"), "pane", "between the items and the text", "diff"),
)

"""The assembled text of a step."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("assembled.back", ("escape", "q"), "back", "back", "assembled", "back"),
    Action("assembled.next", ("right_square_bracket",), "block(1)", "the next block", "assembled", "block"),
    Action("assembled.previous", ("left_square_bracket",), "block(-1)", "the block before", "assembled"),
    Action("assembled.open", ("enter",), "open", "the block's item on the main screen", "assembled", "item"),
    Action(
        "assembled.break", ("c",), "to_break", "where the possible cache prefix ends", "assembled", "cache"
    ),
    Action("assembled.pane", ("tab", "shift+tab"), "pane", "between the outline and the text", "assembled"),
)

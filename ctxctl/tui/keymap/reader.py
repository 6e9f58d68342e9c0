"""A text over the whole screen."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("reader.back", ("escape", "q"), "dismiss", "back", "reader", "back"),
    Action("reader.wrap", ("w",), "wrap", "wrap long lines, or do not", "reader", "wrap"),
)

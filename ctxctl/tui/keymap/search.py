"""The search over the whole trace."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("search.go", ("enter",), "go", "go to the step and item of the hit", "search", "go there"),
    Action("search.edit", ("slash",), "edit", "search for something else", "search", "search"),
    Action("search.again", ("r",), "again", "search again: the trace may have grown", "search"),
    Action("search.back", ("escape", "q"), "back", "back to where you were", "search", "back"),
)

"""The list above the line of commands; the line itself has the keys of any line of input."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("palette.next", ("tab",), "choose(1)", "the next command of the list", "palette"),
    Action("palette.previous", ("shift+tab",), "choose(-1)", "the command before", "palette"),
)

"""Every key, a table for each screen; what is made from them is in `ctxctl.tui.keys`."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap import app, main, moving, reader
from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (*moving.ACTIONS, *main.ACTIONS, *reader.ACTIONS, *app.ACTIONS)
"""All actions, in the order of the hints and of the help."""

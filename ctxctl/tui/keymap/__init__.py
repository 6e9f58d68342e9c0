"""Every key, a table for each screen; what is made from them is in `ctxctl.tui.keys`."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap import (
    app,
    assembled,
    diff,
    line,
    main,
    moving,
    overview,
    palette,
    pointer,
    reader,
    search,
    whatif,
)
from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    *moving.ACTIONS,
    *main.ACTIONS,
    *overview.ACTIONS,
    *diff.ACTIONS,
    *assembled.ACTIONS,
    *reader.ACTIONS,
    *pointer.ACTIONS,
    *app.ACTIONS,
    *line.ACTIONS,
    *palette.ACTIONS,
    *whatif.ACTIONS,
    *search.ACTIONS,
)
"""All actions, in the order of the hints and of the help."""

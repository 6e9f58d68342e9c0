"""Everywhere."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("theme", ("T",), "theme", "light or dark", "app"),
    Action("help", ("question_mark",), "help", "this help", "app", "help"),
    Action("quit", ("q", "ctrl+q"), "leave", "quit", "app", "quit"),
    Action("interrupt", ("ctrl+c",), "interrupt", "quit with exit code 130", "app", priority=True),
)

"""Moving in lists and texts."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("list.down", ("j", "down"), "move(1)", "a line down", "list", "move", ("turns", "changes")),
    Action("list.up", ("k", "up"), "move(-1)", "a line up", "list"),
    Action("list.half_down", ("ctrl+d",), "page(1)", "half a page down", "list"),
    Action("list.half_up", ("ctrl+u",), "page(-1)", "half a page up", "list"),
    Action("list.page_down", ("pagedown", "ctrl+f"), "page(2)", "a page down", "list"),
    Action("list.page_up", ("pageup", "ctrl+b"), "page(-2)", "a page up", "list"),
    Action("list.first", ("g", "home"), "edge(False)", "the beginning", "list"),
    Action("list.last", ("G", "end"), "edge(True)", "the end", "list"),
    Action("text.down", ("j", "down"), "move(1)", "a line down", "text", "scroll", ("item",)),
    Action("text.up", ("k", "up"), "move(-1)", "a line up", "text"),
    Action("text.half_down", ("ctrl+d",), "page(1)", "half a page down", "text"),
    Action("text.half_up", ("ctrl+u",), "page(-1)", "half a page up", "text"),
    Action("text.page_down", ("pagedown", "ctrl+f"), "page(2)", "a page down", "text"),
    Action("text.page_up", ("pageup", "ctrl+b"), "page(-2)", "a page up", "text"),
    Action("text.first", ("g", "home"), "edge(False)", "the beginning", "text"),
    Action("text.last", ("G", "end"), "edge(True)", "the end", "text"),
)

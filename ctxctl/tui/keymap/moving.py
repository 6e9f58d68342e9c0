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
    Action("text.find", ("slash",), "find", "find a word in this text", "text", "find", ("item",)),
    Action("text.next_match", ("n",), "match(1)", "the next match", "text"),
    Action("text.previous_match", ("N",), "match(-1)", "the match before", "text"),
    Action("text.unfind", ("escape",), "unfind", "show no matches any more", "text"),
    Action("text.fold", ("space",), "fold", "fold or unfold the object at the cursor", "text"),
    Action("text.fold_all", ("z",), "fold_all", "fold or unfold all objects", "text"),
    Action("text.choose", ("enter",), "choose", "go to the step of the line", "text"),
    Action("text.left", ("h", "left"), "sideways(-1)", "to the left, where lines are not wrapped", "text"),
    Action("text.right", ("l", "right"), "sideways(1)", "to the right, where lines are not wrapped", "text"),
)

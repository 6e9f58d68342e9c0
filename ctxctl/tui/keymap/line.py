"""A line of input: a search, a command, a name."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("line.accept", ("enter",), "accept", "take the line as it is", "line", "accept"),
    Action("line.cancel", ("escape",), "cancel", "leave it", "line", "cancel"),
    Action("line.older", ("up", "ctrl+p"), "history(-1)", "the line typed before", "line"),
    Action("line.newer", ("down", "ctrl+n"), "history(1)", "the line typed after", "line"),
    Action("line.left", ("left", "ctrl+b"), "move(-1)", "a character to the left", "line"),
    Action("line.right", ("right", "ctrl+f"), "move(1)", "a character to the right", "line"),
    Action("line.word_left", ("ctrl+left", "alt+b"), "word(-1)", "a word to the left", "line"),
    Action("line.word_right", ("ctrl+right", "alt+f"), "word(1)", "a word to the right", "line"),
    Action("line.first", ("home", "ctrl+a"), "edge(False)", "the beginning of the line", "line"),
    Action("line.last", ("end", "ctrl+e"), "edge(True)", "the end of the line", "line"),
    Action("line.erase", ("backspace",), "delete(-1)", "delete the character before the cursor", "line"),
    Action("line.delete", ("delete", "ctrl+d"), "delete(1)", "delete the character under the cursor", "line"),
    Action("line.erase_word", ("ctrl+w",), "delete_word", "delete the word before the cursor", "line"),
    Action("line.erase_all", ("ctrl+u",), "delete_to(False)", "delete to the beginning of the line", "line"),
    Action("line.erase_rest", ("ctrl+k",), "delete_to(True)", "delete to the end of the line", "line"),
)

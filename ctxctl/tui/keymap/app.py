"""Everywhere."""

from __future__ import annotations

from typing import Final

from ctxctl.tui.keymap.action import Action

ACTIONS: Final[tuple[Action, ...]] = (
    Action("palette", ("colon",), "palette", "a command by name, or a turn: :7, :7.2, :-1", "app", "command"),
    Action("copy", ("y",), "copy", "copy what is in front to the clipboard", "app"),
    Action("copy.address", ("Y",), "copy_address", "copy its address, for `ctxctl show`", "app"),
    Action("export", ("e",), "export", "write what is in front to a file, raw", "app"),
    Action("pager", ("o",), "pager", "open what is in front in $PAGER", "app"),
    Action("editor", ("O",), "editor", "open what is in front in $EDITOR, to read", "app"),
    Action("theme", ("T",), "theme", "the next colours", "app"),
    Action("suspend", ("ctrl+z",), "suspend_process", "stop; `fg` in the shell comes back", "app"),
    Action("help", ("question_mark",), "help", "this help", "app", "help"),
    Action("quit", ("q", "ctrl+q"), "leave", "quit", "app", "quit"),
    Action("interrupt", ("ctrl+c",), "interrupt", "quit with exit code 130", "app", priority=True),
)

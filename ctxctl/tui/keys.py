"""What is made from the tables of keys: bindings, hints, and the help."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from textual.binding import Binding, BindingType

from ctxctl.tui.keymap import ACTIONS
from ctxctl.tui.keymap.action import Action, Scope

__all__ = ["ACTIONS", "Action", "Scope", "bindings", "help_lines", "hints", "name"]

_SHOWN: Final = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "question_mark": "?",
    "enter": "⏎",
    "escape": "Esc",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "space": "Space",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
}

_PAIRS: Final = {"list.down": "j/k", "text.down": "j/k", "turn.next": "[ ]", "steps.unfold": "h/l"}
"""Hints that stand for two keys."""

_FIRST: Final = ("open", "back", "item.diff", "turn.next")
"""Hints that stay longest where there is little room."""

_HEADINGS: Final[tuple[tuple[str, tuple[Scope, ...]], ...]] = (
    ("Turns, changes, items", ("turns",)),
    ("Anywhere", ("app",)),
    ("Moving in lists and texts", ("list", "reader")),
)
"""Texts have the keys of lists; the help names them once."""


def bindings(scope: Scope) -> list[BindingType]:
    """Textual's bindings of one scope, with ids that a keymap can name."""
    return [
        Binding(
            ",".join(action.keys),
            action.action,
            action.help,
            show=False,
            priority=action.priority,
            id=action.id,
        )
        for action in ACTIONS
        if action.scope == scope
    ]


def name(key: str) -> str:
    """How a key is written for people."""
    if key in _SHOWN:
        return _SHOWN[key]
    if key.startswith("ctrl+"):
        return f"Ctrl+{key[5:].upper()}"
    return key


def hints(scopes: Collection[Scope], pane: str = "") -> list[tuple[str, str, int]]:
    """(key, word, rank) of the keys worth showing where these scopes are in force; low ranks go first.

    `pane`: the pane of the main screen in front, for actions that have an effect in some panes only.
    """
    found = []
    taken = {key for action in ACTIONS if action.scope in scopes for key in action.keys}
    for n, action in enumerate(ACTIONS):
        everywhere = action.scope == "app" and action.keys[0] not in taken
        shown = (action.scope in scopes or everywhere) and _suits(action, pane)
        if action.hint and shown:
            rank = 100 if action.scope in ("app", "reader") else 90 if action.id in _FIRST else 80 - n
            found.append((_PAIRS.get(action.id, name(action.keys[0])), action.hint, rank))
    return found


def _suits(action: Action, pane: str) -> bool:
    return not pane or not action.panes or pane in action.panes


def help_lines() -> list[tuple[str, str]]:
    """The help as (kind, text) lines of a document."""
    lines: list[tuple[str, str]] = []
    for heading, scopes in _HEADINGS:
        lines.append(("@", heading))
        for action in ACTIONS:
            if action.scope in scopes:
                keys = "  ".join(name(key) for key in action.keys)
                lines.append((" ", f"  {keys:<16} {action.help}"))
        lines.append((" ", ""))
    return lines

"""Every key: one table that the bindings, the line of hints and the help are made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from textual.binding import Binding, BindingType

Scope = Literal["app", "turns", "list", "text", "reader"]
"""Where a key works: everywhere, on the main screen, in any list, in any text, in a full-screen text."""


@dataclass(frozen=True, slots=True)
class Action:
    """Something a key does."""

    id: str
    """What a keymap in the settings names; never changes."""
    keys: tuple[str, ...]
    """Textual's names of its keys."""
    action: str
    """Textual action of the scope's widget, screen or app."""
    help: str
    scope: Scope
    hint: str = ""
    """The word in the line of hints; empty: not shown there."""
    panes: tuple[str, ...] = ()
    """Panes of the main screen in which the hint is shown; none: in all."""
    priority: bool = False


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
    Action("turn.previous", ("left_square_bracket",), "turn(-1)", "previous turn, from any pane", "turns"),
    Action("turn.next", ("right_square_bracket",), "turn(1)", "next turn, from any pane", "turns", "turn"),
    Action(
        "steps.unfold",
        ("l", "right"),
        "steps(True)",
        "show the steps of the turn",
        "turns",
        "steps",
        ("turns",),
    ),
    Action("steps.fold", ("h", "left"), "steps(False)", "hide the steps of the turn", "turns"),
    Action("steps.toggle", ("space",), "fold", "show or hide: the turn's steps, a group of changes", "turns"),
    Action(
        "open",
        ("enter",),
        "enter",
        "open: the turn's changes, then an item's text",
        "turns",
        "open",
        ("turns", "changes"),
    ),
    Action(
        "back", ("escape",), "go_back", "back to where Enter came from", "turns", "back", ("changes", "item")
    ),
    Action("pane.next", ("tab",), "pane(1)", "next pane", "turns", "pane"),
    Action("pane.previous", ("shift+tab",), "pane(-1)", "previous pane", "turns"),
    Action(
        "item.diff", ("d",), "diff", "an item's diff to its version before, or its content", "turns", "diff"
    ),
    Action("skipped", ("a",), "skipped", "list the skipped items too, or only their number", "turns", "all"),
    Action("assembled", ("t",), "assembled", "the assembled text of the step", "turns", "text"),
    Action("stages", ("s",), "stages", "the stages of the step, from available to injected", "turns"),
    Action("problems", ("p",), "problems", "what was wrong with the trace", "turns"),
    Action("about", ("i",), "about", "what the trace records, and what it does not", "turns"),
    Action("reader.back", ("escape", "q"), "dismiss", "back", "reader", "back"),
    Action("theme", ("T",), "theme", "light or dark", "app"),
    Action("help", ("question_mark",), "help", "this help", "app", "help"),
    Action("quit", ("q", "ctrl+q"), "leave", "quit", "app", "quit"),
    Action("interrupt", ("ctrl+c",), "interrupt", "quit with exit code 130", "app", priority=True),
)

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


def hints(pane: str, *, reader: bool = False) -> list[tuple[str, str, int]]:
    """(key, word, rank) of the keys worth showing in a pane or a full-screen text; low ranks go first."""
    found = []
    for n, action in enumerate(ACTIONS):
        if reader:
            shown = action.scope in ("reader", "text") or action.id == "help"
        else:
            shown = action.scope != "reader" and (not action.panes or pane in action.panes)
        if action.hint and shown:
            rank = 100 if action.scope in ("app", "reader") else 90 if action.id in _FIRST else 80 - n
            found.append((_PAIRS.get(action.id, name(action.keys[0])), action.hint, rank))
    return found


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

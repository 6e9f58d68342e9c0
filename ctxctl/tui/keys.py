"""What is made from the tables of keys: bindings, hints, and the help.

The tables say what keys do; which keys they are may have been chosen in the settings (`ctxctl.tui.keymap`).
Textual is told of these through its keymap, everything that names keys asks here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Final

from textual.binding import Binding, BindingType

from ctxctl.tui.keymap import ACTIONS, Action, Scope

__all__ = [
    "ACTIONS", "BY_ID", "Action", "Scope", "bindings", "help_lines", "hints", "key_of", "keys_of", "name",
    "use",
]  # fmt: skip

BY_ID: Final[dict[str, Action]] = {action.id: action for action in ACTIONS}

_SHOWN: Final = {
    "enter": "⏎",
    "escape": "Esc",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "space": "Space",
    "tab": "Tab",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
    "delete": "Del",
    "insert": "Ins",
    "backspace": "⌫",
}
_SIGNS: Final = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "question_mark": "?",
    "exclamation_mark": "!",
    "quotation_mark": '"',
    "number_sign": "#",
    "dollar_sign": "$",
    "percent_sign": "%",
    "ampersand": "&",
    "apostrophe": "'",
    "asterisk": "*",
    "plus": "+",
    "comma": ",",
    "minus": "-",
    "full_stop": ".",
    "slash": "/",
    "colon": ":",
    "semicolon": ";",
    "equals_sign": "=",
    "at": "@",
    "backslash": "\\",
    "circumflex_accent": "^",
    "underscore": "_",
    "grave_accent": "`",
    "vertical_line": "|",
    "tilde": "~",
}

_PAIRS: Final = {
    "list.down": ("list.down", "/", "list.up"),
    "text.down": ("text.down", "/", "text.up"),
    "turn.next": ("turn.previous", " ", "turn.next"),
    "steps.unfold": ("steps.fold", "/", "steps.unfold"),
    "overview.left": ("overview.left", "/", "overview.right"),
    "overview.next": ("overview.previous", " ", "overview.next"),
    "notable.next": ("notable.previous", " ", "notable.next"),
}
"""Hints that stand for two keys."""

_FIRST: Final = ("open", "back", "item.diff", "turn.next", "search")
"""Hints that stay longest where there is little room."""

_RANKS: Final = {"open": 92, "back": 92, "quit": 85}
"""Of hints that matter more, or less, than others of their kind."""

_HEADINGS: Final[dict[str, str]] = {
    "turns": "Turns, changes, items",
    "overview": "Overview",
    "diff": "Two frames",
    "assembled": "Assembled text",
    "search": "Search",
    "whatif": "What if",
    "reader": "Full-screen texts",
    "pointer": "Why, blame, findings",
    "app": "Anywhere",
    "list": "Moving in lists and texts",
    "text": "In texts",
    "line": "In a line of input",
    "palette": "In the list of commands",
    "sessions": "Sessions",
    "fleet": "A dataset of many captures",
}
"""Texts have the keys of lists; the help names them once."""

_HELP: Final = 53
"""Columns of what a key does: as much as the narrowest usual screen holds beside the key."""

_chosen: dict[str, tuple[str, ...]] = {}


def use(chosen: Mapping[str, tuple[str, ...]]) -> None:
    """Name these keys from now on, by id; actions that are not mentioned keep their own."""
    _chosen.clear()
    _chosen.update(chosen)


def keys_of(action: Action) -> tuple[str, ...]:
    """Textual's names of the keys of an action, as the settings have them."""
    return _chosen.get(action.id, action.keys)


def key_of(ident: str) -> str:
    """How the first key of an action is written for people; empty where it has none."""
    found = keys_of(BY_ID[ident])
    return name(found[0]) if found else ""


def bindings(scope: Scope) -> list[BindingType]:
    """Textual's bindings of one scope, with ids that a keymap can name; the keys are the built-in ones."""
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
    """The name of a key for people."""
    *modifiers, last = key.split("+")
    if last in _SHOWN:
        last = _SHOWN[last]
    elif last in _SIGNS:
        last = _SIGNS[last]
    elif modifiers or (last[:1] == "f" and last[1:].isdigit()):
        last = last.upper()
    return "+".join([*(modifier.capitalize() for modifier in modifiers), last])


_OF_SOMETHING: Final = frozenset(
    ("move", "turn", "notable", "overview", "steps", "open", "diff", "all", "text", "search")
)
"""Hints of keys that do nothing in a trace that has no turns."""
_OF_NOTES: Final = frozenset(("move", "open"))
"""Those that do something there outside of its list: notes can be opened."""


def hints(scopes: Collection[Scope], pane: str = "", *, nothing: bool = False) -> list[tuple[str, str, int]]:
    """(key, word, rank) of the keys worth showing where these scopes are in force; low ranks go first.

    Args:
        scopes: Those of the screen.
        pane: The pane of the main screen in front, for actions that have an effect in some panes only.
        nothing: The trace has no turns.
    """
    found = []
    taken = {key for action in ACTIONS if action.scope in scopes for key in keys_of(action)}
    for n, action in enumerate(ACTIONS):
        keys = keys_of(action)
        if not keys:
            continue
        everywhere = action.scope == "app" and keys[0] not in taken
        shown = (action.scope in scopes or everywhere) and _suits(action, pane)
        idle = nothing and action.hint in _OF_SOMETHING - (_OF_NOTES if pane != "turns" else frozenset())
        if action.hint and shown and not idle:
            last = action.scope in ("app", "reader", "search")
            rank = 100 if last else 90 if action.id in _FIRST else 80 - n
            rank = _RANKS.get(action.id, rank)
            found.append((last and action.scope == "app", (_hint(action), action.hint, rank)))
    # What works everywhere comes last on every screen.
    return [hint for _, hint in sorted(found, key=lambda one: one[0])]


def _hint(action: Action) -> str:
    """The key of a hint, or the keys where it stands for two."""
    pair = _PAIRS.get(action.id)
    if pair is None:
        return key_of(action.id)
    return pair[1].join(key for key in (key_of(pair[0]), key_of(pair[2])) if key)


def clicked(label: str, at: int) -> str | None:
    """Textual's name of the key that a hint shows as `label`, clicked at a character of it, or behind it.

    Of a hint that stands for two keys each can be clicked; its word does what the hint says.
    """
    for action in ACTIONS:
        if not keys_of(action) or _hint(action) != label:
            continue
        ident, pair = action.id, _PAIRS.get(action.id)
        if pair is not None and at < len(label):
            ident = pair[0] if at < len(key_of(pair[0])) else pair[2]
        found = keys_of(BY_ID[ident])
        return found[0] if found else None
    return None


def _suits(action: Action, pane: str) -> bool:
    return not pane or not action.panes or pane in action.panes


def help_lines(front: Sequence[str] = ()) -> list[tuple[str, str]]:
    """The help as (kind, text) lines of a document: the scopes in front first, in this order."""
    lines: list[tuple[str, str]] = []
    scopes = dict.fromkeys([*front, *_HEADINGS, *(action.scope for action in ACTIONS)])
    listed: set[tuple[tuple[str, ...], str]] = set()
    for scope in scopes:
        actions = [action for action in ACTIONS if action.scope == scope]
        if scope in ("list", "text"):
            # Most of their keys are the same: what the one has told, the other need not.
            actions = [action for action in actions if (keys_of(action), action.help) not in listed]
            listed |= {(keys_of(action), action.help) for action in actions}
        if actions:
            lines.append(("@", _HEADINGS.get(scope, scope.capitalize())))
            lines.extend((" ", line) for line in _help_of(actions))
            lines.append((" ", ""))
    return lines


def _help_of(actions: Iterable[Action]) -> list[str]:
    lines = []
    for action in actions:
        keys = "  ".join(name(key) for key in keys_of(action)) or "(no key)"
        first, *more = wrap(action.help, _HELP)
        lines.append(f"  {keys:<16} {first}")
        lines += [f"{'':<19} {line}"[1:] for line in more]
    return lines

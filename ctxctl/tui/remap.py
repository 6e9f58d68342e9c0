"""Keys chosen in the settings: what a key is called there, and what cannot be chosen.  Plain Python."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from ctxctl.errors import UsageError
from ctxctl.tui.keymap import ACTIONS, Action, Scope

Keys = Mapping[str, tuple[str, ...]]
"""By id of an action, Textual's names of its keys."""

_NAMED: Final = frozenset(
    {"escape", "enter", "tab", "space", "backspace", "delete", "insert", "home", "end"}
    | {"pageup", "pagedown", "up", "down", "left", "right"}
    | {f"f{n}" for n in range(1, 25)}
)
_OTHER_NAMES: Final = {
    "esc": "escape",
    "return": "enter",
    "del": "delete",
    "ins": "insert",
    "pgup": "pageup",
    "page_up": "pageup",
    "pgdn": "pagedown",
    "pgdown": "pagedown",
    "page_down": "pagedown",
    "bs": "backspace",
    "plus": "plus",
    "minus": "minus",
    "comma": "comma",
}
_REPLACED: Final = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Textual's names where they are not Unicode's."""

_SAME: Final = {
    "ctrl+i": "Tab",
    "ctrl+m": "Enter",
    "ctrl+h": "Backspace",
    "ctrl+j": "Enter",
    "ctrl+left_square_bracket": "Escape",
}
"""What most terminals send for a key, and cannot tell from another."""

_MODIFIERS: Final = ("ctrl", "shift", "alt")
_INNER: Final = ("list", "text")
"""Scopes of the widgets that most screens are made of; their keys are looked at first."""


def key_name(written: str) -> str:
    """Textual's name of a key that was written as people do: ``?``, ``G``, ``Ctrl+D``, ``PgDn``, ``space``.

    Raises ValueError with the reason in words.
    """
    text = written.strip() or written
    if len(text) == 1:
        return _of_character(text)
    *modifiers, last = re.split(r"\+(?=.)", text)
    modifiers = [modifier.lower().replace("control", "ctrl") for modifier in modifiers]
    if unknown := [modifier for modifier in modifiers if modifier not in _MODIFIERS]:
        raise ValueError(f"there is no modifier {unknown[0]!r}; there are ctrl, shift and alt")
    character = last.lower() if "ctrl" in modifiers else last
    last = _of_character(character) if len(last) == 1 else _of_name(last)
    if "shift" in modifiers and len(last) == 1:
        if len(modifiers) == 1 and last.isalpha():
            return last.upper()
        raise ValueError("write the character that Shift makes of the key")
    name = "+".join([m for m in ("alt", "ctrl", "shift") if m in modifiers] + [last])
    if name in _SAME:
        raise ValueError(f"to a terminal it is {_SAME[name]}")
    return name


def _of_character(character: str) -> str:
    if character.isalnum():
        return character
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    if not name or not (character.isprintable() or character == " "):
        raise ValueError("it is no key")
    return _REPLACED.get(name, name)


def _of_name(name: str) -> str:
    lower = name.lower().replace("-", "_")
    lower = _OTHER_NAMES.get(lower, lower)
    known = {*_NAMED, *_OTHER_NAMES.values(), *_default_names()}
    if lower in known:
        return lower
    near = get_close_matches(lower, known, 1)
    raise ValueError(f"there is no key of that name{f'; is it {near[0]}?' if near else ''}")


def _default_names() -> set[str]:
    """Names that the built-in tables use, such as `question_mark`."""
    return {key.rpartition("+")[2] for action in ACTIONS for key in action.keys if len(key) > 1}


def resolve(
    chosen: Mapping[str, Sequence[str]], actions: Sequence[Action] = ACTIONS, *, where: str = "settings"
) -> dict[str, tuple[str, ...]]:
    """The keys of every action once the chosen ones replace the built-in ones.

    Raises UsageError: `unknown-action`, `unknown-key`, or `same-key` where two actions that can be meant at
    the same time have one key; only what was chosen is held against the rest.
    """
    by_id = {action.id: action for action in actions}
    keys = {action.id: action.keys for action in actions}
    for ident, written in chosen.items():
        if ident not in by_id:
            raise UsageError(
                "unknown-action", f"{where}: [keys]: nothing is called {ident!r}", hint=_near(ident, by_id)
            )
        names = []
        for key in written:
            try:
                names.append(key_name(key))
            except ValueError as error:
                raise UsageError(
                    "unknown-key",
                    f"{where}: [keys]: {ident}: {key!r} cannot be used: {error}",
                    hint='a key is a character, or a name: "n", "?", "ctrl+d", "pagedown", "f5", "space"',
                ) from None
        keys[ident] = tuple(dict.fromkeys(names))
    for ident in chosen:
        _check(by_id[ident], keys, by_id, where)
    return keys


def _near(ident: str, by_id: Mapping[str, Action]) -> str:
    near = get_close_matches(ident, by_id, 3, 0.5) or [i for i in by_id if ident in i or i in ident][:3]
    if near:
        return f"did you mean {' or '.join(near)}? `?` in the UI and docs/ui.md list all"
    return "`?` in the UI and docs/ui.md list all"


def _check(action: Action, keys: Keys, by_id: Mapping[str, Action], where: str) -> None:
    """Raise where a key of the action also does something else that would be done instead."""
    for other in by_id.values():
        if other.id == action.id or not _meet(action.scope, other.scope):
            continue
        if same := [key for key in keys[action.id] if key in keys[other.id]]:
            raise UsageError(
                "same-key",
                f"{where}: [keys]: {same[0]!r} would be both {action.id} and {other.id} ({other.help})",
                hint=f'give the other one another key, or none: "{other.id}" = []',
            )


def _meet(one: Scope, other: Scope) -> bool:
    """Whether both scopes are looked at when a key is pressed, and neither is meant to win.

    Screens other than the main one may take keys that work everywhere, such as the one that quits.
    """
    if "line" in (one, other):
        return one == other
    if one == other:
        return True
    scopes = {one, other}
    if scopes == {"list", "text"}:
        return False
    return bool(scopes & {*_INNER}) or scopes == {"turns", "app"}


def keymap(keys: Keys, actions: Sequence[Action] = ACTIONS) -> dict[str, str]:
    """What Textual is told: the actions whose keys are others than the built-in ones."""
    return {
        action.id: ",".join(keys[action.id]) or NONE
        for action in actions
        if action.id in keys and keys[action.id] != action.keys
    }


NONE: Final = "no_key"
"""Stands for a key that no keyboard has: Textual takes an empty list for the built-in keys."""

"""Every key, a table for each screen; what is made from them is in `ctxctl.tui.keys`.  Plain Python.

Below the tables are the keys of the settings: what a key is called there, and what cannot be chosen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from ctxctl.errors import UsageError

Scope = Literal[
    "app",
    "turns",
    "list",
    "text",
    "reader",
    "pointer",
    "diff",
    "assembled",
    "search",
    "overview",
    "whatif",
    "line",
    "palette",
    "sessions",
    "fleet",
]
"""Where a key works: everywhere, on the main screen, in any list, in any text, in a full-screen text, on one
of the other screens, in a line of input.
"""


@dataclass(frozen=True, slots=True)
class Action:
    """An action of the UI, and its built-in keys."""

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


_MOVING: Final[tuple[Action, ...]] = (
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
    Action("text.unfind", ("escape",), "unfind", "end the search", "text"),
    Action("text.fold", ("space",), "fold", "fold or unfold the object at the cursor", "text"),
    Action("text.fold_all", ("z",), "fold_all", "fold or unfold all objects", "text"),
    Action("text.choose", ("enter",), "choose", "go to the step of the line", "text"),
    Action("text.left", ("h", "left"), "sideways(-1)", "to the left, where lines are not wrapped", "text"),
    Action("text.right", ("l", "right"), "sideways(1)", "to the right, where lines are not wrapped", "text"),
)


_MAIN: Final[tuple[Action, ...]] = (
    Action("turn.previous", ("left_square_bracket",), "turn(-1)", "previous turn, from any pane", "turns"),
    Action("turn.next", ("right_square_bracket",), "turn(1)", "next turn, from any pane", "turns", "turn"),
    Action(
        "notable.previous",
        ("left_curly_bracket",),
        "notable(-1)",
        "previous turn with a compaction, cache break, warning or omission",
        "turns",
    ),
    Action(
        "notable.next",
        ("right_curly_bracket",),
        "notable(1)",
        "next turn with a compaction, cache break, warning or omission",
        "turns",
        "notable",
    ),
    Action("overview", ("v",), "overview", "the whole session on one screen", "turns", "overview"),
    Action("jump.back", ("backspace",), "jump_back", "back to where a jump came from", "turns"),
    Action("follow", ("F",), "follow", "follow the newest turn while the trace is being written", "turns"),
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
        "back", ("escape",), "go_back", "back to where ⏎ was pressed", "turns", "back", ("changes", "item")
    ),
    Action("pane.next", ("tab",), "pane(1)", "next pane", "turns", "pane"),
    Action("pane.previous", ("shift+tab",), "pane(-1)", "previous pane", "turns"),
    Action(
        "item.diff",
        ("d",),
        "diff",
        "an item's diff from its previous version, or its content",
        "turns",
        "diff",
    ),
    Action("item.life", ("L",), "tab('life')", "an item's life: every step that changed it", "turns"),
    Action("item.record", ("x",), "tab('record')", "an item's record: source and every field", "turns"),
    Action(
        "version.older",
        ("comma",),
        "version(1)",
        "diff from an older version of the item",
        "turns",
        "older",
        ("item",),
    ),
    Action("version.newer", ("full_stop",), "version(-1)", "diff from a newer version again", "turns"),
    Action("fold.all", ("z",), "fold_all", "fold or unfold: all groups of changes, all threads", "turns"),
    Action("sort", ("S",), "sort", "sort: as in the frame, window, new, freed, name, kind", "turns"),
    Action("reverse", ("R",), "reverse", "sort the other way round", "turns"),
    Action("group", ("B",), "group", "group by: status, kind, source, segment, server, nothing", "turns"),
    Action("skipped", ("a",), "skipped", "list the skipped items too, or only their number", "turns", "all"),
    Action("assembled", ("t",), "assembled", "the assembled text of the step", "turns", "text"),
    Action("mark", ("m",), "mark", "mark this frame, to compare others with it", "turns"),
    Action(
        "frames", ("D",), "frames", "compare this frame with the marked one, or the one before it", "turns"
    ),
    Action("stages", ("s",), "stages", "the stages of the step, from available to injected", "turns"),
    Action("why", ("w",), "why", "why the item is, or is not, in the window", "turns"),
    Action("blame", ("b",), "blame", "blame: which item each block is from, and since when", "turns"),
    Action("findings", ("exclamation_mark",), "findings", "what lint finds in the trace", "turns"),
    Action(
        "compactions",
        ("C",),
        "compactions",
        "what a compaction removed, and what of that is lost",
        "turns",
    ),
    Action("whatif", ("W",), "whatif", "what if: another window, model or policy, simulated", "turns"),
    Action("search", ("slash",), "search", "search the whole trace", "turns", "search", ("turns", "changes")),
    Action("filter", ("f",), "filter", "list only changes that fit a query", "turns", panes=("changes",)),
    Action("hit.next", ("n",), "hit(1)", "the next hit of the search", "turns"),
    Action("hit.previous", ("N",), "hit(-1)", "the hit before", "turns"),
    Action("problems", ("p",), "problems", "what was wrong with the trace", "turns"),
    Action("about", ("i",), "about", "what the trace records, and what it does not", "turns"),
)


_OVERVIEW: Final[tuple[Action, ...]] = (
    Action("overview.right", ("l", "right"), "column(1)", "the next column of the chart", "overview"),
    Action("overview.left", ("h", "left"), "column(-1)", "the column before", "overview", "chart"),
    Action(
        "overview.next",
        ("right_square_bracket",),
        "turn(1)",
        "the next turn of the thread",
        "overview",
        "turn",
    ),
    Action("overview.previous", ("left_square_bracket",), "turn(-1)", "the turn before", "overview"),
    Action("overview.first", ("0",), "end(False)", "the thread's first turn", "overview"),
    Action("overview.last", ("dollar_sign",), "end(True)", "the thread's last turn", "overview"),
    Action("overview.open", ("enter",), "open", "go to the turn", "overview", "go there"),
    Action("overview.close", ("escape", "q", "v"), "close", "back to the turns", "overview", "back"),
)


_DIFF: Final[tuple[Action, ...]] = (
    Action("diff.text", ("enter",), "enter", "an item's text in both frames", "diff", "text", ("items",)),
    Action(
        "diff.back", ("escape",), "back", "back to the items, then to where you came from", "diff", "back"
    ),
    Action("diff.close", ("q",), "close", "leave the comparison, from its texts too", "diff"),
    Action("diff.next", ("n", "right_square_bracket"), "change(1)", "the next change", "diff", "change"),
    Action("diff.previous", ("N", "left_square_bracket"), "change(-1)", "the change before", "diff"),
    Action(
        "diff.together", ("a",), "together", "all changed items as one text, or one by one", "diff", "all"
    ),
    Action(
        "diff.unchanged",
        ("c",),
        "unchanged",
        "only changes, or unchanged items and lines too",
        "diff",
        "unchanged",
    ),
    Action("diff.unified", ("u",), "unified", "unified, or side by side", "diff", "unified", ("text",)),
    Action("diff.swap", ("x",), "swap", "swap the two sides", "diff", "swap"),
    Action("diff.pane", ("tab", "shift+tab"), "pane", "between the items and the text", "diff"),
)


_ASSEMBLED: Final[tuple[Action, ...]] = (
    Action("assembled.back", ("escape", "q"), "back", "back", "assembled", "back"),
    Action("assembled.next", ("right_square_bracket",), "block(1)", "the next block", "assembled", "block"),
    Action("assembled.previous", ("left_square_bracket",), "block(-1)", "the block before", "assembled"),
    Action("assembled.open", ("enter",), "open", "the block's item on the main screen", "assembled", "item"),
    Action(
        "assembled.break", ("c",), "to_break", "where the possible cache prefix ends", "assembled", "cache"
    ),
    Action("assembled.pane", ("tab", "shift+tab"), "pane", "between the outline and the text", "assembled"),
)


_READER: Final[tuple[Action, ...]] = (
    Action("reader.back", ("escape", "q"), "dismiss", "back", "reader", "back"),
    Action("reader.wrap", ("w",), "wrap", "wrap long lines, or stop wrapping", "reader", "wrap"),
)


_POINTER: Final[tuple[Action, ...]] = (
    Action("pointer.back", ("escape", "q"), "back", "back", "pointer", "back"),
    Action("pointer.why", ("w",), "why", "why the line's item is, or is not, there", "pointer", "why"),
    Action(
        "pointer.blame",
        ("b",),
        "blame",
        "blame: which item each block of the step is from",
        "pointer",
        "blame",
    ),
    Action("pointer.findings", ("exclamation_mark",), "findings", "what lint finds", "pointer", "findings"),
    Action("pointer.only", ("o",), "only", "blame: all, the stale ones, the duplicates", "pointer", "only"),
    Action("pointer.ids", ("i",), "ids", "why: the ids of items and events too", "pointer", "ids"),
)


_APP: Final[tuple[Action, ...]] = (
    Action(
        "palette",
        ("colon",),
        "palette",
        "a command by name; in a trace also a turn: :7, :7.2, :-1",
        "app",
        "command",
    ),
    Action("copy", ("y",), "copy", "copy the focused text or list to the clipboard", "app"),
    Action("copy.address", ("Y",), "copy_address", "copy its address, for `ctxctl show`", "app"),
    Action("export", ("e",), "export", "write the focused text or list to a file, raw", "app"),
    Action("pager", ("o",), "pager", "open the focused text or list in $PAGER", "app"),
    Action("editor", ("O",), "editor", "open a copy of the focused text or list in $EDITOR", "app"),
    Action("theme", ("T",), "theme", "the next colour theme", "app"),
    Action("suspend", ("ctrl+z",), "suspend_process", "suspend; `fg` in the shell resumes", "app"),
    Action("help", ("question_mark",), "help", "this help", "app", "help"),
    Action("quit", ("q", "ctrl+q"), "leave", "quit", "app", "quit"),
    Action("interrupt", ("ctrl+c",), "interrupt", "quit with exit code 130", "app", priority=True),
)


_LINE: Final[tuple[Action, ...]] = (
    Action("line.accept", ("enter",), "accept", "accept the line", "line", "accept"),
    Action("line.cancel", ("escape",), "cancel", "close the line without doing anything", "line", "cancel"),
    Action("line.older", ("up", "ctrl+p"), "history(-1)", "the previous line typed", "line"),
    Action("line.newer", ("down", "ctrl+n"), "history(1)", "the next line typed", "line"),
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


_PALETTE: Final[tuple[Action, ...]] = (
    Action("palette.next", ("tab",), "choose(1)", "the next command of the list", "palette"),
    Action("palette.previous", ("shift+tab",), "choose(-1)", "the command before", "palette"),
)


_WHATIF: Final[tuple[Action, ...]] = (
    Action("whatif.open", ("enter",), "enter", "go to the turn; in the form: simulate", "whatif", "open"),
    Action("whatif.next", ("tab",), "field(1)", "the next field, then the turns", "whatif"),
    Action("whatif.previous", ("shift+tab",), "field(-1)", "the field before", "whatif"),
    Action(
        "whatif.edit", ("c", "W"), "edit", "back to the form, to suppose something else", "whatif", "change"
    ),
    Action("whatif.over", ("n",), "over(1)", "the next turn that does not fit", "whatif", "next over"),
    Action("whatif.over_before", ("N",), "over(-1)", "the turn before that does not fit", "whatif"),
    Action("whatif.back", ("escape", "q"), "back", "back to the main screen", "whatif", "back"),
)


_SEARCH: Final[tuple[Action, ...]] = (
    Action("search.go", ("enter",), "go", "go to the step and item of the hit", "search", "go there"),
    Action("search.edit", ("slash",), "edit", "search for something else", "search", "search"),
    Action("search.again", ("r",), "again", "search again: the trace may have grown", "search"),
    Action("search.back", ("escape", "q"), "back", "back to where you were", "search", "back"),
)


_SESSIONS: Final[tuple[Action, ...]] = (
    Action("sessions.open", ("enter",), "open", "open the session", "sessions", "open"),
    Action("sessions.find", ("slash",), "find", "find by project, prompt or client", "sessions", "find"),
    Action("sessions.sort", ("S",), "sort", "sort by the next column", "sessions", "sort"),
    Action("sessions.reverse", ("R",), "reverse", "sort the other way round", "sessions", "reverse"),
    Action("sessions.back", ("escape",), "back", "all sessions again", "sessions"),
)


_FLEET: Final[tuple[Action, ...]] = (
    Action(
        "fleet.open", ("enter",), "open", "a group's sessions; the session, where it matters", "fleet", "open"
    ),
    Action("fleet.back", ("escape",), "back", "back to the groups, then to all sessions", "fleet", "back"),
    Action(
        "fleet.find",
        ("slash",),
        "find",
        "only sessions that fit: words, client:x, cost>5, -model:y",
        "fleet",
        "find",
    ),
    Action("fleet.group", ("B",), "group", "group by: project, client, week, nothing", "fleet", "group"),
    Action("fleet.sort", ("S",), "sort", "sort by the next column", "fleet", "sort"),
    Action("fleet.reverse", ("R",), "reverse", "sort the other way round", "fleet", "reverse"),
    Action("fleet.again", ("r",), "again", "read the dataset again: it may have grown", "fleet"),
)


ACTIONS: Final[tuple[Action, ...]] = (
    *_MOVING,
    *_MAIN,
    *_OVERVIEW,
    *_DIFF,
    *_ASSEMBLED,
    *_READER,
    *_POINTER,
    *_APP,
    *_LINE,
    *_PALETTE,
    *_WHATIF,
    *_SEARCH,
    *_SESSIONS,
    *_FLEET,
)
"""All actions, in the order of the hints and of the help."""


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

"""Bindings, hints and help come from one table; here it is held against the widgets."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from textual.binding import Binding

from ctxctl.tui import keys
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.assembled.screen import AssembledScreen
from ctxctl.tui.screens.diff.screen import DiffScreen
from ctxctl.tui.screens.fleet.screen import FleetScreen
from ctxctl.tui.screens.overview.screen import Overview
from ctxctl.tui.screens.palette import Palette
from ctxctl.tui.screens.pointers.screen import PointerScreen
from ctxctl.tui.screens.reader import Reader
from ctxctl.tui.screens.search.screen import SearchScreen
from ctxctl.tui.screens.sessions.screen import SessionsScreen
from ctxctl.tui.screens.turns.screen import TurnsScreen
from ctxctl.tui.screens.whatif.screen import WhatIf
from ctxctl.tui.widgets.prompt import Prompt
from ctxctl.tui.widgets.rows import Rows
from ctxctl.tui.widgets.textview import TextView

OWNERS: dict[str, type] = {
    "app": CtxApp,
    "turns": TurnsScreen,
    "list": Rows,
    "text": TextView,
    "reader": Reader,
    "pointer": PointerScreen,
    "line": Prompt,
    "palette": Palette,
    "overview": Overview,
    "diff": DiffScreen,
    "assembled": AssembledScreen,
    "whatif": WhatIf,
    "search": SearchScreen,
    "sessions": SessionsScreen,
    "fleet": FleetScreen,
}


def test_ids_are_unique() -> None:
    assert not [ident for ident, count in Counter(a.id for a in keys.ACTIONS).items() if count > 1]


@pytest.mark.parametrize("scope", OWNERS)
def test_a_key_does_one_thing_in_its_scope(scope: str) -> None:
    found = Counter(key for action in keys.ACTIONS if action.scope == scope for key in action.keys)
    assert not [key for key, count in found.items() if count > 1]


@pytest.mark.parametrize("action", keys.ACTIONS, ids=lambda action: action.id)
def test_every_action_exists(action: keys.Action) -> None:
    name = action.action.partition("(")[0]
    assert hasattr(OWNERS[action.scope], f"action_{name}")


@pytest.mark.parametrize("scope", OWNERS)
def test_bindings_carry_their_ids(scope: str) -> None:
    found = [binding for binding in keys.bindings(scope) if isinstance(binding, Binding)]  # type: ignore[arg-type]
    assert {binding.id for binding in found} == {a.id for a in keys.ACTIONS if a.scope == scope}


def test_the_help_names_every_key() -> None:
    text = " ".join(" ".join(line for _, line in keys.help_lines()).split())
    for action in keys.ACTIONS:
        assert action.help in text
        for key in action.keys:
            assert keys.name(key) in text


def test_the_help_begins_with_the_screen_in_front() -> None:
    headings = [line for kind, line in keys.help_lines(["reader"]) if kind == "@"]
    assert headings[0] == "Full-screen texts"
    assert len(headings) == len(set(headings))


def test_keys_have_different_names() -> None:
    names = {keys.name(key) for action in keys.ACTIONS for key in action.keys}
    assert len(names) == len({key for action in keys.ACTIONS for key in action.keys})
    assert not [name for name in names if "_" in name and name != "_"]


NOTES = {
    "whatif": "See [whatif.md](whatif.md). The form has the keys of a line of input, "
    "but `↑` and `↓` go to another field.",
}
PAGE = Path(__file__).parents[2] / "docs" / "ui.md"
FROM, TO = "tests/tui/test_tui_keys.py -->\n", "## What it never does"


def tables() -> str:
    """The keys of every scope, as the documentation lists them."""
    lines = []
    for scope, heading in keys._HEADINGS.items():
        actions = [action for action in keys.ACTIONS if action.scope == scope]
        if not actions:
            continue
        lines += [f"### {heading}", ""]
        lines += [NOTES[scope], ""] if scope in NOTES else []
        lines += ["| key | does | id |", "|---|---|---|"]
        for action in actions:
            shown = " ".join(_code(keys.name(key)) for key in action.keys)
            lines.append(f"| {shown} | {action.help} | `{action.id}` |")
        lines.append("")
    return "\n".join(lines)


def _code(key: str) -> str:
    return "`` ` ``" if key == "`" else "`\\|`" if key == "|" else f"`{key}`"


def test_the_documentation_lists_the_keys() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(FROM)
    _, _, after = rest.partition(TO)
    wanted = f"{before}{FROM}\n{tables()}\n{TO}{after}"
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        PAGE.write_text(wanted, encoding="utf-8")
        text = wanted
    assert text == wanted, "docs/ui.md lists other keys; CTXCTL_UPDATE_GOLDENS=1 writes them anew"


def test_every_scope_has_a_heading() -> None:
    assert {action.scope for action in keys.ACTIONS} <= set(keys._HEADINGS)

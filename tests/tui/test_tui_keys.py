"""Bindings, hints and help come from one table; here it is held against the widgets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from textual.binding import Binding

from ctxctl.tui import keys
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.reader import Reader
from ctxctl.tui.screens.turns import TurnsScreen
from ctxctl.tui.widgets.rows import Rows
from ctxctl.tui.widgets.textview import TextView

OWNERS: dict[str, type] = {
    "app": CtxApp,
    "turns": TurnsScreen,
    "list": Rows,
    "text": TextView,
    "reader": Reader,
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
    text = "\n".join(line for _, line in keys.help_lines())
    for action in keys.ACTIONS:
        assert action.help in text
        for key in action.keys:
            assert keys.name(key) in text


def test_the_documentation_names_every_action() -> None:
    page = (Path(__file__).parents[2] / "docs" / "ui.md").read_text(encoding="utf-8")
    for action in keys.ACTIONS:
        assert f"`{action.id}`" in page, f"docs/ui.md does not name {action.id}"

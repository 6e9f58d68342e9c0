"""Tests share the style sheets that were parsed (`shared_styles`): so no application may change them."""

from __future__ import annotations

from typing import Any

from fake import FakeInspector, notes_agent
from helpers import LARGE, made, running
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.layout import Layout

from tests.tui.shared_styles import RULES, parse_rules


def _values(rule: RuleSet) -> dict[str, Any]:
    values = rule.styles.get_rules().items()
    # A layout is equal to itself alone.
    return {name: (type(one), vars(one)) if isinstance(one, Layout) else one for name, one in values}


def _told(rules: list[RuleSet]) -> list[tuple[Any, ...]]:
    return [
        (one.selector_set, _values(one), set(one.styles.important), one.errors,
         one.is_default_rules, one.tie_breaker, one.selector_names, one.pseudo_classes)
        for one in rules
    ]  # fmt: skip


async def test_what_is_shared_is_what_would_be_parsed_anew() -> None:
    app = made(FakeInspector(notes_agent()))
    async with running(app) as session:
        app.theme = "textual-light"
        await session.press("j", "enter", "escape", "question_mark", "escape", "slash", "escape")
        await session.resize(*LARGE)
        await session.press("ctrl+p", "escape")
    assert len(RULES) > 5
    for (given, named, variables), rules in RULES.items():
        anew = parse_rules(Stylesheet(variables=dict(variables)), *given, **dict(named))
        assert _told(rules) == _told(anew), given

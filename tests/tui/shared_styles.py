"""Style sheets are parsed once for all applications that tests run: that was a sixth of each such test.

`test_tui_styles` shows that an application leaves them as they were parsed.
"""

from __future__ import annotations

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

RULES: dict[tuple[Any, ...], list[RuleSet]] = {}
"""By all that they are parsed from: what `_parse_rules` is given, and the variables of its sheet."""

parse_rules = Stylesheet._parse_rules
"""As Textual has it."""


def _parsed_once(sheet: Stylesheet, *given: Any, **named: Any) -> list[RuleSet]:
    key = (given, tuple(named.items()), frozenset(sheet._variables.items()))
    if key not in RULES:
        RULES[key] = parse_rules(sheet, *given, **named)
    return RULES[key]


def parse_once() -> None:
    """From here on, in this process."""
    Stylesheet._parse_rules = _parsed_once  # type: ignore[method-assign]

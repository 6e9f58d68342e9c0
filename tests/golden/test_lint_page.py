"""The rules in docs/lint.md are what they say of themselves; ``make goldens`` writes them anew."""

from __future__ import annotations

import os
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

from ctxctl.lint.registry import rules
from ctxctl.lint.rule import Rule

PAGE = Path(__file__).parent.parent.parent / "docs" / "lint.md"
MARK = "<!-- From here on the page is made from the rules: `make goldens`. -->\n"


def paragraphs(rule: type[Rule]) -> Iterator[str]:
    off = "" if rule.default else ", off by default"
    yield f"### {rule.code}"
    yield f"**{rule.name}** ({rule.severity}{off})"
    yield from (" ".join(part.split()) for part in cleandoc(rule.__doc__ or "").split("\n\n"))
    yield f"Fix: {rule.fix}"
    settings = "; ".join(
        f"`{name} = {getattr(rule, name)}` ({what})" for name, what in rule.parameters.items()
    )
    yield f"Needs {rule.needs}." + (f" Settings: {settings}." if settings else "")


def test_the_page_is_up_to_date() -> None:
    head, found, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    assert found
    page = f"{head}{found}\n## The rules\n"
    for rule in rules():
        page += "".join(f"\n{paragraph}\n" for paragraph in paragraphs(rule))
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page

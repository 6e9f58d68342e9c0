"""Every message and every command that a user can meet is documented, and nothing else is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ctxctl
from tests.guards.sources import nodes

PACKAGE = Path(ctxctl.__file__).parent
DOCS = PACKAGE.parent / "docs"
SLUG = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
HEADING = re.compile(r"^#{2,4} +`?([a-z][a-z0-9-]+)`?\s*$", re.MULTILINE)


def callee(node: ast.Call) -> str:
    """Return the last part of what is called: `UsageError`, `Problem`, `_report`."""
    return getattr(node.func, "attr", None) or getattr(node.func, "id", "")


def says_slug(name: str) -> bool:
    """Whether a call of that name takes a slug: an error, a `Problem`, or a function that passes one on."""
    return name.endswith("Error") or re.search(r"problem|report|fault|say|complain", name.lower()) is not None


def constants(node: ast.expr) -> Iterator[str]:
    """Yield the strings that an argument can be: itself, or the branches of a conditional."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)


def spoken(node: ast.AST) -> list[ast.expr]:
    """Return what in a node may be a slug: arguments, ``slug = …``, tuples put by for later."""
    if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == "slug" for name in node.targets):
        return [node.value]
    if not isinstance(node, ast.Call):
        return []
    found = [keyword.value for keyword in node.keywords if keyword.arg == "slug"]
    if says_slug(callee(node)):
        found += node.args
    elif callee(node) == "append":
        found += [part for argument in node.args if isinstance(argument, ast.Tuple) for part in argument.elts]
    return found


@cache
def slugs() -> dict[str, str]:
    """Return every slug in the package and a place where it is used."""
    found: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes(path):
            for slug in (text for part in spoken(node) for text in constants(part)):
                if SLUG.fullmatch(slug):
                    found.setdefault(slug, f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}")
    return found


def literals() -> set[str]:
    """Return all string constants of the package."""
    return {
        node.value
        for path in PACKAGE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def documented() -> set[str]:
    return set(HEADING.findall((DOCS / "messages.md").read_text(encoding="utf-8")))


def test_the_search_for_slugs_finds_some() -> None:
    assert {"no-such-file", "no-events", "unknown-encoding"} <= slugs().keys()


def test_every_slug_is_documented() -> None:
    known = documented()
    assert {slug: where for slug, where in slugs().items() if slug not in known} == {}


def test_no_message_is_documented_that_nothing_says() -> None:
    assert {slug for slug in documented() if SLUG.fullmatch(slug)} - literals() == set()


def commands() -> dict[str, Any]:
    from ctxctl.cli.app import whole
    from ctxctl.cli.commands import COMMANDS

    return {name: whole(name) for name in COMMANDS}


def test_every_command_and_option_is_documented() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    missing = []
    for name, command in commands().items():
        if command.hidden:
            continue
        section = re.search(
            rf"^#+ +`?ctxctl {re.escape(name)}\b.*?(?=^#+ +`?ctxctl |\Z)", text, re.MULTILINE | re.DOTALL
        )
        if section is None:
            missing.append(name)
            continue
        options = [
            option
            for parameter in command.params
            if not getattr(parameter, "hidden", False)  # an old spelling
            for option in (*parameter.opts, *parameter.secondary_opts)
        ]
        missing += [
            f"{name} {option}"
            for option in options
            if option.startswith("--") and option not in {"--help"} and option not in section.group()
        ]
    assert missing == []


@pytest.mark.parametrize("name", ["cli.md", "json.md", "messages.md", "format.md", "tutorial.md", "ui.md"])
def test_the_manual_has_its_pages(name: str) -> None:
    assert (DOCS / name).is_file()


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if (
                "://" not in target
                and not target.startswith("mailto:")
                and not (page.parent / target).exists()
            ):
                broken.append(f"{page.relative_to(DOCS.parent)} -> {target}")
    assert broken == []

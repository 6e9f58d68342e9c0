"""Values are worded in `ctxctl.wording` alone: no second formatter of money, shares, plurals or signs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ctxctl
from tests.guards.sources import nodes

PACKAGE = Path(ctxctl.__file__).parent
STATUSES = {"added", "updated", "removed"}
ALLOWED = {
    "wording.py": "the one place",
    "plugins/amplifier/policy/notice.py": "text of another program, to the letter",
    "tui/export.py": "names of environment variables",
}


def formatters(found: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield (line, what) for each expression that words a value by itself."""
    for node in found:
        if isinstance(node, ast.JoinedStr):
            yield from ((node.lineno, what) for what in _worded(node.values))
        elif isinstance(node, ast.IfExp) and _is_plural(node):
            yield node.lineno, "a plural"
        elif isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            signs = [v.value for v in node.values if isinstance(v, ast.Constant) and isinstance(v.value, str)]
            if keys >= STATUSES and any(len(sign) == 1 and not sign.isalnum() for sign in signs):
                yield node.lineno, "a table of signs"


def _worded(values: list[ast.expr]) -> Iterator[str]:
    for n, value in enumerate(values):
        if not isinstance(value, ast.FormattedValue):
            continue
        before, after = (_text(values[at]) if 0 <= at < len(values) else "" for at in (n - 1, n + 1))
        spec = (
            "".join(map(_text, value.format_spec.values))
            if isinstance(value.format_spec, ast.JoinedStr)
            else ""
        )
        if before.endswith("$") or spec == ",.4f":
            yield "money"
        if spec.endswith("%") or after.startswith(("%", " %")):
            yield "a share"
        if spec == "+,":
            yield "a signed number"


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_plural(node: ast.IfExp) -> bool:
    ends = {branch.value for branch in (node.body, node.orelse) if isinstance(branch, ast.Constant)}
    return isinstance(node.test, ast.Compare) and ends in ({"", "s"}, {"", "es"}, {"y", "ies"})


def test_no_view_words_a_value_by_itself() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in ALLOWED:
            found += [f"{name}:{line}: {what}" for line, what in formatters(nodes(path))]
    assert found == []


@pytest.mark.parametrize("name", sorted(ALLOWED))
def test_what_is_allowed_is_still_needed(name: str) -> None:
    assert list(formatters(nodes(PACKAGE / name)))


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ('f"${cost}"', "money"),
        ('f"{cost:,.4f}"', "money"),
        ('f"{part:.1%}"', "a share"),
        ('f"{part} % of it"', "a share"),
        ('f"{n:+,}"', "a signed number"),
        ("f\"{n} step{'s' if n != 1 else ''}\"", "a plural"),
        ('{"added": "+", "updated": "~", "removed": "-"}', "a table of signs"),
    ],
)
def test_a_second_formatter_is_found(source: str, what: str) -> None:
    assert (1, what) in list(formatters(ast.walk(ast.parse(source))))

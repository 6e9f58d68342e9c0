"""No module over 900 lines, no function over 80, and no room over its budget (`house.toml`)."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

import ctxctl
from tests.guards.sources import nodes

PACKAGE = Path(ctxctl.__file__).parent
ROOT = PACKAGE.parent
MODULE_LINES = 900
FUNCTION_LINES = 80
SLACK, SPARE = 0.03, {"lines": 100, "modules": 2}
"""By which share and number a room may be below its budget: what a room has saved stays saved."""
BUDGETS = tomllib.loads(Path(__file__).with_name("house.toml").read_text(encoding="utf-8"))


def lines_of(path: Path) -> int:
    return len(path.read_bytes().splitlines())


def sources(name: str) -> list[Path]:
    """The modules of a room of ctxctl/, or of a folder beside it."""
    if name == "modules beside the rooms":
        return sorted(PACKAGE.glob("*.py"))
    folder = PACKAGE / name if (PACKAGE / name).is_dir() else ROOT / name
    return sorted(folder.rglob("*.py"))


def test_every_room_has_a_budget() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert BUDGETS["lines"].keys() == BUDGETS["modules"].keys()
    assert BUDGETS["lines"].keys() == {*rooms, "modules beside the rooms", "tests", "tools"}


@pytest.mark.parametrize("name", BUDGETS["lines"])
def test_a_room_keeps_to_its_budget(name: str) -> None:
    found = sources(name)
    for sort, size in (("lines", sum(map(lines_of, found))), ("modules", len(found))):
        most = BUDGETS[sort][name]
        assert size <= most, f"{name} has {size} {sort}: delete some, or raise it in house.toml with a reason"
        assert size >= most * (1 - SLACK) - SPARE[sort], (
            f"{name} has only {size} {sort}: lower its budget in house.toml"
        )


def test_what_is_over_budget_has_a_reason() -> None:
    for raised in BUDGETS["raised"]:
        assert raised["room"] in BUDGETS["lines"]
        assert len(raised["why"].split()) > 3


def test_modules_stay_small() -> None:
    sizes = {path.relative_to(PACKAGE): lines_of(path) for path in PACKAGE.rglob("*.py")}
    assert {str(path): lines for path, lines in sizes.items() if lines > MODULE_LINES} == {}


def test_functions_fit_a_screen() -> None:
    long = {}
    for path in PACKAGE.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    long[f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"] = lines
    assert long == {}

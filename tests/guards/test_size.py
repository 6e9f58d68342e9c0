"""No module over 900 lines, no function over 80."""

from __future__ import annotations

import ast
from pathlib import Path

import ctxctl
from tests.guards.sources import nodes

PACKAGE = Path(ctxctl.__file__).parent
MODULE_LINES = 900
FUNCTION_LINES = 80


def test_modules_stay_small() -> None:
    sizes = {path.relative_to(PACKAGE): len(path.read_bytes().splitlines()) for path in PACKAGE.rglob("*.py")}
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

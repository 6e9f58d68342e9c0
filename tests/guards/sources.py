"""The package's modules as syntax trees, parsed once for all guards that a worker of a run has."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module, in the order of `ast.walk`, the module first; nobody may change them."""
    return tuple(ast.walk(ast.parse(path.read_bytes())))


def forget() -> None:
    """Let the trees go: they are a million objects, which every garbage collection goes through."""
    nodes.cache_clear()

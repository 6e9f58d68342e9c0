"""No class inherits deeper than three of ours, and no small module serves only one other."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import ctxctl
from tests.guards.sources import nodes

PACKAGE = Path(ctxctl.__file__).parent
DEEPEST = 3
"""Classes of ours one below the other, the class itself counted; those of libraries are not."""
SMALL = 60
"""Lines below which a module that only one other imports belongs into that one, or into a neighbour."""


@cache
def _modules() -> dict[str, Path]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path
    return found


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """By local name, the module of ours and the name in it that an import stands for, deferred ones too."""
    found = {}
    for node in nodes(_modules()[module]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ctxctl"):
            for alias in node.names:
                found[alias.asname or alias.name] = (node.module or "", alias.name)
    return found


def _named(module: str, node: ast.expr) -> str | None:
    """The full name of a class of ours that an expression in a module names."""
    if isinstance(node, ast.Subscript):
        return _named(module, node.value)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        where = _imports(module).get(node.value.id)
        return None if where is None else f"{where[0]}.{where[1]}.{node.attr}"
    if isinstance(node, ast.Name):
        where = _imports(module).get(node.id, (module, node.id))
        return f"{where[0]}.{where[1]}"
    return None


@cache
def _bases() -> dict[str, list[str]]:
    """By full name of each class, those of its bases that may be ours."""
    found = {}
    for module, path in _modules().items():
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                found[f"{module}.{node.name}"] = [
                    base for base in (_named(module, expr) for expr in node.bases) if base is not None
                ]
    return found


def _depth(name: str, below: tuple[str, ...] = ()) -> int:
    bases = _bases().get(name)
    if bases is None:
        module, _, own = name.rpartition(".")
        where = _imports(module).get(own) if module in _modules() else None
        return 0 if where is None or name in below else _depth(".".join(where), (*below, name))
    return 1 + max((_depth(base, (*below, name)) for base in bases if base not in below), default=0)


def _importers() -> dict[str, set[str]]:
    """By module, the modules of ours that import it."""
    found = defaultdict(set)
    for module, path in _modules().items():
        for node in nodes(path):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                target = name if name in _modules() else name.rpartition(".")[0]
                if target in _modules() and target != module:
                    found[target].add(module)
    return found


def test_inheritance_is_found_over_modules() -> None:
    assert _depth("ctxctl.tui.screens.turns.screen.TurnsScreen") == 2
    assert _depth("ctxctl.tui.screens.pointers.requests.WhyRequest") == 3


def test_no_class_inherits_deeper_than_three_of_ours() -> None:
    deep = {name: depth for name in _bases() if (depth := _depth(name)) > DEEPEST}
    assert deep == {}


def test_no_small_module_serves_only_one_other() -> None:
    importers = _importers()
    small = {
        name
        for name, path in _modules().items()
        if path.name != "__init__.py"
        and not importers[name] <= {"ctxctl.cli.main"}  # a command has a module of its own name
        and len(importers[name]) == 1
        and len(path.read_bytes().splitlines()) < SMALL
    }
    assert sorted(small) == [], "merge each into its importer, or a neighbour"


def test_test_files_of_one_name_stand_in_packages() -> None:
    """Two of one name without a package are one module to pytest, which then collects neither."""
    named: dict[str, list[Path]] = {}
    for path in sorted((PACKAGE.parent / "tests").rglob("test_*.py")):
        if not (path.parent / "__init__.py").exists() and path.parent.name != "frameworks":
            named.setdefault(path.name, []).append(path.relative_to(PACKAGE.parent))
    assert not [paths for paths in named.values() if len(paths) > 1]

"""No module leads back to itself by its imports, those for typing and those inside functions included."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import ctxctl
from tests.guards.sources import nodes

ROOT = Path(ctxctl.__file__).parents[1]
Graph = Mapping[str, frozenset[str]]

REMAINING: frozenset[frozenset[str]] = frozenset()
"""Modules that still import one another in a circle; only ever gets shorter."""


def modules(root: Path, package: str) -> dict[str, Path]:
    """Return every module by its dotted name; a package goes by its own, which stands for its `__init__`."""
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path) -> Iterator[str]:
    """Yield the dotted names that a module asks for, the longest reading of each first."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def graph(root: Path = ROOT, package: str = "ctxctl") -> dict[str, frozenset[str]]:
    """Return what each module of a package imports of it, wherever in the file the import stands."""
    known = modules(root, package)
    edges: dict[str, frozenset[str]] = {}
    for name, path in known.items():
        found = set()
        for wanted in imported(name, path):
            while wanted and wanted not in known:
                wanted = wanted.rpartition(".")[0]
            found.add(wanted)
        edges[name] = frozenset(found - {"", name})
    return edges


def within(edges: Graph, start: str) -> frozenset[str]:
    """Return all that a module leads to."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        fresh = edges[waiting.pop()] - seen
        seen |= fresh
        waiting += fresh
    return frozenset(seen)


def circles(edges: Graph) -> set[frozenset[str]]:
    """Return the sets of modules that all lead to one another."""
    reach = {name: within(edges, name) for name in edges}
    return {
        frozenset(other for other in ahead if name in reach[other])
        for name, ahead in reach.items()
        if name in ahead
    }


def shortest(edges: Graph, circle: frozenset[str]) -> str:
    """Return the shortest way from one of a circle back to itself, as `a -> b -> a`."""
    ways = []
    for start in sorted(circle):
        waiting = deque([(start,)])
        seen: set[str] = set()
        while waiting:
            way = waiting.popleft()
            if start in edges[way[-1]]:
                ways.append((*way, start))
                break
            fresh = sorted((edges[way[-1]] & circle) - seen)
            seen.update(fresh)
            waiting += [(*way, name) for name in fresh]
    return " -> ".join(min(ways, key=len))


def test_no_circle() -> None:
    edges = graph()
    assert [shortest(edges, circle) for circle in circles(edges) - REMAINING] == []


def test_what_is_mended_is_no_longer_listed() -> None:
    assert sorted(sorted(circle) for circle in REMAINING - circles(graph())) == []


def test_typing_deferred_and_relative_imports_count(tmp_path: Path) -> None:
    sources = {
        "__init__": "",
        "a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.room import b\n",
        "room/__init__": "",
        "room/b": "def later():\n    import house.room.c as c\n    return c\n",
        "room/c": "from ..a import anything\n",
        "room/d": "from . import b\n",
        "e": "import house.room\n",
    }
    for name, source in sources.items():
        path = tmp_path / "house" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    edges = graph(tmp_path, "house")
    assert edges["house.room.d"] == {"house.room.b"}
    assert edges["house.e"] == {"house.room"}
    found = circles(edges)
    assert found == {frozenset({"house.a", "house.room.b", "house.room.c"})}
    way = "house.a -> house.room.b -> house.room.c -> house.a"
    assert [shortest(edges, circle) for circle in found] == [way]

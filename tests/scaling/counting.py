"""Work that can be counted: ctxctl, imported with a counter at each place where work can grow.

Time is noise, and calls are too coarse: a list comprehension over a whole frame is one call.  So the
modules of `ctxctl` are compiled from a changed syntax tree, by an import hook, in a process of their own.
Counted are, by place:

- each call of a function, and each turn of a loop or a comprehension: 1;
- what the interpreter walks in C: what `in` of a list, `sorted(x)`, `sum(x)`, `x.index(y)` go over;
- what it copies: a 64th of what a slice, a concatenation, `list(x)`, `x.pop(0)` or `x.insert(0, y)` moves,
  and of the texts that are copied, joined, searched: 60 pointers are copied while a loop turns once.

What a library does inside of one call is not counted, but for those in Python whose work is known to explode.
"""

from __future__ import annotations

import ast
import marshal
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, cast

COUNTS: dict[tuple[str, int], int] = {}
"""Work by file and line."""

_FLAT: Final = (list, tuple, deque)
_TEXT: Final = (str, bytes, bytearray, memoryview)
_LIBRARIES: Final = frozenset({"difflib"})
_SIZED: Final[Any] = (
    *_FLAT,
    set,
    frozenset,
    dict,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)
_COPIED: Final = 64
_WHOLE: Final = frozenset(
    {"list", "tuple", "set", "frozenset", "dict", "sorted", "sum", "min", "max", "any", "all", "deque"}
)
"""Functions that walk what they are given; `zip`, `map` and the like are walked by somebody else."""
_WALKING: Final = frozenset(
    {
        "copy", "index", "count", "remove", "reverse", "sort", "find", "rfind", "replace", "split",
        "splitlines", "partition", "rpartition", "encode", "decode", "strip", "rstrip", "lstrip", "translate",
        "lower", "casefold", "update", "extend", "union", "difference", "intersection", "issubset",
        "isdisjoint", "join", "writelines",
    }
)  # fmt: skip
"""Methods that walk their object, their argument, or both."""
_SMALLER: Final = frozenset({"isdisjoint", "intersection"})
"""Methods of a set that walk the smaller one of two."""
_SETS: Final = (set, frozenset)
_SEEKING: Final = frozenset({"index", "find"})
"""Methods that go from the place that they are given to where they find it."""
_SHIFTING: Final = frozenset({"pop", "insert"})
"""Methods of a list that move what stands behind the place."""


def size(value: Any) -> int:
    """How much work it is to walk a value once in C, 0 for what is not walked."""
    kind = type(value)
    if kind in _TEXT:
        return 1 + len(value) // _COPIED
    return len(value) if isinstance(value, _SIZED) else 0


def copied(value: Any) -> int:
    """How much work it is to make a value of another one, or of a part of it."""
    return 1 + len(value) // _COPIED if type(value) in _FLAT else size(value)


def _add(place: tuple[str, int], work: int) -> None:
    COUNTS[place] = COUNTS.get(place, 0) + work


def hit(place: tuple[str, int]) -> None:
    """One call of a function, or one turn of a loop."""
    COUNTS[place] = COUNTS.get(place, 0) + 1


def made(place: tuple[str, int], value: Any) -> Any:
    """The result of a slice or a concatenation, as long as it is."""
    _add(place, copied(value))
    return value


def turns(place: tuple[str, int], values: Iterable[Any]) -> Iterator[Any]:
    """What a comprehension goes over."""
    for value in values:
        COUNTS[place] = COUNTS.get(place, 0) + 1
        yield value


def within(place: tuple[str, int], one: Any, many: Any) -> Any:
    """`in`: a list is walked, a set is not."""
    kind = type(many)
    if kind in _FLAT or kind in _TEXT:
        _add(place, size(many))
    return one in many


def walked(place: tuple[str, int], function: Any, *given: Any, **named: Any) -> Any:
    """A call of a function that walks its argument."""
    for value in given[:1]:
        _add(place, copied(value) if function in (list, tuple) else size(value))
    return function(*given, **named)


def method(place: tuple[str, int], name: str, holder: Any, *given: Any, **named: Any) -> Any:
    """A call of a method that walks its object or its argument."""
    kind = type(holder)
    if name in _SHIFTING:
        if kind is list and given and type(given[0]) is int:
            _add(place, len(holder[given[0] :]) // _COPIED)
    elif name in _SMALLER and isinstance(holder, _SETS) and given and isinstance(given[0], _SETS):
        _add(place, min(len(holder), len(given[0])))
    elif name in ("extend", "copy"):
        _add(place, sum(map(copied, given or (holder,))))
    elif name in ("update", "writelines", "join"):
        _add(place, sum(map(size, given)))
    elif name in _SEEKING and len(given) > 1 and kind in (*_FLAT, *_TEXT):
        found = getattr(holder, name)(*given, **named)
        whole = max(1, len(holder))
        _add(place, 1 + size(holder) * (found - given[1] if found >= 0 else whole - given[1]) // whole)
        return found
    elif kind in _TEXT or isinstance(holder, _SIZED):
        _add(place, size(holder))
    return getattr(holder, name)(*given, **named)


class _Counted(ast.NodeTransformer):
    """Puts a counter at each place of a module where work can grow."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _call(self, what: str, at: ast.AST, *values: ast.expr, **more: Any) -> ast.expr:
        line = getattr(at, "lineno", 0)
        place = ast.Constant((self.name, line))  # type: ignore[arg-type]
        call = ast.Call(ast.Name(f"counted_{what}", ast.Load()), [place, *values], more.get("keywords", []))
        return ast.fix_missing_locations(ast.copy_location(call, at))

    def _function(self, node: Any) -> Any:
        # Defaults and decorators are not part of the work, annotations are no expressions to run.
        node.body = [self.visit(statement) for statement in node.body]
        at = 1 if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant) else 0
        node.body.insert(at, ast.copy_location(ast.Expr(self._call("hit", node)), node))
        return ast.fix_missing_locations(node)

    visit_FunctionDef = visit_AsyncFunctionDef = _function  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def _loop(self, node: Any) -> Any:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(self._call("hit", node)), node))
        return ast.fix_missing_locations(node)

    visit_For = visit_AsyncFor = visit_While = _loop  # noqa: N815

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = self._call("turns", node.iter, node.iter)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load):
            return self._call("made", node, node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self._call("made", node, node) if isinstance(node.op, ast.Add | ast.BitOr | ast.Mult) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            found = self._call("within", node, node.left, node.comparators[0])
            if isinstance(node.ops[0], ast.NotIn):
                found = ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
            return found
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self._call("made", node, node.value)
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name) and function.id in _WHOLE and node.args:
            return self._call("walked", node, function, *node.args, keywords=node.keywords)
        if isinstance(function, ast.Attribute) and function.attr in _WALKING | _SHIFTING:
            if isinstance(function.value, ast.Call) and getattr(function.value.func, "id", "") == "super":
                return node
            name = ast.copy_location(ast.Constant(function.attr), node)
            return self._call("method", node, name, function.value, *node.args, keywords=node.keywords)
        return node


@cache
def _compiler() -> bytes:
    """What compiles: this module, and the Python that runs it."""
    return sys.version.encode() + Path(__file__).read_bytes()


def _compiled_of(name: str, path: str, source: bytes) -> bytes:
    """A digest of all that the code of a module depends on: counters are by module, so its name is of it."""
    return sha256(b"\0".join((_compiler(), name.encode(), path.encode(), source))).digest()


class _CountingLoader(SourceFileLoader):
    kept: Path | None = None
    """Where compiled modules are kept, for other processes and other runs; None: nowhere."""

    def get_code(self, fullname: str) -> CodeType | None:
        source = self.get_data(self.path)
        file = self.kept / fullname if self.kept is not None else None
        of = _compiled_of(fullname, self.path, source)
        if file is not None and file.exists() and (whole := file.read_bytes()).startswith(of):
            return cast("CodeType", marshal.loads(whole[len(of) :]))
        tree = ast.fix_missing_locations(_Counted(fullname).visit(ast.parse(source)))
        code = compile(tree, self.path, "exec", dont_inherit=True)
        if file is not None:
            new = file.with_name(f"{fullname}.{os.getpid()}.new")
            new.write_bytes(of + marshal.dumps(code))
            new.replace(file)
        return cast("CodeType", code)

    def exec_module(self, module: ModuleType) -> None:
        for counter in (hit, made, turns, within, walked, method):
            setattr(module, f"counted_{counter.__name__}", counter)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, rooms: Sequence[str]) -> None:
        self.rooms = rooms

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        ours = name.startswith("ctxctl.") and name.split(".")[1] in self.rooms
        if not ours and name not in _LIBRARIES:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            loader: Loader = _CountingLoader(spec.loader.name, spec.loader.path)
            spec.loader = loader
        return spec


def install(rooms: Sequence[str], kept: Path | None = None) -> None:
    """From here on, modules of these rooms are imported with counters; none may be imported yet.

    What was compiled is kept in the folder `kept`, and found there by the next process and the next run.
    """
    _CountingLoader.kept = kept
    early = [name for name in sys.modules if name.startswith("ctxctl.")]
    assert not early, f"imported without counters: {early[:5]}"
    for name in _LIBRARIES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Finder(rooms))

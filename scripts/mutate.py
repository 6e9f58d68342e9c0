"""Change the code in small ways, and see which changes no test notices (run by ``make mutate``).

    make mutate                             # 20 changes, over the five rooms
    make mutate COUNT=100 SEED=7            # the same hundred for everybody on one commit
    make mutate ROOM=trace COUNT=10         # of one room
    make mutate ARGS='--at ctxctl/trace/salvage.py:120'   # every change of one line

A change swaps one comparison, ``and``/``or``, ``+``/``-`` or ``True``/``False``, moves a whole number by one,
drops a ``not`` or a statement, negates a condition, or returns None.  No source is ever written: the tests of
a room are collected once, and every change is made in a forked child, by giving the function its changed code
(or, outside of functions, in a fresh process that imports the changed text).  A first child runs the tests
under coverage, so each change meets only those that reach its line, the quickest first, up to a failure.
What tests start as processes of their own does not see the change.

Verdicts: ``killed``; ``timeout`` (a test never ended: also noticed); ``survived``; ``unreached`` (no test of
the room comes by); ``cut short`` (nothing failed until the seconds of `--cap` were over).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import importlib.abc
import importlib.machinery
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROOMS: dict[str, tuple[str, ...]] = {
    "engine": ("tests/unit/engine", "tests/oracle/test_oracle.py"),
    "trace": (
        "tests/unit/trace", "tests/property/test_trace_damage.py", "tests/property/test_trace_spellings.py",
        "tests/property/test_live.py",
    ),
    "tokens": ("tests/unit/tokens", "tests/unit/session/test_calibrating.py"),
    "policies": (
        "tests/unit/policies", "tests/property/test_keepers.py", "tests/unit/cli/test_cli_policies.py",
        "tests/unit/importers/test_registry.py",
    ),
    "importers": (
        "tests/unit/importers", "tests/formats/test_damage.py", "tests/formats/test_moved.py",
        "tests/formats/test_places.py",
    ),
}  # fmt: skip
"""Each room with the tests that are of it."""
NARROWED = frozenset({"importers"})
"""Rooms whose packages know nothing of each other: only those tests run that name a package that changes."""
PLAN, SOURCE = "MUTATE_PLAN", "MUTATE_SOURCE"
"""Environment of the processes that run tests: the plan of a room; the one change of a fresh process."""
HANG = 30
"""Seconds beyond the cap after which a test is held to be stuck."""

COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: (r"not\s+in", "in"),
}  # fmt: skip
JOINED = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
ADDED = {ast.Add: (r"\+", "-"), ast.Sub: ("-", "+")}


@dataclass(frozen=True)
class Mutant:
    """One change: what stands in a file from `start` to `end` (characters) is replaced."""

    path: str
    line: int
    start: int
    end: int
    text: str
    change: str
    function: str | None = None
    """Qualified name of the outermost function that holds it; None outside of functions."""
    first: int = 0
    """First line of that function, decorators included."""

    def apply(self, source: str) -> str:
        """The changed source."""
        return source[: self.start] + self.text + source[self.end :]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.change}"


# Which changes there are.


class Finder:
    """Walks one module and collects the changes that can be made to it."""

    def __init__(self, path: str, source: str) -> None:
        self.path = path
        self.source = source
        self.found: list[Mutant] = []
        self._lines = source.splitlines(keepends=True)
        self._begins = [0]
        for line in self._lines:
            self._begins.append(self._begins[-1] + len(line))

    def module(self) -> list[Mutant]:
        """Every change of the module, in the order of the source."""
        self._body(ast.parse(self.source), "", None)
        return self.found

    def _at(self, line: int, column: int) -> int:
        """Characters before a position that `ast` gives in UTF-8 bytes."""
        return self._begins[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _body(self, holder: ast.AST, prefix: str, function: tuple[str, int] | None) -> None:
        """Look at what is inside a module, a class or a function."""
        for child in ast.iter_child_nodes(holder):
            self._visit(child, prefix, function)

    def _visit(self, node: ast.AST, prefix: str, function: tuple[str, int] | None) -> None:
        if isinstance(node, ast.ClassDef):
            for child in node.body:
                self._visit(child, f"{prefix}{node.name}.", function)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for default in (*node.args.defaults, *node.args.kw_defaults):
                if default is not None:
                    self._visit(default, prefix, function)
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            inside = function or (prefix + node.name, first)
            for child in node.body:
                self._visit(child, prefix, inside)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._visit(node.value, prefix, function)
        elif not self._passed_over(node):
            before = len(self.found)
            self._change(node)
            if function is not None:
                named = [replace(one, function=function[0], first=function[1]) for one in self.found[before:]]
                self.found[before:] = named
            self._body(node, prefix, function)

    @staticmethod
    def _passed_over(node: ast.AST) -> bool:
        """What says nothing at run time, or is a check of the code's own."""
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name):
            return node.test.id == "TYPE_CHECKING"
        named = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        return (named and node.targets[0].id.startswith("__")) or isinstance(node, ast.Assert | ast.JoinedStr)  # type: ignore[attr-defined]

    def _change(self, node: ast.AST) -> None:
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARED:
                self._between(node, left, right, *COMPARED[type(op)])
            case ast.BoolOp(op=op, values=[left, right, *_]):
                self._between(node, left, right, *JOINED[type(op)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ADDED:
                self._between(node, left, right, *ADDED[type(op)])
            case ast.Constant(value=bool() as value):
                self._put(node, str(not value))
            case ast.Constant(value=int() as value):
                self._put(node, str(value + 1))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                start, end = self._span(inner)
                self._put(node, f"({self.source[start:end]})")
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                start, end = self._span(test)
                self._put(test, f"(not ({self.source[start:end]}))")
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                self._put(node, "return None")
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Raise():
                self._put(node, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                self._put(node, "pass")

    def _put(self, node: ast.expr | ast.stmt, text: str) -> None:
        start, end = self._span(node)
        self._add(node.lineno, start, end, text, f"{_short(self.source[start:end])}  ->  {_short(text)}")

    def _between(self, node: ast.expr, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Swap the operator that stands between two operands."""
        begin, end = self._span(left)[1], self._span(right)[0]
        hit = re.search(rf"(?<!\w){old}(?!\w)" if old[0].isalpha() else old, self.source[begin:end])
        if hit:
            whole = _short(self.source[slice(*self._span(node))])
            line = self.source.count("\n", 0, begin + hit.start()) + 1
            self._add(line, begin + hit.start(), begin + hit.end(), new, f"{hit[0]}  ->  {new}  in  {whole}")

    def _add(self, line: int, start: int, end: int, text: str, change: str) -> None:
        self.found.append(Mutant(self.path, line, start, end, text, change))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 70 else f"{text[:69]}…"


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Every change of a module that still compiles."""
    kept = []
    for one in Finder(path, source).module():
        with contextlib.suppress(SyntaxError):
            compile(one.apply(source), path, "exec")
            kept.append(one)
    return kept


def sample(rooms: Sequence[str], count: int, seed: int) -> dict[str, list[Mutant]]:
    """`count` changes, as many of each room; the same for one seed and commit."""
    drawn = {}
    for number, room in enumerate(rooms):
        every: list[Mutant] = []
        for path in sorted((ROOT / "ctxctl" / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            every += Finder(name, path.read_text(encoding="utf-8")).module()
        share = count // len(rooms) + (number < count % len(rooms))
        drawn[room] = random.Random(f"{seed}/{room}").sample(every, min(share, len(every)))
    return drawn


def of_line(place: str) -> dict[str, list[Mutant]]:
    """Every change of one line, given as ``ctxctl/ROOM/…/file.py:LINE``."""
    path, line = place.rsplit(":", 1)
    found = mutants_of(path, (ROOT / path).read_text(encoding="utf-8"))
    room = Path(path).parts[1]
    return {room: [one for one in found if one.line == int(line)]}


# The process that runs tests: this module is its plug-in.


class Runner:
    """Runs a room's tests for each change, each time in a child of the process that has collected them."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.mutants = [Mutant(**one) for one in plan["mutants"]]
        self.cap: float = plan["cap"]
        self.folder = Path(plan["folder"])
        self.failed = False
        self.seconds = 0.0

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Leave out the tests of other packages."""
        rooms = {Path(one.path).parts[1] for one in self.mutants}
        if not rooms <= NARROWED:
            return
        names = naming(self.mutants)
        texts: dict[Path, bool] = {}

        def near(item: Any) -> bool:
            spec = getattr(item, "callspec", None)
            if "tests/formats/" in item.nodeid and spec is not None:
                return bool(names.search(spec.id))
            if item.path not in texts:
                texts[item.path] = bool(names.search(_with_helpers(item.path)))
            return texts[item.path]

        dropped = [item for item in items if not near(item)]
        items[:] = [item for item in items if near(item)]
        config.hook.pytest_deselected(items=dropped)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how a phase of a test went."""
        self.failed = self.failed or report.failed
        self.seconds += report.duration

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run the plan instead of the session."""
        if _in_child(lambda: self._map(session.items), 3600) != 0:
            (self.folder / "verdicts").write_text("broken\n", encoding="utf-8")
            return True
        reaching = self._reaching()
        items = {item.nodeid: item for item in session.items}
        with (self.folder / "verdicts").open("w", encoding="utf-8", buffering=1) as out:
            for number, one in enumerate(self.mutants):
                tests = reaching(one)
                verdict = self._verdict(one, [items[name] for name in tests])
                out.write(json.dumps([number, verdict, tests]) + "\n")
        return True

    def _map(self, items: list[Any]) -> int:
        """Find which tests come by which line of the changed files, and how long each one takes."""
        import coverage

        files = sorted({str(ROOT / one.path) for one in self.mutants})
        measured = coverage.Coverage(data_file=str(self.folder / "lines"), include=files, config_file=False)
        took: dict[str, float] = {}
        measured.start()
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.failed, self.seconds = False, 0.0
            measured.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if not self.failed:
                took[item.nodeid] = self.seconds
        measured.stop()
        measured.save()
        (self.folder / "took").write_text(json.dumps(took), encoding="utf-8")
        return 0

    def _reaching(self) -> Any:
        import coverage

        took: dict[str, float] = json.loads((self.folder / "took").read_text(encoding="utf-8"))
        data = coverage.CoverageData(str(self.folder / "lines"))
        data.read()

        def tests_for(one: Mutant) -> list[str]:
            lines = data.contexts_by_lineno(str(ROOT / one.path))
            # What runs at import has no test of its own: any test of the file may notice.
            names = (
                lines.get(one.line, []) if one.function else {name for by in lines.values() for name in by}
            )
            if one.function and not names:
                # Within an expression over several lines only its first one is counted.
                names = next((lines[at] for at in range(one.line, one.first, -1) if lines.get(at)), [])
            if not one.function and not names:
                names = list(took)
            return sorted({name for name in names if name in took}, key=lambda name: took[name])

        return tests_for

    def _verdict(self, one: Mutant, items: list[Any]) -> str:
        if not items:
            return "unreached"
        if one.function is None:
            return "fresh"
        source = (ROOT / one.path).read_text(encoding="utf-8")

        def child() -> int:
            if not put_in(one, source):
                return 4
            return self._until_failure(items)

        code = _in_child(child, self.cap + HANG)
        return {0: "survived", 1: "killed", 2: "cut short", 4: "fresh", None: "timeout"}.get(code, "killed")

    def _until_failure(self, items: list[Any]) -> int:
        began = time.monotonic()
        self.failed = False
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed:
                return 1
            if time.monotonic() - began > self.cap:
                return 2
        return 0


def naming(mutants: Sequence[Mutant]) -> re.Pattern[str]:
    """What names one of the packages (or modules beside them) that change, as a package or as a format."""
    packages = {Path(one.path).parts[2].removesuffix(".py") for one in mutants}
    spelled = "|".join(sorted(name.replace("_", "[_-]") for name in packages))
    return re.compile(rf"(?<![a-z])(?:{spelled})(?![a-z])")


def _with_helpers(path: Path) -> str:
    """The text of a test file and of the helpers that it imports."""
    text = path.read_text(encoding="utf-8")
    helpers = (
        ROOT / (name.replace(".", "/") + ".py")
        for name in re.findall(r"^from ((?:tests|tools)\.\S+)", text, re.M)
    )
    return text + "".join(one.read_text(encoding="utf-8") for one in helpers if one.exists())


def _in_child(work: Any, seconds: float) -> int | None:
    """Call `work` in a forked child; its result, or None where it did not end in time."""
    child = os.fork()
    if not child:
        code = 1
        try:
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    handle = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
    try:
        if handle is not None and not select.select([handle], [], [], seconds)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def put_in(one: Mutant, source: str) -> bool:
    """Give the live function its changed code; False where there is none, or the code does not fit it."""
    file = str(ROOT / one.path)
    code = next(
        (
            found
            for found in _codes(compile(one.apply(source), file, "exec"))
            if found.co_qualname == one.function and found.co_firstlineno == one.first
        ),
        None,
    )
    gc.unfreeze()  # commands freeze what is there when they start, and frozen objects are not listed
    live = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType)
        and each.__code__.co_qualname == one.function
        and each.__code__.co_firstlineno == one.first
        and each.__code__.co_filename == file
    ]
    if code is None or not live:
        return False
    try:
        for each in live:
            each.__code__ = code
    except ValueError:
        return False
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


class Changed(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports one module from its changed text."""

    def __init__(self, one: Mutant) -> None:
        self.one = one
        self.name = one.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        """Take the one module."""
        if name != self.name:
            return None
        package = self.one.path.endswith("/__init__.py")
        file = self.get_filename(name)
        spec = importlib.machinery.ModuleSpec(name, self, origin=file, is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [str(Path(file).parent)]
        return spec

    def get_filename(self, name: str) -> str:
        """The file as it is."""
        return str(ROOT / self.one.path)

    def get_data(self, path: str | bytes) -> bytes:
        """The changed text."""
        return self.one.apply(Path(os.fsdecode(path)).read_text(encoding="utf-8")).encode()


def pytest_configure(config: Any) -> None:
    """As a plug-in: run a plan."""
    if os.environ.get(PLAN):
        config.pluginmanager.register(Runner(json.loads(Path(os.environ[PLAN]).read_text(encoding="utf-8"))))


if os.environ.get(SOURCE):
    sys.meta_path.insert(0, Changed(Mutant(**json.loads(os.environ[SOURCE]))))


# The process that is started by hand.


def _pytest(folder: Path, tests: Sequence[str], **more: str) -> subprocess.Popen[bytes]:
    environment = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        PYTHONDONTWRITEBYTECODE="1",
        **more,
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n0",
        "-q",
        "-x",
        "-p",
        "scripts.mutate",
        "-p",
        "no:cacheprovider",
    ]
    command += ["-m", "not corpus and not slow and not clients", f"--basetemp={folder / 'tests'}", *tests]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )


def run_room(
    room: str, mutants: list[Mutant], tests: Sequence[str], cap: float
) -> Iterator[tuple[Mutant, str]]:
    """Judge the changes of one room, in their order."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as name:
        folder = Path(name)
        plan = {"mutants": [asdict(one) for one in mutants], "cap": cap, "folder": name}
        (folder / "plan").write_text(json.dumps(plan), encoding="utf-8")
        process = _pytest(folder, tests, **{PLAN: str(folder / "plan")})
        try:
            for number, verdict, reaching in _verdicts(process, folder / "verdicts"):
                if verdict == "fresh":
                    verdict = _fresh(mutants[number], reaching, folder, cap)
                yield mutants[number], verdict
        finally:
            _stop(process)
        if process.returncode not in (0, 5):
            log = (folder / "log").read_text(encoding="utf-8", errors="replace")
            sys.exit(f"the tests of {room} could not be run:\n{log[-2000:]}")


def _verdicts(process: subprocess.Popen[bytes], path: Path) -> Iterator[list[Any]]:
    """Yield what the process writes, as it comes."""
    read = 0
    while True:
        over = process.poll() is not None
        lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
        for line in lines[read:]:
            if line == "broken":
                log = (path.parent / "log").read_text(encoding="utf-8", errors="replace")
                sys.exit(f"the room's tests did not run to their end:\n{log[-2000:]}")
            yield json.loads(line)
        read = len(lines)
        if over:
            return
        time.sleep(0.2)


def _fresh(one: Mutant, tests: list[str], folder: Path, cap: float) -> str:
    """Judge a change outside of functions, or one that a live function cannot take."""
    apart = folder / "fresh"
    apart.mkdir(exist_ok=True)
    # A command line holds only so much; whole files then.
    chosen = tests if sum(map(len, tests)) < 100_000 else sorted({name.split("::")[0] for name in tests})
    process = _pytest(apart, chosen, **{SOURCE: json.dumps(asdict(one))})
    try:
        return "survived" if process.wait(cap + HANG) == 0 else "killed"
    except subprocess.TimeoutExpired:
        return "cut short"
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it, and whatever its tests have left running."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main() -> int:
    """Draw, run, and list what no test noticed."""
    parser = argparse.ArgumentParser(description="Which small changes of the code no test notices.")
    parser.add_argument("--room", choices=sorted(ROOMS), help="only this one (default: all five)")
    parser.add_argument("--count", type=int, default=20, help="changes to draw (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (1)")
    parser.add_argument("--cap", type=float, default=60, help="seconds of tests for one change (60)")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="run these instead of the room's")
    parser.add_argument("--at", metavar="FILE:LINE", help="every change of one line, instead of a draw")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    rooms = [options.room] if options.room else list(ROOMS)
    drawn = of_line(options.at) if options.at else sample(rooms, options.count, options.seed)
    tally: Counter[str] = Counter()
    with contextlib.suppress(KeyboardInterrupt):
        for room, mutants in drawn.items():
            tests = options.tests or ROOMS[room]
            for one, verdict in run_room(room, mutants, tests, options.cap) if mutants else ():
                tally[verdict] += 1
                print(f"{verdict:9}  {one}", flush=True)
    noticed = tally["killed"] + tally["timeout"]
    print(f"{noticed} of {tally.total()} noticed (seed {options.seed}): {dict(tally.most_common())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

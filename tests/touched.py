"""Chooses the tests that a change needs: ``python -m tests.touched [--base REF]`` prints their paths.

The change is what git says differs from the branch point, what is not committed included.  Needed are the
guards, the tests that were changed, those that import a changed module, and those of the rooms that were
changed, in this order: as many as fit into a minute by what they took last time (`tests.timing`).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests import timing

ROOT = Path(__file__).resolve().parent.parent
GUARDS = "tests/guards"
APART = (
    "tests/corpus", "tests/frameworks", "tests/tools/clients", "tests/original", "tools/clients",
    "tools/bench",
)  # fmt: skip
"""What needs more than a checkout, or is no test."""

BUDGET = 50.0
"""Seconds that the chosen tests may take; what is left of the minute is for starting."""


class Chosen(NamedTuple):
    """What is run, and what is not for lack of time."""

    files: list[str]
    left: list[str]


def changed(base: str | None, root: Path = ROOT) -> list[str]:
    """The paths that differ from the branch point with `base` (`main`, without one), and new ones."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        return done.stdout.splitlines() if done.returncode == 0 else []

    known = [base] if base else ["main", "origin/main"]
    start = next((found[0] for one in known if (found := git("merge-base", "HEAD", one))), "HEAD")
    return sorted({*git("diff", "--name-only", start), *git("ls-files", "--others", "--exclude-standard")})


def room(path: str) -> str | None:
    """The folder whose tests are those of a file: of a room's source, of what tests share, of a page."""
    parts = path.split("/")
    if path == "README.md" or (parts[0] == "docs" and path.endswith(".md")):
        return "tests/docs"
    if parts[0] == "fixtures":
        return "tests/unit/importers"
    if parts[0] == "ctxctl" and len(parts) > 2:
        return "tests/tui" if parts[1] == "tui" else f"tests/unit/{parts[1]}"
    if parts[0] == "tools" and len(parts) > 2:
        return f"tests/tools/{parts[1]}"
    if parts[:2] in (["tests", "unit"], ["tests", "tools"]) and len(parts) > 3:
        return "/".join(parts[:3])
    if parts[0] == "tests" and len(parts) > 2:
        return "/".join(parts[:2])
    return None


def imported(text: str) -> Iterator[str]:
    """The modules that a file imports, by their names, and the names out of them as if they were modules."""
    for match in re.finditer(r"^\s*from ([\w.]+) import (\([^)]*\)|[^\n]*)", text, re.MULTILINE):
        yield match[1]
        yield from (f"{match[1]}.{name}" for name in re.findall(r"\w+", match[2]))
    yield from re.findall(r"^\s*import ([\w.]+)", text, re.MULTILINE)


def module(path: str) -> str:
    """The name by which a source file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def wanted(paths: Iterable[str], tests: Mapping[str, str]) -> Iterator[list[str]]:
    """The test files that a change needs, most needed first: three lists.  `tests` has the source of each."""
    paths = [path for path in paths if not path.startswith(APART)]
    yield [path for path in paths if path in tests]
    names = {module(path) for path in paths if path.endswith(".py")}
    yield [file for file, text in tests.items() if names & set(imported(text))]
    rooms = {found for path in paths if path not in tests and (found := room(path))}
    yield [file for file in tests if room(file) in rooms]


def choose(
    paths: Iterable[str], tests: Mapping[str, str], seconds: Mapping[str, float], budget: float
) -> Chosen:
    """Choose what fits, of equally needed files the quickest first; `seconds` has what each file takes."""
    files: dict[str, None] = {}
    left: dict[str, None] = {}
    spent = 0.0
    for one in wanted(paths, tests):
        for file in sorted(one, key=lambda file: (seconds[file], file)):
            if file in files or file in left or file.startswith(GUARDS):
                continue
            if spent + seconds[file] > budget:
                left[file] = None
            else:
                files[file] = None
                spent += seconds[file]
    return Chosen(list(files), list(left))


def by_file(files: Collection[str], kept: timing.Seconds) -> dict[str, float]:
    """What the tests of each file took last time; of a file that is not known, what others do on average."""
    took: dict[str, float] = defaultdict(float)
    for name, seconds in kept.items():
        took[name.partition("::")[0]] += seconds
    known = [took[file] for file in files if file in took]
    mean = sum(known) / len(known) if known else 1.0
    return {file: took.get(file, mean) for file in files}


def summary(paths: Collection[str], chosen: Chosen) -> str:
    """What is run and why, in two lines."""

    def counted(number: int, what: str) -> str:
        return f"{number} {what}{'s' * (number != 1)}"

    rooms = sorted({found.rpartition("/")[2] for path in paths if (found := room(path))})
    run = f"the guards and {counted(len(chosen.files), 'file')} of tests"
    rest = f"; {len(chosen.left)} more would take longer than a minute: make test" if chosen.left else ""
    return f"changed: {counted(len(paths), 'file')}, of {', '.join(rooms) or 'no room'}\n{run}{rest}"


def main() -> int:
    """Print what to run, and on standard error what was chosen why."""
    parser = argparse.ArgumentParser(prog="python -m tests.touched", description=__doc__)
    parser.add_argument("--base", help="what the change is held against (main)")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    paths = changed(given.base)
    here = (ROOT / "tests").rglob("test_*.py")
    tests = {found.relative_to(ROOT).as_posix(): found.read_text(encoding="utf-8") for found in sorted(here)}
    tests = {name: text for name, text in tests.items() if not name.startswith(APART)}
    seconds = by_file(tests, timing.kept_in(ROOT / ".pytest_cache"))
    guards = sum(took for file, took in seconds.items() if file.startswith(GUARDS))
    chosen = choose(paths, tests, seconds, BUDGET * given.workers - guards)
    print(summary(paths, chosen), file=sys.stderr)
    print(*[GUARDS, *chosen.files], sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

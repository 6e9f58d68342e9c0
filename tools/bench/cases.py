"""One measurement, and what runs them all by turns: programs, each with its caches and its environment."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.bench.load import Load
from tools.bench.measure import Sample, middle, run

SETTLED = 2.5
"""Seconds after which a file counts as left alone: ctxctl trusts no file that changed less than 2 s ago."""
LONG = 90.0
"""Seconds of a case after which it gets no further run."""
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH")
"""Variables that the programs inherit; among them none that changes what Python does."""


@dataclass
class Case:
    """One measurement: `go` does one run, `runs` says how many there are to be."""

    name: str
    go: Callable[[], Sample]
    runs: int
    samples: list[Sample] = field(default_factory=list)
    error: str | None = None
    """Why it could not be run at all."""

    def once(self) -> None:
        """Do one run, unless an earlier one failed or they took long: its row says so."""
        if self.failed is None and sum(sample.wall for sample in self.samples) < LONG:
            try:
                self.samples.append(self.go())
            except Exception as error:  # one case that cannot run must not end the others
                self.error = f"{type(error).__name__}: {error}"

    @property
    def failed(self) -> str | None:
        """Why there is nothing to report, or None."""
        if self.error is not None:
            return self.error
        bad = next((s for s in self.samples if not s.good), None)
        if bad is None:
            return None
        return bad.complaint or f"exit code {bad.status}"

    @property
    def ready(self) -> bool:
        """Whether there is something to report."""
        return bool(self.samples) and self.failed is None

    @property
    def cpu(self) -> float:
        """Median of user and system seconds."""
        return middle([s.cpu for s in self.samples])

    @property
    def wall(self) -> float:
        """Median of elapsed seconds."""
        return middle([s.wall for s in self.samples])

    @property
    def rss(self) -> int:
        """Highest peak memory in bytes."""
        return max(s.rss for s in self.samples)

    def all_printed(self, column: int) -> list[float]:
        """A number that the program printed, of each run."""
        return [float(s.output.split()[column]) for s in self.samples]

    def printed(self, column: int = 0) -> float:
        """Median of a number that the program printed."""
        return middle(self.all_printed(column))


class Bench:
    """Holds the cases and runs them by turns, so that a disturbance hits all of them.

    Args:
        runs: Rounds of the large cases; short ones have more.
        gigabyte: Whether the 1 GB trace is measured too.
        scratch: An empty folder of its own: caches, outputs, a home.
        peers: Where other tools are installed, if they are.
    """

    def __init__(self, runs: int, *, gigabyte: bool, scratch: Path, peers: Path) -> None:
        self.runs = runs
        self.gigabyte = gigabyte
        self.scratch = scratch
        self.peers = peers
        self.home = scratch / "home"
        self.home.mkdir()
        self.cases: dict[str, Case] = {}
        self.inputs: dict[str, int] = {}
        """Bytes of the files and folders that are read, by name."""
        self.loads: dict[str, Load] = {}
        """What they hold, by name."""
        self.broken: dict[str, str] = {}
        """Why a section could not be set up, by its name."""
        self._before: list[Callable[[], object]] = []
        self._cold = 0

    # -- what is measured ------------------------------------------------------------------------------------

    def add(
        self, name: str, argv: Sequence[str], *, runs: int | None = None, cache: str, keep: bool = False,
        whole_tree: bool = False, allowed: tuple[int, ...] = (0,),
    ) -> None:  # fmt: skip
        """A program. `cache`: the name of its cache folder; `cold`: an empty one for each run.

        `NAME:counted`: the folder NAME, of which nothing but the counts is there when a run begins.
        `allowed`: the exit codes of a run that did what it should.
        """

        def go() -> Sample:
            name, _, state = cache.partition(":")
            where = self.cache(self.fresh_cache() if name == "cold" else name)
            if state == "counted":
                forget_all_but_counts(where)
            try:
                done = run(argv, self.env(where), self.scratch, keep=keep, whole_tree=whole_tree)
                return replace(done, status=0) if done.status in allowed else done
            finally:
                if cache == "cold":
                    shutil.rmtree(where, ignore_errors=True)

        self.add_case(name, go, runs)

    def add_case(self, name: str, go: Callable[[], Sample], runs: int | None = None) -> None:
        """Anything that can be sampled; a case that another section has added already is the same one."""
        self.cases.setdefault(name, Case(name, go, self.runs if runs is None else runs))

    def add_command(self, name: str, *arguments: str, runs: int | None = None, cache: str = "warm") -> None:
        """A command of ctxctl's."""
        self.add(name, command(*arguments), runs=runs, cache=cache)

    def add_probe(
        self, name: str, *arguments: str, runs: int | None = None, cache: str = "warm", keep: bool = False
    ) -> None:
        """A program of `tools.bench.probes`."""
        self.add(name, probe(*arguments), runs=runs, cache=cache, keep=keep)

    def add_input(self, name: str, path: Path) -> None:
        """Say how large an input is."""
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        self.inputs[name] = sum(file.stat().st_size for file in files)

    def set_up(self, section: str, add: Callable[[Bench], None]) -> None:
        """Let a section add its cases; where it cannot, say why on the page and go on with the next."""
        try:
            add(self)
        except Exception as error:
            self.broken[section] = f"{type(error).__name__}: {error}"
            print(f"{section}: {self.broken[section]}", file=sys.stderr)

    # -- before anything is measured -------------------------------------------------------------------------

    def before(self, work: Callable[[], object]) -> None:
        """Do something after all inputs are written and settled, and before the first round."""
        self._before.append(work)

    def prime(self, *arguments: str, cache: str = "warm") -> None:
        """Run a command once without measuring it, so that a cache holds what it leaves there."""
        self.before(lambda: self.run_once(command(*arguments), cache))

    def run_once(self, argv: Sequence[str], cache: str, *, keep: bool = False) -> Sample:
        """Run something now, by which nothing is measured."""
        return run(argv, self.env(self.cache(cache)), self.scratch, keep=keep)

    def prepare(self) -> Iterator[None]:
        """Do all that is to be done before the first round; yields before each."""
        time.sleep(SETTLED)
        for work in self._before:
            yield
            try:
                work()
            except Exception as error:  # the case that needed it will say what is missing
                print(f"\nnot prepared: {type(error).__name__}: {error}", file=sys.stderr)

    @property
    def preparations(self) -> int:
        """How many there are."""
        return len(self._before)

    # -- running ---------------------------------------------------------------------------------------------

    def rounds(self, seconds: float) -> Iterator[str]:
        """Run everything once and, as long as `seconds` have not passed, again; yields each name before."""
        end = time.monotonic() + seconds
        for number in range(max((case.runs for case in self.cases.values()), default=0)):
            for case in self.cases.values():
                if number < case.runs and (number == 0 or time.monotonic() < end):
                    yield case.name
                    case.once()

    def ready(self, *names: str) -> bool:
        """Whether all these cases have results."""
        return all(name in self.cases and self.cases[name].ready for name in names)

    def cache(self, name: str) -> Path:
        """A cache folder; made."""
        where = self.scratch / f"cache-{name}"
        where.mkdir(parents=True, exist_ok=True)
        return where

    def fresh_cache(self) -> str:
        """The name of a cache folder that no run has had."""
        self._cold += 1
        return f"cold-{self._cold}"

    def env(self, cache: Path) -> dict[str, str]:
        """The environment of a program: a home and a cache of its own, whatever the user has set."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return kept | {"HOME": str(self.home), "CTXCTL_CACHE_DIR": str(cache.resolve()), "NO_COLOR": "1"}


def command(*arguments: str) -> list[str]:
    """The command line of a ctxctl command."""
    return [sys.executable, "-m", "ctxctl", *arguments]


def probe(*arguments: str) -> list[str]:
    """The command line of a probe."""
    return [sys.executable, "-m", "tools.bench.probes", *arguments]


def forget_all_but_counts(cache: Path) -> None:
    """Empty a cache folder of all that is kept of captures; how many tokens texts have stays known."""
    for entry in cache.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        elif not entry.name.startswith("counts-"):
            entry.unlink()

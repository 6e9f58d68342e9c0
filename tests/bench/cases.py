"""What is measured: programs, on which file, with which caches, and how often."""

from __future__ import annotations

import compileall
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench import generate, record, screens
from tests.bench.measure import Sample, first_screen, middle, run

SMALL = Path("traces") / "coding-agent.jsonl"
FOREIGN = Path("fixtures") / "claude_code" / "session.jsonl"
"""A small capture of a client's."""
STARTED = {
    "small replay": ("replay", "--json", str(SMALL)),
    "small show": ("show", "--json", f"{SMALL}@-1"),
    "small diff": ("diff", "--json", f"{SMALL}@3", f"{SMALL}@-1"),
    "small why": ("why", "--json", f"{SMALL}@-1", "tool:search"),
    "small cost": ("cost", "--json", str(SMALL)),
    "foreign replay": ("replay", "--json", str(FOREIGN)),
    "foreign cost": ("cost", "--json", str(FOREIGN)),
}
"""Commands on so little that starting is most of their work."""
CALL = "toolu_17dbf0fa00000001"
"""The first call of the 50 MB transcript."""
AGAIN = {
    "replay --json": ("replay", "--json", "{}"),
    "show": ("show", "--json", "{}@-1"),
    "diff": ("diff", "--json", "{}@-5", "{}@-1"),
    "why": ("why", "--json", "{}@-1", CALL),
    "log": ("log", "--json", "{}", CALL),
    "cost": ("cost", "--json", "{}"),
}
"""Questions about a large capture that was read before."""
FLEETS = {"240 sessions of 40 MB": (240, 167_000), "5 000 sessions of 50 MB": (5_000, 10_000)}
"""Directories: number of sessions, and bytes of each."""
FIRST = b"Since Sunday"
"""Part of the first prompt of the small trace."""
FIRST_LARGE = b"s01"
WATCHED = 60
"""Seconds for which a writer is watched."""
DIFFS = (
    ("code, a dozen edits", "code", "0.0005"),
    ("code, a tenth of the lines", "code", "0.1"),
    ("log, a dozen edits", "log", "0.0005"),
)
"""Name, sort of text, share of changed lines."""


WHATIF_WINDOW = "128k"
"""Supposed window of the what-ifs; what the session holds exceeds it for most of its turns."""
WHATIFS = (
    "",
    "fifo",
    "priority",
    "truncate_middle",
    "truncate_tail",
    "summarize_oldest",
    "summarize_low_priority",
    "defer_to_retrieval",
    "reject",
    "amplifier",
    "amplifier_contract",
    "sibyl",
)
"""Policies of the what-ifs; empty: the window alone."""


def whatif(policy: str) -> str:
    """The name of a what-if's case."""
    return f"what-if: {policy or 'window alone'}"


CAPTURES = Path(os.environ.get("CTXCTL_CORPUS") or Path("..") / "shared") / "data"
"""Captures kept outside the repository: what importers are measured on, where there are any."""
IMPORTERS = (
    ("claude-code", "claude-code"),
    ("codex", "codex"),
    ("pi", "pi"),
    ("amplifier", "amplifier"),
    ("copilot-cli", "copilot-sdk-events"),
    ("claude-stream-json", "claude-stream-json"),
    ("claude-trace", "api-captures"),
    ("swe-agent-calls", "api-captures"),
)
"""Formats of JSON Lines, and the folder that holds captures of each."""


@dataclass
class Case:
    """One measurement: `go` does one run, `runs` says how many there are to be."""

    name: str
    go: Callable[[], Sample]
    runs: int
    samples: list[Sample] = field(default_factory=list)

    def once(self) -> None:
        """Do one run, unless an earlier one failed: then its row says so."""
        if self.failed is None:
            self.samples.append(self.go())

    @property
    def failed(self) -> str | None:
        """Why there is nothing to report, or None."""
        bad = next((s for s in self.samples if not s.good), None)
        if bad is None:
            return None
        return bad.complaint[:160] or f"exit code {bad.status}"

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
    """Builds the cases and runs them in turns, so that a disturbance hits all of them."""

    def __init__(self, runs: int, gigabyte: bool, only: str | None) -> None:
        self.runs = runs
        self.scratch = generate.directory() / "scratch"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        self.cases: dict[str, Case] = {}
        self.files: dict[str, Path] = {}
        self._caches = 0
        self._common()
        self._large("100mb", generate.megabytes_100(), runs)
        if gigabyte:
            self._large("1gb", generate.gigabyte(), max(3, runs // 2))
        self._read_once()
        self._whatifs()
        self._ui()
        seconds = WATCHED if runs > 1 else WATCHED // 6
        self._probe("watch", "watch", str(self.scratch), str(seconds), runs=1, keep=True)
        self._importers()
        self._record()
        if only:
            self.cases = {name: case for name, case in self.cases.items() if only in name}

    def rounds(self) -> Iterator[str]:
        """Run everything; yields the name of each case before it runs."""
        for number in range(max((case.runs for case in self.cases.values()), default=0)):
            for case in self.cases.values():
                if number < case.runs:
                    yield case.name
                    case.once()

    def ready(self, *names: str) -> bool:
        """Whether all these cases have results."""
        return all(name in self.cases and self.cases[name].ready for name in names)

    def _env(self, cache: Path) -> dict[str, str]:
        kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
        env = {name: os.environ[name] for name in kept if name in os.environ}
        return env | {
            "CTXCTL_CACHE_DIR": str(cache.resolve()),
            "NO_COLOR": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _add(
        self, name: str, argv: list[str], *, runs: int | None = None, cache: str = "warm", keep: bool = False
    ) -> None:
        def go() -> Sample:
            where = self.scratch / cache
            if cache == "cold":
                self._caches += 1
                where = self.scratch / f"cold-{self._caches}"
            for kept in ("index", "captures") if cache == "counted" else ():
                shutil.rmtree(where / kept, ignore_errors=True)
            where.mkdir(parents=True, exist_ok=True)
            try:
                return run(argv, self._env(where), self.scratch, keep=keep)
            finally:
                if cache == "cold":
                    shutil.rmtree(where, ignore_errors=True)

        self.cases[name] = Case(name, go, self.runs if runs is None else runs)

    def _probe(self, name: str, *arguments: str, **more: object) -> None:
        argv = [sys.executable, "-m", "tests.bench.probes", *arguments]
        self._add(name, argv, **more)  # type: ignore[arg-type]

    def _command(self, name: str, *arguments: str, **more: object) -> None:
        self._add(name, [sys.executable, "-m", "ctxctl", *arguments], **more)  # type: ignore[arg-type]

    def _prime(self, argv: list[str], cache: str = "warm") -> None:
        """One run that is not measured, so that a cache has what it leaves there."""
        where = self.scratch / cache
        where.mkdir(parents=True, exist_ok=True)
        run(argv, self._env(where), self.scratch)

    def _common(self) -> None:
        compileall.compile_dir("ctxctl", quiet=2)  # as an installer does
        often = 3 * self.runs
        self._add("pass", [sys.executable, "-c", "pass"], runs=often)
        self._command("--version", "--version", runs=often)
        self._command("--help", "--help", runs=often)
        for name, arguments in STARTED.items():
            self._prime([sys.executable, "-m", "ctxctl", *arguments])
            self._command(name, *arguments, runs=often)
        for name, sort, share in DIFFS:
            self._probe(f"diff: {name}", "diff-ours", sort, share, keep=True)
            self._probe(f"difflib: {name}", "diff-difflib", sort, share, runs=2, keep=True)

    def _large(self, size: str, path: Path, runs: int) -> None:
        self.files[size] = path
        unique = path.with_suffix(".unique")
        if not unique.exists():
            run([sys.executable, "-m", "tests.bench.probes", "extract", str(path), str(unique)],
                self._env(self.scratch / "warm"), self.scratch)  # fmt: skip
        replay = [sys.executable, "-m", "ctxctl", "replay", "--json", str(path)]
        self._prime(replay)
        self._prime(replay, "counted")
        self._add(f"wc -l {size}", ["wc", "-l", str(path)], runs=runs + 2)
        self._probe(f"orjson {size}", "orjson", str(path), runs=runs)
        self._probe(f"tiktoken {size}", "tiktoken", str(unique), runs=runs)
        self._probe(f"index {size}", "index", str(path), runs=runs)
        self._probe(f"reload {size}", "reload-index", str(path), runs=runs, keep=True)
        self._probe(f"why {size}", "why", str(path), runs=runs, keep=True)
        self._add(f"cold replay {size}", replay, runs=runs, cache="cold")
        self._add(f"warm replay {size}", replay, runs=runs, cache="counted")
        self._add(f"replay {size} again", replay, runs=runs)

    def _read_once(self) -> None:
        """A large capture of a client's, asked once and again, and directories of small ones."""
        path = generate.transcript_50mb()
        native, unique = path.with_suffix(".native"), path.with_suffix(".unique")
        if not unique.exists():
            env = self._env(self.scratch / "warm")
            run([sys.executable, "-m", "ctxctl", "import", str(path), "-o", str(native)], env, self.scratch)
            extract = [sys.executable, "-m", "tests.bench.probes", "extract", str(native), str(unique)]
            run(extract, env, self.scratch)
        self._probe("orjson transcript", "orjson", str(path))
        self._probe("tiktoken transcript", "tiktoken", str(unique))
        replay = ["replay", "--json", str(path)]
        self._command("transcript first", *replay, cache="cold")
        self._prime([sys.executable, "-m", "ctxctl", *replay])
        for name, arguments in AGAIN.items():
            words = [word.replace("{}", str(path)) for word in arguments]
            self._prime([sys.executable, "-m", "ctxctl", *words])
            self._command(f"transcript again: {name}", *words)
        for name, (count, size) in FLEETS.items():
            cost = ["cost", "--json", str(generate.transcripts(count, size))]
            self._prime([sys.executable, "-m", "ctxctl", *cost])
            self._command(f"{name}, first", *cost, cache="cold", runs=2)
            self._command(f"{name}, again", *cost)

    def _whatifs(self) -> None:
        """The same session as recorded and under what is supposed; all contents counted before."""
        path = generate.turns_1k()
        replay = [sys.executable, "-m", "ctxctl", "replay", "--json", str(path)]
        self._prime(replay)
        self._add("plain 1 000 turns", replay)
        for policy in WHATIFS:
            supposed = ["--window", WHATIF_WINDOW, *(["--policy", policy] if policy else [])]
            self._prime([*replay, *supposed])
            self._add(whatif(policy), [*replay, *supposed])

    def _ui(self) -> None:
        path = generate.turns_10k()
        for act in screens.ACTS:
            argv = [sys.executable, "-m", "tests.bench.screens", str(path), act.name]
            self._add(f"ui: {act.name}", argv, runs=2, keep=True)
        for name, file, mark in [
            ("first screen small", SMALL, FIRST),
            *((f"first screen {size}", file, FIRST_LARGE) for size, file in self.files.items()),
        ]:
            self._screen(name, file, mark)

    def _record(self) -> None:
        for size in record.SIZES:
            argv = [sys.executable, "-m", "tests.bench.record", str(size)]
            self._add(f"record {size}", argv, runs=2, keep=True)
        self._add("proxy", [sys.executable, "-m", "tests.bench.proxy"], runs=2, keep=True)

    def _importers(self) -> None:
        for name, folder in IMPORTERS:
            if (CAPTURES / folder).is_dir():
                self._probe(f"import: {name}", "importer", name, str(CAPTURES / folder), keep=True)

    def _screen(self, name: str, path: Path, mark: bytes) -> None:
        argv = [sys.executable, "-m", "ctxctl", "replay", str(path)]
        env = self._env(self.scratch / "warm")
        self.cases[name] = Case(name, lambda: first_screen(argv, env, mark, 60.0), self.runs)

"""Command lines that are tried with each of their calls failing: replays, exports, databases, `watch`."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sqlite3
import tempfile
import time
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import ClassVar

from tests.faults.failing import Report, Tell, tried

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "tests" / "golden" / "traces" / "window.jsonl"
CLAUDE = ROOT / "fixtures" / "claude_code" / "compaction.jsonl"
CRUSH = ROOT / "fixtures" / "crush" / "crush.db"
SQLITE_SAYS = (
    "disk I/O error",
    "database or disk is full",
    "unable to open database file",
    "readonly database",
    "database disk image is malformed",
)
"""What SQLite says of whatever the system says."""
_EXPECTED: dict[type, tuple[Report, dict[str, bytes]]] = {}


def keep_everything() -> None:
    """Keep in the cache what is made of captures, however small and young they are."""
    from ctxctl.session import import_cache, kept_replays
    from ctxctl.trace import inputs

    for module, name, value in (
        (import_cache, "LEAST", 0), (kept_replays, "LEAST", 0), (inputs, "YOUNG", -1e9),
    ):  # fmt: skip
        setattr(module, name, value)


class Command:
    """A command line: it works as always, or says in one line which file is at fault and why."""

    arguments: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[dict[str, Path]] = {}
    kept: ClassVar[bool] = False
    """Whether the cache is used: where it is not, there are a tenth of the calls."""

    def before(self) -> dict[str, bytes]:
        """The files that are there before."""
        return {name: path.read_bytes() for name, path in self.files.items()}

    def prepare(self, folder: Path) -> None:
        for name, data in self.before().items():
            (folder / name).write_bytes(data)

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl.cli.main import run

        if self.kept:
            keep_everything()
        else:
            os.environ["CTXCTL_CACHE"] = "off"
        return run(self.arguments)

    def expected(self) -> Report:
        """What it says and does where nothing fails."""
        if type(self) not in _EXPECTED:
            with tempfile.TemporaryDirectory(dir=os.environ.get("FAULTS_BESIDE")) as name:
                self.prepare(Path(name))
                report = tried(self, Path(name), None)
                assert report.code == 0, report.said
                _EXPECTED[type(self)] = report, self.made(Path(name))
        return _EXPECTED[type(self)][0]

    def made(self, folder: Path) -> dict[str, bytes]:
        """The files in the folder; what a program keeps for itself is below `home`."""
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def after(self) -> dict[str, bytes]:
        """The files where nothing fails."""
        self.expected()
        return _EXPECTED[type(self)][1]

    def check(self, folder: Path, report: Report) -> None:
        expected = self.expected()
        if report.code == 0 and report.call and says_why(report.said + report.printed.decode(), report):
            # What could not be read was told, and the rest is as it is.
            check_note(report, {*self.before(), *self.after()})
            assert set(self.made(folder)) == set(self.after()), sorted(self.made(folder))
        elif report.code == 0:
            assert report.printed == expected.printed, (report.printed[:300], expected.printed[:300])
            assert self.made(folder) == self.after(), sorted(self.made(folder))
        elif report.code is not None:
            check_message(report, {*self.before(), *self.after()})
            self.check_untouched(folder)
        else:
            self.check_whole(folder)
        for name in set(self.after()) - set(self.before()):
            (folder / name).unlink(missing_ok=True)  # without --force it would stand in the way
        again = tried(self, folder, None)
        assert again.code == 0, again.said
        assert again.printed == expected.printed
        assert {**self.made(folder), **self.after()} == self.made(folder)

    def check_untouched(self, folder: Path) -> None:
        """It failed: the files are those of before, and no others."""
        assert self.made(folder) == self.before(), sorted(self.made(folder))

    def check_whole(self, folder: Path) -> None:
        """It was killed: each file is as before or as after; one under another name may be left over."""
        made, before, after = self.made(folder), self.before(), self.after()
        for name, data in made.items():
            assert data in (before.get(name), after.get(name)) or name.endswith(".partial"), name


def check_message(report: Report, files: set[str]) -> None:
    """One line, perhaps with a hint: which file, and what the system said of it."""
    assert report.code in (1, 3), (report.code, report.said)
    lines = [line for line in report.said.splitlines() if not line.startswith("hint: ")]
    assert len(lines) == 1, report.said
    assert re.match(r"ctxctl: error: \S", lines[0]), report.said
    assert says_why(lines[0], report), report.said
    assert names_file(lines[0], report, files), report.said


def check_note(report: Report, files: set[str]) -> None:
    """It works all the same, and one line says what it could not do, with which file, and why."""
    assert "Traceback" not in report.said, report.said
    lines = [line for line in (report.said + report.printed.decode()).splitlines() if says_why(line, report)]
    assert len(lines) == 1, lines
    # In JSON the first line of all names the trace.
    assert lines[0].startswith('{"') or names_file(lines[0], report, files), lines


def says_why(line: str, report: Report) -> bool:
    """Whether a line has what the system said; of a database's files, what SQLite makes of that."""
    of_sqlite = re.search(r"\.db(-wal|-journal)?$|/tmp(/ctxctl-\w+)?$", report.where)
    return report.why in line or bool(
        (of_sqlite or Path(report.where).is_dir()) and any(words in line for words in SQLITE_SAYS)
    )


def names_file(line: str, report: Report, files: set[str]) -> bool:
    """Whether a line names the file that the call was about; where that is one that no user has named (a
    temporary file, a folder that may be beside it), the file that it was needed for, or where that lies.
    """
    name = re.sub(r"^\.(.+)\.[0-9a-f]{8}\.partial$", r"\1", Path(report.where).name)
    named = {name} if name in files else {name, *files, "temporary directory"}
    return any(re.search(rf"(?<![\w.-]){re.escape(one)}(?![\w-])", line) for one in named)


class ReplayOfNative(Command):
    """A replay, of which steps, counts and index are kept."""

    arguments = ("replay", "run.jsonl", "--json")
    files: ClassVar = {"run.jsonl": NATIVE}
    kept = True


class ReplayOfCapture(Command):
    """A replay of a foreign capture, whose import is kept."""

    arguments = ("replay", "run.jsonl", "--json")
    files: ClassVar = {"run.jsonl": CLAUDE}
    kept = True


class Export(Command):
    """An export to a new file."""

    arguments = ("export", "run.jsonl", "-o", "out.html", "-q")
    files: ClassVar = {"run.jsonl": CLAUDE}


class ExportOver(Command):
    """An export in the place of a file."""

    arguments = ("export", "run.jsonl", "-o", "out.csv", "--force", "-q")
    files: ClassVar = {"run.jsonl": NATIVE, "out.csv": CLAUDE}


class Import(Command):
    """An import to a new file."""

    arguments = ("import", "run.jsonl", "-o", "out.jsonl")
    files: ClassVar = {"run.jsonl": CLAUDE}


class ImportOver(Command):
    """An import in the place of a file."""

    arguments = ("import", "run.jsonl", "-o", "out.jsonl", "--force")
    files: ClassVar = {"run.jsonl": CLAUDE, "out.jsonl": NATIVE}


class ReplayOfDatabase(Command):
    """A replay of a capture that is a database."""

    arguments = ("replay", "run.db", "--json")
    files: ClassVar = {"run.db": CRUSH}


class ReplayOfDatabaseInUse(Command):
    """A replay of a database whose last messages are in the log beside it; the import is kept."""

    arguments = ("replay", "run.db", "--json")
    kept = True

    def before(self) -> dict[str, bytes]:
        return _database_in_use()


class ImportOfDatabase(Command):
    """An import of a database in use."""

    arguments = ("import", "run.db", "-o", "out.jsonl")

    def before(self) -> dict[str, bytes]:
        return _database_in_use()


@cache
def _database_in_use() -> dict[str, bytes]:
    """Crush's database and its write-ahead log: what was said last is in the log alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.db")
        path.write_bytes(CRUSH.read_bytes())
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA wal_autocheckpoint = 0")
            database.execute("UPDATE messages SET parts = replace(parts, 'gauge', 'tide gauge')")
            database.commit()
            return {name: path.with_name(name).read_bytes() for name in ("run.db", "run.db-wal")}


class Watch(Command):
    """A session that is followed while another process writes it, until nothing more comes.

    Where the system tells of no changes, they are looked for: the answer is the same.
    """

    arguments = ("watch", "run.jsonl", "--json", "--idle", "0.6")
    pieces = 3

    def before(self) -> dict[str, bytes]:
        return {"run.jsonl": self._parts()[0]}

    def _parts(self) -> list[bytes]:
        lines = NATIVE.read_bytes().splitlines(keepends=True)
        size = -(-len(lines) // (self.pieces + 1))
        return [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]

    def act(self, folder: Path, tell: Tell) -> int:
        writer = self._writer(folder / "run.jsonl")
        try:
            return super().act(folder, tell)
        finally:
            os.waitpid(writer, 0)

    def _writer(self, path: Path) -> int:
        """A process that appends to the file, whose own calls do not fail, and that ends with this one."""
        parent = os.getpid()
        if writer := os.fork():
            return writer
        loaded = ctypes.CDLL(os.environ.get("LD_PRELOAD"))
        if hasattr(loaded, "fault_disarm"):
            loaded.fault_disarm()
        loaded.prctl(1, signal.SIGKILL)
        for part in self._parts()[1:]:
            time.sleep(0.12)
            if os.getppid() != parent:
                break
            with path.open("ab") as file:
                file.write(part)
        os._exit(0)

    def check(self, folder: Path, report: Report) -> None:
        self.check_outcome(folder, report)
        self.prepare(folder)
        again = tried(self, folder, None)
        assert (again.code, again.printed) == (0, self.expected().printed), again.said

    def check_outcome(self, folder: Path, report: Report) -> None:
        """It shows what it always does, or says what it could not read."""
        expected = self.expected()
        assert "Traceback" not in report.said, report.said
        if report.code == 0 and report.printed == expected.printed:
            assert set(self.made(folder)) == {"run.jsonl"}, sorted(self.made(folder))
        elif report.code == 0:
            check_note(report, {"run.jsonl"})
        elif report.code is not None:
            told = [line for line in report.said.splitlines() if not re.match(_FOLLOWS, line)]
            check_message(report._replace(said="\n".join(told)), {"run.jsonl"})


_FOLLOWS = re.compile(r"ctxctl: (?:following|waiting for|reading) \S+$")


class WatchDirectory(Watch):
    """The newest session of a directory."""

    arguments = ("watch", ".", "--json", "--idle", "0.6")


class WatchCapture(Watch):
    """A capture, which is imported again each time."""

    def _parts(self) -> list[bytes]:
        lines = CLAUDE.read_bytes().splitlines(keepends=True)
        size = -(-len(lines) // (self.pieces + 1))
        return [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]

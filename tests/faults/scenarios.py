"""The operations that are tried with each of their calls failing, and what holds after each."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from tests.faults.failing import Report, tried

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "tests" / "golden" / "traces" / "window.jsonl"
CLAUDE = ROOT / "fixtures" / "claude_code" / "compaction.jsonl"
OLD = b"what was there before\n"
Tell = Callable[[bytes], None]


def keep_everything() -> None:
    """Keep in the cache what is made of captures, however small and young they are."""
    from ctxctl.session import import_cache, kept_replays
    from ctxctl.trace import inputs

    import_cache.LEAST = kept_replays.LEAST = 0  # type: ignore[misc]
    inputs.YOUNG = -1e9  # type: ignore[misc]


class Command:
    """A command line: it works as always, or says in one line which file is at fault and why."""

    arguments: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[dict[str, Path]] = {}
    kept: ClassVar[bool] = False
    """Whether the cache is used: where it is not, there are a tenth of the calls."""

    def prepare(self, folder: Path) -> None:
        for name, path in self.files.items():
            shutil.copyfile(path, folder / name)

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
            import tempfile

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
        if report.code == 0 and report.call and report.why in report.said + report.printed.decode():
            pass  # what could not be read was told, and the rest is as it is
        elif report.code == 0:
            assert report.printed == expected.printed, (report.printed[:300], expected.printed[:300])
            assert self.made(folder) == self.after(), sorted(self.made(folder))
        elif report.code is not None:
            check_message(report)
            self.check_untouched(folder)
        else:
            self.check_whole(folder)
        for name in set(self.after()) - set(self.files):
            (folder / name).unlink(missing_ok=True)  # without --force it would stand in the way
        again = tried(self, folder, None)
        assert again.code == 0, again.said
        assert again.printed == expected.printed
        assert {**self.made(folder), **self.after()} == self.made(folder)

    def check_untouched(self, folder: Path) -> None:
        """It failed: the files are those of before, and no others."""
        before = {name: path.read_bytes() for name, path in self.files.items()}
        assert self.made(folder) == before, sorted(self.made(folder))

    def check_whole(self, folder: Path) -> None:
        """It was killed: each file is as before or as after; one under another name may be left over."""
        made, after = self.made(folder), self.after()
        for name, data in made.items():
            before = self.files[name].read_bytes() if name in self.files else None
            assert data in (before, after.get(name)) or name.endswith(".partial"), name


_EXPECTED: dict[type, tuple[Report, dict[str, bytes]]] = {}


def check_message(report: Report) -> None:
    """One line, perhaps with a hint: which file, and what the system said of it."""
    assert report.code in (1, 3), (report.code, report.said)
    lines = [line for line in report.said.splitlines() if not line.startswith("hint: ")]
    assert len(lines) == 1, report.said
    assert re.match(r"ctxctl: error: \S", lines[0]), report.said
    assert report.why in lines[0] or "not readable" in lines[0], report.said
    assert re.search(r"\b(one|out|run|window)\.\w+|temporary|tmp|one\b", lines[0]), report.said


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

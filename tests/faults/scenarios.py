"""The operations that are tried with each of their calls failing, and what holds after each: recorders and
functions that write.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tests.faults.command_scenarios import NATIVE
from tests.faults.failing import Report, Tell, tried

if TYPE_CHECKING:
    from ctxctl import Recorder

OLD = b"what was there before\n"


class Recording:
    """A recorder: what it counts as written is in the file, what is not there is counted as lost.

    The file takes the next writer's events, whatever became of this one.
    """

    number = 10
    rotate_bytes: ClassVar[int | None] = 1500

    def prepare(self, folder: Path) -> None:
        (folder / "run.jsonl").write_bytes(b"\n")

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl import Recorder
        from ctxctl.record import journal, sink

        journal._FIRST_DELAY = sink.LOOK = 0.0  # type: ignore[misc]
        recorder = Recorder(
            folder / "run.jsonl", session="s", fsync=True, rotate_bytes=self.rotate_bytes, redact=False
        )
        recorder._core.journal._delay = 0.0
        for number in range(self.number):
            before = recorder.written
            recorder.item(f"i{number}", "x" * 99 + str(number))
            if recorder.written > before:
                self.acknowledge(recorder, number, tell)
        recorder.close()
        tell(b"end %d %d\n" % (recorder.written, recorder.dropped))
        recorder._core.journal.complain()
        return 0

    def acknowledge(self, recorder: Recorder, number: int, tell: Tell) -> None:
        """What the program does with an event that was taken."""
        tell(b"i%d\n" % number)

    def check(self, folder: Path, report: Report) -> None:
        assert report.code in (0, None), report.said
        told = report.told.decode().split("\n")[:-1]
        acknowledged = {line for line in told if not line.startswith("end")}
        names, lost, torn = self.read(folder)
        assert acknowledged <= set(names), sorted(acknowledged - set(names))
        assert len(set(names)) == len(names), names
        assert torn <= 1, torn
        if report.code == 0:
            written, dropped = map(int, told[-1].split()[1:])
            assert (len(names), written + dropped) == (written, self.number), (names, written, dropped)
            said = f"{dropped} of {self.number} events are not in the trace"
            assert dropped == lost or said in report.said, (dropped, lost, report.said)
            assert dropped <= 1, dropped
            for line in report.said.splitlines():
                assert line.startswith(f"ctxctl: {folder}/run.jsonl: "), report.said
                assert report.why in line or errno_name(report.why) in line, report.said
        after = tried(_NextWriter(), folder, None)
        assert after.code == 0, after.said
        assert set(self.read(folder)[0]) == {*names, "next"}

    def read(self, folder: Path) -> tuple[list[str], int, int]:
        """The names of the items in the files, the losses that are counted there, and lines that are none."""
        names, lost, torn = [], 0, 0
        for path in sorted(folder.glob("run*.jsonl")):
            for line in path.read_bytes().split(b"\n"):
                try:
                    event = json.loads(line)
                except ValueError:
                    torn += line != b""
                    continue
                if event["event_type"] == "context.item.added":
                    names.append(event["data"]["item_id"])
                elif event["event_type"] == "ctxctl.record.dropped":
                    lost += event["data"]["n"]
        return names, lost, torn


class _NextWriter(Recording):
    """Another one that opens the same file."""

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl import Recorder

        with Recorder(folder / "run.jsonl", session="s", strict=True, redact=False) as recorder:
            recorder.item("next", "x")
        return 0


class RecordingOneFile(Recording):
    """The same without rotation: fewer calls."""

    rotate_bytes = None


class HastyRecording(RecordingOneFile):
    """A control: it says that an event was taken before it is written."""

    def act(self, folder: Path, tell: Tell) -> int:
        for number in range(self.number):
            tell(b"i%d\n" % number)
        return super().act(folder, tell)


class Writing:
    """A function that replaces a file: it is as before or as after, and an error names it."""

    name = "one.json"
    keeps: ClassVar[bool] = False
    """Whether it returns without an error where the file could not be written."""

    def prepare(self, folder: Path) -> None:
        (folder / self.name).write_bytes(OLD)
        (folder / self.name).chmod(0o640)

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl.errors import CtxctlError

        try:
            self.write(folder / self.name)
        except CtxctlError as error:
            tell(error.message.encode())
            return 3
        except OSError as error:
            tell(f"{error.filename} {error.strerror}".encode())
            return 3
        return 0

    def write(self, path: Path) -> None:
        raise NotImplementedError

    def new(self) -> bytes:
        """What the file holds after."""
        if type(self) not in _NEW:
            import tempfile

            with tempfile.TemporaryDirectory() as name:
                self.prepare(Path(name))
                assert tried(self, Path(name), None).code == 0
                _NEW[type(self)] = (Path(name) / self.name).read_bytes()
        return _NEW[type(self)]

    def check(self, folder: Path, report: Report) -> None:
        path = folder / self.name
        now = path.read_bytes()
        assert now in (OLD, self.new()), now[:80]
        left = {one.name for one in folder.iterdir()} - {self.name, "home", "tmp"}
        if report.code == 0:
            assert now == self.new() or self.keeps, "it said nothing"
            assert not left, left
        elif report.code is not None:
            assert report.code == 3, report.said
            assert report.why in report.told.decode(), report.told
            assert self.name in report.told.decode(), report.told
            assert not left or report.call == "unlink", left


_NEW: dict[type, bytes] = {}


class PlainWriting(Writing):
    """A control: the file is cut and then written, as one does."""

    def write(self, path: Path) -> None:
        path.write_bytes(b"new\n" * 3000)


class Calibration(Writing):
    """What `calibrate` and `learn` save."""

    def write(self, path: Path) -> None:
        from ctxctl.tokens.calibrate.store import write

        write(path, b"new\n" * 3000)


class Baseline(Writing):
    """A baseline of `lint` or `budget`."""

    def write(self, path: Path) -> None:
        from ctxctl.analysis.baseline_file import replace_baseline

        replace_baseline(path, {"findings": ["x" * 70] * 300})


class Golden(Writing):
    """What `assert_context_diff` compares with."""

    def write(self, path: Path) -> None:
        from ctxctl.testing.golden import Context, write

        write(path, Context("o200k_base", 3, ()))


class SavedText(Writing):
    """What the UI writes where a user has it replace a file."""

    def write(self, path: Path) -> None:
        from ctxctl.tui.export import write_file

        write_file(str(path), "new\n" * 3000, over=True)


class Remembered(Writing):
    """Where the UI was left."""

    keeps = True

    def write(self, path: Path) -> None:
        from ctxctl.tui.memory import Memory, save

        save(path, Memory())


class SettingsOfProgram(Writing):
    """A recorded program's own settings, which it has changed meanwhile."""

    def write(self, path: Path) -> None:
        from ctxctl.record.clients.settings import write_over

        write_over(path, b"new\n" * 3000)


class RecordStdin:
    """`record --stdin`: each event that came is in the file, or said to be missing."""

    def prepare(self, folder: Path) -> None:
        shutil.copyfile(NATIVE, folder / "events.jsonl")

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl.cli.main import run

        os.dup2(self.opened(folder), 0)
        return run(["record", "--stdin", "-o", str(folder / "out.jsonl"), "--no-redact", "--fsync"])

    def opened(self, folder: Path) -> int:
        """Standard input, as a shell opens it: again where that fails."""
        try:
            return os.open(folder / "events.jsonl", os.O_RDONLY)
        except OSError:
            return os.open(folder / "events.jsonl", os.O_RDONLY)

    def check(self, folder: Path, report: Report) -> None:
        assert "Traceback" not in report.said, report.said
        assert "bug in ctxctl" not in report.said, report.said
        whole = NATIVE.read_bytes().splitlines()
        out = folder / "out.jsonl"
        lines = [line for line in out.read_bytes().split(b"\n") if line] if out.exists() else []
        sound = [line for line in lines if is_json(line)]
        assert len(lines) - len(sound) <= 1, lines
        if report.code is not None and len(sound) < len(whole):
            assert report.why in report.said, report.said
            assert report.code != 0, report.said
        if report.code is None or not report.call:
            return
        told = [line for line in report.said.splitlines() if report.why in line]
        if told:
            assert len(told) == 1, told
            assert re.search(r"out\.jsonl|standard input", told[0]), told
        else:
            assert report.code == 0, report.said
            assert report.call != "fsync", report.said
            assert len(sound) == len(whole), report.said
            assert b"ctxctl.record.dropped" not in out.read_bytes()


def errno_name(why: str) -> str:
    """The name of an error that the system words so."""
    return next(name for number, name in errno.errorcode.items() if os.strerror(number) == why)


def is_json(line: bytes) -> bool:
    """Whether a line is whole."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


class RedactionKey:
    """The key of the digests in a user's redactions: one that is stored is whole, or there is none."""

    def prepare(self, folder: Path) -> None:
        """It is not there before."""

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl.record.rules import user_key

        tell(user_key())
        return 0

    def check(self, folder: Path, report: Report) -> None:
        assert report.code in (0, None), report.said
        if report.code == 0:
            assert len(report.told) == 32, report.told
        first, second = (tried(self, folder, None).told for _ in range(2))
        assert first == second, "each run has another key"


class SignIn:
    """What a recorded program has saved in the folder that stood in for its own: it is lost by no fault."""

    token = b"a sign-in that the user has just made"

    def prepare(self, folder: Path) -> None:
        (folder / "own").mkdir()
        (folder / "own" / "settings.json").write_bytes(OLD)
        (folder / "made").mkdir()

    def act(self, folder: Path, tell: Tell) -> int:
        from ctxctl.record.clients.redirects import _bring_home, set_up
        from ctxctl.record.clients.setup import Start

        start = Start(set_up(["true"], {}, ()), {})
        try:
            made = start.file("stand-in/config.json", b"{}").parent
            (made / "auth.json").write_bytes(self.token)
            (made / "settings.json").write_bytes(self.token)
        except OSError:
            return 0  # the program would not have run, or not have saved anything
        tell(str(made).encode())
        start.at_end(lambda: _bring_home(made, folder / "own", frozenset({"config.json"})))
        start.close()
        return 0

    def check(self, folder: Path, report: Report) -> None:
        if not report.told:
            return
        for name in ("auth.json", "settings.json"):
            places = [folder / "own" / name, Path(report.told.decode()) / name]
            found = [place.read_bytes() for place in places if place.exists()]
            assert self.token in found, (name, found, report.said)
            assert found[0] in (OLD, self.token), found
            if found[0] != self.token and report.code is not None:
                (line,) = report.said.splitlines()
                assert report.why in line, line
                assert str(folder / "tmp") in line, line
        assert report.code in (0, None), report.said

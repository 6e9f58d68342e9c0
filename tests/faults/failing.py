"""Tries an operation once for each call of the system that it makes, with that call failing.

Run as `python -m tests.faults.failing SCENARIO MANNERS FOLDER STEP` with the library of `failpoints.c`
loaded: a child is forked for each N, works in a folder of its own, and is held to the scenario's rules by the
parent.  Prints one line of JSON: how many calls there are, and what was wrong after which of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

MANNERS: Final = {"fails": 0, "short": 1, "killed": 2, "torn": 3}
"""What becomes of the Nth call: an error; half of a write; the process ends before it; or amid a write."""
CALLS: Final = {"short": "write", "torn": "write"}
"""The calls that count, where it is not all of them."""
MOST: Final = 5000
"""An operation that needs more calls than this does not end."""


class Report(NamedTuple):
    """What became of one try."""

    code: int | None
    """Exit code; None: the process was killed."""
    call: str
    """The call that failed: `write`; empty where the operation needed no more of them."""
    where: str
    """The file that the call was about."""
    why: str
    """What the system said."""
    said: str
    """Standard error."""
    printed: bytes
    """Standard output."""
    told: bytes
    """What the operation acknowledged, by a descriptor that no fault reaches."""


class Scenario(Protocol):
    """An operation, and what holds whatever becomes of it."""

    def prepare(self, folder: Path) -> None:
        """Lay out the files that are there before."""

    def act(self, folder: Path, tell: Callable[[bytes], None]) -> int:
        """Do it; returns an exit code."""

    def check(self, folder: Path, report: Report) -> None:
        """Raise AssertionError where a rule was broken."""


class FaultLibrary:
    """The library that is loaded into this process."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["LD_PRELOAD"])
        self._library.fault_seen.restype = ctypes.c_long
        self._library.fault_fired.restype = self._library.fault_where.restype = ctypes.c_char_p

    def arm(self, folder: Path, manner: str, nth: int, error: int) -> None:
        """Let the Nth call that concerns a file below the folder go wrong."""
        calls = CALLS.get(manner, "").encode()
        self._library.fault_arm(os.fsencode(folder), calls, ctypes.c_long(nth), MANNERS[manner], error)

    def disarm(self) -> tuple[str, str]:
        """Let all calls be; the call that went wrong, and its file."""
        self._library.fault_disarm()
        return os.fsdecode(self._library.fault_fired()), os.fsdecode(self._library.fault_where())


def errors_for(nth: int) -> int:
    """The error of the Nth try: those that a disk gives, in turn."""
    return (errno.EIO, errno.ENOSPC, errno.EDQUOT)[nth // 2 % 3]


def tried(
    scenario: Scenario, folder: Path, library: FaultLibrary | None, manner: str = "fails", nth: int = 0
) -> Report:
    """Do the operation once in a child; without a library nothing fails."""
    error = errors_for(nth)
    outs = [tempfile.TemporaryFile() for _ in range(4)]  # noqa: SIM115 - closed below
    pid = os.fork()
    if pid == 0:
        _child(scenario, folder, [out.fileno() for out in outs], library, (manner, nth, error))
    status = os.waitpid(pid, 0)[1]
    printed, said, told, about = (_whole(out.fileno()) for out in outs)
    for out in outs:
        out.close()
    code = os.waitstatus_to_exitcode(status)
    call, _, where = os.fsdecode(about).partition("\0")
    if code == -signal.SIGKILL:
        return Report(None, "killed", "", "", os.fsdecode(said), printed, told)
    return Report(code, call, where, os.strerror(error), os.fsdecode(said), printed, told)


def _whole(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _child(
    scenario: Scenario,
    folder: Path,
    outs: list[int],
    library: FaultLibrary | None,
    fault: tuple[str, int, int],
) -> None:
    code = 99
    os.dup2(outs[0], 1)
    os.dup2(outs[1], 2)
    try:
        _settle(folder)
        if library is not None:
            library.arm(folder, *fault)
        code = scenario.act(folder, lambda data: _write(outs[2], data))
    except BaseException:
        if library is not None:
            library.disarm()
        import traceback

        traceback.print_exc()
    finally:
        if library is not None:
            _write(outs[3], "\0".join(library.disarm()).encode())
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _write(descriptor: int, data: bytes) -> None:
    os.write(descriptor, data)


def _settle(folder: Path) -> None:
    """Let all that the operation writes on its own lie below the folder."""
    for name in ("home", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    home, temporary = f"{folder}/home", f"{folder}/tmp"
    os.environ |= {
        "HOME": home, "TMPDIR": temporary, "SQLITE_TMPDIR": temporary, "XDG_CONFIG_HOME": f"{home}/config",
        "CTXCTL_CACHE_DIR": f"{home}/cache", "CTXCTL_STATE_DIR": f"{home}/state", "COLUMNS": "100",
        "CTXCTL_DATA_DIR": f"{home}/data", "CTXCTL_CONFIG": "off",
    }  # fmt: skip
    tempfile.tempdir = None
    os.chdir(folder)


def at_every_call(
    scenario: Scenario, base: Path, library: FaultLibrary, manner: str, step: int
) -> tuple[Counter[str], list[str]]:
    """Try the operation with its calls going wrong one after the other, until it needs no more of them.

    With a step of 3 each third of them.  Returns the calls, and what was wrong.
    """
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for nth in range(1, MOST, step):
        folder = base / f"{nth}"
        folder.mkdir()
        scenario.prepare(folder)
        report = tried(scenario, folder, library, manner, nth)
        try:
            assert report.code != 99, report.said
            scenario.check(folder, report)
        except AssertionError as error:
            wrong.append(f"{manner} {nth}: {report.call} {report.where} ({report.why}): {error}"[:1500])
        if not report.call:
            return seen, wrong
        seen[report.call] += 1
    return seen, [f"more than {MOST} calls"]


def main() -> None:
    """See the module."""
    from tests.faults import scenarios

    name, manners, folder, step = sys.argv[1:]
    scenario: Scenario = getattr(scenarios, name)()
    # What is imported, read and counted once is so for all children: their calls are those of the operation.
    warm = Path(folder) / "warm"
    warm.mkdir()
    scenario.prepare(warm)
    report = tried(scenario, warm, None)
    if report.code != 0:
        raise SystemExit(report.said)
    again = Path(folder) / "here"
    again.mkdir()
    scenario.prepare(again)
    with (
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        kept = os.getcwd()
        _settle(again)
        scenario.act(again, lambda data: None)
        os.chdir(kept)
    assert threading.active_count() == 1, threading.enumerate()
    library, found = FaultLibrary(), {}
    for manner in manners.split(","):
        base = Path(folder) / manner
        base.mkdir()
        seen, wrong = at_every_call(scenario, base, library, manner, int(step))
        found[manner] = {"calls": seen, "wrong": wrong}
    print(json.dumps(found))


if __name__ == "__main__":
    main()

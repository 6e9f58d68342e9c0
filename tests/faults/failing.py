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
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

DISK: Final = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
"""The errors that a disk gives."""


class Manner(NamedTuple):
    """What becomes of the Nth call."""

    number: int
    """As the library has it."""
    calls: str = ""
    """The calls that count; empty: all of them."""
    errors: tuple[int, ...] = DISK
    """What the system says, by turns."""


MANNERS: Final = {
    "fails": Manner(0),
    "short": Manner(1, "write"),
    "killed": Manner(2),
    "torn": Manner(3, "write"),
    "unwatched": Manner(0, "inotify", (errno.EMFILE, errno.ENOSPC)),
    "unopened": Manner(0, "open", (errno.EMFILE, errno.ENFILE)),
}
"""An error; half of a write; the process ends before the call; or amid a write; the system watches no files;
or opens none."""
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


Tell = Callable[[bytes], None]


class Scenario(Protocol):
    """An operation, and what holds whatever becomes of it."""

    def prepare(self, folder: Path) -> None:
        """Lay out the files that are there before."""

    def act(self, folder: Path, tell: Tell) -> int:
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
        how = MANNERS[manner]
        self._library.fault_arm(
            os.fsencode(folder), how.calls.encode(), ctypes.c_long(nth), how.number, error
        )

    def disarm(self) -> tuple[str, str]:
        """Let all calls be; the call that went wrong, and its file."""
        self._library.fault_disarm()
        return os.fsdecode(self._library.fault_fired()), os.fsdecode(self._library.fault_where())


def errors_for(manner: str, nth: int) -> int:
    """The error of the Nth try: those of the manner, in turn."""
    errors = MANNERS[manner].errors
    return errors[nth // 2 % len(errors)]


def first_of(scenario: str, manner: str, step: int) -> int:
    """With which call a sample begins: another one for each scenario and manner, and always the same."""
    return 1 + zlib.crc32(f"{scenario} {manner}".encode()) % step


def tried(
    scenario: Scenario, folder: Path, library: FaultLibrary | None, manner: str = "fails", nth: int = 0
) -> Report:
    """Do the operation once in a child; without a library nothing fails."""
    error = errors_for(manner, nth)
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

    With a step of 3 each third of them (`first_of`).  Returns the calls, and what was wrong.
    """
    first = first_of(type(scenario).__name__, manner, step)
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for nth in range(first, MOST, step):
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


def scenario_of(name: str) -> Scenario:
    """A scenario by the name of its class."""
    from tests.faults import command_scenarios, dataset_scenarios, scenarios

    for module in (scenarios, command_scenarios, dataset_scenarios):
        if hasattr(module, name):
            found: Scenario = getattr(module, name)()
            return found
    raise SystemExit(f"no scenario is called {name}")


def main() -> None:
    """See the module."""
    name, manners, folder, step = sys.argv[1:]
    scenario = scenario_of(name)
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
        getattr(scenario, "warm", scenario.act)(again, lambda data: None)
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

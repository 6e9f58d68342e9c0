"""Whole commands on one damaged input, in a forked child with bounds on its CPU time and memory."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import io
import json
import os
import pkgutil
import re
import resource
import select
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, NoReturn

from tools.fuzz.laws import faults

CPU: Final = 5
"""Seconds of processor time that one command may take."""
MEMORY: Final = 1 << 30
"""Bytes of address space that a child may take beyond what it begins with."""
PATIENCE: Final = 20.0
"""Seconds after which a child that neither works nor ends is one that hangs."""
_WORKS: Final = 0.05
"""Seconds of processor time within `PATIENCE` that make a child one that works."""
SOUND: Final = (0, 1, 2, 3, 4)
"""Exit codes that say something about the input; the rest are bugs."""
_APART: Final = ("ctxctl.tui", "ctxctl.hooks", "ctxctl.__main__", "ctxctl.testing")
"""Modules that no command here needs, or that do something when they are imported."""
_TRACEBACK: Final = b"Traceback (most recent call last)"
_BIDI: Final = "\u202a-\u202e\u2066-\u2069\u061c\u200e\u200f"
_UNFIT: Final = re.compile(f"[\x00-\x09\x0b-\x1f\x7f-\x9f{_BIDI}]")
_QUERIES: Final = (
    "kind:file_snippet",
    "window > 10% and not new",
    "is skipped",
    '"the" or misses',
    "status:removed tokens>3",
)

COMMANDS: Final[tuple[tuple[str, ...], ...]] = (
    ("replay", "--json", "{}"),
    ("replay", "--plain", "--all", "--steps", "{}"),
    ("replay", "--json", "--policy", "fifo", "--window", "2k", "{}"),
    ("replay", "--compare", "--drop", "kind:tool_result", "{}"),
    ("lint", "{}"),
    ("lint", "--format", "sarif", "{}"),
    ("blame", "{}"),
    ("blame", "--stat", "--json", "{}@1"),
    ("diff", "{}@-1", "--plain"),
    ("diff", "{}@1", "@-1", "--json"),
    ("diff", "--sessions", "{}", "{sound}"),
    ("why", "{}", "a", "--json"),
    ("why", "{}", "system", "--plain"),
    ("find", "{}", "{query}"),
    ("find", "{}", "{query}", "--json"),
    ("bisect", "{}", "{query}"),
    # A trace is written as its contents are: into a file, as `import` does it.
    ("export", "{}", "--format", "events", "-o", "{out}.jsonl", "--force"),
    ("export", "{}", "--format", "html", "-o", "{out}.html", "--force"),
    ("export", "{}", "--format", "markdown"),
    ("export", "{}", "--format", "csv"),
    ("export", "{}", "--format", "otlp"),
    ("export", "{}", "--format", "envelopes"),
    ("export", "{}", "--format", "parquet", "-o", "{out}.parquet", "--force"),
    ("import", "{}", "-o", "{out}.jsonl", "--force"),
    ("validate", "{}", "--json"),
    ("validate", "{}", "--all"),
    ("compactions", "{}"),
    ("compactions", "{}", "--json"),
    ("cost", "{}"),
    ("cost", "{}", "--by", "item", "--json"),
    ("check", "{}", "--max", "90%"),
    ("check", "{}", "--max", "1000", "--json"),
    ("show", "{}", "--text"),
    ("show", "{}@1", "--json"),
    ("log", "{}", "a"),
    ("log", "{}", "--json"),
    ("watch", "{}", "--json", "--idle", "0"),
    ("ls", "{folder}", "--json"),
)
"""`{}` is the input, `{folder}` where it is alone, `{out}` a new file's name, `{query}` a query,
`{sound}` a sound trace."""


Row = dict[str, Any]


LAW: Final = "law"
"""In place of a command, what holds of imports (`tools.fuzz.laws`): of a capture, a new trace, a format."""


class Failure(NamedTuple):
    """What one command did that no command may do."""

    arguments: tuple[str, ...]
    what: str


class Job(NamedTuple):
    """Commands for one input."""

    commands: tuple[tuple[str, ...], ...]
    environment: dict[str, str]


def job(path: Path, folder: Path, sound: Path, random: Random, count: int, read_as: str | None) -> Job:
    """`count` commands drawn for an input, and the settings they are run under."""
    places = {
        "{}": str(path), "{folder}": str(folder), "{out}": str(folder.parent / "out"),
        "{query}": random.choice(_QUERIES), "{sound}": str(sound),
    }  # fmt: skip
    chosen = []
    for template in random.sample(COMMANDS, min(count, len(COMMANDS))):
        arguments = tuple(filled(part, places) for part in template)
        if read_as is not None and template[0] not in ("ls",) and "{sound}" not in template:
            arguments += ("--read-as", read_as)
        chosen.append(arguments)
    if read_as is not None and random.random() < 0.5:
        chosen[0] = (LAW, str(path), filled("{out}.jsonl", places), read_as)
    cached = random.random() < 0.3
    cache = {"CTXCTL_CACHE_DIR": str(folder.parent / "cache")} if cached else {"CTXCTL_CACHE": "off"}
    return Job(tuple(chosen), cache)


def filled(part: str, places: dict[str, str]) -> str:
    """An argument with the place that it begins with put in."""
    for name, value in places.items():
        if part.startswith(name):
            return value + part[len(name) :]
    return part


def warm(trace: Path) -> None:
    """Load in this process what children would load anew, each for itself; must leave no thread behind."""
    import threading

    os.environ["CTXCTL_CACHE"] = "off"
    for arguments in COMMANDS:
        if (
            "{folder}" in arguments
            or "{out}.html" in arguments
            or "{out}.parquet" in arguments
            or "{out}.jsonl" in arguments
        ):
            continue
        places = {"{}": str(trace), "{sound}": str(trace), "{query}": _QUERIES[0]}
        with (
            contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            _run(tuple(filled(part, places) for part in arguments))
    import ctxctl
    from ctxctl.importers import registry
    from ctxctl.trace.source import Source

    for module in pkgutil.walk_packages(ctxctl.__path__, "ctxctl."):
        if not module.name.startswith(_APART):
            with contextlib.suppress(ImportError):  # of what is not installed here
                importlib.import_module(module.name)
    for known in registry.built_in():
        with contextlib.suppress(Exception):
            list(registry.capture_events(known, Source.from_bytes("none", b"{}"), lambda problem: None))
    assert threading.active_count() == 1, threading.enumerate()


def _run(arguments: Sequence[str]) -> int:
    from ctxctl.cli.main import run

    return run(list(arguments))


class Result(NamedTuple):
    """What became of one job."""

    failures: list[Failure]
    seconds: float = 0.0
    slowest: str = ""
    """Seconds of processor time that its slowest command took, and which one that was."""


def failures(work: Job, folder: Path) -> list[Failure]:
    """Run a job in a child of its own; what went wrong.  `folder` takes what its commands print."""
    return results([work], folder)[0].failures


def results(works: Sequence[Job], folder: Path) -> list[Result]:
    """Run jobs, one after the other, and say what became of each.

    To fork costs as much as a command, so jobs share a child while nothing happens to it.  What goes wrong
    in a child that had others before is run again in one of its own: what counts is what it does there.
    """
    found: list[Result] = []
    while len(found) < len(works):
        ended = _child_of(works[len(found) :], folder)
        if len(ended) > 1 and ended[-1].failures:
            alone = _child_of(works[len(found) + len(ended) - 1 :][:1], folder)[0]
            ended[-1] = (
                alone
                if alone.failures
                else Result(
                    [
                        Failure(one.arguments, f"{one.what} (after other inputs in one process)")
                        for one in ended[-1].failures
                    ]
                )
            )
        found += ended
    return found


def _child_of(works: Sequence[Job], folder: Path) -> list[Result]:
    """What became of jobs up to the first one that something went wrong with, in one child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _in_child(works, writing, folder)
    os.close(writing)
    try:
        told, ended = _told(reading, child)
    finally:
        os.close(reading)
    if not ended:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    found: list[Result] = []
    begun: Sequence[str] = ()
    bad: list[Failure] = []
    for row in told:
        if "begun" in row:
            begun = row["begun"]
        elif "what" in row:
            bad.append(Failure(tuple(row["arguments"]), row["what"]))
        else:
            found.append(Result(bad, row["seconds"], row["slowest"]))
            bad = []
    if os.waitstatus_to_exitcode(status) != 0 and begun:
        bad.append(Failure(tuple(begun), _end_of(status, ended, folder / "stack")))
        found.append(Result(bad))
    assert found, f"a child that did nothing: {os.waitstatus_to_exitcode(status)}"
    return found


def _end_of(status: int, ended: bool, stack: Path) -> str:
    code = os.waitstatus_to_exitcode(status)
    if not ended:
        what = f"hangs: idle for {PATIENCE:.0f} s"
    elif -code == signal.SIGXCPU:
        what = f"more than {CPU} s of CPU"
    else:
        what = f"ended by {signal.Signals(-code).name if code < 0 else code}"
    with contextlib.suppress(OSError):
        lines = [line for line in stack.read_text("utf-8", "replace").splitlines() if "/ctxctl/" in line]
        what += " at " + " < ".join(_frame(line) for line in lines[:4])
    return what


def _frame(line: str) -> str:
    found = re.search(r'ctxctl/([^"]*)", line (\d+)', line)
    return f"{found[1]}:{found[2]}" if found else line.strip()


def _told(reading: int, child: int) -> tuple[list[Row], bool]:
    """What a child told, and whether it came to its end: one that works on is waited for,
    one that idles is not."""
    data, worked, begun = b"", -1.0, False
    while True:
        if select.select([reading], [], [], PATIENCE)[0]:
            piece = os.read(reading, 1 << 16)
            if not piece:
                return [json.loads(line) for line in data.splitlines() if line.endswith(b"}")], True
            data += piece
            continue
        before, worked = worked, _worked(child)
        if begun and worked - before < _WORKS:
            return [json.loads(line) for line in data.splitlines() if line.endswith(b"}")], False
        begun = True


def _worked(child: int) -> float:
    """Seconds of processor time that a child has used so far, as far as the system tells."""
    try:
        fields = Path(f"/proc/{child}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _in_child(works: Sequence[Job], writing: int, folder: Path) -> NoReturn:
    code = 99
    try:
        os.setpgid(0, 0)
        out, err = folder / "stdout", folder / "stderr"
        with out.open("w+b") as printed, err.open("w+b") as noted, (folder / "stack").open("wb") as stacks:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(printed.fileno(), 1)
            os.dup2(noted.fileno(), 2)
            sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")
            sys.stdout = io.TextIOWrapper(
                io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8"
            )
            sys.stderr = io.TextIOWrapper(
                io.BufferedWriter(io.FileIO(2, "w", closefd=False)),
                encoding="utf-8",
                errors="backslashreplace",
            )
            faulthandler.register(signal.SIGXCPU, file=stacks, chain=True)
            faulthandler.enable(stacks)
            for work in works:
                if not _done(work, writing):
                    break
        code = 0
    finally:
        os._exit(code)


def _done(work: Job, writing: int) -> bool:
    """Run the commands of one job and tell of each; whether nothing went wrong."""
    for name in ("CTXCTL_CACHE", "CTXCTL_CACHE_DIR"):
        os.environ.pop(name, None)
    os.environ.update(work.environment)
    _bound_memory()
    slowest, sound = (0.0, ""), True
    for arguments in work.commands:
        _tell(writing, {"begun": arguments})
        begun = _seconds()
        what = _one(arguments)
        slowest = max(slowest, (round(_seconds() - begun, 3), " ".join(arguments)))
        if what:
            _tell(writing, {"arguments": arguments, "what": what})
            sound = False
    _tell(writing, {"seconds": slowest[0], "slowest": slowest[1]})
    return sound


def _bound_memory() -> None:
    """Allow `MEMORY` more than there is now, whatever was there before."""
    size = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        if sys.platform == "linux"
        else MEMORY
    )
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, hard))


def _tell(writing: int, row: Row) -> None:
    os.write(writing, json.dumps(row).encode() + b"\n")


def _one(arguments: tuple[str, ...]) -> str:
    """Run one command; what went wrong, or nothing."""
    for stream in (1, 2):
        os.ftruncate(stream, 0)
        os.lseek(stream, 0, os.SEEK_SET)
    begun = _seconds()
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # Whole seconds: the bound is met between one second late and on time.
    resource.setrlimit(resource.RLIMIT_CPU, (int(begun) + CPU + 1, hard))
    if arguments[0] == LAW:
        found = faults(Path(arguments[1]), Path(arguments[2]), arguments[3])
        return f"{LAW} of {arguments[3]}: {found[0]}" if found else ""
    code = _run(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    seconds = _seconds() - begun
    printed, noted = (_written(stream) for stream in (1, 2))
    # Captures may quote tracebacks: on standard output they are data.
    if (
        code not in SOUND
        or b"bug in ctxctl" in noted
        or noted.startswith(_TRACEBACK)
        or b"\n" + _TRACEBACK in noted
    ):
        return f"exit {code}: {_last(noted)}"
    if b"error: out of memory" in noted:
        return f"more than {MEMORY >> 20} MB"
    if seconds > CPU:
        return f"{seconds:.1f} s of CPU"
    try:
        # Lines of CSV end as its standard has them.
        text = (printed.replace(b"\r\n", b"\n") if "csv" in arguments else printed).decode() + noted.decode()
    except UnicodeDecodeError as error:
        return f"prints what is no UTF-8: {error}"
    unfit = _UNFIT.search(text)
    return f"prints U+{ord(unfit[0]):04X}" if unfit else ""


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _written(stream: int) -> bytes:
    os.lseek(stream, 0, os.SEEK_SET)
    return os.read(stream, 64 << 20)


def _last(noted: bytes) -> str:
    """What a bug is told with: its line of the message, or the exception at the end of a traceback."""
    lines = noted.decode("utf-8", "replace").splitlines()
    told = [line for line in lines if "bug in ctxctl" in line] or [line for line in lines if "Error" in line]
    return (told[-1:] or [" | ".join(lines)])[0][-300:]

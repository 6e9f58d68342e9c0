"""Runs programs and measures what they cost: CPU seconds and peak memory of the child itself."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

LIMIT = 600.0
"""Seconds after which a program that does not end is killed."""
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Sample:
    """One run."""

    cpu: float
    """User and system seconds of the child and of what it waited for."""
    wall: float
    rss: int
    """Peak resident memory in bytes: of the largest process alone, or of all together (`whole_tree`)."""
    status: int
    """Exit code, or minus a signal's number."""
    output: str
    """The first 64 KB of stdout if it was kept, else empty."""
    complaint: str
    """The last line of stderr."""

    @property
    def good(self) -> bool:
        """Whether the run did what it should."""
        return self.status == 0


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    scratch: Path,
    *,
    keep: bool = False,
    limit: float = LIMIT,
    whole_tree: bool = False,
) -> Sample:
    """Run a program to its end with stdout thrown away (or kept, in `scratch/stdout`) and stderr in a file.

    After `limit` seconds it is killed, with all that it started.  With `whole_tree`, `rss` is the most that
    the program and the processes that it started held together, looked at every few milliseconds.
    """
    out, err = scratch / "stdout", scratch / "stderr"
    asked = {
        "argv": list(argv),
        "env": dict(env),
        "out": str(out) if keep else os.devnull,
        "err": str(err),
        "limit": limit,
        "whole_tree": whole_tree,
    }
    told = _launched(json.dumps(asked))
    if "error" in told:
        raise OSError(told["error"])
    complaints = err.read_text(errors="replace").strip().splitlines()
    if told["late"]:
        complaints.append(f"it took longer than {limit:.0f} s")
    return Sample(
        told["cpu"],
        told["wall"],
        told["rss"],
        told["status"],
        _beginning(out) if keep else "",
        complaints[-1] if complaints else "",
    )


def _launched(asked: str) -> dict[str, Any]:
    """What the launcher answers; whatever ends this process ends it too, and what it has started."""
    argv = [sys.executable, "-S", "-m", "tools.bench.launcher"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as launcher:
        try:
            answer, _ = launcher.communicate(asked)
        except BaseException:
            launcher.terminate()
            raise
    told: dict[str, Any] = json.loads(answer) if answer else {"error": "its launcher was ended"}
    return told


def _beginning(path: Path) -> str:
    with path.open(errors="replace") as file:
        return file.read(65536)


def first_screen(argv: Sequence[str], env: Mapping[str, str], mark: bytes, limit: float) -> Sample:
    """Start a program on a terminal of its own and time it until `mark` is on the screen.

    The program is then asked to quit with `q` and, if it does not, ended.  `cpu` is that of its whole life.
    """
    start = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        shown_on = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
        os.execvpe(argv[0], list(argv), {**env, **shown_on})
    seen, shown = b"", 0.0
    while not shown and time.perf_counter() - start < limit:
        data = _read(terminal, 0.5)
        if data is None:
            break
        seen = (seen + data)[-1_000_000:]
        if mark in seen:
            shown = time.perf_counter() - start
    status, usage = _quit(pid, terminal)
    os.close(terminal)
    return Sample(
        usage.ru_utime + usage.ru_stime,
        shown,
        usage.ru_maxrss * _RSS_UNIT,
        0 if shown else status or 1,
        "",
        "" if shown else "the text waited for did not appear",
    )


def _read(terminal: int, seconds: float) -> bytes | None:
    """What came, empty after waiting in vain, None at the end."""
    if not select.select([terminal], [], [], seconds)[0]:
        return b""
    try:
        return os.read(terminal, 65536) or None
    except OSError:  # Linux says EIO when the other side is closed.
        return None


def _quit(pid: int, terminal: int) -> tuple[int, os.struct_rusage]:  # type: ignore[name-defined]
    deadline = time.perf_counter() + 5.0
    os.write(terminal, b"q")
    while time.perf_counter() < deadline:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), usage
        _read(terminal, 0.02)
    os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    return os.waitstatus_to_exitcode(status), usage


def middle(values: Sequence[float]) -> float:
    """The median."""
    return float(median(values))

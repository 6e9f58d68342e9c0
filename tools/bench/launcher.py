"""Starts one program and says what it cost: ``python -S -m tools.bench.launcher``, JSON in and out.

A process of its own, and a small one: the system counts the memory of whoever starts a program as the
program's own, from before it began.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import nullcontext, suppress
from threading import Event, Timer
from typing import Any

from tools.bench.tree import watched

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def launch(
    argv: list[str], env: dict[str, str], out: str, err: str, limit: float, *, whole_tree: bool
) -> dict[str, Any]:
    """Run a program to its end, or for `limit` seconds; raises OSError if it cannot be started."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, out, flags, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, err, flags, 0o600),
    ]
    start = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, env, file_actions=actions, setpgroup=0)
    late = Event()

    def end() -> None:
        late.set()
        _kill_group(pid)

    timer = Timer(limit, end)
    timer.start()
    try:
        with watched(pid) if whole_tree else nullcontext() as tree:
            # Not reaped yet: until the timer is off, the process's number must not become another one's.
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except BaseException:
        _kill_group(pid)
        raise
    finally:
        timer.cancel()
        timer.join()
        _, status, usage = os.wait4(pid, 0)
    return {
        "cpu": usage.ru_utime + usage.ru_stime,
        "wall": time.perf_counter() - start,
        "rss": usage.ru_maxrss * _RSS_UNIT if tree is None else tree.most,
        "status": os.waitstatus_to_exitcode(status),
        "late": late.is_set(),
    }


def _kill_group(pid: int) -> None:
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # then what was started ends as well
    try:
        told = launch(**json.load(sys.stdin))
    except OSError as error:
        told = {"error": str(error)}
    json.dump(told, sys.stdout)

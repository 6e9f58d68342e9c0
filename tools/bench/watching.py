"""What watching costs: a writer at a steady rate, and ``ctxctl watch --json`` that reads what it writes.

A step's line can be printed once the event that follows the step is in the file.  The lag of a line is the
time from the end of the call that wrote that event to the arrival of the line at the other end of the pipe,
on one clock.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from threading import Thread

import orjson

RATE = 5000
"""Events a second."""


def _small(rng: random.Random) -> int:
    return rng.randint(80, 800)


def write(path: str, seconds: str, out: str, work: str = "repeating") -> None:
    """Append events at the rate, one call each; the time after each call goes to `out`, as nanoseconds.

    `work`: `repeating`, or `deep` for a request every three events, over 200 items.
    """
    from tools.bench import generate

    count = int(RATE * float(seconds))
    deep = work == "deep"
    made = generate.deep(count, 200) if deep else generate.repeating(count * 1000, size=_small)
    lines = list(islice(made, count))
    times = array("q")
    clock = time.monotonic_ns
    print("ready", flush=True)
    sys.stdin.readline()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    begun = clock()
    for number, line in enumerate(lines):
        due = begun + number * 1_000_000_000 // RATE
        while (left := due - clock()) > 0:
            time.sleep(left / 1e9)
        os.write(fd, line)
        times.append(clock())
    os.close(fd)
    Path(out).write_bytes(times.tobytes())


def watch(folder: str, seconds: str) -> None:
    """Print: lag in ms (p50, p95, worst), events written and counted, CPU of one core, problems."""
    trace, out = Path(folder) / "watched.jsonl", Path(folder) / "written.bin"
    trace.unlink(missing_ok=True)
    probes = [sys.executable, "-m", "tools.bench.probes"]
    command = [sys.executable, "-m", "ctxctl", "watch", "--json", "--idle", "3", str(trace)]
    writer = subprocess.Popen(
        [*probes, "watch-write", str(trace), seconds, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    with writer, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as watcher:
        assert watcher.stdout is not None
        arrived = array("q")
        last: list[bytes] = [b""]

        def read(lines: Iterator[bytes]) -> None:
            for line in lines:
                if line.startswith(b'{"type":"step"'):
                    arrived.append(time.monotonic_ns())
                last[0] = line

        reader = Thread(target=read, args=(watcher.stdout,))
        reader.start()
        time.sleep(1.5)  # it has started, and waits for the file
        begun = time.monotonic()
        writer.communicate(b"\n")
        spent = time.monotonic() - begun
        reader.join()
        _, _, usage = os.wait4(watcher.pid, 0)
        watcher.returncode = 0
    times = array("q")
    times.frombytes(out.read_bytes())
    lags = sorted(
        (arrived[n] - times[at]) / 1e6 for n, at in enumerate(_finished_by(trace)) if n < len(arrived)
    )
    told = orjson.loads(last[0])
    cpu = (usage.ru_utime + usage.ru_stime) / spent
    print(
        lags[len(lags) // 2], lags[int(len(lags) * 0.95)], lags[-1], len(times), told["events"], cpu,
        told["problems"],
    )  # fmt: skip


def _finished_by(trace: Path) -> Iterator[int]:
    """The events that begin a session's second, third … turn: each of them finishes the step before."""
    last: tuple[bytes, bytes] | None = None
    with trace.open("rb") as file:
        for number, line in enumerate(file):
            place = _id(line, b'"session_id":"'), _id(line, b'"turn_id":"')
            if last is not None and place[0] == last[0] and place != last:
                yield number
            last = place


def _id(line: bytes, key: bytes) -> bytes:
    at = line.index(key) + len(key)
    return line[at : line.index(b'"', at)]

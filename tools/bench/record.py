"""What recording costs the caller: ``python -m tools.bench.record BYTES`` prints microseconds.

Work of the calling thread (user and system time): p50 and p99 of `record()`,
the same of a bare `os.write` of as many
bytes, both with each event new.  Then p50 and p99 of the elapsed time of both, events a second, and
milliseconds of importing `Recorder` and of making one.  Each quantile is the median of five rounds: another
program that has the processor for a moment is in one of them.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import sys
import tempfile
import time

SIZES = (200, 2_048, 20_480)
TARGET = 60
"""Microseconds, p99 of 2 KB."""
_EVENTS = 7_500
_ROUNDS = 5
_WORDS = [
    "the",
    "model",
    "reads",
    "a",
    "file",
    "and",
    "calls",
    "the",
    "tool",
    "again",
    "while",
    "nothing",
    "of",
    "this",
    "is",
    "a",
    "secret",
    "or",
    "a",
    "token",
]


def main(size: int) -> None:
    """Measure one size."""
    begun = time.perf_counter()
    from ctxctl import Recorder

    imported = time.perf_counter() - begun
    chance = random.Random(size)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CTXCTL_STATE_DIR"] = folder
        begun = time.perf_counter()
        recorder = Recorder(os.path.join(folder, "run.jsonl"), strict=True)
        recorder.item("first", "x")
        made = time.perf_counter() - begun
        bare = os.open(os.path.join(folder, "bare"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        cpu: list[int] = []
        wall: list[int] = []
        floor: list[int] = []
        floor_wall: list[int] = []
        gc.collect()
        for number in range(_EVENTS):
            text = f"{number} " + " ".join(chance.choices(_WORDS, k=size // 4 + 1))
            text = text[:size]
            data = text.encode()
            start, work = time.perf_counter_ns(), time.thread_time_ns()
            recorder.item(f"item-{number}", text, kind="file_excerpt")
            cpu.append(time.thread_time_ns() - work)
            wall.append(time.perf_counter_ns() - start)
            start, work = time.perf_counter_ns(), time.thread_time_ns()
            os.write(bare, data)
            floor.append(time.thread_time_ns() - work)
            floor_wall.append(time.perf_counter_ns() - start)
        assert recorder.dropped == 0
        recorder.close()
        os.close(bare)
    numbers = [_at(values, part) for values in (cpu, floor, wall, floor_wall) for part in (0.5, 0.99)]
    print(*numbers, round(_EVENTS / (sum(wall) / 1e9)), round(imported * 1e3, 1), round(made * 1e3, 1))


def _at(values: list[int], part: float) -> float:
    size = len(values) // _ROUNDS
    found = [sorted(values[at : at + size])[int(size * part)] for at in range(0, size * _ROUNDS, size)]
    return round(statistics.median(found) / 1e3, 1)


if __name__ == "__main__":
    main(int(sys.argv[1]))

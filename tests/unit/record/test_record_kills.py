"""Kills, faults of the system and many processes, by the numbers that are promised."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from record_help import child, events

from ctxctl import Recorder
from ctxctl.model import vocab
from ctxctl.record import journal, sink

CYCLES = int(os.environ.get("CTXCTL_KILL_CYCLES", "500"))
"""Kills; 10000 in the slow mode: `CTXCTL_KILL_CYCLES=10000`."""

KILLS = """
import json, os, random, signal, sys, time
from ctxctl import Recorder

folder, cycles = sys.argv[1], int(sys.argv[2])
chance = random.Random(cycles)
SIZES = (0, 100, 2_000, 20_000, 600_000)


def write(path, out, size, name):
    recorder = Recorder(path, session="s", strict=True)
    for number in range(3 if size > 100_000 else 10_000):
        recorder.item(f"{name}/{number}", "x" * size + str(number))
        os.write(out, b"%d\\n" % number)
    os._exit(0)


def begin(path, name):
    size = chance.choice(SIZES)
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        write(path, writable, size, name)
    os.close(writable)
    return pid, readable, name


def end(pid, readable, name):
    told = b""
    os.set_blocking(readable, False)
    time.sleep(chance.choice((0.0, 0.0005, 0.002, 0.006)) * chance.random())
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.set_blocking(readable, True)
    while data := os.read(readable, 1 << 16):
        told += data
    os.close(readable)
    return {f"{name}/{number}" for number in told.decode().split("\\n")[:-1]}


def check(path, acknowledged, kills):
    with Recorder(path, strict=True) as recorder:
        recorder.item("the next writer", "x")
    names, torn = set(), 0
    with open(path, "rb") as file:
        for line in file:
            try:
                names.add(json.loads(line)["data"]["item_id"])
            except ValueError:
                torn += line != b"\\n"
    assert acknowledged <= names, sorted(acknowledged - names)[:5]
    assert torn <= kills, torn
    assert "the next writer" in names
    os.unlink(path)
    return torn


done = torn = acknowledged_in_all = 0
while done < cycles:
    path = os.path.join(folder, f"run-{done}.jsonl")
    acknowledged, kills = set(), min(50, cycles - done)
    for number in range(0, kills, 2):
        # Two at a time: one is killed while the other one writes to the same file.
        running = [begin(path, f"{number + one}") for one in range(min(2, kills - number))]
        time.sleep(0.004 * chance.random())
        for one in running:
            acknowledged |= end(*one)
    torn += check(path, acknowledged, kills)
    acknowledged_in_all += len(acknowledged)
    done += kills
print(done, acknowledged_in_all, torn)
"""


@pytest.mark.slow
def test_no_acknowledged_event_is_lost_in_any_number_of_kills(tmp_path: Path) -> None:
    ran = child(KILLS, str(tmp_path), str(CYCLES))
    assert ran.stderr == ""
    done, acknowledged, torn = map(int, ran.stdout.split())
    assert done == CYCLES
    assert acknowledged > 0
    assert torn <= CYCLES


MANY = """
import os, sys
from ctxctl import Recorder
children = []
for name in range(4):
    pid = os.fork()
    if pid == 0:
        recorder = Recorder(sys.argv[1], session="shared", thread=f"t{name}", strict=True)
        for number in range(10_000):
            recorder.item(f"{name}/{number}", f"content {number} " * (number % 9))
        os._exit(0)
    children.append(pid)
print([os.waitpid(pid, 0)[1] for pid in children])
"""


@pytest.mark.slow
def test_four_processes_write_ten_thousand_events_each(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert child(MANY, str(path)).stdout == "[0, 0, 0, 0]\n"
    found = events(path)
    assert len(found) == 40_000
    assert {e["data"]["item_id"] for e in found} == {f"{n}/{i}" for n in range(4) for i in range(10_000)}
    assert len({e["event_id"] for e in found}) == 40_000


CALLS = ("open", "fstat", "write", "fsync", "stat", "pread", "rename", "close")


@pytest.mark.parametrize("fault", [errno.EIO, errno.ENOSPC, errno.EINTR])
@pytest.mark.parametrize("call", CALLS)
def test_a_fault_in_any_call_of_the_system_is_counted_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, fault: int
) -> None:
    real = getattr(os, call)
    monkeypatch.setattr(journal, "_FIRST_DELAY", 0.0)
    faults = 0
    for nth in range(1, 9):
        folder = tmp_path / f"{nth}"
        folder.mkdir()
        calls: list[int] = []

        def faulty(*args: Any, nth: int = nth, calls: list[int] = calls, **kwargs: Any) -> Any:
            calls.append(1)
            if len(calls) == nth:
                if call == "close":
                    real(*args)
                raise OSError(fault, os.strerror(fault))
            return real(*args, **kwargs)

        (folder / "run.jsonl").write_bytes(b"\n")
        recorder = Recorder(folder / "run.jsonl", session="s", fsync=True, rotate_bytes=1500)
        with monkeypatch.context() as patch:
            patch.setattr(sink.os, call, faulty)
            patch.setattr(sink, "LOOK", 0.0)
            patch.setattr(recorder._core.journal, "_delay", 0.0)
            for number in range(10):
                recorder.item(f"i{number}", "x" * 99 + str(number))
        recorder.close()
        faults += len(calls) >= nth
        lines = [line for file in sorted(folder.iterdir()) for line in file.read_bytes().split(b"\n") if line]
        found = [json.loads(line) for line in lines]
        names = [e["data"]["item_id"] for e in found if e["event_type"].startswith("context.item.")]
        lost = sum(e["data"]["n"] for e in found if e["event_type"] == vocab.RECORD_DROPPED)
        assert sorted(set(names)) == sorted(names)
        assert (len(names), lost) == (recorder.written, recorder.dropped)
        assert recorder.written + recorder.dropped == 10
        assert recorder.dropped <= 1
    assert faults


def test_signals_that_interrupt_the_system_lose_nothing(tmp_path: Path) -> None:
    caught: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: caught.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        with Recorder(tmp_path / "run.jsonl", strict=True) as recorder:
            number = 0
            while len(caught) < 50 or number < 200:
                recorder.item(f"i{number}", "x" * 5000 + str(number))
                number += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [e["data"]["item_id"] for e in events(tmp_path / "run.jsonl")] == [f"i{n}" for n in range(number)]
    assert (recorder.written, recorder.dropped) == (number, 0)

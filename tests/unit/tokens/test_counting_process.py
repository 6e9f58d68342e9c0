"""The process that counts beside this one: the same counts, and nothing lost when it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ctxctl.tokens import counting_process
from ctxctl.tokens.counter import Counter
from ctxctl.tokens.counting_process import ROOM, CountingProcess, may_start

TEXTS = ["a", "one two three", "日本語 text\n" * 50, "def f(x):\n    return x\n" * 9000, " " * 700_000 + "x"]


@pytest.mark.parametrize("base", ["o200k_base", "cl100k_base"])
def test_it_counts_as_this_process_does(base: str) -> None:
    process = CountingProcess(base)
    try:
        assert process.put([text.encode() for text in TEXTS])
        assert process.put([b"more"])
        assert process.take(wait=True) == [Counter(base).count(text) for text in TEXTS]
        assert process.take(wait=True) == [Counter(base).count("more")]
        assert process.take(wait=True) is None
        assert process.under_way == 0
    finally:
        process.close()


def test_what_is_under_way_is_bounded_and_the_file_is_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_process, "_FILE", 4000)
    monkeypatch.setattr(counting_process, "ROOM", 1000)
    process = CountingProcess("o200k_base")
    try:
        assert not process.put([b"x" * (ROOM + 1)])
        assert not process.put([b"x" * 997])
        for n in range(1, 60):
            assert process.put([b"word " * n])
            assert process.put([b"word"])
            counts = [process.take(wait=True), process.take(wait=True)]
            assert counts == [[Counter("o200k_base").count("word " * n)], [(1, True)]]
    finally:
        process.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_once_it_is_killed_it_is_lost(number: int) -> None:
    process = CountingProcess("o200k_base")
    assert process.put([b"text"])
    os.kill(process.pid, number)
    while process.take(wait=True) is not None:
        pass
    assert process.lost
    assert not process.put([b"text"])
    assert process.take(wait=False) is None
    process.close()


def test_one_that_is_stopped_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_process, "_SILENCE", 50)
    process = CountingProcess("o200k_base")
    os.kill(process.pid, signal.SIGSTOP)
    assert process.put([b"text"])
    assert process.take(wait=True) is None
    assert process.lost


def test_a_vocabulary_that_cannot_be_loaded_there_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_process, "_CODE", counting_process._CODE.replace("{base!r}", "'nothing'"))
    process = CountingProcess("o200k_base")
    process.put([b"text"])
    assert process.take(wait=True) is None
    assert process.lost


def test_where_no_process_can_be_started_an_os_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(OSError, match="nowhere"):
        CountingProcess("o200k_base")


def test_it_ends_with_its_parent_and_is_not_interrupted_for_it(tmp_path: Path) -> None:
    code = (
        "import os, signal\n"
        "from ctxctl.tokens.counting_process import CountingProcess\n"
        "process = CountingProcess('o200k_base')\n"
        "process.put([b'text'])\n"
        "process.take(wait=True)\n"
        "os.kill(process.pid, signal.SIGINT)\n"
        "process.put([b'text'])\n"
        "assert process.take(wait=True) == [(1, True)]\n"
        "print(process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert ran.returncode == -signal.SIGKILL
    pid = int(ran.stdout)
    for _ in range(200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return
        subprocess.run(["sleep", "0.05"], check=True)
    pytest.fail("the process outlived its parent")


def test_none_is_started_on_one_core_without_memory_or_in_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting_process, "_cores", lambda: 2)
    monkeypatch.setattr(counting_process, "_available", lambda: 1 << 30)
    assert may_start()
    monkeypatch.setattr(counting_process, "_cores", lambda: 1)
    assert not may_start()
    monkeypatch.setattr(counting_process, "_cores", lambda: 2)
    monkeypatch.setattr(counting_process, "_available", lambda: 1 << 20)
    assert not may_start()
    monkeypatch.setattr(counting_process, "_available", lambda: 1 << 30)
    import multiprocessing

    monkeypatch.setattr(multiprocessing, "parent_process", multiprocessing.current_process)
    assert not may_start()


def test_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
        assert counting_process._cores() == 1
    assert counting_process._available() > 0

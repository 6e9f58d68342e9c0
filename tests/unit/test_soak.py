"""What `make soak` measures with: processes, lags, and the sessions that it makes."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tools.soak import directory, streams
from tools.soak.samples import PROC, Sample, Sampler, row, tree


@pytest.mark.skipif(not PROC.exists(), reason="needs /proc")
def test_a_sample_counts_what_a_process_and_its_children_hold(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys\n"
        "held = [open(sys.argv[1], 'w') for _ in range(50)]\n"
        "child = subprocess.Popen(['sleep', '30'])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "x")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            assert set(tree(process.pid)) == {process.pid, child}
            sampler = Sampler(process.pid)
            for lag in (0.1, 0.2, 0.3):
                sampler.note(lag)
                sampler.did()
            first, second = sampler.take(), sampler.take()
        finally:
            os.kill(child, 9)
    assert first.descriptors >= 50 + 3 + 3
    assert first.memory > 5
    assert (first.done, first.median) == (3, 0.2)
    assert (second.done, second.median, second.late) == (0, None, None)


def test_a_row_says_what_was_not_measured() -> None:
    told = row(Sample(90.0, 1234, 56.7, 8.9, 0, None, 0.0125))
    assert told == "| 1.5 | 1,234 | 57 MB | 9 s | 0 | - | 12 ms |"


def test_the_stand_in_streams_and_a_client_reads_the_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "CHUNKS", 3)
    monkeypatch.setattr(streams, "EVERY", 0.01)
    sampler = Sampler(os.getpid())

    async def run() -> int:
        server = await asyncio.start_server(streams.stand_in, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await streams.load(streams.client, port, 2, 0.05, sampler)

    assert asyncio.run(run()) == 0
    sample = sampler.take()
    assert sample.done >= 2
    assert sample.median is not None
    assert sample.median >= 0


def test_a_sender_that_nobody_answers_has_broken_off() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]  # nobody listens
        sampler = Sampler(os.getpid())
        assert asyncio.run(streams.load(streams.sender, port, 3, 0.05, sampler)) == 3


def test_sessions_are_read_and_grow_by_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ctxctl.session.facade import Inspector

    monkeypatch.setattr(directory, "SESSIONS", 3)
    monkeypatch.setattr(directory, "LIVE", 2)
    began = time.monotonic()
    directory.make(tmp_path / "all")
    writers = directory.Writers(tmp_path / "all")
    for _ in range(3):
        writers.write()
    turns = []
    for name in range(3):
        with Inspector.open(str(tmp_path / "all" / f"{directory.session(name)}.jsonl")) as inspector:
            assert inspector.format == "claude-code"
            spans = inspector.places().spans
            turns.append(len(spans))
    assert turns == [3, 4, 2]
    text = (tmp_path / "all" / f"{directory.session(1)}.jsonl").read_text()
    assert float(text.rpartition('"at ')[2].split(" ", 1)[0]) >= began

"""What a signal leaves of a file that is being written: what was there before, and nothing beside it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BEGIN = """
import os, resource, signal, sys, time
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for number in (signal.SIGQUIT, signal.SIGHUP):  # a shell's background, or nohup, has it ignored
    signal.signal(number, signal.SIG_DFL)
"""
EXPORT = """
from ctxctl.cli.destination import destination; from ctxctl.cli.output import Output
with destination(sys.argv[1], Output(), force=True) as file:
    file.write(b"new" * 100_000)
    print("begun", flush=True)
    time.sleep(60)
"""
REPLACE = """
from ctxctl import whole_file
def slow(path, name):
    print("begun", flush=True)
    time.sleep(60)
whole_file.os.replace = slow
whole_file.replace_file(sys.argv[1], b"new")
"""
IGNORING = """
signal.signal(signal.SIGHUP, signal.SIG_IGN)
from ctxctl.cli.destination import destination; from ctxctl.cli.output import Output
with destination(sys.argv[1], Output(), force=True) as file:
    file.write(b"new")
    os.kill(os.getpid(), signal.SIGHUP)
"""
FORKING = """
from ctxctl.cli.destination import destination; from ctxctl.cli.output import Output
with destination(sys.argv[1], Output(), force=True) as file:
    file.write(b"new")
    begun, begins = os.pipe()
    child = os.fork()
    if not child:
        os.write(begins, b"x")
        time.sleep(60)
        os._exit(0)
    os.read(begun, 1)  # what comes before that, Python forgets
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "out" / "run.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"old")
    return path


def started(script: str, path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", BEGIN + script, path], cwd=ROOT, stdout=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("script", [EXPORT, REPLACE], ids=["export", "replace"])
def test_a_signal_leaves_nothing_half_written(script: str, number: signal.Signals, old: Path) -> None:
    with started(script, old) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        assert len(list(old.parent.iterdir())) == 2
        process.send_signal(number)
        assert process.wait(30) == -number
    assert list(old.parent.iterdir()) == [old]
    assert old.read_bytes() == b"old"


@pytest.mark.parametrize("script", [IGNORING, FORKING], ids=["ignored", "of a child"])
def test_a_signal_that_does_not_end_the_writer_changes_nothing(script: str, old: Path) -> None:
    with started(script, old) as process:
        assert process.wait(30) == 0
    assert list(old.parent.iterdir()) == [old]
    assert old.read_bytes() == b"new"

"""On a real terminal: whatever ends the program, the terminal is as it was and the exit code says why."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")

HERE = Path(__file__).parent
RESTORED = ("\x1b[?1049l", "\x1b[?1000l", "\x1b[?1003l", "\x1b[?2004l", "\x1b[?25h")
PATIENCE = 30.0
OURS = re.compile(r"\x1b\[[0-9;:?>=<]*\$?[a-zA-Z]|\x1b\]22;[a-z]+\x07|[\r\n]")
"""What Textual sends by itself: CSI sequences, and the shape of the mouse pointer."""


class Terminal:
    """A pty with the UI in it."""

    def __init__(self, what: str, before: Callable[[], None] | None = None) -> None:
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.slave = slave
        self.modes = termios.tcgetattr(slave)
        self.seen = ""

        def start() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if before is not None:
                before()

        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parents[1])])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "child.py"), what],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=start,
            env=environment,
        )

    def read(self, seconds: float = 0.1) -> None:
        """Take what the process has written."""
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.master, 1 << 16).decode("utf-8", "replace")
            except OSError:
                time.sleep(0.05)

    def wait_for(self, text: str) -> None:
        """Read until a text has been painted."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not appear"
            assert self.process.poll() is None, self.seen
            self.read()

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self.master, keys.encode())

    def wait(self) -> int:
        """Read until the process has ended; its exit code."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, "the process did not end"
            self.read()
        for _ in range(3):
            self.read(0.05)
        return self.process.returncode

    def assert_restored(self) -> None:
        """Modes of the terminal are as before, on both sides."""
        for sequence in RESTORED:
            assert sequence in self.seen
        assert termios.tcgetattr(self.slave)[:4] == self.modes[:4]

    @property
    def farewell(self) -> str:
        """What was written after the screen was left."""
        return self.seen.rpartition("\x1b[?1049l")[2]


@contextmanager
def terminal(what: str = "notes", before: Callable[[], None] | None = None) -> Iterator[Terminal]:
    """A terminal that is cleaned up whatever happens."""
    found = Terminal(what, before)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
            found.process.wait()
        for fd in (found.master, found.slave):
            try:
                os.close(fd)
            except OSError:
                continue


@pytest.mark.parametrize(("keys", "code"), [("q", 0), ("\x03", 130)])
def test_keys_that_leave(keys: str, code: int) -> None:
    with terminal() as tty:
        tty.wait_for("what changed in turn 1")
        tty.type(keys)
        assert tty.wait() == code
        tty.assert_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda n: n.name)
def test_signals_restore_the_terminal(number: signal.Signals) -> None:
    with terminal() as tty:
        tty.wait_for("what changed in turn 1")
        tty.process.send_signal(number)
        assert tty.wait() == 128 + number
        tty.assert_restored()


def test_a_crash_exits_non_zero_and_tells_no_data() -> None:
    with terminal("crash") as tty:
        tty.wait_for("what changed in turn 1")
        tty.type("]")
        assert tty.wait() == 70
        tty.assert_restored()
        assert "ctxctl: internal error: ValueError at " in tty.farewell
        assert "SECRET" not in tty.seen
        assert "Traceback" not in tty.seen


def test_a_trace_that_cannot_be_read_is_told_after_the_screen_is_left() -> None:
    with terminal("unreadable") as tty:
        assert tty.wait() == 3
        tty.assert_restored()
        assert "ctxctl: no readable event in ␛]0;x␇" in tty.farewell
        assert "is it a trace?" in tty.farewell


def test_leaving_does_not_wait_for_a_trace_that_is_being_read() -> None:
    with terminal("slow") as tty:
        tty.wait_for("reading the trace")
        started = time.monotonic()
        tty.type("q")
        assert tty.wait() == 0
        assert time.monotonic() - started < 20
        tty.assert_restored()


def test_a_terminal_that_goes_away_ends_the_process() -> None:
    def deaf() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with terminal(before=deaf) as tty:
        tty.wait_for("what changed in turn 1")
        os.close(tty.slave)
        os.close(tty.master)
        assert tty.process.wait(PATIENCE) == 128 + signal.SIGHUP


def test_bytes_of_a_hostile_trace() -> None:
    with terminal("hostile") as tty:
        tty.wait_for("⟨U+202E⟩")
        for keys in ("j", "\r", "j", "\r", "d"):
            tty.type(keys)
            tty.read(0.3)
        tty.type("t")
        tty.wait_for("assembled text")
        tty.type("q")
        tty.type("q")
        assert tty.wait() == 0
    left = OURS.sub("", tty.seen)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b]", left), left[-200:]
    assert "\x1b[2J\x1b[H\x1b[31m" not in tty.seen
    assert "\x1b[6n" not in tty.seen

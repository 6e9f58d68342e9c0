"""The UI on a pty, and what it writes there."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
RESTORED = ("\x1b[?1049l", "\x1b[?1000l", "\x1b[?1003l", "\x1b[?2004l", "\x1b[?25h")
PATIENCE = 30.0

_MODES = "7|25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048"
OURS = re.compile(
    rf"\x1b\[\?(?:{_MODES})[hl]"  # modes of the terminal
    r"|\x1b\[\?(?:2026|2048)\$p|\x1b\[>\d+u|\x1b\[<u"  # what it is asked for and offered
    r"|\x1b\[\d+;\d+H|\x1b\[H"  # where to write
    r"|\x1b\[(?:\d{1,3}(?:;\d{1,3})*)?m"  # colours; looked at by `wrong_colours`
    r"|\x1b\]22;[a-z]+\x07"  # the shape of the mouse pointer
    r"|\r\n"
)
"""All that Textual writes beside text."""

HARMFUL = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_COLOUR = re.compile(r"38;2;\d+;\d+;\d+|48;2;\d+;\d+;\d+|38;5;\d+|48;5;\d+|\d+")
_ATTRIBUTES = {"0", "1", "2", "3", "4", "7", "22", "23", "24", "27", "39", "49"}


def harm(sent: str) -> list[str]:
    """What was sent that is neither text nor what Textual sends by itself, with what follows it."""
    left = OURS.sub("", sent)
    found = [f"{m.group()!r} {left[m.start() : m.start() + 30]!r}" for m in HARMFUL.finditer(left)]
    for match in re.finditer(r"\x1b\[([\d;]+)m", sent):
        strange = [code for code in _COLOUR.findall(match[1]) if ";" not in code and code not in _ATTRIBUTES]
        found += [f"a colour that the theme has not: {match.group()!r}"] if strange else []
    return found


class Terminal:
    """A pty with a program in it."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        before: Callable[[], None] | None = None,
        environment: Mapping[str, str] | None = None,
        size: tuple[int, int] = (80, 24),
        stdin: int | None = None,
        stderr: int | None = None,
    ) -> None:
        self.master, slave = os.openpty()
        self.slave = slave
        self.resize(*size)
        self.modes = termios.tcgetattr(slave)
        self.bytes = bytearray()

        def start() -> None:
            os.setsid()
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)
            if before is not None:
                before()

        unwanted = ("COLUMNS", "LINES", "TMUX")
        given = {name: value for name, value in os.environ.items() if name not in unwanted}
        given["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parents[1])])
        given["COLORTERM"] = "truecolor"
        given.update(environment or {})
        self.process = subprocess.Popen(
            arguments,
            stdin=slave if stdin is None else stdin,
            stdout=slave,
            stderr=slave if stderr is None else stderr,
            preexec_fn=start,
            env=given,
        )

    @property
    def seen(self) -> str:
        """All that was written so far."""
        return self.bytes.decode("utf-8", "replace")

    def resize(self, width: int, height: int) -> None:
        """Make the terminal another size."""
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, seconds: float = 0.1) -> bool:
        """Take what the process has written; whether there was something."""
        waiting = select.poll()  # `select.select` takes no descriptor beyond 1023
        waiting.register(self.master, select.POLLIN)
        if not waiting.poll(seconds * 1000):
            return False
        try:
            self.bytes += os.read(self.master, 1 << 16)
        except OSError:
            time.sleep(0.05)
            return False
        return True

    def rest(self, seconds: float = 0.15) -> None:
        """Read until nothing more comes for a while."""
        end = time.monotonic() + PATIENCE
        while self.read(seconds) and time.monotonic() < end:
            pass

    def wait_for(self, text: str, since: int = 0) -> None:
        """Read until a text has been painted, after so many bytes."""
        wanted = text.encode()
        end = time.monotonic() + PATIENCE
        while self.bytes.find(wanted, since) < 0:
            last = OURS.sub(" ", self.seen)[-1500:]
            assert time.monotonic() < end, f"{text!r} did not appear; last: {last!r}"
            assert self.process.poll() is None, f"ended: {self.farewell!r}"
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
def terminal(arguments: Sequence[str], **settings: object) -> Iterator[Terminal]:
    """A terminal that is cleaned up whatever happens."""
    found = Terminal(arguments, **settings)  # type: ignore[arg-type]
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


def child(what: str, *more: str) -> list[str]:
    """`child.py` as a command."""
    return [sys.executable, str(HERE / "child.py"), what, *more]

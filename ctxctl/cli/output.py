"""The only writer of standard output and standard error.

Plain text is data too: it goes out as UTF-8 or, where the stream has another encoding, with what does not
fit as backslash escapes.  A reader that goes away ends the program quietly; any other failure to write ends
it with a message and exit code 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, NoReturn, TextIO

from ctxctl.cli.progress import Progress
from ctxctl.errors import CtxctlError, Exit
from ctxctl.report.paint import Paint, ansi, plain
from ctxctl.text import inert, visible

_LEAST_WIDTH = 40
_MOST_WIDTH = 1000
_BLOCK = 1 << 16


class OutputError(CtxctlError):
    """Standard output cannot be written to."""

    exit_code = Exit.FINDINGS


class Output:
    """Standard output and error of one command."""

    def __init__(self, *, color: str = "auto") -> None:
        if sys.stdout is None:
            raise OutputError("cannot-write", "standard output is closed")
        self._encoding = sys.stdout.encoding or "utf-8"
        self._out: BinaryIO = sys.stdout.buffer
        self._terminal = is_terminal(sys.stdout)
        self._held: list[bytes] = []
        self._size = 0
        self._progress: Progress | None = None
        self.paint: Paint = ansi if wants_color(color, sys.stdout) else plain
        self.width = width()

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines of a plain report."""
        for line in lines:
            self.write((inert(line) + "\n").encode(self._encoding, "backslashreplace"))

    def text(self, text: str) -> None:
        """Write shown text of any number of lines, ended by a line end."""
        text = inert(text)
        self.write((text if text.endswith("\n") else text + "\n").encode(self._encoding, "backslashreplace"))

    def json(self, obj: Mapping[str, Any]) -> None:
        """Write one line of JSON."""
        from ctxctl.report import jsonout

        self.write(jsonout.line(obj))

    def write(self, data: bytes) -> None:
        """Write bytes that are fit for a terminal; they are held back until a block is full."""
        self._held.append(data)
        self._size += len(data)
        if self._size >= _BLOCK:
            self.flush()

    def flush(self) -> None:
        """Hand over what is held back."""
        if self._progress is not None and self._terminal and self._held:
            self._progress.stop()
        data = b"".join(self._held)
        self._held, self._size = [], 0
        rest = memoryview(data)
        try:
            while rest:  # an unbuffered stream may take a part only
                rest = rest[self._out.write(rest) or 0 :]
            self._out.flush()
        except BrokenPipeError:
            abandon_stdout()
            raise SystemExit(0) from None
        except (OSError, ValueError) as error:
            raise stdout_failed(error) from None

    def progress(self, doing: str) -> Progress:
        """A progress line on standard error, shown after half a second if that is a terminal."""
        self._progress = Progress(doing, sys.stderr if shows_progress() else None)
        return self._progress

    def progressed(self, share: float) -> None:
        """Note on the progress line, if there is one, which share of the work is done."""
        if self._progress is not None:
            self._progress(share)


def stdout_failed(error: Exception) -> OutputError:
    """What to say where standard output takes no more; what is still held back is dropped."""
    abandon_stdout()
    why = error.strerror if isinstance(error, OSError) and error.strerror else "it is closed"
    return OutputError("cannot-write", f"cannot write to standard output: {why}")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is there and is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def dumb() -> bool:
    """Whether the terminal can do no more than print lines."""
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")


def shows_progress() -> bool:
    """Whether a line on standard error can be rewritten."""
    return is_terminal(sys.stderr) and not dumb()


def wants_color(setting: str, stream: TextIO | None) -> bool:
    """Colour by the setting; `auto` asks ``NO_COLOR``, ``FORCE_COLOR`` and the terminal."""
    if setting != "auto":
        return setting == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return (is_terminal(stream) and not dumb()) or bool(os.environ.get("FORCE_COLOR"))


def width() -> int:
    """Cells of a line: ``COLUMNS``, else the terminal's, else 80."""
    try:
        found = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        found = 0
    if found <= 0 and is_terminal(sys.stdout):
        try:
            found = os.get_terminal_size(sys.stdout.fileno()).columns
        except (OSError, ValueError):
            found = 0
    return min(max(found, _LEAST_WIDTH), _MOST_WIDTH) if found > 0 else 80


def note(text: str) -> None:
    """One line or more of narration on standard error; a standard error that is gone is nobody's loss."""
    if sys.stderr is None:
        return
    shown = inert(visible(text, newline=True))
    try:
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(shown.encode(encoding, "backslashreplace").decode(encoding) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def complain(message: str, hint: str | None = None) -> None:
    """An error in one line, and a second one with what to do; on a terminal a long one has several lines."""
    note(f"ctxctl: error: {' '.join(message.split())}")
    if hint:
        told = f"hint: {' '.join(hint.split())}"
        long = len(told) > width() and is_terminal(sys.stderr)
        note(told.replace("; ", "\n      ") if long else told)


def fail(error: CtxctlError) -> NoReturn:
    """End with the error's message and exit code."""
    complain(error.message, error.hint)
    raise SystemExit(int(error.exit_code))


def abandon_stdout() -> None:
    """Let the interpreter flush into nothing when it ends: the reader is gone."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError, AttributeError):
        pass

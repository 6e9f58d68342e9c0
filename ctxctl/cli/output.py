"""The only writer of standard output and standard error.

Plain text is data too: it goes out as UTF-8 or, where the stream has another encoding, with what does not
fit as escapes (`text.FITTING`).  A reader that goes away ends the program quietly; any other failure to write
ends it with a message and exit code 1.

Besides: the progress line on standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TextIO

from ctxctl.errors import CtxctlError, Exit
from ctxctl.report.paint import Paint, ansi, plain
from ctxctl.text import FITTING, inert, visible
from ctxctl.wording import progress

if TYPE_CHECKING:
    from ctxctl.cli.pager import Pager

_LEAST_WIDTH = 40
_MOST_WIDTH = 1000
_BLOCK = 1 << 16


class OutputError(CtxctlError):
    """Standard output cannot be written to."""

    exit_code = Exit.FINDINGS


class Output:
    """The writer of what one command prints: standard output, and its progress line.

    Args:
        color: As the setting has it.
        paged: Whether a pager shows it where standard output is a terminal.
    """

    def __init__(self, *, color: str = "auto", paged: bool = False) -> None:
        if sys.stdout is None:
            raise OutputError("cannot-write", "standard output is closed")
        self._encoding = sys.stdout.encoding or "utf-8"
        self._out: BinaryIO = sys.stdout.buffer
        self._terminal = is_terminal(sys.stdout)
        self._paged = paged and self._terminal and not is_dumb_terminal()
        self._held: list[bytes] = []
        self._size = 0
        self._progress: Progress | None = None
        self.paint: Paint = ansi if wants_color(color, sys.stdout) else plain
        self.width = width()

    @property
    def encoding(self) -> str:
        """Of the text that is written."""
        return self._encoding

    @property
    def is_painted(self) -> bool:
        """Whether there is colour."""
        return self.paint is ansi

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines of a plain report."""
        for line in lines:
            self._shown(inert(line), "\n")

    def _shown(self, text: str, end: str) -> None:
        """Write shown text and what ends it, a piece at a time: a line may have a hundred megabytes."""
        if len(text) > _BLOCK:
            for at in range(0, len(text), _BLOCK):
                self.write(text[at : at + _BLOCK].encode(self._encoding, FITTING))
            text = ""
        self.write((text + end).encode(self._encoding, FITTING))

    def rows(self, lines: Iterable[str]) -> None:
        """Write lines of ``--oneline``: as wide as the terminal, at most, and whole where there is none."""
        from ctxctl.report.oneline import in_width

        self.lines((in_width(line, self.width) for line in lines) if self._terminal else lines)

    def text(self, text: str) -> None:
        """Write shown text of any number of lines, ended by a line end."""
        text = inert(text)
        self._shown(text, "" if text.endswith("\n") else "\n")

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
        if data and self._paged and self._shown_by_pager(data):
            return
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

    def _shown_by_pager(self, data: bytes) -> bool:
        """Hand over to the pager, which starts with the first piece; False where there is none."""
        if _Narration.pager is None:
            from ctxctl.cli.pager import started_pager  # not where nobody sees it

            _Narration.pager = started_pager()
        if _Narration.pager is None:
            self._paged = False
            return False
        try:
            _Narration.pager.write(data)
        except OSError:  # the reader has seen enough
            raise SystemExit(0) from None
        return True

    def progress(self, doing: str) -> Progress:
        """A progress line on standard error, shown after half a second if that is a terminal."""
        wanted = shows_progress() and not _Narration.quiet
        self._progress = Progress(doing, sys.stderr if wanted else None)
        return self._progress

    def progressed(self, share: float) -> None:
        """Note on the progress line, if there is one, which share of the work is done."""
        if self._progress is not None:
            self._progress(share)


class HeldOutput(Output):
    """What is printed for somebody else to print, as wide and as coloured as that one's output.

    Args:
        width: Cells of a line.
        encoding: Of the bytes.
        painted: Whether there is colour.
    """

    def __init__(self, width: int, encoding: str, *, painted: bool) -> None:
        self._encoding = encoding
        self._held = []
        self._size = 0
        self._progress = None
        self._terminal = False
        self.paint = ansi if painted else plain
        self.width = width

    def flush(self) -> None:
        """Nothing is handed over before `taken`."""

    def taken(self) -> bytes:
        """All that was written."""
        return b"".join(self._held)


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


def is_dumb_terminal() -> bool:
    """Whether the terminal can do no more than print lines."""
    return os.environ.get("TERM", "") in ("", "dumb", "unknown")


def shows_progress() -> bool:
    """Whether a line on standard error can be rewritten."""
    return is_terminal(sys.stderr) and not is_dumb_terminal()


def wants_color(setting: str, stream: TextIO | None) -> bool:
    """Colour by the setting; `auto` asks ``NO_COLOR``, ``FORCE_COLOR`` and the terminal."""
    if setting != "auto":
        return setting == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return (is_terminal(stream) and not is_dumb_terminal()) or bool(os.environ.get("FORCE_COLOR"))


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


class _Narration:
    """Where narration goes; of one run."""

    quiet = False
    pager: Pager | None = None
    """What has the terminal, if it is running."""


def leave_pager() -> None:
    """Wait until the pager, if there is one, was left."""
    pager, _Narration.pager = _Narration.pager, None
    if pager is not None:
        pager.close()


def hush(*, quiet: bool) -> None:
    """Say from here on only what goes wrong, or again everything."""
    _Narration.quiet = quiet


def narrate(text: str) -> None:
    """As `note`, of what a person may do without: ``--quiet`` leaves it out."""
    if not _Narration.quiet:
        note(text)


def note(text: str) -> None:
    """One line or more on standard error; a standard error that is gone is nobody's loss."""
    if sys.stderr is None:
        return
    shown = inert(visible(text, newline=True))
    if _Narration.pager is not None and is_terminal(sys.stderr):  # it has the screen
        with suppress(OSError):
            _Narration.pager.write(f"{shown}\n".encode(sys.stderr.encoding or "utf-8", FITTING))
        return
    try:
        encoding = sys.stderr.encoding or "utf-8"
        sys.stderr.write(shown.encode(encoding, FITTING).decode(encoding) + "\n")
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


_PATIENCE = 0.5
"""Seconds before the line appears."""
_PACE = 0.2
_CLEAR = "\r\x1b[2K"


class Progress:
    """Call it with the share done, 0 to 1, as often as you like; use as a context manager.

    A thread draws, so that work that never calls (a conversion, one large step) still shows a sign of life.
    """

    def __init__(self, doing: str, stream: TextIO | None) -> None:
        self._doing = doing
        self._stream = stream
        self._share = 0.0
        self._over = Event()
        self._thread: Thread | None = None

    def __call__(self, share: float) -> None:
        """Note the share done."""
        self._share = share

    def __enter__(self) -> Progress:
        if self._stream is not None:
            self._thread = Thread(target=self._run, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the line away for good."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        stream = self._stream
        assert stream is not None
        if self._over.wait(_PATIENCE):
            return
        try:
            while True:
                share = f" {progress(self._share)}" if self._share else ""
                stream.write(f"{_CLEAR}ctxctl: {self._doing}{share} ...")
                stream.flush()
                if self._over.wait(_PACE):
                    break
            stream.write(_CLEAR)
            stream.flush()
        except (OSError, ValueError):  # the terminal went away
            return

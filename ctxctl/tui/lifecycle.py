"""Leaves the terminal as it was, whatever ends the program, and names an error without what it quotes."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)
)
_GRACE: Final = 2.0
"""Seconds that an orderly end may take once the terminal is gone."""

_MOST_ASIDE: Final = 1 << 16
_MOST_LINES: Final = 20


def catch_signals(leave: Callable[[int], None]) -> Callable[[], None]:
    """Call `leave` with 128 + number on each of `SIGNALS`; returns what undoes it.

    Only the main thread can; elsewhere (a test's event loop) this does nothing.  The loop's own
    `add_signal_handler` is not used: it can lose a signal while many keys wait.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    loop = asyncio.get_running_loop()

    def caught(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(leave, 128 + number)

    before = {number: signal.signal(number, caught) for number in SIGNALS}

    def undo() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return undo


def hung_up() -> bool:
    """Whether the terminal on stdin is gone; reading it would then fail or spin."""
    if not hasattr(select, "poll"):
        return False
    try:
        poll = select.poll()
        poll.register(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0, 0)
        return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return True


def end_soon(code: int) -> None:
    """End the process after a grace period, even if writing to a terminal that is gone blocks for ever."""
    timer = threading.Timer(_GRACE, os._exit, (code,))
    timer.daemon = True
    timer.start()


@contextmanager
def without_interrupts() -> Iterator[None]:
    """While another program has the terminal, Ctrl+C and Ctrl+\\ are meant for it alone.

    A handler that does nothing, and not SIG_IGN: that would be inherited.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGQUIT") if hasattr(signal, name)]
    before = {number: signal.signal(number, _nothing) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _nothing(number: int, frame: object) -> None:
    pass


def keys_from_terminal() -> bool:
    """Where standard input is data, read keys from the terminal itself; whether there is one.

    `sys.stdin` goes on to be the data; file descriptor 0, and with it `sys.__stdin__`, is the terminal.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    try:
        data = os.dup(0)
        os.dup2(terminal, 0)
    except OSError:
        return False
    finally:
        os.close(terminal)
    sys.stdin = os.fdopen(data, "r", encoding="utf-8", errors="surrogateescape")
    return True


class KeptStderr:
    """What was written to standard error while the UI had the screen, by libraries for example."""

    def __init__(self) -> None:
        self.terminal = 2
        """File descriptor of the terminal that the UI is drawn on."""
        self.lines: list[str] = []
        """What was written, raw, once the UI has left."""


@contextmanager
def stderr_kept_aside() -> Iterator[KeptStderr]:
    """Keep standard error off the screen: what is written to it meanwhile goes to a file of our own.

    Textual draws on `sys.__stderr__`, which is another descriptor of the terminal meanwhile; where standard
    error is no terminal it is standard output's.
    """
    aside = KeptStderr()
    original = sys.__stderr__
    draws_on = 2 if _is_terminal(2) else 1
    if original is None or not _is_terminal(draws_on):
        yield aside
        return
    aside.terminal = os.dup(draws_on)
    encoding = original.encoding or "utf-8"
    terminal = os.fdopen(aside.terminal, "w", encoding=encoding, errors="backslashreplace", closefd=False)
    with tempfile.TemporaryFile() as kept:
        _flush(original)
        if draws_on == 2:
            os.dup2(kept.fileno(), 2)
        sys.__stderr__ = terminal  # type: ignore[misc]
        try:
            yield aside
        finally:
            sys.__stderr__ = original  # type: ignore[misc]
            _flush(terminal)
            _flush(original)
            if draws_on == 2:
                os.dup2(aside.terminal, 2)
            kept.seek(0)
            aside.lines = without_panics(kept.read(_MOST_ASIDE).decode("utf-8", "replace"))
            os.close(aside.terminal)


def without_panics(text: str) -> list[str]:
    """The lines that were kept aside, without those that may quote the trace.

    A panic of a native library names its place in the first line; the message below it may hold data.
    """
    lines: list[str] = []
    panicked = False
    for line in text.splitlines():
        if re.match(r"thread '.*' (?:\(\d+\) )?panicked at ", line):
            panicked = True
            lines.append(line)
        elif panicked and (not line.strip() or line.startswith("note: run with")):
            panicked = False
        elif not panicked and line.strip():
            lines.append(line)
    return lines[:_MOST_LINES]


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _flush(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        stream.flush()


FAULT_EXIT: Final = 70
"""Exit code after something inside went wrong; EX_SOFTWARE of sysexits.h."""


def place_of(error: BaseException) -> str:
    """Kind and place in our code of an error, without its message, which may quote the trace."""
    frames = traceback.extract_tb(error.__traceback__ or sys.exc_info()[2])
    ours = [frame for frame in frames if "ctxctl" in frame.filename] or list(frames)
    if not ours:
        return type(error).__name__
    last = ours[-1]
    name = last.filename.replace("\\", "/").rpartition("ctxctl/")[2]
    return f"{type(error).__name__} at {name}:{last.lineno} in {last.name}"

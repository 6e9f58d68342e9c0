"""Replaces a file whole or not at all: its name leads to the old bytes until all new ones are written.

And knows which files were read, so that what a user has written does not take the place of one of them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Final

_ENDS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""What ends the process without an exception, unless somebody handles it."""
_unfinished: Final[set[str]] = set()
"""Files that are to be gone when the process ends by a signal."""


class _Noted:
    """What a command has read, by whichever thread."""

    paths: set[str] | None = None
    """As they were opened; None in a program that only uses the library, and writes over what it likes."""
    pausing: Final[ContextVar[bool]] = ContextVar("pausing", default=False)
    """Whether what is opened here is not read for what is written."""


def begin_noting() -> None:
    """From here on, note what is read."""
    _Noted.paths = set()


def note_read(names: Iterable[str]) -> None:
    """Say that files were read or looked for."""
    if _Noted.paths is not None and not _Noted.pausing.get():
        _Noted.paths.update(names)


@contextmanager
def not_noting() -> Iterator[None]:
    """Note nothing that this thread reads in here: it is only looked at, such as the file to replace."""
    token = _Noted.pausing.set(True)
    try:
        yield
    finally:
        _Noted.pausing.reset(token)


def is_read(status: os.stat_result) -> bool:
    """Whether a file, by whatever name, is one of those that were read since `begin_noting`."""
    for name in tuple(_Noted.paths or ()):
        with suppress(OSError, ValueError):
            if os.path.samestat(os.stat(name), status):
                return True
    return False


@contextmanager
def gone_if_ended(path: str) -> Iterator[None]:
    """While its `with` runs, a signal that ends the process removes this file first.

    Signals that somebody handles or ignores are theirs, and only the main thread can ask for any.
    """
    _unfinished.add(path)
    taken = []
    try:
        if threading.current_thread() is threading.main_thread():
            for number in _ENDS:
                if signal.getsignal(number) is signal.SIG_DFL:
                    signal.signal(number, _remover(os.getpid()))
                    taken.append(number)
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
        _unfinished.discard(path)


def _remover(owner: int) -> Callable[[int, FrameType | None], None]:
    """A handler that removes what is unfinished and lets the signal do what it would have done.

    A forked child has the handler too, but the files are its parent's.
    """

    def remove(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == owner:
            for path in tuple(_unfinished):
                with suppress(OSError):
                    os.unlink(path)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return remove


def partial_name(path: str) -> str:
    """A name beside a file for what is to take its place: nobody else's, hidden, and short enough."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:40]}.{os.urandom(4).hex()}.partial")


def replace_file(path: str | Path, data: bytes, *, mode: int = 0o600, exactly: bool = False) -> None:
    """Write a file, on the disk before its name leads to it; a link is replaced and not followed.

    Args:
        path: The file, which need not be there.
        data: All that it is to hold.
        mode: Its permissions, less what the user's mask takes from a new file.
        exactly: The mask takes nothing: they are those of the file that is replaced.

    Raises OSError, whose `filename` is the file; it is then what it was before, with nothing beside it.
    """
    name = os.fspath(path)
    partial = partial_name(name)
    try:
        with gone_if_ended(partial):
            _write_new(partial, data, mode, exactly=exactly, then=lambda: os.replace(partial, name))
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from None


def create_file(path: str, data: bytes) -> None:
    """Write a file that nobody else can read, and that must not be there yet, not even as a link.

    Raises FileExistsError, and OSError with nothing left under the name.
    """
    try:
        _write_new(path, data, 0o600)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def _write_new(
    path: str, data: bytes, mode: int, *, exactly: bool = False, then: Callable[[], None] = lambda: None
) -> None:
    """Write a new file, do what is left to be done with it, and remove it where any of that fails."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            if exactly:
                os.fchmod(fd, mode)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        then()
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise

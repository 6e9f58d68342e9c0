"""Replaces a file whole or not at all: its name leads to the old bytes until all new ones are written."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


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

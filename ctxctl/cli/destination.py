"""The new file, device or pipe that a command writes to, in place of standard output; never what it reads."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final, cast

from ctxctl.cli.output import Output, is_terminal, note
from ctxctl.errors import CtxctlError, UnreadableError, UsageError
from ctxctl.trace.inputs import real_place
from ctxctl.whole_file import gone_if_ended, is_read, not_noting, partial_name

_BLOCK: Final = 1 << 16
_REPORTS: Final = (".html", ".htm", ".xml", ".csv", ".parquet")
"""How the names of files end in which no program keeps a session."""


@contextmanager
def destination(output: str, out: Output, *, force: bool, read: Iterable[str] = ()) -> Iterator[IO[bytes]]:
    """Standard output, a device, a pipe, or a new file that appears under its name only when whole.

    Args:
        output: Where to; `-` is standard output.
        out: The writer of standard output.
        force: Whether a file that is there may be replaced.
        read: Names of the files and directories that are read for it.  No file that was read, or that lies
            in such a directory, is written over, by whatever name; nor is any file of a dataset.

    Raises:
        UsageError: `output-needed`, `output-exists`, `output-is-input`.
        UnreadableError: `not-writable`.
        CtxctlError: `write-failed`; the file is then what it was before.
    """
    if output == "-":
        if is_terminal(sys.stdout):
            raise UsageError(
                "output-needed", "this output is not for a terminal", hint="give -o FILE, or redirect"
            )
        _refuse_input("standard output", _status(1), read)
        yield cast("IO[bytes]", StdoutFile(out))
        return
    status = _status(output)
    _refuse_input(output, status, read)
    is_file = status is not None and stat.S_ISREG(status.st_mode)
    if is_file:
        _refuse_of_dataset(output)
    replaceable = status is None or not is_file or _is_report(output, status)
    if not replaceable:
        _refuse_inside(output, read)
    if status is not None and not stat.S_ISREG(status.st_mode):
        with _named(output), open(_opened_device(output, status.st_mode), "wb") as device:
            yield device
        return
    if status is not None and not force:
        raise UsageError("output-exists", f"{output} already exists", hint="give --force to replace it")
    partial = partial_name(output)
    with gone_if_ended(partial):
        file = NewFile(output, partial)
        try:
            yield cast("IO[bytes]", file)
            if not replaceable:
                _refuse_looked_at(output, status)
            file.finish(replaces=status is not None)
        except BaseException:
            file.abandon()
            raise


def _status(place: str | int) -> os.stat_result | None:
    try:
        return os.stat(place)
    except (OSError, ValueError):
        return None


def _refuse_input(output: str, status: os.stat_result | None, read: Iterable[str]) -> None:
    """Raise UsageError("output-is-input") where what is written would go over what is read."""
    if status is None or not stat.S_ISREG(status.st_mode):
        return
    for name in read:
        source = _status(name) if name != "-" else _status(0)
        if source is not None and os.path.samestat(source, status):
            raise UsageError(
                "output-is-input", f"{output} is the file that is read", hint="give another name with -o FILE"
            )


def _is_report(output: str, status: os.stat_result) -> bool:
    """Whether a file is a page, a table or a report as ours are, and no capture is read from it: it may be
    written again into a directory that is read.
    """
    if not output.lower().endswith(_REPORTS):
        return False
    if not status.st_size:
        return True
    from ctxctl.importers.registry import detect
    from ctxctl.trace.source import open_source
    from ctxctl.trace.unknown_file import is_native

    try:
        with not_noting(), open_source(output) as source:
            return not is_native(source.read(0, _BLOCK)) and detect(source) is None
    except (CtxctlError, OSError):
        return False


def _refuse_of_dataset(output: str) -> None:
    """Raise UsageError("output-is-input") where a file of a dataset would be written over."""
    from ctxctl.dataset.log import dataset_of

    dataset = dataset_of(real_place(output))
    if dataset is not None:
        raise UsageError(
            "output-is-input", f"{output} is a file of the dataset {dataset}",
            hint="give another name with -o FILE",
        )  # fmt: skip


def _refuse_inside(output: str, read: Iterable[str]) -> None:
    """Raise UsageError("output-is-input") where a file of a directory that is read would be written over."""
    place = os.fspath(real_place(output))  # what a link leads to stays
    for name in read:
        folder = os.path.realpath(name)
        if os.path.isdir(folder) and os.path.commonpath((folder, place)) == folder:
            raise UsageError(
                "output-is-input", f"{output} is in {name}, and all of that is read",
                hint="give the name of a new file, or of one elsewhere, with -o FILE",
            )  # fmt: skip


def _refuse_looked_at(output: str, status: os.stat_result | None) -> None:
    """Raise UsageError("output-is-input") where the file was read as part of what was written: a capture can
    be completed from the files beside it.
    """
    if status is not None and is_read(status):
        raise UsageError(
            "output-is-input", f"{output} is one of the files that were read",
            hint="give another name with -o FILE",
        )  # fmt: skip


@contextmanager
def _named(output: str) -> Iterator[None]:
    """Say of what the system refuses which file it is."""
    try:
        yield
    except OSError as error:
        raise CtxctlError("write-failed", f"cannot write {output}: {error.strerror}") from None


def _opened_device(output: str, mode: int) -> int:
    """A descriptor of a device or pipe; a pipe that nobody reads yet is waited for, and that is said."""
    flags = os.O_WRONLY | os.O_CLOEXEC
    if not stat.S_ISFIFO(mode):
        return os.open(output, flags)
    try:
        descriptor = os.open(output, flags | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        note(f"ctxctl: {output} is a pipe that nobody reads yet: waiting for a reader")
        return os.open(output, flags)
    os.set_blocking(descriptor, True)
    return descriptor


class NewFile:
    """A file that is written under a name beside the one that it gets once it is whole; its errors name it.

    Raises UnreadableError("not-writable") where none can be made there.
    """

    closed = False

    def __init__(self, output: str, partial: str) -> None:
        self._output = output
        self._partial = partial
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._file = os.fdopen(os.open(self._partial, flags, 0o600), "wb", buffering=_BLOCK)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "that is not a file name"
            raise UnreadableError("not-writable", f"cannot write {output}: {why}") from None

    def write(self, data: bytes) -> int:
        """Hand on a piece."""
        with _named(self._output):
            return self._file.write(data)

    def flush(self) -> None:
        """Nothing is lost by waiting: the file gets its name at the end."""

    def finish(self, *, replaces: bool) -> None:
        """Give it its name; what it `replaces` goes only once the new one is on the disk."""
        with _named(self._output):
            self._file.flush()
            if replaces:
                os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._partial, self._output)

    def abandon(self) -> None:
        """Leave nothing behind."""
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            os.unlink(self._partial)


class StdoutFile:
    """Enough of a binary file for a `TraceWriter` to write to standard output by the one writer of it."""

    closed = False

    def __init__(self, out: Output) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        """Hand over a line."""
        self._out.write(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is lost by waiting: the command flushes at its end."""

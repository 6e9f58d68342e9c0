"""Where a command that writes a file writes to: standard output, a device, or a new file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ctxctl.cli.output import Output


@contextmanager
def destination(output: str, out: Output, *, force: bool) -> Iterator[IO[bytes] | str]:
    """Standard output, a device, or a new file that appears under its name only when whole."""
    import sys

    from ctxctl.cli.output import is_terminal
    from ctxctl.errors import CtxctlError, UsageError

    if output == "-":
        if is_terminal(sys.stdout):
            raise UsageError(
                "output-needed", "what is written is not for a terminal", hint="give -o FILE, or redirect"
            )
        yield cast("IO[bytes]", Through(out))
        return
    try:
        mode = os.stat(output).st_mode
    except OSError:
        mode = 0
    if mode and not stat.S_ISREG(mode):
        try:
            with open(output, "wb") as device:
                yield device
        except OSError as error:
            raise CtxctlError("write-failed", f"{output}: {error.strerror}") from None
        return
    if mode and not force:
        raise UsageError("output-exists", f"{output} is there already", hint="give --force to replace it")
    folder, name = os.path.split(output)
    partial = os.path.join(folder, f".{name}.{os.urandom(4).hex()}.partial")
    try:
        yield partial
        os.replace(partial, output)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


class Through:
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


class Sink:
    """A file by its name, or what is open already."""

    def __init__(self, sink: object) -> None:
        self._sink = sink
        self._opened = False

    def __enter__(self) -> Sink:
        if isinstance(self._sink, str):
            from ctxctl.errors import UnreadableError

            try:
                handle = os.open(self._sink, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except OSError as error:
                raise UnreadableError("not-writable", f"cannot write: {error.strerror}") from None
            self._sink = os.fdopen(handle, "wb")
            self._opened = True
        return self

    def write(self, data: bytes) -> None:
        """Hand on a piece."""
        from ctxctl.errors import CtxctlError

        try:
            self._sink.write(data)  # type: ignore[attr-defined]
        except OSError as error:
            raise CtxctlError("write-failed", f"cannot write the export: {error.strerror}") from None

    def __exit__(self, *_: object) -> None:
        if self._opened:
            self._sink.close()  # type: ignore[attr-defined]

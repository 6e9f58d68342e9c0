"""The bytes of a trace: from a regular file, stdin, a compressed file, or memory.

A `Source` is random access and thread-safe (`os.pread`, never a memory map: a file truncated while mapped
kills the process). Other inputs are spooled to an unlinked temporary file first.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from ctxctl.errors import UnreadableError
from ctxctl.model.problem import Problem
from ctxctl.trace.inputs import note_file, real_place
from ctxctl.trace.spool import CHUNK, compression, spool_stream

HEAD = 1024
"""Bytes at the start of a file that belong to its identity."""
_UNCHECKED_BYTES = 1 << 20
"""Reads of more bytes than this are limited to what exists."""

_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class Identity(NamedTuple):
    """Distinguishes a file from another one of the same name."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    """Time of the last change of the file or its inode, which cannot be set by users."""
    head: str
    """SHA-256 hex of the first KiB."""


class Source:
    """Bytes with a name; made by `open_source`, `from_bytes` or `from_file`."""

    def __init__(
        self,
        name: str,
        *,
        fd: int | None = None,
        data: bytes = b"",
        path: Path | None = None,
        spooled: bool = False,
        problems: tuple[Problem, ...] = (),
    ) -> None:
        self.name = name
        """The name as the user typed it; untrusted text like everything else."""
        self.path = path
        """The file on disk; None for stdin and memory."""
        self.spooled = spooled
        """True if the bytes read here are a temporary copy (stdin, decompressed)."""
        self.kept: Path | None = None
        """The cached import that is read instead of `path`."""
        self.problems = problems
        """Faults found while copying, for example a truncated gzip member."""
        self._fd = fd
        self._data = data
        self.size = len(data) if fd is None else self._status(fd).st_size
        """Bytes when last checked; see `refresh`."""

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> Source:
        """Return a source held in memory."""
        return cls(name, data=bytes(data))

    @classmethod
    def from_file(
        cls, name: str, fileobj: IO[bytes], *, path: Path | None = None, problems: tuple[Problem, ...] = ()
    ) -> Source:
        """Return a source over an open temporary file, which the caller may close; `spooled` is True."""
        fileobj.flush()
        return cls(name, fd=os.dup(fileobj.fileno()), path=path, spooled=True, problems=problems)

    def read(self, offset: int, n: int) -> bytes:
        """Return at most `n` bytes from `offset`; shorter only at the end.  Safe from several threads.

        Raises:
            UnreadableError: `read-failed`, when the disk or a network file system fails.
        """
        if self._fd is None:
            return self._data[offset : offset + n]
        try:
            if n > _UNCHECKED_BYTES:  # memory for the whole request is allocated before reading
                n = min(n, max(0, self._status(self._fd).st_size - offset))
            got = os.pread(self._fd, n, offset)
            if len(got) == n or not got:
                return got
            parts = [got]
            while got and (missing := n - sum(map(len, parts))) > 0:
                got = os.pread(self._fd, missing, offset + n - missing)
                parts.append(got)
            return b"".join(parts)
        except OSError as error:
            raise UnreadableError(
                "read-failed", f"cannot read {self.name} at byte {offset}: {error.strerror}"
            ) from None

    def data_from(self, offset: int) -> int:
        """Return the next byte from `offset` on that is stored: holes of a sparse file read as NUL."""
        if self._fd is None:
            return offset
        try:
            return os.lseek(self._fd, offset, os.SEEK_DATA)
        except OSError as error:
            return max(offset, self.size) if error.errno == errno.ENXIO else offset

    def refresh(self) -> int:
        """Update the size (a file may grow) and return it."""
        if self._fd is not None:
            self.size = self._status(self._fd).st_size
        return self.size

    def identity(self) -> Identity:
        """Return device, inode, size, modification time and a hash of the head, as of now."""
        head = hashlib.sha256(self.read(0, HEAD)).hexdigest()
        if self._fd is None:
            return Identity(0, 0, self.size, 0, 0, head)
        now = self._status(self._fd)
        return Identity(now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns, head)

    def _status(self, fd: int) -> os.stat_result:
        try:
            return os.fstat(fd)
        except OSError as error:
            raise UnreadableError("read-failed", f"cannot read {self.name}: {error.strerror}") from None

    def close(self) -> None:
        """Release the file. Later reads return nothing."""
        fd, self._fd = self._fd, None
        if fd is not None:
            let_go(fd)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_source(path: str | Path) -> Source:
    """Open a trace by name; `-` is stdin; gzip and zstd are recognised by content.

    Raises:
        UnreadableError: `no-such-file`, `is-a-directory`, `not-a-regular-file`, `not-readable`,
            `empty-file`, `decompression-bomb`, `no-space`, `bad-compression`.
        UnavailableError: `needs-zstd`.
    """
    name = str(path)
    if name == "-":
        source = _open_stdin()
    else:
        place = real_place(name)
        note_file(place)
        source = _open_file(name, place)
    try:
        if source.size == 0:
            raise _empty(name)
        scheme = compression(source.read(0, 4))
        if scheme is None:
            return source
        spooled = _spooled(name, source, scheme)
    except BaseException:
        source.close()
        raise
    source.close()
    return spooled


def _open_file(name: str, place: Path) -> Source:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise UnreadableError("no-such-file", f"no such file: {name}") from None
    except PermissionError:
        raise UnreadableError(
            "not-readable",
            f"not readable: {name}",
            hint="check the permissions of the file and its directory",
        ) from None
    except OSError as error:
        raise UnreadableError("not-readable", f"cannot open {name}: {error.strerror}") from None
    try:
        _require_regular(name, os.fstat(fd).st_mode)
        return Source(name, fd=fd, path=place)
    except OSError as error:
        let_go(fd)
        raise UnreadableError("not-readable", f"cannot open {name}: {error.strerror}") from None
    except BaseException:
        let_go(fd)
        raise


def let_go(fd: int) -> None:
    """Close a descriptor that was only read. Errors do not matter then."""
    with suppress(OSError):
        os.close(fd)


def _require_regular(name: str, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise UnreadableError("is-a-directory", f"is a directory: {name}", hint="name a trace file inside it")
    kind = next((label for test, label in _KINDS if test(mode)), "not a regular file")
    raise UnreadableError(
        "not-a-regular-file", f"{name} is {kind}, not a file", hint="pipe it in and read '-', which is stdin"
    )


def closed_stdin(error: Exception, hint: str) -> UnreadableError:
    """Return the error for a missing or unreadable standard input."""
    if isinstance(error, OSError) and error.strerror and error.errno != errno.EBADF:
        return UnreadableError("read-failed", f"cannot read standard input: {error.strerror}")
    return UnreadableError("not-readable", "stdin is closed", hint=hint)


def _open_stdin() -> Source:
    try:
        fd = sys.stdin.fileno()
        mode = os.fstat(fd).st_mode
    except (AttributeError, OSError, ValueError) as error:
        raise closed_stdin(error, "pipe a trace in") from None
    if stat.S_ISDIR(mode):
        raise UnreadableError("is-a-directory", "stdin is a directory")
    if stat.S_ISREG(mode) and os.lseek(fd, 0, os.SEEK_CUR) == 0:
        return Source("-", fd=os.dup(fd), spooled=True)
    with spool_stream("-", iter(lambda: os.read(fd, CHUNK), b"")) as spooled:
        return Source.from_file("-", spooled.file)


def _spooled(name: str, source: Source, scheme: str) -> Source:
    with spool_stream(name, _chunks(source), scheme=scheme, compressed_size=source.size) as spooled:
        result = Source.from_file(name, spooled.file, path=source.path, problems=tuple(spooled.problems))
    if result.size == 0:
        result.close()
        raise _empty(name)
    return result


def _chunks(source: Source) -> Iterator[bytes]:
    offset = 0
    while chunk := source.read(offset, CHUNK):
        yield chunk
        offset += len(chunk)


def _empty(name: str) -> UnreadableError:
    return UnreadableError("empty-file", "stdin is empty" if name == "-" else f"empty file: {name}")

"""A trace to which events that others made are appended as whole lines, and the lines that it held before.

For ways of recording where the events exist already (`--stdin`, `--watch`); programs that record use
`Recorder`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from ctxctl.errors import UnreadableError, UsageError
from ctxctl.record.options import check_appendable
from ctxctl.record.redact import redactor_of
from ctxctl.record.sink import Sink
from ctxctl.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.record.options import Options


MARK: Final = 8
"""Bytes of the digest by which a line is recognised."""
_CHUNK: Final = 1 << 20
_ID: Final = re.compile(rb'"event_id":"((?:[^"\\]|\\.)*)"')
_SESSION: Final = re.compile(rb'"session_id":"((?:[^"\\]|\\.)*)"')
_HEAD: Final = 4096


class WrittenLine(NamedTuple):
    """A line of the file: where it stands, and its digest."""

    offset: int
    length: int
    mark: bytes


class AppendTarget:
    """An open trace; it counts as a `Recorder` does.

    Raises:
        UsageError: `not-a-trace`, `already-recording`, `bad-redaction-rules`.
        UnreadableError: `not-writable`.
    """

    def __init__(self, options: Options) -> None:
        self.path = str(options.out)
        self._say = options.say
        self.written = 0
        """Events written."""
        self.dropped = 0
        """Events that could not be written."""
        self.redacted: dict[str, int] = {}
        """Secrets replaced, by kind."""
        self.error: str | None = None
        """Why the last write failed; None if it did not."""
        self.redactor = redactor_of(options.redact)
        check_appendable(self.path)
        # Never rotated: a restart goes by the lines of the file.
        self._sink = Sink(self.path, fsync=options.fsync, rotate_bytes=None)
        self._sink.only_traces = True
        try:
            self._sink.prepare(0)
            self._own = os.open(self.path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise UnreadableError("not-writable", f"{self.path}: {error.strerror}") from None
        try:
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                why = f"{self.path}: it cannot be locked: {error.strerror}"
                raise UnreadableError("not-writable", why) from None
            raise UsageError(
                "already-recording", f"{self.path}: another `ctxctl record` is writing to it",
                hint="give another name with -o FILE, or end the other one",
            ) from None  # fmt: skip

    def write(self, line: bytes) -> int:
        """Append a whole line, as a file's `write` does; raises OSError where it is not written."""
        try:
            self._sink.prepare(len(line))
            self._sink.append(line)
        except OSError as error:
            self.error = error.strerror or errno.errorcode.get(error.errno or 0, "OSError")
            raise
        self.error = None
        self.written += 1
        return len(line)

    def count_lost(self, why: str) -> None:
        """Count an event that was not written and will not be."""
        self.dropped += 1
        self.error = why

    def find_line(self, line: bytes) -> WrittenLine:
        """Return where a line that was just written stands."""
        end = os.fstat(self._own).st_size
        at = end - len(line)
        if os.pread(self._own, len(line), at) != line:
            at = self._search(line, end)
        return WrittenLine(at, len(line), line_mark(line))

    def _search(self, line: bytes, end: int) -> int:
        """Find a line behind which another writer has appended; -1: not found."""
        begin = max(0, end - len(line) - 4 * _CHUNK)
        at = os.pread(self._own, end - begin, begin).rfind(line)
        return begin + at if at >= 0 else -1

    def blank_out(self, lines: list[WrittenLine]) -> None:
        """Overwrite lines with blanks, which readers pass over and other writers do not notice."""
        for begin, length in _runs(lines):
            if begin >= 0:
                os.pwrite(self._own, b" " * (length - 1) + b"\n", begin)
        self.written -= len(lines)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the whole lines in the file, each with its offset; an OSError names it."""
        at, rest = 0, b""
        while data := self._read(at + len(rest)):
            block = rest + data
            cut = block.rfind(b"\n") + 1
            offset = at
            for line in block[:cut].splitlines(keepends=True):  # \r splits too, but no JSON line holds it
                if not line.isspace():
                    yield offset, line
                offset += len(line)
            at, rest = at + cut, block[cut:]

    def _read(self, at: int) -> bytes:
        try:
            return os.pread(self._own, _CHUNK, at)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from None

    def close(self) -> None:
        """Close the file, and say what may be lost with the machine's power; an OSError names it."""
        own, self._own = self._own, -1
        try:
            self._sink.close()
            if own >= 0:
                os.close(own)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from None
        finally:
            if lines := self._sink.unsynced:
                why = self._sink.sync_error
                self._say(f"ctxctl: {self.path}: {plural(lines, 'line')} may not be on the disk ({why})")


def line_mark(line: bytes) -> bytes:
    """Return the digest by which a line is recognised."""
    return blake2b(line, digest_size=MARK).digest()


def event_id(line: bytes) -> str | None:
    """Return the id of the event in a line; ctxctl writes it near the front."""
    found = _ID.search(line, 0, _HEAD)
    return _text(found[1]) if found is not None else None


def session_id(line: bytes) -> str | None:
    """Return the session of the event in a line."""
    found = _SESSION.search(line, 0, _HEAD)
    return _text(found[1]) if found is not None else None


def _text(raw: bytes) -> str | None:
    try:
        made: Any = orjson.loads(b'"' + raw + b'"')
    except orjson.JSONDecodeError:
        return None
    return made if isinstance(made, str) else None


def _runs(lines: list[WrittenLine]) -> Iterator[tuple[int, int]]:
    """Yield offset and length of each stretch of adjoining lines."""
    begin = end = -1
    for offset, length, _ in sorted(lines):
        if offset < 0:
            continue
        if offset != end:
            if end > begin:
                yield begin, end - begin
            begin = offset
        end = offset + length
    if end > begin:
        yield begin, end - begin

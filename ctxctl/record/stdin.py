"""`ctxctl record --stdin`: records what another program prints, as events or in a known format."""

from __future__ import annotations

import os
import secrets
import select
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Final, cast

import orjson

from ctxctl.errors import UnreadableError
from ctxctl.importers.capture import NATIVE
from ctxctl.model import vocab
from ctxctl.record.append_target import AppendTarget
from ctxctl.record.end_signals import EndSignals
from ctxctl.trace.source import closed_stdin

if TYPE_CHECKING:
    from ctxctl.ingest.declaration import Format
    from ctxctl.model.problem import Problem
    from ctxctl.record.options import Options

_CHUNK: Final = 1 << 18
_HEAD: Final = 1 << 16
"""Bytes by which the format is detected."""
_PAUSE: Final = 0.5
"""Seconds without input after which the format is detected from what came."""
_QUIET: Final = 3.0
"""Seconds without input after which an answer counts as complete."""
_SHARE: Final = 0.3
"""Share of the time that importing the stream again may take."""
_LINE: Final = 64 << 20
"""Bytes of the longest line that is read."""


def stdin(options: Options, *, format_name: str | None = None) -> int:
    """Record standard input until it ends; return 0, or 128 plus the number of a signal that came first.

    Events are written line by line as they come.  A stream in another format is kept in memory, whole, and
    imported again as it grows.
    """
    fd = _fd()
    with EndSignals() as ending:
        target = AppendTarget(options)
        try:
            options.begin("recording standard input until it ends")
            stream = _Stream(fd, ending)
            found, head = _detected(stream, format_name)
            if found is None:
                _EventLines(target, options).take(stream, head)
            else:
                if not options.quiet:
                    options.say(f"ctxctl: it is {found.title} ({found.name})")
                _ForeignFormat(target, options, found).take(stream, head)
        finally:
            target.close()
    options.conclude(target)
    return 128 + ending.asked if ending.asked else 0


def _fd() -> int:
    try:
        fd = sys.stdin.fileno()
        os.fstat(fd)
    except (AttributeError, OSError, ValueError) as error:
        raise closed_stdin(error, "pipe events in") from None
    return fd


class _Stream:
    """Standard input, read as it comes."""

    def __init__(self, fd: int, ending: EndSignals) -> None:
        self._fd = fd
        self._ending = ending
        self.over = False
        """Whether the input has ended, or its end was asked for."""

    def read(self, wait: float | None) -> bytes:
        """Return what has come, waiting `wait` seconds at most (None: until something comes)."""
        if self._ending.asked:
            self.over = True
        if self.over:
            return b""
        try:
            ready, _, _ = select.select([self._fd, self._ending.fd], [], [], wait)
            if self._fd not in ready:
                self.over = bool(ready)
                return b""
            data = os.read(self._fd, _CHUNK)
        except OSError as error:
            raise UnreadableError("read-failed", f"cannot read standard input: {error.strerror}") from None
        self.over = not data
        return data


def _detected(stream: _Stream, format_name: str | None) -> tuple[Format | None, bytes]:
    """Return the stream's format by its first lines, None for events; and what was read for that."""
    from ctxctl.trace.spool import compression
    from ctxctl.trace.unknown_file import is_native, looks_like

    head, found = b"", None
    if format_name is not None:
        from ctxctl.importers import registry

        return None if format_name == NATIVE else registry.by_name(format_name), b""
    while not stream.over and len(head) < _HEAD:
        data = stream.read(_PAUSE if head else None)
        head += data
        if is_native(head):
            return None, head
        if head and not data:
            found = _format_of(head)
            if found is not None:
                return found, head
    if not head:
        raise UnreadableError("empty-file", "stdin is empty")
    if compression(head[:4]) is not None:
        raise UnreadableError(
            "unknown-capture", "standard input is compressed",
            hint="decompress it on the way: zcat FILE | ctxctl record --stdin",
        )  # fmt: skip
    found = _format_of(head)
    if found is None:
        what, _ = looks_like(head[:4096])
        raise UnreadableError(
            "unknown-capture", f"standard input holds no event, and none of the known formats{what}",
            hint="ctxctl formats lists what can be read; --read-as names one",
        )  # fmt: skip
    return found, head


def _format_of(head: bytes) -> Format | None:
    from ctxctl.importers import registry

    return registry.of_head(head[:_HEAD])


class _EventLines:
    """Writes events as they come; one that the trace has already is passed over."""

    def __init__(self, target: AppendTarget, options: Options) -> None:
        from ctxctl.record.event_cleaner import EventCleaner, LineBuffer
        from ctxctl.trace.writer import TraceWriter

        self._target = target
        self._options = options
        self._cleaner = EventCleaner(target.redactor, target.redacted)
        self._made = LineBuffer()
        self._writer = TraceWriter(
            cast("IO[bytes]", self._made), source=options.source or "stdin", clock=_now,
            prefix=secrets.token_hex(8), report=self._tell,
        )  # fmt: skip
        self._known = {key for _, line in target.lines() if (key := _key(_loaded(line))) is not None}
        self._lost: dict[str, int] = {}
        """Losses that the trace does not count yet, by reason."""
        self._number = 0
        self._complained = False

    def take(self, stream: _Stream, head: bytes) -> None:
        """Write the stream's events until it is over."""
        rest = [head]
        size = len(head)
        data = head
        while True:
            if b"\n" in data:
                whole, _, last = b"".join(rest).rpartition(b"\n")
                for line in whole.split(b"\n"):
                    self._line(line)
                rest, size = [last], len(last)
            elif size > _LINE:
                self._lose("line too long")
                rest, size = [], 0
            if stream.over:
                break
            data = stream.read(None)
            rest.append(data)
            size += len(data)
        self._line(b"".join(rest))
        self._tell_losses()

    def _line(self, line: bytes) -> None:
        from ctxctl.ingest.lines import Line, values_of_line

        self._number += 1
        if line.isspace() or not line:
            return
        values = values_of_line(Line(self._number, 0, line), self._tell)
        for value in values:
            if isinstance(value, dict) and isinstance(value.get("event_type"), str):
                self._event(value)
            else:
                self._lose("not an event")
        if not values:
            self._lose("not an event")

    def _event(self, event: dict[str, Any]) -> None:
        try:
            event = self._cleaner.clean(event)
        except Exception as error:  # it may hold secrets: nothing of it may be written
            self._lose(f"{type(error).__name__} while looking for secrets")
            return
        event.setdefault("source", self._options.source or "stdin")
        key = _key(event)
        if key is not None and key in self._known:
            return
        if self._lost:
            self._tell_losses()
        why = self._write(event)
        if why is not None:
            self._lose(why, f"{self._target.path}: {why}")
        elif key is not None:
            self._known.add(key)

    def _write(self, event: dict[str, Any]) -> str | None:
        """Write an event; return why it cannot be written, or None."""
        start = self._writer.written
        self._made.clear()
        if not self._writer.write(event):
            return "not valid"
        try:
            self._target.write(bytes(self._made))
        except OSError as error:
            self._writer.back(start)
            return error.strerror or "cannot be written"
        return None

    def _lose(self, why: str, told: str | None = None) -> None:
        """Count a loss; the first one is `told`."""
        self._target.count_lost(why)
        if why not in self._lost and not self._complained:
            self._options.say(
                f"ctxctl: line {self._number}: not recorded: {told or why}; more are only counted"
            )
            self._complained = True
        self._lost[why] = self._lost.get(why, 0) + 1

    def _tell_losses(self) -> None:
        """Count the losses in the trace."""
        if not self._lost:
            return
        record = {"n": sum(self._lost.values()), "reasons": self._lost}
        if self._write({"event_type": vocab.RECORD_DROPPED, "data": record}) is None:
            self._target.written -= 1
            self._lost = {}

    def _tell(self, problem: Problem) -> None:
        if not self._complained:
            self._complained = True
            self._options.say(f"ctxctl: line {self._number}: {problem.message}; more are only counted")


class _ForeignFormat:
    """Imports a stream in a known format, again and again as it grows."""

    def __init__(self, target: AppendTarget, options: Options, importer: Format) -> None:
        self._target = target
        self._options = options
        self._importer = importer
        self._session = options.session or "stdin"
        self._copy = _ReceivedBytes()
        self._last_said = ""

    def take(self, stream: _Stream, head: bytes) -> None:
        """Import the stream until it is over."""
        from ctxctl.record.capture_mirror import CaptureMirror, RecordedCaptures

        self._copy.add(head)
        while b"\n" not in head and len(head) < _HEAD and not stream.over:
            data = stream.read(None)
            self._copy.add(data)
            head += data
        # The same stream, sent again after a restart, is recognised by its beginning.
        identity = b"stdin\0" + head.partition(b"\n")[0][:_HEAD]
        mirror = CaptureMirror(
            self._target, RecordedCaptures(self._target), identity, self._session, self._tell
        )
        free_at, fresh, came = 0.0, True, time.monotonic()
        while not stream.over:
            now = time.monotonic()
            quiet = mirror.waits and not fresh and now - came >= _QUIET
            if (fresh or quiet) and now >= free_at:
                self._update(mirror, quiet=quiet, sure=False)
                free_at = now + (time.monotonic() - now) / _SHARE
                fresh = False
            pause = max(0.02, free_at - now) if fresh else _QUIET if mirror.waits else None
            data = stream.read(pause)
            if data:
                self._copy.add(data)
                fresh, came = True, time.monotonic()
        self._update(mirror, quiet=True, sure=True)
        try:
            mirror.finish()
        except OSError as error:
            self._failed(error)

    def _update(self, mirror: Any, *, quiet: bool, sure: bool) -> None:
        from ctxctl.importers import registry
        from ctxctl.record.watch import at_end

        try:
            while True:
                with self._copy.source() as source:
                    open_end = None if quiet else at_end(source)
                    events = registry.capture_events(self._importer, source, lambda problem: None)
                    if mirror.update(events, sure=sure, open_end=open_end) != "again":
                        return
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        self._say(f"{self._target.path}: cannot be written: {error.strerror}; it is tried further")

    def _tell(self, problem: Problem) -> None:
        self._say(problem.message)

    def _say(self, line: str) -> None:
        if line != self._last_said:
            self._last_said = line
            self._options.say(f"ctxctl: {line}")


class _ReceivedBytes:
    """The stream so far, in memory: a temporary file would put its secrets on the disk."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("ctxctl") if hasattr(os, "memfd_create") else -1
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        """Add what came."""
        if self._fd < 0:
            self._data += data
            return
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def source(self) -> Any:
        """Return a source that reads the stream so far."""
        from ctxctl.trace.source import Source

        if self._fd < 0:
            return Source.from_bytes("standard input", bytes(self._data))
        return Source("standard input", fd=os.dup(self._fd), spooled=True)


def _loaded(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _key(event: Any) -> int | None:
    """Return the key by which views recognise a repeated event."""
    if not isinstance(event, dict) or not isinstance(event.get("event_id"), str):
        return None
    return hash((str(event.get("session_id")), str(event.get("source")), event["event_id"]))


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

"""Whole events of others on their way to the trace: completed, checked by the schemas, without secrets."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final, cast

from ctxctl.errors import CtxctlError
from ctxctl.record.cleaning import Cleaner
from ctxctl.record.entries import Entry
from ctxctl.record.place import Place
from ctxctl.trace.writer import TraceWriter

if TYPE_CHECKING:
    from ctxctl.record.recorder import Recorder

Json = dict[str, Any]
_TRIES: Final = 3
_TEXTS: Final = ("event_id", "source", "time", "session_id", "thread_id", "turn_id", "step_id")
_SHOWN: Final = 300


class BadEventError(ValueError):
    """An event that is not written, whatever is done; the text says why, without anything of its content."""


class Inbox:
    """Appends whole events with the recorder's writer; not for several threads at once.

    What is missing in an event's envelope is filled in: `schema_version`, `event_id`, `time` (now), `source`,
    `session_id` (the recorder's), and in its record what the event's type implies (`TraceWriter`).
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._core = recorder._core
        self._cleaner = Cleaner(self._core.redactor, self._core.redacted)
        self._made = bytearray()
        self._generation = -1
        self._writer = self._afresh()

    def write(self, event: Json) -> None:
        """Append one event; it is in the file on return, or counted as dropped.

        Raises:
            BadEventError: it is not valid, or could not be looked through for secrets.
        """
        complete = self._complete(event)
        try:
            clean = self._cleaner.clean(complete)
        except Exception as error:  # then nothing of it may be written
            raise BadEventError(f"{type(error).__name__} while looking for secrets") from None
        journal = self._core.journal
        for _ in range(_TRIES):
            if self._generation != journal.generation:
                self._afresh()
            entry = Entry(str(event.get("event_type")), self._line(clean), Place(), whole=True)
            if journal.put((entry,), self._generation) != "stale":
                return

    def _afresh(self) -> TraceWriter:
        """Another file: what it is referred to must be told in it."""
        journal = self._core.journal
        self._generation = journal.generation
        into = cast("IO[bytes]", _Into(self._made))
        self._writer = TraceWriter(
            into,
            source=self._core.source,
            clock=journal.stamp,
            prefix=f"{journal.writer[:16]}-n{self._generation}",
        )
        return self._writer

    def _line(self, event: Json) -> bytes:
        self._made.clear()
        try:
            self._writer.write(event)
        except CtxctlError as error:
            raise BadEventError(error.message.partition(" cannot be written: ")[2][:_SHOWN]) from None
        return bytes(self._made)

    def _complete(self, event: Json) -> Json:
        for name in _TEXTS:
            if event.get(name) is not None and not isinstance(event[name], str):
                raise BadEventError(f"{name} is not a text")
        session = event.get("session_id") or self._recorder.session
        return {**event, "session_id": session}


class _Into:
    """Enough of a file for a `TraceWriter` to give a line."""

    closed = False

    def __init__(self, made: bytearray) -> None:
        self._made = made

    def write(self, line: bytes) -> int:
        """Take a line."""
        self._made += line
        return len(line)

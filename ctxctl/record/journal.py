"""Turns records into lines: numbers them, writes each content once, counts what is lost.

Safe for several threads and in forked children.  A record that comes while its own thread is writing another
one (from a signal handler, a finaliser) is written right behind that one.
"""

from __future__ import annotations

import _thread
import errno
import os
import sys
from time import gmtime, monotonic, strftime, time
from typing import Any, Final, Literal

import orjson

from ctxctl.model import vocab
from ctxctl.record.place import Place
from ctxctl.record.queue import Entry, LineBatch, ReplayBuffer
from ctxctl.record.sink import Sink
from ctxctl.trace.encode import REF_FROM, TELL_AGAIN, head_of, line_of_parts, with_content, with_reference

WAIT: Final = 2.0
"""Seconds that a thread waits for the others before its event is dropped."""
SLOW: Final = 1.0
"""Seconds that a write may take before events are dropped for a while."""
_FIRST_DELAY: Final = 0.05
_LAST_DELAY: Final = 5.0
_LATER: Final = 1000
_RANGES: Final = 64

Result = Literal["written", "dropped", "stale"]


class Journal:
    """Writes the events of one recorder.

    Args:
        sink: The file to write to.
        source: The events' `source`.
        strict: Raise the errors that the recording program makes.
    """

    def __init__(self, sink: Sink, source: str, *, strict: bool) -> None:
        self._sink = sink
        self._source = orjson.dumps(source)
        self.strict = strict
        self.written = 0
        """Events in the file, without those that count losses."""
        self.dropped = 0
        """Events that are not in the file."""
        self.errors: dict[str, int] = {}
        """Reasons of the losses, each with its count."""
        self.closed = False
        self._unclosed: str | None = None
        """What the system said as the file was closed, if that failed: it may lack what was written last."""
        self.patient = False
        """Whether whoever records may wait for a slow disk: no other program waits for it then."""
        self._complained_of = -1
        """The number of losses at the last complaint."""
        self._second = -1
        self._stamp = b""
        self.generation = 0
        self._begin()

    def _begin(self) -> None:
        """Begin as a new writer: at the start, and in a forked child."""
        self.writer = os.urandom(16).hex()
        """A random id; with the events' numbers it shows the order in which this process wrote."""
        self._head = head_of(vocab.SCHEMA_VERSION, self.writer)
        self._lock = _thread.RLock()
        self._busy = False
        self._later: list[tuple[Entry, ...]] = []
        self._seq = 0
        self._lost: dict[str, int] = {}
        """Losses that the file does not count yet, by reason."""
        self._lost_range: list[int] = []
        self._missed: list[str] = []
        """Reasons of losses in threads that did not get the lock."""
        self._retry_at = 0.0
        self._delay = _FIRST_DELAY
        self._reason = ""
        self._replay = ReplayBuffer()
        self._files = 0
        self._forget_file()

    def _forget_file(self) -> None:
        """Forget what the file holds: another one begins."""
        self.generation += 1
        self._shown: set[str] = set()
        self._announced: dict[tuple[str, str], int] = {}
        self._since = 0

    def forked(self) -> None:
        """Begin anew in a forked child."""
        self._sink.forked()
        self.written = self.dropped = 0
        self.errors = {}
        self._begin()

    @property
    def mark(self) -> str:
        """The end of names that another writer of the file may give as well; empty for its first writer.

        Opens the file if it is not open yet.
        """
        sink = self._sink
        if not sink.files and not self.closed and self._lock.acquire(timeout=WAIT):
            try:
                sink.prepare(0)
            except OSError:
                pass  # counted when an event comes
            finally:
                self._lock.release()
        return "" if sink.first else f"-{self.writer[:8]}"

    @property
    def path(self) -> str:
        """The file's absolute path."""
        return self._sink.path

    def require_trace(self) -> None:
        """Let nothing be appended to a file that is not a trace, not even to the first one."""
        self._sink.only_traces = True

    # -- writing --------------------------------------------------------------------------------------------

    def put(self, entries: tuple[Entry, ...], generation: int | None = None) -> Result:
        """Write events with one system call; on return they are in the file or dropped.

        With `generation`, nothing is written and the result is `stale` if they build on another file.
        """
        lock = self._lock
        # The lock is free as a rule, and asking without a timeout is cheaper.
        if not lock.acquire(False) and not lock.acquire(timeout=WAIT):
            self.count_lost("busy", len(entries))
            return "dropped"
        try:
            if self._busy:
                return self._put_later(entries)
            self._busy = True
            try:
                result = self._put(entries, generation)
                while self._later:
                    self._put(self._later.pop(0), None)
            finally:
                self._busy = False
        finally:
            lock.release()
        return result

    def _put_later(self, entries: tuple[Entry, ...]) -> Result:
        """Queue events behind the one that this thread is writing."""
        if len(self._later) >= _LATER:
            self.count_lost("re-entered", len(entries))
            return "dropped"
        self._later.append(entries)
        return "written"

    def _put(self, entries: tuple[Entry, ...], generation: int | None) -> Result:
        now = monotonic()
        if self.closed or now < self._retry_at:
            self._drop(len(entries), "closed" if self.closed else self._reason)
            return "dropped"
        seq = self._seq
        # An upper bound: an entry's envelope is a few hundred bytes.
        size = 600 * len(entries)
        for entry in entries:
            content = entry.content
            size += len(entry.body) if content is None else len(entry.body) + len(content.raw)
        try:
            if self._sink.prepare(size, now) != self._files or self._since > TELL_AGAIN:
                if self._files or self._since:
                    self._forget_file()
                self._files = self._sink.files
            if generation is not None and generation != self.generation:
                return "stale"
            if len(entries) == 1 and entries[0].item is not None and not self._lost and not self._missed:
                entry = entries[0]
                if entry.event_type != vocab.ITEM_REMOVED:
                    return self._put_item(entry, now)
            lines = self._lines(entries)
            if lines.parts:
                self._sink.append(lines.parts[0] if len(lines.parts) == 1 else b"".join(lines.parts))
        except OSError as error:
            self._seq = seq
            self._fail(entries, error, now)
            return "dropped"
        except BaseException:
            self._seq = seq
            raise
        self._commit(lines, len(entries), monotonic() - now)
        return "written"

    def _put_item(self, entry: Entry, now: float) -> Result:
        """Write one item, the usual case, the fast way."""
        key = (entry.place.key, entry.item or "")
        content = entry.content
        mark = hash((entry.body, content.digest if content is not None else None))
        before = self._announced.get(key)
        if before != mark:
            event_type = vocab.ITEM_ADDED if before is None else vocab.ITEM_UPDATED
            line = self._line(event_type, entry, self._shown)
            self._sink.append(line)
            if content is not None and content.size >= REF_FROM:
                self._shown.add(content.digest)
            self._announced[key] = mark
            self._replay.keep(key, entry)
            self._since += len(line)
        self.written += 1
        self._delay = _FIRST_DELAY
        self._note_duration(monotonic() - now)
        return "written"

    def _note_duration(self, took: float) -> None:
        if took > SLOW and not self.patient:
            # A disk that hangs must not make the program hang.
            self._retry_at = monotonic() + min(4 * took, 30.0)
            self._reason = "slow"

    def _commit(self, lines: LineBatch, count: int, took: float) -> None:
        """Remember what was written."""
        self._since += lines.size
        if lines.shown:
            self._shown |= lines.shown
        if lines.announced:
            self._announced.update(lines.announced)
        for key in lines.removed:
            self._announced.pop(key, None)
            self._replay.forget(key)
        for key, entry in lines.items:
            self._replay.keep(key, entry)
        self.written += count
        if lines.counts_losses:
            self._lost, self._lost_range = {}, []
        self._delay = _FIRST_DELAY
        self._note_duration(took)

    def _fail(self, entries: tuple[Entry, ...], error: OSError, now: float) -> None:
        name = errno.errorcode.get(error.errno or 0, "OSError")
        self._reason = error.strerror or name if type(error) is not OSError and name == "EPERM" else name
        self._retry_at = now + self._delay
        self._delay = min(self._delay * 2, _LAST_DELAY)
        self._drop(len(entries), self._reason)
        if error.errno == errno.EBADF:
            self._sink.abandon()
        self._forget_file()

    def count_lost(self, reason: str, count: int = 1) -> None:
        """Count events that never got to `put`."""
        self._missed += [reason] * count
        self.dropped += count
        self.errors[reason] = self.errors.get(reason, 0) + count

    def _drop(self, count: int, reason: str) -> None:
        self._lost[reason] = self._lost.get(reason, 0) + count
        first = self._seq + 1
        self._seq += count
        self._lost_range = [self._lost_range[0] if self._lost_range else first, self._seq]
        self.dropped += count
        self.errors[reason] = self.errors.get(reason, 0) + count

    # -- lines ----------------------------------------------------------------------------------------------

    def _lines(self, entries: tuple[Entry, ...]) -> LineBatch:
        lines = LineBatch()
        if self._lost or self._missed:
            lines.add(self._loss_line(entries[0].place if entries else Place()))
            lines.counts_losses = True
        for entry in entries:
            if entry.refs:
                for ref in entry.refs:
                    self._tell_again(entry.place, ref, lines)
            key = (entry.place.key, entry.item) if entry.item is not None else None
            if entry.whole:
                lines.add(entry.body)
            elif key is None:
                lines.add(self._line(entry.event_type, entry, self._shown, lines.shown))
            elif entry.event_type == vocab.ITEM_REMOVED:
                lines.removed.append(key)
                lines.add(self._line(entry.event_type, entry, self._shown, lines.shown))
            else:
                self._item(key, entry, lines)
        return lines

    def _item(self, key: tuple[str, str], entry: Entry, lines: LineBatch) -> None:
        """Add an item, unless the file has this version of it already."""
        mark = hash((entry.body, entry.content.digest if entry.content is not None else None))
        before = lines.announced.get(key, self._announced.get(key))
        if before == mark:
            return
        event_type = vocab.ITEM_ADDED if before is None else vocab.ITEM_UPDATED
        lines.add(self._line(event_type, entry, self._shown, lines.shown))
        lines.announced[key] = mark
        lines.items.append((key, entry))

    def _tell_again(self, place: Place, item: str, lines: LineBatch) -> None:
        """Add an item again that only an earlier file has."""
        key = (place.key, item)
        if key in self._announced or key in lines.announced:
            return
        known = self._replay.get(key, place)
        if known is not None:
            self._item(key, known, lines)

    def _line(self, event_type: str, entry: Entry, shown: set[str], fresh: set[str] | None = None) -> bytes:
        """Return a line; a content in `shown` or `fresh` is referred to, a new one is added to `fresh`."""
        self._seq += 1
        content, shows = entry.content, True
        if content is not None and content.size >= REF_FROM:
            if content.digest in shown or (fresh is not None and content.digest in fresh):
                shows = False
            elif fresh is not None:
                fresh.add(content.digest)
        data: tuple[bytes, ...] = (entry.body,)
        if content is not None:
            body = entry.body
            data = with_content(body, content.raw) if shows else with_reference(body, content.digest)
        return line_of_parts(
            self._head, self._seq, event_type, self._source, self._now(), entry.place.raw, entry.marks,
            entry.metadata, data,
        )  # fmt: skip

    def _loss_line(self, place: Place) -> bytes:
        reasons = dict(self._lost)
        missed, self._missed = self._missed, []
        for reason in missed:
            reasons[reason] = reasons.get(reason, 0) + 1
        self._lost = reasons
        record: dict[str, Any] = {"n": sum(reasons.values()), "reasons": reasons}
        if self._lost_range:
            record["first"], record["last"] = self._lost_range
        return self._line(
            vocab.RECORD_DROPPED, Entry(vocab.RECORD_DROPPED, orjson.dumps(record), place), set()
        )

    def _now(self) -> bytes:
        now = time()
        second = int(now)
        if second != self._second:
            self._second, self._stamp = second, strftime("%Y-%m-%dT%H:%M:%S", gmtime(second)).encode()
        return b"%b.%06dZ" % (self._stamp, (now - second) * 1e6)

    def stamp(self) -> str:
        """Return the time as RFC 3339 writes it, for `created_at`."""
        return self._now().decode()

    # -- the end --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Count the losses in the file, if it can be written to by now, and close it."""
        if self.closed or not self._lock.acquire(timeout=WAIT):
            return
        try:
            if self._lost or self._missed or self._later:
                self._retry_at = 0.0
                for entries in (*self._later, ()):
                    self._put(entries, None)
            self._sink.close()
        except OSError as error:
            self.errors[f"close: {error.strerror}"] = 1
            self._unclosed = error.strerror
        finally:
            self.closed = True
            self._lock.release()

    def refuse(self, why: str) -> None:
        """Write nothing from now on, and say why on stderr."""
        self.closed = True
        self.count_lost(why)
        self.complain()

    def complaint(self) -> str | None:
        """Return one line about what went wrong, or None."""
        parts: list[str] = []
        if self.dropped:
            why = ", ".join(f"{reason} {n}" for reason, n in sorted(self.errors.items()))
            parts.append(
                f"{self.dropped} of {self.dropped + self.written} events are not in the trace ({why})"
            )
        if self._unclosed is not None:
            parts.append(f"closing it failed ({self._unclosed}): its last events may be lost")
        if self._sink.unsynced:
            parts.append(f"{self._sink.unsynced} may not be on the disk ({self._sink.sync_error})")
        return f"ctxctl: {self._sink.path}: {'; '.join(parts)}\n" if parts else None

    def complain(self) -> None:
        """Write the complaint to stderr, if there is one; once, unless more went wrong since."""
        line = self.complaint()
        if line is None or self.dropped == self._complained_of:
            return
        self._complained_of = self.dropped
        try:
            sys.stderr.write(line.encode("ascii", "backslashreplace").decode())
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):
            pass

"""Read a trace as a stream of events, whatever the state of the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Protocol

import msgspec
import xxhash

from ctxctl.errors import UnreadableError
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.trace.contents import Contents
from ctxctl.trace.decode import Decoder
from ctxctl.trace.items import Memos
from ctxctl.trace.lines import Block, line_blocks
from ctxctl.trace.source import Source
from ctxctl.trace.wire import decode_marked

PROBLEM_LIMIT = 1000
"""Most problems that are kept. Further ones are only counted."""

_BOM = b"\xef\xbb\xbf"


class EventRedactor(Protocol):
    """Masks what must not be shown in events and lines."""

    def events(self, events: list[Event]) -> list[Event]:
        """Return events that may be passed on."""
        ...

    def value(self, value: Any) -> Any:
        """Return a JSON value that may be shown."""
        ...


class Trace:
    """A native trace over a source. Passes are independent and may run in several threads.

    A pass reports problems only of a part that no pass has read before, and only without a gap to the part
    already read. The pass that closes a gap reports the rest.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.contents = Contents(source)
        self.redactor: EventRedactor | None = None
        """Masks the events of every pass. Contents are unmasked."""
        self._memos = Memos()
        self._lock = Lock()
        self._problems: list[Problem] = list(source.problems)
        self._count = len(self._problems)
        self._covered = 0
        self._repeats: set[int] = set()
        """Offsets of repeated events that a pass from the start left out. Other passes omit them too."""

    @property
    def problems(self) -> list[Problem]:
        """The first thousand problems so far, by line and byte."""
        with self._lock:
            return sorted(self._problems)

    @property
    def problem_count(self) -> int:
        """Number of problems so far, including those not kept."""
        return self._count

    @property
    def covered(self) -> int:
        """Bytes from the start that passes have read without a gap."""
        return self._covered

    @property
    def repeats(self) -> bool:
        """Whether a pass has left out repeated events."""
        return bool(self._repeats)

    def restore(self, problems: Sequence[Problem], count: int, covered: int | None = None) -> None:
        """Set `problems` and `problem_count` from an earlier read of the first `covered` bytes."""
        covered = self.source.size if covered is None else covered
        with self._lock:
            if self._covered < covered:
                self._problems, self._count = list(problems), count
                self._covered = covered

    @contextmanager
    def untold(self) -> Iterator[None]:
        """Forget the problems that passes find within this context."""
        with self._lock:
            known = list(self._problems), self._count, self._covered, set(self._repeats)
        try:
            yield
        finally:
            with self._lock:
                self._problems, self._count, self._covered, self._repeats = known

    def events(self, start: int = 0, first_line: int = 1, stop: int | None = None) -> Iterator[Event]:
        """Yield the events of the lines that begin in [start, stop), in order.

        `start` is the byte at which line `first_line` begins.  A pass from 0 leaves out and reports events
        whose (session, source, event id) repeats.

        Raises:
            UnreadableError: `no-events` at the end of a whole pass that found none; `read-failed`.
        """
        for batch in self.batches(start, first_line, stop):
            yield from batch

    def batches(self, start: int = 0, first_line: int = 1, stop: int | None = None) -> Iterator[list[Event]]:
        """Yield `events` in batches as they are read."""
        one = TracePass(self, start, first_line)
        yield from one.run(stop)
        if start == 0 and stop is None and not one.found:
            raise no_events(self.source)

    def headers(self, start: int = 0, first_line: int = 1, stop: int | None = None) -> Iterator[Event]:
        """Yield `events`, with records only for assemblies (without blocks) and injections.

        This builds the index: no content is stored, nothing is reported, damaged lines are skipped unless
        they can be repaired, and duplicates are not detected.
        """
        from ctxctl.trace.headers import HeaderDecoder

        decoder = HeaderDecoder(self.source)
        line = first_line - 1
        for block in self._blocks(start, stop):
            if block.hole is not None:
                line += block.hole.whole_line
                continue
            data = block.data if block.ended else block.data + b"\n"
            if block.base == 0 and data.startswith(_BOM):
                block, data = block._replace(base=len(_BOM)), data[len(_BOM) :]
            events, line = decoder.scan(data, block.base, line)
            yield from events

    def stretches(self, start: int, stop: int | None) -> Iterator[tuple[int, int | None]]:
        """Yield the parts of [start, stop) that hold lines, in order."""
        yield start, stop

    def _blocks(self, start: int, stop: int | None) -> Iterator[Block]:
        for begin, end in self.stretches(start, stop):
            yield from line_blocks(self.source, begin, end)

    def line(self, offset: int, length: int) -> bytes:
        """Return the bytes of a line, by an event's `offset` and `length`."""
        return self.source.read(offset, length)

    def fields(self, event: Event) -> dict[str, Any] | None:
        """Return every field of an event's line, as it may be shown; None if it cannot be read."""
        from ctxctl.trace.decode import parse_line

        line = parse_line(self.line(event.offset, event.length))
        return line if line is None or self.redactor is None else self.redactor.value(line)

    def metadata(self, event: Event) -> dict[str, Any]:
        """Return the `metadata` of an event's line, like `fields`, without parsing its record."""
        line = self.line(event.offset, event.length)
        try:
            found = decode_marked(line).metadata
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            found = (self.fields(event) or {}).get("metadata")
        else:
            if self.redactor is not None:
                found = self.redactor.value({"metadata": found})["metadata"]
        return found if isinstance(found, dict) else {}

    def close(self) -> None:
        """Close the source and drop the caches."""
        self.contents.close()
        self.source.close()


def key_of(event: Event) -> int:
    """Return the key by which a pass recognises a repeated event."""
    return hash((event.session_id, event.source, event.event_id))


class SeenEvents:
    """Events that a pass has seen, by keys that are valid in other processes.

    The seed is random, so that nobody can prepare two events with one key.
    """

    def __init__(self, seed: int | None = None, keys: Iterable[int] = ()) -> None:
        self.seed = int.from_bytes(os.urandom(8), "little") if seed is None else seed
        self.keys = set(keys)

    def key_of(self, event: Event) -> int:
        """Return the key of an event."""
        named = f"{event.session_id}\0{event.source}\0{event.event_id}"
        return xxhash.xxh3_64_intdigest(named.encode("utf-8", "surrogatepass"), self.seed)


class TracePass:
    """One run over the lines of a trace: its decoder, its duplicates and its new problems."""

    def __init__(
        self, trace: Trace, start: int = 0, first_line: int = 1, seen: SeenEvents | None = None
    ) -> None:
        """`seen` holds the keys of events before `start`, to recognise repeats of them."""
        self.trace = trace
        self.start = start
        self.at = start
        """Offset of the next line to read."""
        self.line = first_line - 1
        """Number of the last line read."""
        self.found = False
        self.fresh: list[Problem] = []
        self._seen: set[int] | None = set() if start == 0 else None
        self._key: Callable[[Event], int] = key_of
        if seen is not None:
            self._seen, self._key = seen.keys, seen.key_of
        memos = trace._memos if start <= trace._covered else None
        self.decoder = Decoder(trace.contents, self.fresh.append, memos)

    def run(self, stop: int | None = None) -> Iterator[list[Event]]:
        """Yield the events after the last run, including those that were added to the trace meanwhile."""
        seen = self._seen
        for base, data, ended, hole in self.blocks(stop):
            end = base + len(data)
            if hole is not None:
                self.fresh.append(Problem(self.line + 1, base, hole.slug, hole.message))
                self.line += hole.whole_line
                self._absorb(base + hole.length)
                self.at = base + hole.length
                continue
            if base == 0 and data.startswith(_BOM):
                message = "the file starts with a byte-order mark; skipped"
                self.fresh.append(Problem(1, 0, "byte-order-mark", message))
                base, data = len(_BOM), data[len(_BOM) :]
            if ended:
                events, self.line = self.decoder.scan(data, base, self.line)
            else:
                events = self.decoder.decode_all(data, self.line + 1, base, last=True)
            if seen is not None:
                events = self._once(events, seen)
            elif self.trace._repeats:
                events = [event for event in events if event.offset not in self.trace._repeats]
            self._absorb(end)
            self.at = end
            if events:
                self.found = True
                yield events if self.trace.redactor is None else self.trace.redactor.events(events)

    def blocks(self, stop: int | None) -> Iterator[Block]:
        """Yield the blocks after the last run."""
        return self.trace._blocks(self.at, stop)

    def _once(self, events: list[Event], seen: set[int]) -> list[Event]:
        """Return the events without repeats, which are reported."""
        key_of = self._key
        keys = [key_of(event) for event in events if event.event_id is not None]
        new = set(keys)
        if len(new) == len(keys) and seen.isdisjoint(new):
            seen |= new
            return events
        kept = []
        for event in events:
            key = key_of(event)
            if event.event_id is not None and key in seen:
                message = f"event {event.event_id} was seen before in this session and source; ignored"
                self.fresh.append(Problem(event.line, event.offset, "duplicate-event", message))
                self.trace._repeats.add(event.offset)
            else:
                if event.event_id is not None:
                    seen.add(key)
                kept.append(event)
        return kept

    def _absorb(self, end: int) -> None:
        """Add new problems to the trace, unless an earlier pass has read this far."""
        trace = self.trace
        fresh = self.fresh
        if not fresh and trace._covered >= end:
            return
        with trace._lock:
            if self.start <= trace._covered:
                if fresh:
                    new = [problem for problem in dict.fromkeys(fresh) if problem.byte >= trace._covered]
                    trace._count += len(new)
                    trace._problems += new[: max(0, PROBLEM_LIMIT - len(trace._problems))]
                trace._covered = max(trace._covered, end)
        fresh.clear()


def no_events(source: Source) -> UnreadableError:
    """Return the error for a file without readable events. It says what the file looks like instead."""
    from ctxctl.trace.unknown_file import DOCUMENT, HEAD, looks_like

    def whole() -> bytes:
        return source.read(0, DOCUMENT) if source.size <= DOCUMENT else b""

    what, hint = looks_like(source.read(0, HEAD), whole)
    name = "stdin" if source.name == "-" else source.name
    return UnreadableError("no-events", f"{name} holds no readable context event{what}", hint=hint)

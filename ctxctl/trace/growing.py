"""A trace that grows while it is read: its bytes in parts of several files, at permanent addresses.

Parts are only ever appended, so an address never changes, whatever happens to the files. Passes skip a part
that no longer counts, but those who know its addresses can still read it.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from ctxctl.errors import UnreadableError
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.trace.decode import Decoder
from ctxctl.trace.follow import OpenFile
from ctxctl.trace.reader import Trace, TracePass, key_of
from ctxctl.trace.source import Source, let_go

SCRATCH: Final = 1 << 50
"""First address of lines that may still change. Only the last few of them are kept."""
_MAX_SCRATCHES: Final = 8
MOST_PARTS: Final = 256
"""Most parts, and so open files, of a source."""


class _Part(NamedTuple):
    base: int
    fd: int
    offset: int
    length: int


class GrowingSource(Source):
    """Bytes that are appended to. One thread adds, any number read."""

    def __init__(self, name: str, path: Path | None) -> None:
        super().__init__(name, path=path, spooled=True)
        self._parts: tuple[tuple[int, ...], tuple[_Part, ...]] = ((), ())
        """Bases and parts, replaced together."""
        self._own: dict[OpenFile, int] = {}
        """Our descriptors by the file that was given."""
        self._scratch: list[tuple[int, bytes]] = []
        self._next_scratch = SCRATCH

    @property
    def full(self) -> bool:
        """Whether another file would be too many."""
        return len(self._parts[1]) >= MOST_PARTS

    def add(self, file: OpenFile, offset: int, length: int) -> None:
        """Append a range of an open file. The caller may close the file."""
        own = self._own.get(file)
        if own is None:
            own = self._own[file] = os.dup(file.fd)
        bases, parts = self._parts
        last = parts[-1] if parts else None
        if last is not None and last.fd == own and last.offset + last.length == offset:
            parts = (*parts[:-1], last._replace(length=last.length + length))
        else:
            bases = (*bases, self.size)
            parts = (*parts, _Part(self.size, own, offset, length))
        self._parts = bases, parts
        self.size += length

    def scratch(self, data: bytes) -> int:
        """Add lines that may still change, and return their own address."""
        base = self._next_scratch
        self._next_scratch += len(data) + 1
        self._scratch = [*self._scratch[1 - _MAX_SCRATCHES :], (base, data)]
        return base

    def read(self, offset: int, n: int) -> bytes:
        """Return at most `n` bytes from `offset`: fewer at the end, and if a file was cut meanwhile."""
        if offset >= SCRATCH:
            for base, data in self._scratch:
                if base <= offset < base + len(data):
                    return data[offset - base : offset - base + n]
            return b""
        bases, parts = self._parts
        found: list[bytes] = []
        at = bisect_right(bases, offset) - 1
        while n > 0 and 0 <= at < len(parts):
            part = parts[at]
            inside = offset - part.base
            wanted = min(n, part.length - inside)
            data = self._read(part, inside, wanted)
            found.append(data)
            if len(data) < wanted:
                break
            offset, n, at = offset + wanted, n - wanted, at + 1
        return found[0] if len(found) == 1 else b"".join(found)

    def _read(self, part: _Part, inside: int, n: int) -> bytes:
        pieces: list[bytes] = []
        try:
            while n > 0 and (got := os.pread(part.fd, n, part.offset + inside)):
                pieces.append(got)
                inside, n = inside + len(got), n - len(got)
        except OSError as error:
            why = error.strerror or "it is closed"
            raise UnreadableError("read-failed", f"cannot read {self.name}: {why}") from None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def refresh(self) -> int:
        """Return the size. Only `add` changes it."""
        return self.size

    def again(self) -> GrowingSource:
        """Return a second source over the same bytes, which grows independently."""
        twin = GrowingSource(self.name, self.path)
        mine = {own: file for file, own in self._own.items()}
        for part in self._parts[1]:
            file = mine[part.fd]
            if file not in twin._own:  # the caller may have closed it, so copy our descriptor
                twin._own[file] = os.dup(part.fd)
            twin.add(file, part.offset, part.length)
        return twin

    def close(self) -> None:
        """Release the files."""
        self._parts = ((), ())
        own, self._own = self._own, {}
        for fd in own.values():
            let_go(fd)


class GrowingTrace(Trace):
    """A trace over a growing source. One thread reads on by `reading`; other passes may run meanwhile."""

    source: GrowingSource

    def __init__(self, source: GrowingSource) -> None:
        super().__init__(source)
        self.read_to = 0
        """End of passes other than the reading one, so that contents become known in line order."""
        self._alive: tuple[tuple[int, int | None], ...] = ((0, None),)

    def stretches(self, start: int, stop: int | None) -> Iterator[tuple[int, int | None]]:
        """Yield the parts of [start, stop) that still count."""
        for begin, end in self._alive:
            begin = max(begin, start)
            if stop is not None and begin >= stop:
                return
            if end is None or begin < end:
                yield begin, stop if end is None else end if stop is None else min(end, stop)

    def next_alive(self, at: int) -> int:
        """Return the first place from `at` on that still counts."""
        return next((max(at, begin) for begin, end in self._alive if end is None or at < end), at)

    def batches(self, start: int = 0, first_line: int = 1, stop: int | None = None) -> Iterator[list[Event]]:
        """Yield the events read so far."""
        stop = self.read_to if stop is None else min(stop, self.read_to)
        return super().batches(start, first_line, stop)

    def reading(self) -> Reading:
        """Return the pass that continues while the trace grows."""
        return Reading(self)

    def cut(self, at: int, then: int) -> None:
        """Discard everything from `at` on. What follows is at `then`."""
        kept = [(begin, at if end is None or end > at else end) for begin, end in self._alive if begin < at]
        with self._lock:
            self._alive = (*kept, (then, None))
            self._repeats = {offset for offset in self._repeats if offset < at}
            self._covered = min(self._covered, at)
            left = [problem for problem in self._problems if problem.byte < at]
            self._count -= len(self._problems) - len(left)
            self._problems = left
            self._memos = type(self._memos)()


class Reading(TracePass):
    """The one pass over a growing trace that can also go back."""

    def __init__(self, trace: GrowingTrace) -> None:
        super().__init__(trace)
        self._trace = trace

    def back(self, at: int, line: int, seen: set[int]) -> None:
        """Read again from `at`, the start of a line; `line` is the number of the line before it.

        `seen` holds the keys of the events before it.
        """
        self.at = self._trace.read_to = at
        self.line = line
        self._seen = seen
        self.fresh.clear()
        self.decoder = Decoder(self.trace.contents, self.fresh.append, self.trace._memos)

    def run(self, stop: int | None = None) -> Iterator[list[Event]]:
        """Read on. Others may read what precedes the last batch."""
        for batch in super().run(stop):
            self._trace.read_to = self.at
            yield batch
        if stop is None:
            self.at = self._trace.next_alive(self.at)
        self._trace.read_to = self.at

    def seen(self) -> set[int]:
        """Return the keys of the events read so far."""
        assert self._seen is not None
        return self._seen

    def aside(self, data: bytes, *, whole: bool) -> list[Event]:
        """Return the events of lines that may still change; with `whole`, only if they have no faults."""
        trace = self._trace
        problems: list[Problem] = []
        base = trace.source.scratch(data)
        decoder = Decoder(trace.contents, problems.append)
        events, line = decoder.scan(data, base, self.line)
        rest = data[data.rfind(b"\n") + 1 :]
        if rest:
            events += decoder.decode_all(rest, line + 1, base + len(data) - len(rest), last=True)
        if whole and problems:
            return []
        fresh = [event for event in events if event.event_id is None or key_of(event) not in self.seen()]
        return fresh if trace.redactor is None else trace.redactor.events(fresh)

"""Where each step begins and ends in a trace, kept between runs in the user's cache directory."""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Iterator
from threading import Lock
from typing import Any, Final, NamedTuple

from ctxctl.trace.cache_files import cache_file, fingerprint_of, open_own, replace_file, same_file
from ctxctl.trace.source import Source

FORMAT: Final = 6
_MAGIC: Final = b"ctxctl step index\n"
_COLUMNS: Final = ("session", "thread", "turn", "step", "start", "end", "line", "finished")
_MAX_HEADER: Final = 64 << 20


class Span(NamedTuple):
    """One step's stretch of the file; steps of interleaved threads may overlap."""

    session: str | None
    thread: str
    turn: int
    step: int
    start: int
    """Byte offset of its first line."""
    end: int
    """Byte offset behind its last line."""
    line: int
    """Number of its first line."""
    finished: int = -1
    """Byte offset of the event that finished it: its thread's next step or end; -1 while it is open."""


class StepIndex:
    """Eight columns of integers, 64 bytes a step, in file order.

    One thread appends; any number may read meanwhile.  Rows are counted from 0.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions = _Names()
        self._threads = _Names()
        self._columns = {name: array("q") for name in _COLUMNS}
        self._lines = self._columns["line"]
        self.covered = 0
        """Bytes of the trace that the index speaks of; set by whoever builds it, at a line's end."""
        self.lines = 0
        """Lines within `covered`."""
        self._seen: set[int] | array[int] = set()
        """64-bit keys of the events within `covered`, to know a repeated one by."""
        self.state: dict[str, Any] | None = None
        """JSON values that the builder needs to go on from `covered` when the file has grown."""
        self.late = 0
        """Events within `covered` that came for steps that were over."""

    def append(
        self, session: str | None, thread: str, turn: int, step: int, start: int, end: int, line: int
    ) -> int:
        """Add a step and return its row."""
        with self._lock:
            names = self._sessions.number(session), self._threads.number(thread)
            row = (*names, turn, step, start, end, line, -1)
            for name, value in zip(_COLUMNS, row, strict=True):
                self._columns[name].append(value)
            return len(self._lines) - 1

    def extend_row(self, row: int, end: int) -> None:
        """Let a step reach to byte `end`."""
        self._columns["end"][row] = end

    def finish_row(self, row: int, offset: int) -> None:
        """A step is over with the event at byte `offset`; the first one told counts."""
        if self._columns["finished"][row] < 0:
            self._columns["finished"][row] = offset

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, row: int) -> Span:
        session, thread, *numbers = (self._columns[name][row] for name in _COLUMNS)
        return Span(self._sessions.names[session], self._threads.names[thread] or "", *numbers)

    def __iter__(self) -> Iterator[Span]:
        sessions, threads, *numbers = (self._columns[name] for name in _COLUMNS)
        named, called = self._sessions.names, self._threads.names
        for row in zip(sessions, threads, *numbers, strict=False):  # another thread may be adding one
            yield Span(named[row[0]], called[row[1]] or "", *row[2:])

    @property
    def seen(self) -> set[int]:
        """Keys of the events, once somebody asks for them."""
        if not isinstance(self._seen, set):
            self._seen = set(self._seen)
        return self._seen

    def find(self, session: str | None, thread: str, turn: int, step: int) -> int | None:
        """The row of a step, or None; `turn` and `step` as appended.  Linear, in C per column."""
        wanted = (self._sessions.get(session), self._threads.get(thread))
        if None in wanted:
            return None
        key = (*wanted, turn, step)
        columns = [self._columns[name] for name in _COLUMNS[:4]]
        row = -1
        try:
            while True:
                row = columns[2].index(turn, row + 1)
                if tuple(column[row] for column in columns) == key:
                    return row
        except ValueError:
            return None

    def save(self, source: Source) -> bool:
        """Write the index for this file; False where it cannot be kept (stdin, no cache, disk full)."""
        path = cache_file(source)
        if path is None or source.spooled:
            return False
        with self._lock:
            columns = {name: column[:] for name, column in self._columns.items()}
            count = min(map(len, columns.values()))
            header = {
                "format": FORMAT,
                "byteorder": sys.byteorder,
                "rows": count,
                "covered": self.covered,
                "lines": self.lines,
                "file": fingerprint_of(source, self.covered),
                "sessions": self._sessions.names,
                "threads": self._threads.names,
                "state": self.state,
                "late": self.late,
                "seen": len(self.seen),
            }
            seen = array("Q", self.seen)
        body = b"".join(columns[name][:count].tobytes() for name in _COLUMNS) + seen.tobytes()
        head = json.dumps(header).encode()
        check = hashlib.sha256(head + body).digest()
        return replace_file(path, _MAGIC + len(head).to_bytes(8, "little") + head + body + check)

    @classmethod
    def load(cls, source: Source) -> StepIndex | None:
        """The saved index of this file, or None unless the file is the one indexed or has only grown."""
        path = cache_file(source)
        if path is None or source.spooled:
            return None
        try:
            with open_own(path) as file:
                return cls._parse(file.read(), source)
        except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
            return None

    @classmethod
    def _parse(cls, data: bytes, source: Source) -> StepIndex | None:
        start = len(_MAGIC) + 8
        size = int.from_bytes(data[len(_MAGIC) : start], "little")
        head, rest = data[start : start + size], data[start + size :]
        body, check = rest[:-32], rest[-32:]
        if not data.startswith(_MAGIC) or size > _MAX_HEADER or hashlib.sha256(head + body).digest() != check:
            return None
        header: dict[str, Any] = json.loads(head)
        if header["format"] != FORMAT or header["byteorder"] != sys.byteorder:
            return None
        if not same_file(header["file"], source, header["covered"]):
            return None
        index = cls()
        index._sessions = _Names(header["sessions"])
        index._threads = _Names(header["threads"])
        width = header["rows"] * index._lines.itemsize
        if len(body) != width * len(_COLUMNS) + 8 * header["seen"]:
            return None
        seen = array("Q")
        seen.frombytes(body[width * len(_COLUMNS) :])
        index._seen = seen
        for number, name in enumerate(_COLUMNS):
            index._columns[name].frombytes(body[number * width : (number + 1) * width])
        index.covered, index.lines = header["covered"], header["lines"]
        index.state = header["state"]
        index.late = header["late"]
        return index


class _Names:
    """Strings numbered in order of first appearance."""

    def __init__(self, names: list[str | None] | None = None) -> None:
        self.names: list[str | None] = list(names or ())
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def number(self, name: str | None) -> int:
        found = self._numbers.get(name)
        if found is None:
            found = len(self.names)
            self.names.append(name)
            self._numbers[name] = found
        return found

    def get(self, name: str | None) -> int | None:
        return self._numbers.get(name)

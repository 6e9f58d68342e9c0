"""The step index: where each step begins and ends in a trace, cached in the user's cache directory.

If a trace has grown, it is read from the end of its index. If it was rewritten but keeps its beginning (a
continued import), it is read from a place near the end of that beginning.
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from collections.abc import Iterable, Iterator
from functools import cached_property
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.trace.cache_files import (
    cache_file,
    digest_of_beginning,
    fingerprint_of,
    open_own,
    replace_file,
    same_file,
)
from ctxctl.trace.source import Source
from ctxctl.typed_decoding import from_msgpack

FORMAT: Final = 7
_MAGIC: Final = b"ctxctl step index\n"
_COLUMNS: Final = ("session", "thread", "turn", "step", "start", "end", "line", "finished")
_MAX_HEADER: Final = 64 << 20


class Span(NamedTuple):
    """One step's byte range in the file. Steps of interleaved threads may overlap."""

    session: str | None
    thread: str
    turn: int
    step: int
    start: int
    """Byte offset of its first line."""
    end: int
    """End of its last line, as a byte offset."""
    line: int
    """Number of its first line."""
    finished: int = -1
    """Byte offset of the event that finished it: its thread's next step or end; -1 while it is open."""


class _Turnback(msgspec.Struct, frozen=True, array_like=True):
    """A place in the trace that the index can be taken back to."""

    covered: int
    lines: int
    beginning: bytes
    """Digest of the bytes before the place."""
    rows: int
    seen: int
    """Number of event keys."""
    late: int
    open: list[tuple[int, int, int]]
    """Rows that continued after the place, each with its end before it."""
    state: bytes


class StepIndex:
    """Eight columns of integers, 64 bytes a step, in file order.

    One thread appends; any number may read meanwhile. Rows are counted from 0.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions = _Names()
        self._threads = _Names()
        self._columns = {name: array("q") for name in _COLUMNS}
        self._lines = self._columns["line"]
        self.covered = 0
        """Bytes of the trace that the index covers. The builder sets it, at the end of a line."""
        self.lines = 0
        """Number of lines within `covered`."""
        self.late = 0
        """Number of events within `covered` that came after their step's end."""
        self._keys = array("Q")
        self._state = b""
        self._back: _Turnback | None = None
        self._packed = b""
        """The packed form of `_back`."""

    @cached_property
    def seen(self) -> set[int]:
        """64-bit keys of the events within `covered`, to recognise repeats; see `add_seen`."""
        return set(self._keys)

    def add_seen(self, key: int) -> None:
        """Note an event within `covered`."""
        self.seen.add(key)
        self._keys.append(key)

    @property
    def state(self) -> dict[str, Any] | None:
        """JSON values with which the builder continues from `covered` when the file has grown."""
        found: dict[str, Any] | None = json.loads(self._state) if self._state else None
        return found

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        self._state = json.dumps(state).encode()

    @property
    def turnback(self) -> int:
        """Bytes of the trace that the index can be taken back to; 0 for none."""
        if self._back is None and self._packed:
            self._back = from_msgpack(self._packed, _Turnback)
        return 0 if self._back is None else self._back.covered

    def may_turn_back(
        self, source: Source, covered: int, lines: int, rows: Iterable[int], state: dict[str, Any]
    ) -> None:
        """Remember the current state. All of `covered` is indexed, and only these rows may continue."""
        ends, finished = self._columns["end"], self._columns["finished"]
        self._back = _Turnback(
            covered, lines, digest_of_beginning(source, covered), len(self), len(self._keys), self.late,
            [(row, ends[row], finished[row]) for row in rows], json.dumps(state).encode(),
        )  # fmt: skip

    def _turn_back(self, source: Source) -> bool:
        """Take the index back to where a rewritten trace is unchanged. Return False if it is not."""
        if not 0 < self.turnback <= source.size or self._back is None:
            return False
        back = self._back
        if digest_of_beginning(source, back.covered) != back.beginning:
            return False
        for column in self._columns.values():
            del column[back.rows :]
        for row, end, finished in back.open:
            self._columns["end"][row], self._columns["finished"][row] = end, finished
        del self._keys[back.seen :]
        self.covered, self.lines, self.late, self._state = back.covered, back.lines, back.late, back.state
        return True

    def append(
        self, session: str | None, thread: str, turn: int, step: int, start: int, end: int, line: int
    ) -> int:
        """Add a step and return its row."""
        with self._lock:
            names = self._sessions.number(session), self._threads.number(thread)
            row = (*names, turn, step, start, end, line, -1)
            for column, value in zip(self._columns.values(), row, strict=True):
                column.append(value)
            return len(self._lines) - 1

    def extend_row(self, row: int, end: int) -> None:
        """Extend a step to byte `end`."""
        self._columns["end"][row] = end

    def finish_row(self, row: int, offset: int) -> None:
        """Note that the event at byte `offset` finished a step. The first call counts."""
        if self._columns["finished"][row] < 0:
            self._columns["finished"][row] = offset

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, row: int) -> Span:
        session, thread, *numbers = (self._columns[name][row] for name in _COLUMNS)
        return Span(self._sessions.names[session], self._threads.names[thread] or "", *numbers)

    def __iter__(self) -> Iterator[Span]:
        count = len(self)
        sessions, threads, *numbers = (column[:count] for column in self._columns.values())
        named = [name or "" for name in self._threads.names]
        return map(
            Span, map(self._sessions.names.__getitem__, sessions), map(named.__getitem__, threads), *numbers
        )

    def find(self, session: str | None, thread: str, turn: int, step: int) -> int | None:
        """Return the row of a step, or None; `turn` and `step` as appended. Linear, in C per column."""
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
        """Save the index for this file. Return False if that is impossible (stdin, no cache, disk full)."""
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
                "late": self.late,
                "seen": len(self._keys),
                "state": len(self._state),
            }
            back = self._packed if self._back is None else msgspec.msgpack.encode(self._back)
            parts = [*(columns[name][:count].tobytes() for name in _COLUMNS), self._keys.tobytes()]
        body = b"".join((*parts, self._state, back))
        head = json.dumps(header).encode()
        check = hashlib.sha256(head + body).digest()
        return replace_file(path, _MAGIC + len(head).to_bytes(8, "little") + head + body + check)

    @classmethod
    def load(cls, source: Source) -> StepIndex | None:
        """Return the saved index of this file; None unless the file is unchanged, has only grown, or keeps
        its beginning."""
        path = cache_file(source)
        if path is None or source.spooled:
            return None
        try:
            with open_own(path) as file:
                return cls._parse(file.read(), source)
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            OverflowError,
            RecursionError,
            msgspec.MsgspecError,
        ):
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
        index = cls()
        index._sessions = _Names(header["sessions"])
        index._threads = _Names(header["threads"])
        width = header["rows"] * index._lines.itemsize
        at = width * len(_COLUMNS)
        ends = at + 8 * header["seen"], at + 8 * header["seen"] + header["state"]
        if header["seen"] < 0 or header["state"] < 0 or len(body) < ends[1]:
            return None
        index._keys.frombytes(body[at : ends[0]])
        index._state, index._packed = body[ends[0] : ends[1]], body[ends[1] :]
        for number, name in enumerate(_COLUMNS):
            index._columns[name].frombytes(body[number * width : (number + 1) * width])
        index.covered, index.lines = header["covered"], header["lines"]
        index.late = header["late"]
        if same_file(header["file"], source, header["covered"]):
            return index
        return index if index._turn_back(source) else None


class _Names:
    """Strings numbered by first appearance."""

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

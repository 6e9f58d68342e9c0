"""How a kept replay is written down: one SQLite file, with a checksum over each row's number and bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from ctxctl.model.content import Content
from ctxctl.model.problem import Problem
from ctxctl.model.results import Placement, Step, Summary, Turn
from ctxctl.trace.cache_files import DamagedError, cache_file
from ctxctl.trace.contents import StoredContent
from ctxctl.trace.inputs import file_state

if TYPE_CHECKING:
    from ctxctl.trace.source import Source

FORMAT: Final = 3
_WHOLE_EVERY: Final = 32
_WHOLE_SHARE: Final = 16
LONGEST_CHAIN: Final = 1 << 17
"""Frames that one may lead back to, whatever a file says."""


def whole_after(size: int) -> int:
    """Steps of a thread from one frame that is kept whole to the next, where the next has `size` copies.

    The more it holds, the more rarely: else windows that grow would be kept with the square of their steps.
    """
    return max(_WHOLE_EVERY, size // _WHOLE_SHARE)


_AT_ONCE: Final = 500
_AHEAD: Final = 512
LATELY: Final = 86_400.0
"""Seconds: a log that nobody wrote to for so long hardly goes on, and is replayed whole once if it does."""
MARKED: Final = 512 << 20
"""Bytes of a trace up to which it is marked where its replay can be gone on with: what a mark holds grows
with it, and at a gigabyte would take a replay from 94 MB of memory to 216 MB."""
LAYOUT: Final = """
CREATE TABLE meta (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE steps (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE frames (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE placements (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE contents (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE mark (number INTEGER PRIMARY KEY, body BLOB);
"""


class Meta(msgspec.Struct, frozen=True):
    """Of which trace the replay is, and what it came to."""

    format: int
    made_under: str
    file: dict[str, Any]
    """Of which trace, as `fingerprint_of` tells."""
    steps: int
    summary: Summary
    found: tuple[Problem, ...]
    found_count: int
    late: int
    problems: tuple[Problem, ...]
    """Of the trace itself, as its reader found them."""
    problem_count: int


class Results(msgspec.Struct, frozen=True, array_like=True):
    """A step, and the turn that it ended."""

    step: Step
    turn: Turn | None
    omitted: tuple[tuple[str, str | None, int], ...] = ()
    """Items and versions that the step left out, each with the number of its content."""


class ToldDelta(msgspec.Struct, frozen=True, array_like=True):
    """A `FrameDelta` as the replay told it, where comparing the frames tells another one: a step that has
    built its frame anew takes out and puts back what stands in both."""

    prefix: int
    suffix: int
    removed: bytes
    """Numbers of placements, as `FrameRow.numbers`."""
    inserted: bytes
    reordered: bool


class FrameRow(msgspec.Struct, frozen=True, array_like=True):
    """A frame: `head` placements of the one before it in its thread, `numbers`, and its last `tail`."""

    before: int
    """Ordinal of the step whose frame that is; -1 where this one is whole."""
    head: int
    tail: int
    numbers: bytes
    """Numbers of placements, four bytes each, as this machine writes them."""
    against: bytes | None = None
    """Likewise, the frame that the step's changes are told against, where that is not the one of the step
    before: its placements are weighed anew when the encoding changes."""
    told: ToldDelta | None = None


class PlacementRow(msgspec.Struct, frozen=True, array_like=True):
    """A placement."""

    fields: tuple[Any, ...]
    """Of the placement, in their order, without its content."""
    content: int
    """Number of its content; -1 for none."""


class ReplayKey:
    """Which kept replay is meant: a trace as it is now, and all that its replay depends on besides."""

    def __init__(self, source: Source, made_under: str) -> None:
        self.source = source
        self.made_under = made_under
        self.path: Path | None = None
        if not source.spooled:
            self.path = cache_file(source, f"replay-{sha256(self.made_under.encode()).hexdigest()[:12]}")

    def steady(self) -> bool:
        """Whether the trace's file cannot change without its times telling."""
        if self.source.kept is not None:
            return True  # nobody else writes it
        import time

        state = file_state(str(self.source.path))
        return state is not None and state.settled(time.time())

    def may_grow(self) -> bool:
        """Whether somebody wrote to the log lately, so that it may well go on, and it is not too large."""
        import time

        if self.source.size > MARKED:
            return False
        state = file_state(str(self.source.path))
        return state is not None and state.mtime_ns / 1e9 > time.time() - LATELY


FIELDS: Final = tuple(name for name in Placement.__struct_fields__ if name != "content")
_AT: Final = Placement.__struct_fields__.index("content")
RESULTS: Final = msgspec.msgpack.Decoder(Results)
FRAME: Final = msgspec.msgpack.Decoder(FrameRow)
PLACEMENT: Final = msgspec.msgpack.Decoder(PlacementRow)
CONTENT: Final = msgspec.msgpack.Decoder(StoredContent)


def placement_of(row: PlacementRow, content: Content | None) -> Placement:
    """The placement of a row; raises DamagedError."""
    fields = row.fields
    if len(fields) != len(FIELDS):
        raise DamagedError
    return Placement(*(*fields[:_AT], content, *fields[_AT:]))


def connected(path: Path) -> sqlite3.Connection:
    """A kept replay for reading; raises sqlite3.Error."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def seed_of(table: str, number: int) -> int:
    """What a row's checksum begins with: the same bytes in another row are not those."""
    return _SEEDS[table] << 48 | number


_SEEDS: Final = {"meta": 1, "steps": 2, "frames": 3, "placements": 4, "contents": 5, "mark": 6}
TABLES: Final = tuple(_SEEDS)


def checked(table: str, number: int, body: Any) -> bytes:
    """A row without its checksum; raises DamagedError."""
    if type(body) is not bytes or xxhash.xxh3_64_digest(body[8:], seed_of(table, number)) != body[:8]:
        raise DamagedError
    return body[8:]


def all_decoded(
    table: str, rows: Iterable[tuple[int, Any]], decoder: msgspec.msgpack.Decoder[Any]
) -> Iterator[Any]:
    """What many rows say; raises DamagedError."""
    seed, digest, decode = seed_of(table, 0), xxhash.xxh3_64_digest, decoder.decode
    try:
        for number, body in rows:
            if type(body) is not bytes or digest(body[8:], seed | number) != body[:8]:
                raise DamagedError
            yield decode(body[8:])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise DamagedError from None


def body_of(connection: sqlite3.Connection, table: str, number: int) -> bytes:
    """A row by its number; raises DamagedError."""
    try:
        row = connection.execute(f"SELECT body FROM {table} WHERE number = ?", (number,)).fetchone()
    except sqlite3.Error:
        raise DamagedError from None
    return checked(table, number, row[0] if row is not None else None)


def all_bodies(connection: sqlite3.Connection, table: str, count: int) -> Iterator[bytes]:
    """The rows of a table from 0 on; all `count` of them, or DamagedError."""
    try:
        rows = connection.execute(f"SELECT number, body FROM {table} ORDER BY number")
        expected = 0
        for number, body in rows:
            if number != expected:
                raise DamagedError
            yield checked(table, number, body)
            expected += 1
    except sqlite3.Error:
        raise DamagedError from None
    if expected != count:
        raise DamagedError


def some_bodies(
    connection: sqlite3.Connection, table: str, numbers: list[int]
) -> Iterator[tuple[int, bytes]]:
    """Rows by their numbers, in any order; all of them, or DamagedError."""
    for start in range(0, len(numbers), _AT_ONCE):
        part = numbers[start : start + _AT_ONCE]
        marks = ",".join("?" * len(part))
        try:
            found = connection.execute(
                f"SELECT number, body FROM {table} WHERE number IN ({marks})", part
            ).fetchall()
        except sqlite3.Error:
            raise DamagedError from None
        if len(found) != len(part):
            raise DamagedError
        for number, body in found:
            yield number, checked(table, number, body)


class RowsAhead:
    """The rows of a table for somebody who wants all of them once, about in the order of their numbers."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        self._table = table
        self._read: dict[int, bytes] = {}
        """Rows that were read and are not wanted yet."""
        self._next = 0
        """The least number that was not read."""

    def take(self, numbers: list[int]) -> list[tuple[int, bytes]]:
        """Rows by their numbers, each of them once; all of them, or DamagedError."""
        last = max(numbers)
        while self._next <= last:
            until = self._next + _AHEAD
            try:
                found = self._connection.execute(
                    f"SELECT number, body FROM {self._table} WHERE number >= ? AND number < ?",
                    (self._next, until),
                ).fetchall()
            except sqlite3.Error:
                raise DamagedError from None
            if not found:
                raise DamagedError  # a number beyond the last row's
            self._read.update(found)
            self._next = until
        return [(number, checked(self._table, number, self._read.pop(number, None))) for number in numbers]


def decoded(body: bytes, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    """What a row says; raises DamagedError."""
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise DamagedError from None

"""The steps of a replay, kept in the user's cache: any of them, or all, without replaying the trace.

One SQLite file for a trace and what it was replayed under, written beside its place and put there when it is
whole, so that readers never see half of one.  Each row carries a checksum over its number and its bytes.  A
step's frame is kept as what it changes of the frame before it in its thread, with a whole one now and then.

A file of another trace, of other code or parameters, or one that is damaged is as good as not there.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.problem import Problem
from ctxctl.model.results import Placement, Step, Summary, Turn
from ctxctl.session.results import ReportedProblems
from ctxctl.trace.cache_files import DamagedError, cache_file, fingerprint_of, open_own, same_file
from ctxctl.trace.contents import StoredContent
from ctxctl.trace.inputs import file_state

if TYPE_CHECKING:
    from ctxctl.engine.replay.run import Engine
    from ctxctl.trace.contents import Contents
    from ctxctl.trace.reader import Trace
    from ctxctl.trace.source import Source

FORMAT: Final = 1
_WHOLE_EVERY: Final = 32
"""Steps of a thread from one frame that is kept whole to the next."""
_KNOWN: Final = 1 << 16
"""Placements that the writer knows again; one that is forgotten is only kept twice."""
_AT_ONCE: Final = 500
_HELD: Final = 512
"""Rows that the writer holds back until they are written together."""
_LAYOUT: Final = """
CREATE TABLE meta (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE steps (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE frames (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE placements (number INTEGER PRIMARY KEY, body BLOB);
CREATE TABLE contents (number INTEGER PRIMARY KEY, body BLOB);
"""


class _Meta(msgspec.Struct, frozen=True):
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


class _Results(msgspec.Struct, frozen=True, array_like=True):
    step: Step
    turn: Turn | None


class _FrameRow(msgspec.Struct, frozen=True, array_like=True):
    """A frame: `head` placements of the one before it in its thread, `numbers`, and its last `tail`."""

    before: int
    """Ordinal of the step whose frame that is; -1 where this one is whole."""
    head: int
    tail: int
    numbers: bytes
    """Numbers of placements, four bytes each, as this machine writes them."""


class _PlacementRow(msgspec.Struct, frozen=True, array_like=True):
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


class KeptReplay:
    """A kept replay, open for reading.  Methods raise DamagedError; not thread-safe but for `results`."""

    def __init__(self, path: Path, meta: _Meta, contents: Contents) -> None:
        self._path = path
        self._meta = meta
        self._contents = contents
        self._connection: sqlite3.Connection | None = None
        self._placements: dict[int, Placement] = {}
        self.steps = meta.steps
        """How many there are."""

    @classmethod
    def open(cls, key: ReplayKey, contents: Contents) -> KeptReplay | None:
        """The kept replay; None where there is none."""
        if key.path is None:
            return None
        try:
            open_own(key.path).close()
            with closing(_connected(key.path)) as connection:
                odd = connection.execute("SELECT count(*) FROM sqlite_master WHERE type != 'table'")
                meta = msgspec.msgpack.decode(_body(connection, "meta", 0), type=_Meta)
                if odd.fetchone()[0] or (meta.format, meta.made_under) != (FORMAT, key.made_under):
                    return None
            size = key.source.refresh()
            if meta.file["size"] != size or not same_file(meta.file, key.source, size):
                return None
            with suppress(OSError):
                os.utime(key.path)  # the oldest are dropped first
        except (OSError, sqlite3.Error, DamagedError, KeyError, TypeError, ValueError, msgspec.MsgspecError):
            return None
        return cls(key.path, meta, contents)

    @property
    def summary(self) -> Summary:
        """Totals of the replay."""
        return self._meta.summary

    def found(self) -> ReportedProblems:
        """What the engine reported."""
        made = ReportedProblems()
        made.kept, made.count, made.late = list(self._meta.found), self._meta.found_count, self._meta.late
        return made

    def restore_problems(self, trace: Trace) -> None:
        """Let the trace know what reading it to its end would find."""
        trace.restore(self._meta.problems, self._meta.problem_count)

    def results(self) -> Iterator[tuple[Step, Turn | None]]:
        """Each step in order, with the turn that it ended."""
        with closing(self._reading()) as connection:
            for body in _all(connection, "steps", self.steps):
                result = _decoded(body, _RESULTS)
                yield result.step, result.turn

    def walk(self) -> Iterator[StepAt]:
        """Each step in order with its frame, and the turn that it ended."""
        frames: dict[ThreadKey, list[Placement]] = {}
        with closing(self._reading()) as connection:
            rows = _all(connection, "frames", self.steps)
            for (step, turn), row in zip(self.results(), rows, strict=True):
                key = ThreadKey(step.session, step.thread)
                frame = _decoded(row, _FRAME)
                before = frames.get(key, []) if frame.before >= 0 else []
                frames[key] = self._rebuilt(before, frame)
                yield StepAt(step, frames[key], turn)

    def at(self, ordinal: int) -> StepAt:
        """A step by its ordinal; raises IndexError beyond the last."""
        if not 0 <= ordinal < self.steps:
            raise IndexError(ordinal)
        if self._connection is None:
            self._connection = self._reading()
        connection = self._connection
        result = _decoded(_body(connection, "steps", ordinal), _RESULTS)
        chain: list[_FrameRow] = []
        at = ordinal
        while at >= 0:
            frame = _decoded(_body(connection, "frames", at), _FRAME)
            if len(chain) > _WHOLE_EVERY or frame.before >= at:
                raise DamagedError
            chain.append(frame)
            at = frame.before
        placements: list[Placement] = []
        for frame in reversed(chain):
            placements = self._rebuilt(placements, frame)
        return StepAt(result.step, placements, result.turn)

    def close(self) -> None:
        """Let the file go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def drop(self) -> None:
        """Remove it: it is damaged."""
        self.close()
        with suppress(OSError):
            self._path.unlink()

    def _reading(self) -> sqlite3.Connection:
        try:
            return _connected(self._path)
        except sqlite3.Error:
            raise DamagedError from None

    def _rebuilt(self, before: Sequence[Placement], frame: _FrameRow) -> list[Placement]:
        if frame.head + frame.tail > len(before) or len(frame.numbers) % 4:
            raise DamagedError
        numbers = array("I")
        numbers.frombytes(frame.numbers)
        self._load(numbers)
        middle = [self._placements[number] for number in numbers]
        return [*before[: frame.head], *middle, *before[len(before) - frame.tail :]]

    def _load(self, numbers: Iterable[int]) -> None:
        """Have these placements, with their contents, at hand."""
        missing = [number for number in dict.fromkeys(numbers) if number not in self._placements]
        if not missing:
            return
        if self._connection is None:
            self._connection = self._reading()
        rows = {
            number: _decoded(body, _PLACEMENT)
            for number, body in _some(self._connection, "placements", missing)
        }
        wanted = list(dict.fromkeys(row.content for row in rows.values() if row.content >= 0))
        contents = {number: self._content(number) for number in wanted}
        for number, row in rows.items():
            self._placements[number] = _placement(row, contents.get(row.content))

    def _content(self, number: int) -> Content:
        assert self._connection is not None
        stored = _decoded(_body(self._connection, "contents", number), _CONTENT)
        base = None
        if stored.base is not None:
            if stored.base >= number:
                raise DamagedError
            base = self._content(stored.base)
        return self._contents.restored(stored, base)


class ReplayWriter:
    """Writes down a replay while it is made; `finish` puts it in its place.

    Nothing that goes wrong here is worth an error: then it is not kept.
    """

    def __init__(self, key: ReplayKey, contents: Contents, kept: Callable[[], None]) -> None:
        self._key = key
        self._store = contents
        self._kept = kept
        """Told once the replay is in its place."""
        self._path: Path | None = None
        self._connection: sqlite3.Connection | None = None
        self._last: dict[ThreadKey, _LastFrame] = {}
        self._numbers: dict[int, tuple[Placement, int]] = {}
        self._placements = 0
        self._contents: dict[Content, int] = {}
        self._rows: dict[str, list[tuple[int, bytes]]] = {table: [] for table in _SEEDS}
        self._held = 0
        self._steps = 0
        self._waiting: StepAt | None = None
        self._file: dict[str, Any] = {}
        self._begin()

    def _begin(self) -> None:
        path, source = self._key.path, self._key.source
        if path is None or not self._key.steady():
            return
        try:
            self._file = fingerprint_of(source, source.refresh())
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}.new-")
            os.close(fd)
            self._path = Path(name)
            self._connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
            self._connection.executescript(
                f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_LAYOUT} BEGIN"
            )
        except (OSError, sqlite3.Error):
            self.give_up()

    @property
    def writes(self) -> bool:
        """Whether it is still at it."""
        return self._connection is not None

    def add(self, at: StepAt) -> None:
        """Take in the next step, with its frame as it is now."""
        if self._connection is None:
            return
        try:
            self._put("steps", self._steps, _Results(at.step, at.turn))
            key = ThreadKey(at.step.session, at.step.thread)
            last = self._last.get(key, _FIRST)
            row = self._frame(last, at.placements)
            self._put("frames", self._steps, row)
            age = 0 if row.before < 0 else last.age + 1
            self._last[key] = _LastFrame(self._steps, at.placements, age)
            self._steps += 1
        except (sqlite3.Error, TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
            self.give_up()

    def taken(self, done: Iterable[Step | Turn], engine: Engine) -> Iterator[Step | Turn]:
        """What the engine finishes, taken in as it is passed on."""
        for result in done:
            if isinstance(result, Step):
                self._take_waiting()
                self._waiting = StepAt(result, engine.frame, None)
            elif self._waiting is not None:
                self._waiting = self._waiting._replace(turn=result)
            yield result

    def _take_waiting(self) -> None:
        if self._waiting is not None:
            self.add(self._waiting)
            self._waiting = None

    def finish(self, trace: Trace, summary: Summary, found: ReportedProblems) -> None:
        """The pass has come to its end: keep the replay, if the trace is still the same."""
        self._take_waiting()
        if self._connection is None or self._path is None or self._key.path is None:
            return
        source = self._key.source
        repeats, count = trace.repeats, trace.problem_count
        if (
            repeats
            or trace.covered != self._file["size"]
            or fingerprint_of(source, source.refresh()) != self._file
        ):
            self.give_up()
            return
        meta = _Meta(
            FORMAT, self._key.made_under, self._file, self._steps, summary,
            tuple(found.kept), found.count, found.late, tuple(trace.problems), count,
        )  # fmt: skip
        try:
            self._put("meta", 0, meta)
            self._write()
            self._connection.execute("COMMIT")
            self._connection.close()
            self._connection = None
            os.replace(self._path, self._key.path)
        except (OSError, sqlite3.Error, TypeError, msgspec.MsgspecError):
            self.give_up()
            return
        self._path = None
        self._kept()
        from ctxctl.session.cache_room import prune_cache

        prune_cache(spare=self._key.path.parent if source.kept is not None else self._key.path)

    def give_up(self) -> None:
        """Keep nothing."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
            self._rows.clear()
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            self._path = None

    def _put(self, table: str, number: int, value: msgspec.Struct | tuple[Any, ...]) -> None:
        body = _encode(value)
        body = xxhash.xxh3_64_digest(body, _seed(table, number)) + body
        self._rows[table].append((number, body))
        self._held += 1
        if self._held >= _HELD:
            self._write()

    def _write(self) -> None:
        """Write the rows that were held back."""
        assert self._connection is not None
        for table, rows in self._rows.items():
            if rows:
                self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)
                rows.clear()
        self._held = 0

    def _frame(self, last: _LastFrame, now: list[Placement]) -> _FrameRow:
        before = last.placements
        if last.ordinal < 0 or last.age + 1 >= _WHOLE_EVERY:
            return _FrameRow(-1, 0, 0, self._numbered(now))
        head = _common(before, now)
        tail = _common(before[head:][::-1], now[head:][::-1])
        return _FrameRow(last.ordinal, head, tail, self._numbered(now[head : len(now) - tail]))

    def _numbered(self, placements: Iterable[Placement]) -> bytes:
        found = array("I")
        for placement in placements:
            known = self._numbers.get(id(placement))
            if known is None:
                if len(self._numbers) >= _KNOWN:
                    self._numbers.clear()
                known = self._numbers[id(placement)] = placement, self._placements
                self._placements += 1
                self._place(placement, known[1])
            found.append(known[1])
        return found.tobytes()

    def _place(self, placement: Placement, number: int) -> None:
        content = -1 if placement.content is None else self._content(placement.content)
        self._put("placements", number, (_FIELDS_OF(placement), content))  # as a `_PlacementRow` is written

    def _content(self, content: Content) -> int:
        number = self._contents.get(content)
        if number is None:
            base = self._store.inside(content)
            stored = self._store.stored(content, None if base is None else self._content(base))
            if stored is None:
                raise ValueError("its text is not in the trace")
            number = self._contents[content] = len(self._contents)
            self._put("contents", number, stored)
        return number


class _LastFrame(msgspec.Struct, frozen=True):
    ordinal: int
    placements: list[Placement]
    age: int
    """Frames since the last whole one."""


_FIRST: Final = _LastFrame(-1, [], 0)
_FIELDS: Final = tuple(name for name in Placement.__struct_fields__ if name != "content")
_FIELDS_OF: Final = attrgetter(*_FIELDS)
_encode: Final = msgspec.msgpack.Encoder().encode
_AT: Final = Placement.__struct_fields__.index("content")
_RESULTS: Final = msgspec.msgpack.Decoder(_Results)
_FRAME: Final = msgspec.msgpack.Decoder(_FrameRow)
_PLACEMENT: Final = msgspec.msgpack.Decoder(_PlacementRow)
_CONTENT: Final = msgspec.msgpack.Decoder(StoredContent)


def _placement(row: _PlacementRow, content: Content | None) -> Placement:
    fields = row.fields
    if len(fields) != len(_FIELDS):
        raise DamagedError
    return Placement(*(*fields[:_AT], content, *fields[_AT:]))


def _common(a: Sequence[Placement], b: Sequence[Placement]) -> int:
    """How many placements two frames begin with alike; slices are compared in C, by identity."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _connected(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _seed(table: str, number: int) -> int:
    return _SEEDS[table] << 48 | number


_SEEDS: Final = {"meta": 1, "steps": 2, "frames": 3, "placements": 4, "contents": 5}


def _checked(table: str, number: int, body: Any) -> bytes:
    if type(body) is not bytes or xxhash.xxh3_64_digest(body[8:], _seed(table, number)) != body[:8]:
        raise DamagedError
    return body[8:]


def _body(connection: sqlite3.Connection, table: str, number: int) -> bytes:
    try:
        row = connection.execute(f"SELECT body FROM {table} WHERE number = ?", (number,)).fetchone()
    except sqlite3.Error:
        raise DamagedError from None
    return _checked(table, number, row[0] if row is not None else None)


def _all(connection: sqlite3.Connection, table: str, count: int) -> Iterator[bytes]:
    """The rows of a table from 0 on; all `count` of them, or DamagedError."""
    try:
        rows = connection.execute(f"SELECT number, body FROM {table} ORDER BY number")
        expected = 0
        for number, body in rows:
            if number != expected:
                raise DamagedError
            yield _checked(table, number, body)
            expected += 1
    except sqlite3.Error:
        raise DamagedError from None
    if expected != count:
        raise DamagedError


def _some(connection: sqlite3.Connection, table: str, numbers: list[int]) -> Iterator[tuple[int, bytes]]:
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
            yield number, _checked(table, number, body)


def _decoded(body: bytes, decoder: msgspec.msgpack.Decoder[Any]) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise DamagedError from None

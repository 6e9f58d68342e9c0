"""A session store as a file in the user's cache: where it is, whether it holds, and how it is written.

A store is written under another name and renamed when it is whole, so readers never see a part of one.
It ends with a digest of all its bytes.  A store of another trace, of other code or parameters, or one that is
damaged is ignored.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import msgspec
import xxhash

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.replay.walked import Walked, walked_by
from ctxctl.model.content import Content
from ctxctl.model.results import Placement, Step, Summary, Turn
from ctxctl.store.mark import Mark
from ctxctl.store.reader import PlacementRows, placements_of, step_at, step_rows, thread_deltas, walk
from ctxctl.store.rows import LAYOUT, About, connected, damage
from ctxctl.store.writer import RowWriter, WriterState
from ctxctl.trace.cache_files import DamagedError, cache_file, fingerprint_of, open_own, same_file
from ctxctl.trace.inputs import file_state
from ctxctl.typed_decoding import from_msgpack
from ctxctl.user_folders import make_private

if TYPE_CHECKING:
    from ctxctl.engine.replay.run import Engine
    from ctxctl.model.problem import Problem
    from ctxctl.trace.contents import Contents
    from ctxctl.trace.reader import Trace
    from ctxctl.trace.source import Source

LATELY: Final = 86_400.0
"""Seconds.  A log without new lines for so long hardly grows; if it does, it is replayed whole once."""
MARKED: Final = 512 << 20
"""Bytes of the largest trace whose replay gets a mark to continue from.  A mark grows with the trace: at a
gigabyte a replay would need 216 MB of memory instead of 94 MB."""
_CHUNK: Final = 1 << 20
_END: Final = b"ctxctl session store\n"
_DIGEST: Final = 16


class StoreKey:
    """Which store is meant: a trace as it is now, and all that its replay depends on besides."""

    def __init__(self, source: Source, made_under: str) -> None:
        self.source = source
        self.made_under = made_under
        self.path: Path | None = None
        if not source.spooled:
            self.path = cache_file(source, f"replay-{sha256(made_under.encode()).hexdigest()[:12]}")

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


def is_whole(file: BinaryIO) -> bool:
    """Whether a file's last bytes are the digest of the rest."""
    left = os.fstat(file.fileno()).st_size - len(_END) - _DIGEST
    digest = xxhash.xxh3_128()
    while left > 0 and (data := file.read(min(_CHUNK, left))):
        digest.update(data)
        left -= len(data)
    return file.read() == _END + digest.digest()


def _close_whole(path: Path) -> None:
    """Write the digest behind a database."""
    digest = xxhash.xxh3_128()
    with path.open("r+b") as file:
        while data := file.read(_CHUNK):
            digest.update(data)
        file.write(_END + digest.digest())


def _opened(key: StoreKey) -> tuple[Path, About, bytes] | None:
    """The store of a trace, or of what the trace was before it grew; None where there is none.

    What it says about itself comes decoded and as its row has it.  Raises OSError, sqlite3.Error or what
    decoding raises for a file that is no store.
    """
    if key.path is None:
        return None
    with open_own(key.path) as file:
        if not is_whole(file):
            return None
    with closing(connected(key.path)) as db:
        row = _about_row(db)
    about = from_msgpack(row, About)
    return (key.path, about, row) if (about.layout, about.made_under) == (LAYOUT, key.made_under) else None


def _about_row(db: sqlite3.Connection) -> bytes:
    return bytes(db.execute("SELECT value FROM meta WHERE key = 'about'").fetchone()[0])


class SessionStore:
    """A store, open for reading.  Methods raise DamagedError; `at` and `close` are not thread-safe."""

    def __init__(self, source: Source, path: Path, about: About, row: bytes, contents: Contents) -> None:
        """`row` is what the file itself has of `about`."""
        self._source = source
        self._path = path
        self.about = about
        self._row = row
        self._replaced = False
        """Whether another store was put in its place since: somebody replayed what the trace is now."""
        self._contents = contents
        self._rows: PlacementRows | None = None
        """What `at` reads."""

    @classmethod
    def open(cls, key: StoreKey, contents: Contents) -> SessionStore | None:
        """The store of a trace as it is now; None where there is none."""
        try:
            found = _opened(key)
            if found is None:
                return None
            path, about, row = found
            size = key.source.refresh()
            if about.file["size"] != size or not same_file(about.file, key.source, size):
                return None
            with suppress(OSError):
                os.utime(path)  # the oldest are dropped first
        except (OSError, sqlite3.Error, KeyError, TypeError, ValueError, msgspec.MsgspecError):
            return None
        return cls(key.source, path, about, row, contents)

    @property
    def steps(self) -> int:
        """How many there are."""
        return self.about.steps

    @property
    def summary(self) -> Summary:
        """Totals of the replay."""
        return self.about.summary

    def has_problems(self) -> bool:
        """Whether reading the trace or replaying it finds something wrong, beside what opening it does."""
        return bool(self.about.found_count) or self.about.problem_count > len(self._source.problems)

    def results(self) -> Iterator[tuple[Step, Turn | None]]:
        """Each step in order, with the turn that it ended."""
        with closing(self.connected()) as db:
            yield from ((row.step, row.turn) for row in step_rows(db))

    def walked(self, *, frames: bool = True) -> Iterator[Walked]:
        """Each step in order with its frame, what changed in it, and the turn that it ended.

        Without `frames` all of that is empty but for the step and the turn.
        """
        if not frames:
            for step, turn in self.results():
                yield Walked(StepAt(step, [], turn), _NOTHING, {})
            return
        with closing(self.connected()) as db:
            for at, delta, omitted in walk(db, self._contents):
                yield Walked(at, delta, omitted)

    def deltas(self, ordinals: Sequence[int]) -> Iterator[tuple[int, FrameDelta]]:
        """As `thread_deltas`."""
        with closing(self.connected()) as db:
            yield from thread_deltas(db, self._contents, ordinals)

    def at(self, ordinal: int) -> StepAt:
        """A step by its ordinal; raises IndexError beyond the last."""
        if not 0 <= ordinal < self.steps:
            raise IndexError(ordinal)
        if self._rows is None:
            self._rows = PlacementRows(self.connected(), self._contents)
        return step_at(self._rows, ordinal)

    def close(self) -> None:
        """Close the file."""
        if self._rows is not None:
            self._rows.db.close()
            self._rows = None

    def drop(self) -> None:
        """Remove it: it is damaged."""
        self.close()
        if not self._replaced:
            with suppress(OSError):
                self._path.unlink()

    def connected(self) -> sqlite3.Connection:
        """A connection of its own, for reading."""
        with damage():
            db = connected(self._path)
            self._replaced = _about_row(db) != self._row
        if self._replaced:
            db.close()
            raise DamagedError
        return db


_NOTHING: Final = FrameDelta(0, 0, [], [], False, [], [])


def marked(key: StoreKey) -> tuple[Mark, Path] | None:
    """Where the replay of a trace that has grown can go on, and the store of what it was before."""
    try:
        found = _opened(key)
        if found is None:
            return None
        with closing(connected(found[0])) as db:
            bodies = [body for (body,) in db.execute("SELECT body FROM resume ORDER BY number")]
            mark = from_msgpack(bodies[0], Mark)
            return msgspec.structs.replace(mark, graph=b"".join(bodies[1:])), found[0]
    except (OSError, sqlite3.Error, LookupError, TypeError, ValueError, msgspec.MsgspecError):
        return None


def marked_placements(path: Path, numbers: Sequence[int], contents: Sequence[Content]) -> list[Placement]:
    """As `placements_of`, of a store's file."""
    with damage(), closing(connected(path)) as db:
        return placements_of(db, numbers, contents)


class StoreWriter:
    """Writes a store's file while a trace is replayed; `finish` puts it in its place.

    Nothing that goes wrong here is worth an error: then no store is kept.
    """

    def __init__(
        self, key: StoreKey, contents: Contents, kept: Callable[[Path], None],
        before: tuple[Path, WriterState] | None = None,
    ) -> None:  # fmt: skip
        """`kept` is called once the store is in its place; `before` says where another one goes on."""
        self._key = key
        self._contents = contents
        self._kept = kept
        self._path: Path | None = None
        self._db: sqlite3.Connection | None = None
        self._rows: RowWriter | None = None
        self._waiting: Walked | None = None
        self._file: dict[str, Any] = {}
        if key.path is not None and key.steady():
            try:
                self._begin(key.path, before)
            except (*_NOT_KEPT, OSError, DamagedError):
                self.give_up()

    def _begin(self, place: Path, before: tuple[Path, WriterState] | None) -> None:
        import tempfile  # slow to import

        source = self._key.source
        self._file = fingerprint_of(source, source.refresh())
        make_private(place.parent)
        fd, name = tempfile.mkstemp(dir=place.parent, prefix=f"{place.stem}.new-")
        os.close(fd)
        self._path = Path(name)
        if before is not None:
            shutil.copyfile(before[0], name)
            os.truncate(name, os.stat(name).st_size - len(_END) - _DIGEST)
        self._db = db = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
        db.executescript(
            "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            " PRAGMA trusted_schema = OFF"
        )
        if before is None:
            self._rows = RowWriter.new(db, self._contents)
            db.execute("BEGIN")
        else:
            db.execute("BEGIN")
            self._rows = RowWriter.going_on(db, self._contents, before[1])

    @property
    def made_under(self) -> str:
        """What the replay depends on beside its trace."""
        return self._key.made_under

    @property
    def writes(self) -> bool:
        """Whether it still writes."""
        return self._rows is not None

    @property
    def marks(self) -> bool:
        """Whether it is worth its while to mark where the replay can go on."""
        return self.writes and self._key.may_grow()

    def add(self, one: Walked) -> None:
        """Take the next step, with its frame as it is now."""
        if self._rows is not None:
            try:
                self._rows.add(one)
            except _NOT_KEPT:
                self.give_up()

    def taken(self, done: Iterable[Step | Turn], engine: Engine) -> Iterator[Step | Turn]:
        """What the engine finishes, taken in as it is passed on."""
        for result in done:
            if isinstance(result, Step):
                self._take_waiting()
                self._waiting = walked_by(engine, StepAt(result, engine.frame, None))
            elif self._waiting is not None:
                self._waiting = self._waiting._replace(at=self._waiting.at._replace(turn=result))
            yield result

    def _take_waiting(self) -> None:
        if self._waiting is not None:
            self.add(self._waiting)
            self._waiting = None

    def state(self) -> WriterState | None:
        """What another writer needs to go on here; None where nothing is written."""
        self._take_waiting()
        try:
            return None if self._rows is None else self._rows.state()
        except _NOT_KEPT:
            self.give_up()
            return None

    def mark(self, mark: Mark) -> None:
        """Keep where this replay can go on; the mark before is removed."""
        if self._db is None:
            return
        try:
            self._db.execute("DELETE FROM resume")
            pieces = [mark.graph[at : at + _CHUNK] for at in range(0, len(mark.graph), _CHUNK)]
            head = msgspec.msgpack.encode(msgspec.structs.replace(mark, graph=b""))
            self._db.executemany("INSERT INTO resume VALUES (?, ?)", enumerate([head, *pieces]))
        except _NOT_KEPT:
            self.give_up()

    def finish(
        self, engine: Engine, trace: Trace, summary: Summary, found: tuple[Sequence[Problem], int, int]
    ) -> None:
        """Put the store in its place, if the trace is still the same.

        Args:
            engine: It has replayed the trace to its end.
            trace: The trace; its reader knows what is wrong with it.
            summary: Totals of the replay.
            found: The first problems that the engine reported, their number, and how many were late events.
        """
        self._take_waiting()
        place, source = self._key.path, self._key.source
        if self._rows is None or self._db is None or self._path is None or place is None:
            return
        repeats, problems = trace.repeats, trace.problem_count  # which let it read what nobody read yet
        if repeats or trace.covered != self._file["size"]:
            self.give_up()
            return
        about = About(
            LAYOUT, self._key.made_under, self._file, self._rows.steps, summary, tuple(found[0]), *found[1:],
            tuple(trace.problems), problems,
        )  # fmt: skip
        try:
            self._rows.finish(engine)
            self._db.execute("DELETE FROM meta")
            self._db.execute("INSERT INTO meta VALUES ('about', ?)", (msgspec.msgpack.encode(about),))
            self._db.execute("COMMIT")
            self._db.close()
            self._db = self._rows = None
            _close_whole(self._path)
            if fingerprint_of(source, source.refresh()) != self._file:
                self.give_up()
                return
            os.replace(self._path, place)
        except (*_NOT_KEPT, OSError):
            self.give_up()
            return
        self._path = None
        self._kept(place)

    def give_up(self) -> None:
        """Keep nothing."""
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()
        self._db = self._rows = self._waiting = None
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
            self._path = None


_NOT_KEPT: Final = (sqlite3.Error, TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)

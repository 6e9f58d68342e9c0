"""Writes a replay down while it is made (`replay_rows`), beside its place until it is whole."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.listdiff import same, same_end
from ctxctl.model.content import Content
from ctxctl.model.results import Placement, Step, Summary, Turn
from ctxctl.session.replay_mark import Mark, WriterState
from ctxctl.session.replay_rows import (
    FIELDS,
    FORMAT,
    LAYOUT,
    TABLES,
    FrameRow,
    Meta,
    ReplayKey,
    Results,
    ToldDelta,
    seed_of,
    whole_after,
)
from ctxctl.session.results import ReportedProblems
from ctxctl.session.walked import Walked, walked_by
from ctxctl.trace.cache_files import fingerprint_of
from ctxctl.user_folders import make_private

if TYPE_CHECKING:
    from ctxctl.engine.replay.run import Engine
    from ctxctl.trace.contents import Contents
    from ctxctl.trace.reader import Trace

_PIECE: Final = 1 << 20
"""Bytes of a mark that are written at once: several copies of them are made."""
_KNOWN: Final = 1 << 16
"""Placements that the writer knows again; one that is forgotten is only kept twice."""
_HELD: Final = 512
"""Rows that the writer holds back until they are written together."""


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
        self._rows: dict[str, list[tuple[int, bytes]]] = {table: [] for table in TABLES}
        self._held = 0
        self._steps = 0
        self._waiting: Walked | None = None
        self._file: dict[str, Any] = {}
        self._begin(None)

    @classmethod
    def going_on(
        cls, key: ReplayKey, contents: Contents, kept: Callable[[], None], rows: Path, state: WriterState
    ) -> ReplayWriter:
        """What writes on where another one stood, whose rows are in a file."""
        made = cls.__new__(cls)
        made._key, made._store, made._kept = key, contents, kept
        made._path = made._connection = made._waiting = None
        made._file = {}
        made._rows, made._held = {table: [] for table in TABLES}, 0
        made._steps, made._placements, made._contents = state.steps, state.placements, state.contents
        made._numbers = {id(placement): (placement, number) for placement, number in state.known}
        made._last = {key: _LastFrame(*frame) for key, frame in state.last.items()}
        made._begin(rows)
        return made

    def state(self) -> WriterState:
        """What `going_on` needs."""
        self._take_waiting()
        last = {key: (frame.ordinal, frame.placements, frame.age) for key, frame in self._last.items()}
        known = list(self._numbers.values())
        return WriterState(self._steps, self._placements, known, self._contents, last)

    def _begin(self, rows: Path | None) -> None:
        path, source = self._key.path, self._key.source
        if path is None or not self._key.steady():
            return
        try:
            self._file = fingerprint_of(source, source.refresh())
            make_private(path.parent)
            fd, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.stem}.new-")
            os.close(fd)
            self._path = Path(name)
            if rows is not None:
                shutil.copyfile(rows, name)
            self._connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False)
            self._connection.executescript(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA trusted_schema = OFF; "
                + (f"{LAYOUT} BEGIN" if rows is None else "BEGIN")
            )
            if rows is not None:
                self._take_back()
        except (OSError, sqlite3.Error):
            self.give_up()

    def _take_back(self) -> None:
        """Take out of a copied file what came behind its mark."""
        assert self._connection is not None
        behind = {
            "meta": 0, "steps": self._steps, "frames": self._steps,
            "placements": self._placements, "contents": len(self._contents),
        }  # fmt: skip
        for table, number in behind.items():
            self._connection.execute(f"DELETE FROM {table} WHERE number >= ?", (number,))

    @property
    def made_under(self) -> str:
        """What the replay depends on beside its trace."""
        return self._key.made_under

    @property
    def marks(self) -> bool:
        """Whether it is worth its while to mark where the replay can be gone on with."""
        return self.writes and self._key.may_grow()

    @property
    def writes(self) -> bool:
        """Whether it is still at it."""
        return self._connection is not None

    def add(self, one: Walked) -> None:
        """Take in the next step, with its frame as it is now."""
        if self._connection is None:
            return
        at = one.at
        try:
            named = tuple((*name, self._content(content)) for name, content in one.omitted.items())
            self._put("steps", self._steps, Results(at.step, at.turn, named))
            last = self._last.get(one.key, _FIRST)
            row = self._frame(last, one)
            self._put("frames", self._steps, row)
            age = 0 if row.before < 0 else last.age + 1
            self._last[one.key] = _LastFrame(self._steps, at.placements, age)
            self._steps += 1
        except (sqlite3.Error, TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
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
        meta = Meta(
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

    def mark(self, mark: Mark) -> None:
        """Keep from where this replay can be gone on with; the one before is forgotten."""
        if self._connection is not None:
            try:
                self._write()
                self._connection.execute("DELETE FROM mark")
                starts = range(0, len(mark.graph), _PIECE)
                self._put("mark", 0, msgspec.structs.replace(mark, graph=b"", pieces=len(starts)))
                for number, at in enumerate(starts, 1):
                    self._hold("mark", number, mark.graph[at : at + _PIECE])
                    self._write()
            except (sqlite3.Error, TypeError, ValueError, OverflowError, msgspec.MsgspecError):
                self.give_up()

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
        self._hold(table, number, _encode(value))

    def _hold(self, table: str, number: int, body: bytes) -> None:
        body = xxhash.xxh3_64_digest(body, seed_of(table, number)) + body
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

    def _frame(self, last: _LastFrame, one: Walked) -> FrameRow:
        before, now, delta = last.placements, one.at.placements, one.delta
        # What the replay has found out of both frames is not looked for again: most steps touch few places.
        own = delta.before is before and delta.after is now
        against = None
        if delta.before is not before and delta.before != before:  # by the identity of the placements
            against = self._numbered(delta.before)
        limit = min(len(before), len(now))
        head, tail = (delta.prefix, delta.suffix) if own else (0, 0)
        head += same(before, now, head, head, limit - head)
        tail = same_end(before, now, limit - head, tail)
        if last.ordinal < 0 or last.age + 1 >= whole_after(len(now)):
            row = FrameRow(-1, 0, 0, self._numbered(now), against)
        else:
            row = FrameRow(last.ordinal, head, tail, self._numbered(now[head : len(now) - tail]), against)
        compared = delta_of(before, now, head, tail) if against is None else delta_of(delta.before, now)
        prefix, suffix, removed, inserted, reordered, _, _ = delta
        if compared[:5] == (prefix, suffix, removed, inserted, reordered):
            return row
        told = ToldDelta(prefix, suffix, self._numbered(removed), self._numbered(inserted), reordered)
        return msgspec.structs.replace(row, told=told)

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
        self._put("placements", number, (_FIELDS_OF(placement), content))  # as a `PlacementRow` is written

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
_FIELDS_OF: Final = attrgetter(*FIELDS)
_encode: Final = msgspec.msgpack.Encoder().encode

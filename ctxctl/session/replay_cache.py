"""The steps of a replay, kept in the user's cache: any of them, or all, without replaying the trace.

One SQLite file for a trace and what it was replayed under, written beside its place and put there when it is
whole, so that readers never see half of one.  Each row carries a checksum over its number and its bytes.  A
step's frame is kept as what it changes of the frame before it in its thread, with a whole one now and then.

A file of another trace, of other code or parameters, or one that is damaged is as good as not there.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.results import Placement, Step, Summary, Turn
from ctxctl.session.replay_mark import Mark
from ctxctl.session.replay_rows import (
    CONTENT,
    FORMAT,
    FRAME,
    PLACEMENT,
    RESULTS,
    WHOLE_EVERY,
    FrameRow,
    Meta,
    ReplayKey,
    all_bodies,
    body_of,
    checked,
    connected,
    decoded,
    placement_of,
    some_bodies,
)
from ctxctl.session.results import ReportedProblems
from ctxctl.trace.cache_files import DamagedError, open_own, same_file

if TYPE_CHECKING:
    from ctxctl.trace.contents import Contents
    from ctxctl.trace.reader import Trace


class KeptReplay:
    """A kept replay, open for reading.  Methods raise DamagedError; not thread-safe but for `results`."""

    def __init__(self, path: Path, meta: Meta, contents: Contents) -> None:
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
            with closing(connected(key.path)) as connection:
                odd = connection.execute("SELECT count(*) FROM sqlite_master WHERE type != 'table'")
                meta = msgspec.msgpack.decode(body_of(connection, "meta", 0), type=Meta)
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
            for body in all_bodies(connection, "steps", self.steps):
                result = decoded(body, RESULTS)
                yield result.step, result.turn

    def walk(self) -> Iterator[StepAt]:
        """Each step in order with its frame, and the turn that it ended."""
        frames: dict[ThreadKey, list[Placement]] = {}
        with closing(self._reading()) as connection:
            rows = all_bodies(connection, "frames", self.steps)
            for (step, turn), row in zip(self.results(), rows, strict=True):
                key = ThreadKey(step.session, step.thread)
                frame = decoded(row, FRAME)
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
        result = decoded(body_of(connection, "steps", ordinal), RESULTS)
        chain: list[FrameRow] = []
        at = ordinal
        while at >= 0:
            frame = decoded(body_of(connection, "frames", at), FRAME)
            if len(chain) > WHOLE_EVERY or frame.before >= at:
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
            return connected(self._path)
        except sqlite3.Error:
            raise DamagedError from None

    def _rebuilt(self, before: Sequence[Placement], frame: FrameRow) -> list[Placement]:
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
            number: decoded(body, PLACEMENT)
            for number, body in some_bodies(self._connection, "placements", missing)
        }
        wanted = list(dict.fromkeys(row.content for row in rows.values() if row.content >= 0))
        contents = {number: self._content(number) for number in wanted}
        for number, row in rows.items():
            self._placements[number] = placement_of(row, contents.get(row.content))

    def _content(self, number: int) -> Content:
        assert self._connection is not None
        stored = decoded(body_of(self._connection, "contents", number), CONTENT)
        base = None
        if stored.base is not None:
            if stored.base >= number:
                raise DamagedError
            base = self._content(stored.base)
        return self._contents.restored(stored, base)


def marked_replay(key: ReplayKey) -> tuple[Mark, Path] | None:
    """From where a kept replay of the trace as it was can be gone on with, and the file that it is in."""
    if key.path is None:
        return None
    try:
        open_own(key.path).close()
        with closing(connected(key.path)) as connection:
            meta = msgspec.msgpack.decode(body_of(connection, "meta", 0), type=Meta)
            if (meta.format, meta.made_under) != (FORMAT, key.made_under):
                return None
            mark = msgspec.msgpack.decode(body_of(connection, "mark", 0), type=Mark)
            pieces = [body_of(connection, "mark", 1 + at) for at in range(mark.pieces)]
            return msgspec.structs.replace(mark, graph=b"".join(pieces)), key.path
    except (OSError, sqlite3.Error, DamagedError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def marked_placements(path: Path, numbers: Sequence[int], contents: Sequence[Content]) -> list[Placement]:
    """Placements of a kept replay, given all of its contents; raises DamagedError."""
    wanted = set(numbers)
    found: dict[int, Placement] = {}
    try:
        with closing(connected(path)) as connection:
            for number, body in connection.execute("SELECT number, body FROM placements"):
                if number in wanted:
                    row = decoded(checked("placements", number, body), PLACEMENT)
                    found[number] = placement_of(row, contents[row.content] if row.content >= 0 else None)
        return [found[number] for number in numbers]
    except (sqlite3.Error, LookupError):
        raise DamagedError from None

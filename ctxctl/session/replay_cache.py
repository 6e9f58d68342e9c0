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
from typing import TYPE_CHECKING, Final

import msgspec

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import Content
from ctxctl.model.results import Placement, Step, Summary, Turn
from ctxctl.session.replay_mark import Mark
from ctxctl.session.replay_rows import (
    CONTENT,
    FORMAT,
    FRAME,
    LONGEST_CHAIN,
    PLACEMENT,
    RESULTS,
    FrameRow,
    Meta,
    ReplayKey,
    RowsAhead,
    all_bodies,
    all_decoded,
    body_of,
    connected,
    decoded,
    placement_of,
    some_bodies,
)
from ctxctl.session.results import ReportedProblems
from ctxctl.session.walked import Omitted, Walked
from ctxctl.trace.cache_files import DamagedError, open_own, same_file
from ctxctl.typed_decoding import from_msgpack

if TYPE_CHECKING:
    from ctxctl.trace.contents import Contents
    from ctxctl.trace.reader import Trace


class KeptReplay:
    """A kept replay, open for reading.  Methods raise DamagedError; `at` and `close` are not thread-safe."""

    def __init__(self, key: ReplayKey, path: Path, meta: Meta, contents: Contents) -> None:
        self._source = key.source
        self._path = path
        self._meta = meta
        self._contents = contents
        self._at: _Placements | None = None
        """What `at` has read."""
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
                meta = from_msgpack(body_of(connection, "meta", 0), Meta)
                if odd.fetchone()[0] or (meta.format, meta.made_under) != (FORMAT, key.made_under):
                    return None
            size = key.source.refresh()
            if meta.file["size"] != size or not same_file(meta.file, key.source, size):
                return None
            with suppress(OSError):
                os.utime(key.path)  # the oldest are dropped first
        except (OSError, sqlite3.Error, DamagedError, KeyError, TypeError, ValueError, msgspec.MsgspecError):
            return None
        return cls(key, key.path, meta, contents)

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

    def walked(self, *, frames: bool = True) -> Iterator[Walked]:
        """Each step in order with its frame, what changed in it, and the turn that it ended.

        Without `frames` all of that is empty but for the step and the turn.
        """
        if frames:
            yield from self._with_frames()
            return
        for step, turn in self.results():
            yield Walked(StepAt(step, [], turn), _NOTHING, {})

    def _with_frames(self) -> Iterator[Walked]:
        frames: dict[ThreadKey, list[Placement]] = {}
        with closing(self._reading()) as connection:
            known = _Placements(connection, self._contents, in_order=True)
            rows = all_bodies(connection, "steps", self.steps), all_bodies(connection, "frames", self.steps)
            for body, row in zip(*rows, strict=True):
                result, frame = decoded(body, RESULTS), decoded(row, FRAME)
                key = ThreadKey(result.step.session, result.step.thread)
                before = frames.get(key, [])
                now = frames[key] = known.rebuilt(before if frame.before >= 0 else [], frame)
                at = StepAt(result.step, now, result.turn)
                yield Walked(at, known.delta(before, now, frame), known.omitted(result.omitted))

    def deltas(self, ordinals: Sequence[int]) -> Iterator[tuple[int, FrameDelta]]:
        """What changed in the frames of one thread's first steps, whose placements are without their texts.

        `ordinals`: those of the steps, in order.
        """
        wanted = iter(ordinals)
        following = next(wanted, None)
        now: list[Placement] = []
        with closing(self._reading()) as connection:
            known = _Placements(connection, self._contents, in_order=True, texts=False)
            for number, row in enumerate(all_bodies(connection, "frames", self.steps)):
                if number != following:
                    continue
                frame = decoded(row, FRAME)
                before, now = now, known.rebuilt(now if frame.before >= 0 else [], frame)
                yield number, known.delta(before, now, frame)
                following = next(wanted, None)
                if following is None:
                    return
        if following is not None:
            raise DamagedError

    def has_problems(self) -> bool:
        """Whether reading the trace or replaying it finds something wrong, beside what opening it does."""
        return bool(self._meta.found_count) or self._meta.problem_count > len(self._source.problems)

    def at(self, ordinal: int) -> StepAt:
        """A step by its ordinal; raises IndexError beyond the last."""
        if not 0 <= ordinal < self.steps:
            raise IndexError(ordinal)
        if self._at is None:
            self._at = _Placements(self._reading(), self._contents)
        connection = self._at.connection
        result = decoded(body_of(connection, "steps", ordinal), RESULTS)
        chain: list[FrameRow] = []
        at = ordinal
        while at >= 0:
            frame = decoded(body_of(connection, "frames", at), FRAME)
            if len(chain) > LONGEST_CHAIN or frame.before >= at:
                raise DamagedError
            chain.append(frame)
            at = frame.before
        placements: list[Placement] = []
        for frame in reversed(chain):
            placements = self._at.rebuilt(placements, frame)
        return StepAt(result.step, placements, result.turn)

    def close(self) -> None:
        """Let the file go."""
        if self._at is not None:
            self._at.connection.close()
            self._at = None

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


_NOTHING: Final = FrameDelta(0, 0, [], [], False, [], [])


class _Placements:
    """The placements of frames as they are read, each one object; what is needed of their contents."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        contents: Contents,
        *,
        in_order: bool = False,
        texts: bool = True,
    ) -> None:
        """`in_order`: all steps are gone through, so that rows are read in stretches, in their own order.

        `texts`: the contents of placements are wanted.
        """
        self._texts = texts
        self.connection = connection
        self._contents = contents
        self._known: dict[int, Placement] = {}
        self._read: dict[int, Content] = {}
        self._ahead = (
            {name: RowsAhead(connection, name) for name in ("placements", "contents")} if in_order else {}
        )

    def rebuilt(self, before: Sequence[Placement], frame: FrameRow) -> list[Placement]:
        """A frame, from the one before it."""
        if frame.head + frame.tail > len(before):
            raise DamagedError
        middle = self.placements(frame.numbers)
        return [*before[: frame.head], *middle, *before[len(before) - frame.tail :]]

    def delta(self, before: list[Placement], now: list[Placement], frame: FrameRow) -> FrameDelta:
        """How a frame differs from the one before it, as the replay told."""
        against = before if frame.against is None else self.placements(frame.against)
        told = frame.told
        if told is not None:
            removed, inserted = self.placements(told.removed), self.placements(told.inserted)
            return FrameDelta(told.prefix, told.suffix, removed, inserted, told.reordered, against, now)
        return delta_of(before, now, frame.head, frame.tail) if against is before else delta_of(against, now)

    def placements(self, packed: bytes) -> list[Placement]:
        """Those of these numbers, in order."""
        if len(packed) % 4:
            raise DamagedError
        numbers = array("I")
        numbers.frombytes(packed)
        self._load(numbers)
        return [self._known[number] for number in numbers]

    def _load(self, numbers: Iterable[int]) -> None:
        """Have these placements, with their contents, at hand."""
        missing = [number for number in dict.fromkeys(numbers) if number not in self._known]
        if not missing:
            return
        rows = {number: decoded(body, PLACEMENT) for number, body in self._bodies("placements", missing)}
        wanted = list(dict.fromkeys(row.content for row in rows.values() if row.content >= 0 and self._texts))
        contents = {number: self._content(number) for number in wanted}
        for number, row in rows.items():
            self._known[number] = placement_of(row, contents.get(row.content))

    def omitted(self, named: Iterable[tuple[str, str | None, int]]) -> Omitted:
        """The texts of what a step left out."""
        return {(item, version): self._content(number) for item, version, number in named}

    def _content(self, number: int) -> Content:
        found = self._read.get(number)
        if found is None:
            found = self._read[number] = self._restored(number)
        return found

    def _bodies(self, table: str, numbers: list[int]) -> Iterable[tuple[int, bytes]]:
        """Rows by their numbers; raises DamagedError unless all are there."""
        if self._ahead:
            return self._ahead[table].take(numbers)
        return some_bodies(self.connection, table, numbers)

    def _restored(self, number: int) -> Content:
        ((_, body),) = self._bodies("contents", [number])
        stored = decoded(body, CONTENT)
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
            meta = from_msgpack(body_of(connection, "meta", 0), Meta)
            if (meta.format, meta.made_under) != (FORMAT, key.made_under):
                return None
            mark = from_msgpack(body_of(connection, "mark", 0), Mark)
            pieces = [body_of(connection, "mark", 1 + at) for at in range(mark.pieces)]
            return msgspec.structs.replace(mark, graph=b"".join(pieces)), key.path
    except (OSError, sqlite3.Error, DamagedError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def marked_placements(path: Path, numbers: Sequence[int], contents: Sequence[Content]) -> list[Placement]:
    """Placements of a kept replay, given all of its contents; raises DamagedError."""
    wanted = set(numbers)
    try:
        with closing(connected(path)) as connection:
            rows = connection.execute("SELECT number, body FROM placements")
            bodies = {number: body for number, body in rows if number in wanted}
        found: dict[int, Placement] = {}
        for number, row in zip(bodies, all_decoded("placements", bodies.items(), PLACEMENT), strict=True):
            found[number] = placement_of(row, contents[row.content] if row.content >= 0 else None)
        return [found[number] for number in numbers]
    except (sqlite3.Error, LookupError):
        raise DamagedError from None

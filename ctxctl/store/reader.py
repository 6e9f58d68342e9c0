"""Reads the session store: its steps, their frames, and how one frame differs from the next."""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.model.content import Content
from ctxctl.model.results import Change, Placement, Step, Turn
from ctxctl.store.rows import (
    CHANGES,
    PLACEMENTS,
    TEXT_COLUMNS,
    ToldDelta,
    change_of,
    damage,
    placement_of,
    step_of,
    text_of,
    told_of,
    turn_of,
)
from ctxctl.trace.cache_files import DamagedError

if TYPE_CHECKING:
    from ctxctl.trace.contents import Contents

_BLOCK: Final = 512
"""Placements that are read at once: those of one window mostly have numbers near each other."""
_MERGED: Final = 64
"""Placements above which those that came are merged into a window: each one put in moves all behind it."""
_STEPS: Final = (
    "SELECT t.id, t.thread, t.nth, t.body, t.told, n.body FROM steps t LEFT JOIN turns n ON n.step = t.id"
)
_STAYS: Final = (
    "SELECT t.id, s.last, s.pos, s.placement FROM steps t"
    " JOIN stays s ON s.thread = t.thread AND s.first = t.nth"
)


class StepRow(NamedTuple):
    """A step with what its rows say beside the frame."""

    ordinal: int
    thread: int
    nth: int
    step: Step
    turn: Turn | None
    told: ToldDelta | None
    omitted: dict[tuple[str, str | None], int]
    """By item and version the text of what the step left out."""


def step_rows(db: sqlite3.Connection) -> Iterator[StepRow]:
    """Each step in order; raises DamagedError."""
    with damage():
        coming = db.execute(CHANGES)
        change = coming.fetchone()
        for ordinal, thread, nth, body, told, turn in db.execute(f"{_STEPS} ORDER BY t.id"):
            changes: list[Change] = []
            omitted: dict[tuple[str, str | None], int] = {}
            while change is not None and change[0] == ordinal:
                changes.append(made := change_of(change))
                if change[1] is not None:
                    omitted[made.item, made.version] = change[1]
                change = coming.fetchone()
            step = step_of(body, tuple(changes))
            yield StepRow(ordinal, thread, nth, step, turn_of(turn), told_of(told), omitted)


class PlacementRows:
    """Placements by their rows: each one object, with its text from the trace."""

    def __init__(self, db: sqlite3.Connection, contents: Contents, *, texts: bool = True) -> None:
        """`texts`: whether the texts of placements are wanted."""
        self.db = db
        self._contents = contents
        self._texts = texts
        self._known: dict[int, Placement] = {}
        self._read: dict[int, Content] = {}

    def at(self, number: int) -> Placement:
        """The placement of a row; raises LookupError."""
        found = self._known.get(number)
        if found is None:
            start = number - number % _BLOCK
            rows = self.db.execute(f"{PLACEMENTS} WHERE p.id >= ? AND p.id < ?", (start, start + _BLOCK))
            for row in rows.fetchall():
                if row[0] not in self._known:
                    text = row[1 + _TEXT_AT]
                    content = None if text is None or not self._texts else self.text(text)
                    self._known[row[0]] = placement_of(row, content)
            found = self._known[number]
        return found

    def packed(self, numbers: bytes) -> list[Placement]:
        """The placements of some rows; the numbers take four bytes each."""
        return [self.at(number) for number in _unpacked(numbers)]

    def text(self, number: int) -> Content:
        """The text of a row."""
        found = self._read.get(number)
        if found is None:
            columns = ", ".join(TEXT_COLUMNS)
            row = self.db.execute(f"SELECT {columns} FROM texts WHERE id = ?", (number,)).fetchone()
            stored = text_of(row)
            if stored.base is not None and stored.base >= number:
                raise DamagedError
            base = None if stored.base is None else self.text(stored.base)
            found = self._read[number] = self._contents.restored(stored, base)
        return found


_TEXT_AT: Final = Placement.__struct_fields__.index("content")


def _unpacked(numbers: bytes) -> array[int]:
    found = array("I")
    found.frombytes(numbers)
    return found


class _Window:
    """One thread's window on a walk."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.placements: list[Placement] = []
        self.ends: dict[int, list[int]] = {}
        """By step of the thread, the positions that are free from it on."""


class FrameWalk:
    """The frames of all threads, or of one, a step after the other."""

    def __init__(self, rows: PlacementRows, thread: int | None = None) -> None:
        self._rows = rows
        which, values = ("", ()) if thread is None else (" WHERE t.thread = ?", (thread,))
        self._coming = rows.db.execute(f"{_STAYS}{which} ORDER BY t.id, s.pos", values)
        self._next = self._coming.fetchone()
        self._windows: dict[int, _Window] = {}

    def step(self, ordinal: int, thread: int, nth: int, told: ToldDelta | None) -> FrameDelta:
        """Go to the next step: how its frame differs from the one before in its thread."""
        window = self._windows.setdefault(thread, _Window())
        before = window.placements
        gone = window.ends.pop(nth, [])
        came: list[tuple[int, Placement]] = []
        while self._next is not None and self._next[0] == ordinal:
            _, last, pos, number = self._next
            came.append((pos, self._rows.at(number)))
            if last is not None:
                window.ends.setdefault(last + 1, []).append(pos)
            self._next = self._coming.fetchone()
        if gone or came:
            _move(window, gone, came)
        now = window.placements
        touched = [*gone, *(pos for pos, _ in came)]
        if told is not None:
            return _as_told(self._rows, told, before, now)
        if not touched:
            return delta_of(before, now, len(now))
        head = bisect_left(window.positions, min(touched))
        return delta_of(before, now, head, len(now) - bisect_right(window.positions, max(touched)))


def _move(window: _Window, gone: list[int], came: list[tuple[int, Placement]]) -> None:
    """Take the positions that are gone out of a window, and put in what came, by position."""
    positions, placements = window.positions, list(window.placements)
    if gone:
        lost = set(gone)
        low = bisect_left(positions, min(lost))
        high = bisect_right(positions, max(lost))
        kept = [at for at in range(low, high) if positions[at] not in lost]
        if high - low - len(kept) != len(gone):
            raise DamagedError
        placements[low:high] = [placements[at] for at in kept]
        positions[low:high] = [positions[at] for at in kept]
    if came and (not positions or came[0][0] > positions[-1]):
        positions += [pos for pos, _ in came]
        placements += [placement for _, placement in came]
    elif len(came) > _MERGED:
        both = sorted([*zip(positions, placements, strict=True), *came], key=itemgetter(0))
        positions[:], placements[:] = [pos for pos, _ in both], [placement for _, placement in both]
    else:
        for pos, placement in came:
            at = bisect_left(positions, pos)
            positions.insert(at, pos)
            placements.insert(at, placement)
    window.placements = placements


def _as_told(
    rows: PlacementRows, told: ToldDelta, before: list[Placement], now: list[Placement]
) -> FrameDelta:
    against = before if told.against is None else rows.packed(told.against)
    removed, inserted = rows.packed(told.removed), rows.packed(told.inserted)
    return FrameDelta(told.prefix, told.suffix, removed, inserted, told.reordered, against, now)


def walk(
    db: sqlite3.Connection, contents: Contents
) -> Iterator[tuple[StepAt, FrameDelta, dict[tuple[str, str | None], Content]]]:
    """Each step with its frame, how that differs from the one before, and the texts of what it left out."""
    with damage():
        rows = PlacementRows(db, contents)
        frames = FrameWalk(rows)
        for row in step_rows(db):
            delta = frames.step(row.ordinal, row.thread, row.nth, row.told)
            omitted = {name: rows.text(number) for name, number in row.omitted.items()}
            yield StepAt(row.step, delta.after, row.turn), delta, omitted


def thread_deltas(
    db: sqlite3.Connection, contents: Contents, ordinals: Sequence[int]
) -> Iterator[tuple[int, FrameDelta]]:
    """How the frames of one thread's first steps differ, each from the one before.

    `ordinals` are those of the steps, in order.  The placements have no texts.
    """
    with damage():
        rows = PlacementRows(db, contents, texts=False)
        frames: FrameWalk | None = None
        for nth, ordinal in enumerate(ordinals, 1):
            query = "SELECT thread, nth, told FROM steps WHERE id = ?"
            thread, there, told = db.execute(query, (ordinal,)).fetchone()
            if there != nth:
                raise DamagedError
            frames = frames or FrameWalk(rows, thread)
            yield ordinal, frames.step(ordinal, thread, nth, told_of(told))


def step_at(rows: PlacementRows, ordinal: int) -> StepAt:
    """A step with its frame; raises DamagedError where there is none."""
    db = rows.db
    with damage():
        row = db.execute(f"{_STEPS} WHERE t.id = ?", (ordinal,)).fetchone()
        _, thread, nth, body, _, turn = row
        changes = map(change_of, db.execute(CHANGES.replace("ORDER", "WHERE c.step = ? ORDER"), (ordinal,)))
        numbers = db.execute(
            "SELECT placement FROM stays WHERE thread = ? AND first <= ? AND (last IS NULL OR last >= ?)"
            " ORDER BY pos",
            (thread, nth, nth),
        ).fetchall()
        placements = [rows.at(number) for (number,) in numbers]
        return StepAt(step_of(body, tuple(changes)), placements, turn_of(turn))


def placements_of(
    db: sqlite3.Connection, numbers: Sequence[int], contents: Sequence[Content]
) -> list[Placement]:
    """The placements of some rows, given the contents of all text rows; raises DamagedError."""
    with damage():
        wanted = set(numbers)
        found = {
            row[0]: placement_of(row, None if row[1 + _TEXT_AT] is None else contents[row[1 + _TEXT_AT]])
            for row in db.execute(PLACEMENTS)
            if row[0] in wanted
        }
        return [found[number] for number in numbers]

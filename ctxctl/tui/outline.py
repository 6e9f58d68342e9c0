"""The list of turns: which steps make a turn, and which list line stands for what.  Plain Python.

Building a `Turns` reads every row once and belongs in the loader's thread; everything else here costs the
number of turns that are unfolded, at most.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from ctxctl.model.outline import Row


@dataclass(slots=True, eq=False)
class TurnEntry:
    """One turn of one thread: its steps, and their ledgers in sum."""

    session: str | None
    thread: str
    turn: int
    title: str | None = None
    ordinals: array[int] = field(default_factory=lambda: array("L"))
    """Ordinals of its steps, ascending; another thread's steps may lie between them."""
    used: int = 0
    """Tokens in the window at its last step."""
    new: int = 0
    freed: int = 0
    cap: int | None = None
    compacted: bool = False
    flagged: bool = False
    """Some step has a warning."""


class Place(NamedTuple):
    """What one line of the list stands for: a turn, or (`step` is not None) one step of it, both 0-based."""

    turn: int
    step: int | None


class Turns:
    """All turns of a trace in the order of their first steps."""

    def __init__(self) -> None:
        self.entries: list[TurnEntry] = []
        self.rows: Sequence[Row] = ()
        self.totals: dict[tuple[str | None, str], int] = {}
        """The highest turn number by session and thread."""
        self.peak = 0
        """Most tokens that any step had in its window."""

    @property
    def several(self) -> bool:
        """Whether the trace holds more than one thread or session."""
        return len(self.totals) > 1

    @classmethod
    def of(cls, rows: Sequence[Row], pause: Callable[[], None] | None = None) -> Turns:
        """The turns of an outline; `pause` is called every few thousand rows and may raise to stop."""
        turns = cls()
        turns.rows = rows
        places: dict[tuple[str | None, str, int], TurnEntry] = {}
        for n, row in enumerate(rows):
            if pause is not None and n % 2048 == 0:
                pause()
            turns._take(row, places)
        return turns

    def _take(self, row: Row, places: dict[tuple[str | None, str, int], TurnEntry]) -> None:
        key = (row.session, row.thread, row.turn)
        entry = places.get(key)
        if entry is None:
            entry = places[key] = TurnEntry(row.session, row.thread, row.turn)
            self.entries.append(entry)
            thread = (row.session, row.thread)
            self.totals[thread] = max(self.totals.get(thread, 0), row.turn)
        entry.ordinals.append(row.ordinal)
        entry.title = entry.title or row.title
        entry.used = row.used
        entry.new += row.new
        entry.freed += row.freed
        entry.cap = row.cap
        entry.compacted |= row.compacted
        entry.flagged |= any(flag in WARNINGS for flag in row.flags)
        self.peak = max(self.peak, row.used)

    def total(self, entry: TurnEntry) -> int:
        """How many turns the entry's thread has."""
        return self.totals[entry.session, entry.thread]


WARNINGS = frozenset({"unrecorded_cut", "still_over_budget", "over_budget", "missing_context"})
"""Flags of a step that the list of turns marks; the others are facts of the recording."""


@dataclass(frozen=True, slots=True)
class Folding:
    """Which turns are unfolded, and how list lines and turns map to each other."""

    turns: Turns
    unfolded: tuple[int, ...] = ()
    """Indices of the turns whose steps are listed, ascending."""
    _starts: tuple[int, ...] = ()
    """Line of each unfolded turn."""

    @property
    def count(self) -> int:
        """Lines of the list."""
        return len(self.turns.entries) + self._steps_before(len(self.unfolded))

    def _steps_before(self, k: int) -> int:
        """Step lines of the first `k` unfolded turns."""
        if k == 0:
            return 0
        last = self.unfolded[k - 1]
        return self._starts[k - 1] - last + len(self.turns.entries[last].ordinals)

    def at(self, line: int) -> Place:
        """What list line `line` (0 ≤ line < count) stands for."""
        k = bisect_right(self._starts, line)
        if k:
            turn = self.unfolded[k - 1]
            below = line - self._starts[k - 1]
            if below == 0:
                return Place(turn, None)
            if below <= len(self.turns.entries[turn].ordinals):
                return Place(turn, below - 1)
        return Place(line - self._steps_before(k), None)

    def line(self, place: Place) -> int:
        """The line of a place; of a step whose turn is folded, the turn's."""
        k = bisect_left(self.unfolded, place.turn)
        line = place.turn + self._steps_before(k)
        if place.step is not None and self.is_unfolded(place.turn):
            return line + 1 + place.step
        return line

    def is_unfolded(self, turn: int) -> bool:
        """Whether the turn's steps are listed."""
        k = bisect_left(self.unfolded, turn)
        return k < len(self.unfolded) and self.unfolded[k] == turn

    def with_turns(self, unfolded: Iterable[int]) -> Folding:
        """The same list with exactly these turns unfolded."""
        chosen = tuple(sorted(set(unfolded)))
        sizes = [len(self.turns.entries[turn].ordinals) for turn in chosen]
        before = [0, *accumulate(sizes)]
        return Folding(self.turns, chosen, tuple(turn + before[n] for n, turn in enumerate(chosen)))

    def toggled(self, turn: int) -> Folding:
        """The same list with one turn folded or unfolded."""
        return self.with_turns(set(self.unfolded) ^ {turn})

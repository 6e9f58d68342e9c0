"""The list of turns: which steps make a turn, and which list line stands for what.  Plain Python.

Rows come while the trace is still being read.  A `Grouping` in the reading thread turns the new ones into a
`Growth`, and the `Turns` on the event loop takes that in: what either does costs what is new, never what is
there.  Everything else here costs the number of turns that are unfolded, at most.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from ctxctl.model.outline import Row

ThreadName = tuple[str | None, str]
"""Session and thread."""


@dataclass(slots=True, eq=False)
class TurnEntry:
    """One turn of one thread: its steps so far, and their ledgers in sum."""

    session: str | None
    thread: str
    turn: int
    title: str | None = None
    ordinals: array[int] = field(default_factory=lambda: array("L"))
    """Ordinals of its steps, ascending; another thread's steps may lie between them.

    Grows at its end while the turn is read, and is shared by the turn's older and newer entries.
    """
    steps: int = 0
    """How many of `ordinals` this entry speaks of."""
    whole: bool = False
    """Whether all its steps are known."""
    used: int = 0
    """Tokens in the window at its last step."""
    new: int = 0
    freed: int = 0
    cap: int | None = None
    compacted: bool = False
    flagged: bool = False
    """Some step has a warning."""

    @property
    def last(self) -> int:
        """Ordinal of its last step."""
        return self.ordinals[self.steps - 1]


class Place(NamedTuple):
    """What one line of the list stands for: a turn, or (`step` is not None) one step of it, both 0-based."""

    turn: int
    step: int | None


class Growth(NamedTuple):
    """What more is known of the turns."""

    entries: Sequence[tuple[int, TurnEntry]]
    """Turns that are new or have changed, by their place in the list, ascending."""
    rows: Sequence[Row]
    """All rows; only those that some entry speaks of may be read."""
    peak: int
    """Most tokens that any step had in its window."""


class Grouping:
    """Groups rows into turns as they come.  Belongs to one thread; what it hands out is never changed again,
    but for `ordinals`, which only grow.
    """

    def __init__(self) -> None:
        self._entries: list[TurnEntry] = []
        self._places: dict[tuple[str | None, str, int], int] = {}
        self._open: dict[ThreadName, int] = {}
        """Each thread's turn that may go on."""
        self._changed: set[int] = set()
        self._untitled: set[int] = set()
        """Turns whose title may be filled in soon: it follows the row of their last step."""
        self._read = 0
        self._peak = 0

    def take(
        self, rows: Sequence[Row], pause: Callable[[], None] | None = None, *, complete: bool = False
    ) -> Growth:
        """What the rows from the last one taken on have changed.

        `rows` may grow meanwhile.  `complete`: there will be no more.  `pause` is called every few thousand
        rows and may raise to stop.
        """
        for index in list(self._untitled):
            self._entitle(index, rows)
        end = len(rows)
        untitled: set[int] = set()
        for n in range(self._read, end):
            if pause is not None and n % 2048 == 0:
                pause()
            index = self._take(rows[n])
            if self._entries[index].title is None:
                untitled.add(index)
        self._read = end
        self._untitled = untitled
        if complete:
            for index in untitled:
                self._entitle(index, rows)
            for index in self._open.values():
                self._close(index)
            self._open = {}
        changed = [(index, replace(self._entries[index])) for index in sorted(self._changed)]
        self._changed = set()
        return Growth(changed, rows, self._peak)

    def _take(self, row: Row) -> int:
        key = (row.session, row.thread, row.turn)
        index = self._places.get(key)
        if index is None:
            index = self._places[key] = len(self._entries)
            self._entries.append(TurnEntry(row.session, row.thread, row.turn))
        entry = self._entries[index]
        before = self._open.get((row.session, row.thread))
        if before != index:
            if before is not None:
                self._close(before)
            self._open[row.session, row.thread] = index
            entry.whole = False
        entry.ordinals.append(row.ordinal)
        entry.steps += 1
        entry.title = entry.title or row.title
        entry.used = row.used
        entry.new += row.new
        entry.freed += row.freed
        entry.cap = row.cap
        entry.compacted |= row.compacted
        entry.flagged |= any(flag in WARNINGS for flag in row.flags)
        self._peak = max(self._peak, row.used)
        self._changed.add(index)
        return index

    def _close(self, index: int) -> None:
        self._entries[index].whole = True
        self._changed.add(index)

    def _entitle(self, index: int, rows: Sequence[Row]) -> None:
        entry = self._entries[index]
        title = rows[entry.ordinals[0]].title
        if title != entry.title:
            entry.title = title
            self._changed.add(index)


class Turns:
    """The turns known so far, in the order of their first steps.  Belongs to the event loop."""

    def __init__(self) -> None:
        self.entries: list[TurnEntry] = []
        self.rows: Sequence[Row] = ()
        self.totals: dict[ThreadName, int] = {}
        """The highest turn number by session and thread."""
        self.highest = 0
        """The highest turn number of all."""
        self.sessions: set[str | None] = set()
        self.peak = 0
        """Most tokens that any step had in its window."""

    @property
    def several(self) -> bool:
        """Whether the trace holds more than one thread or session."""
        return len(self.totals) > 1

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Turns:
        """The turns of a whole outline."""
        turns = cls()
        turns.grow(Grouping().take(rows, complete=True))
        return turns

    def grow(self, growth: Growth) -> None:
        """Take in what more is known."""
        for index, entry in growth.entries:
            if index < len(self.entries):
                self.entries[index] = entry
                continue
            self.entries.append(entry)
            thread = (entry.session, entry.thread)
            self.totals[thread] = max(self.totals.get(thread, 0), entry.turn)
            self.highest = max(self.highest, entry.turn)
            self.sessions.add(entry.session)
        self.rows = growth.rows
        self.peak = growth.peak

    def total(self, entry: TurnEntry) -> int:
        """How many turns of the entry's thread are known."""
        return self.totals[entry.session, entry.thread]


WARNINGS = frozenset(
    {"unrecorded_cut", "still_over_budget", "over_budget", "missing_context", "unknown_base"}
)
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
        return self._starts[k - 1] - last + self.turns.entries[last].steps

    def at(self, line: int) -> Place:
        """What list line `line` (0 ≤ line < count) stands for."""
        k = bisect_right(self._starts, line)
        if k:
            turn = self.unfolded[k - 1]
            below = line - self._starts[k - 1]
            if below == 0:
                return Place(turn, None)
            if below <= self.turns.entries[turn].steps:
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
        sizes = [self.turns.entries[turn].steps for turn in chosen]
        before = [0, *accumulate(sizes)]
        return Folding(self.turns, chosen, tuple(turn + before[n] for n, turn in enumerate(chosen)))

    def toggled(self, turn: int) -> Folding:
        """The same list with one turn folded or unfolded."""
        return self.with_turns(set(self.unfolded) ^ {turn})

"""The list of turns: which steps make a turn, and which list line stands for what.  Plain Python.

Rows come while the trace is still being read.  A `Grouping` in the reading thread turns the new ones into a
`Growth`, and the `Turns` on the event loop takes that in: what either does costs what is new, never what is
there.  Everything else here costs the number of turns that are unfolded, at most.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ctxctl.model.outline import Row
from ctxctl.model.vocab import warns
from ctxctl.tui.thread_names import ThreadName
from ctxctl.tui.thread_tree import ThreadTree, TurnEntry


class Growth(NamedTuple):
    """What has become known of the turns."""

    entries: Sequence[tuple[int, TurnEntry]]
    """Turns that are new or have changed, by their place in the list, ascending."""
    rows: Sequence[Row]
    """All rows; only those that some entry speaks of may be read."""
    peak: int
    """Most tokens that any step sent."""
    kept: int | None = None
    """Leading entries that are the turns they were; those behind them are gone or told anew.  None: all."""
    since: int | None = None
    """Ordinal from which on rows are new or told anew; all before are as they were.  None: all of them."""


class _Undo(NamedTuple):
    """What a grouping was before it took rows that may be taken back."""

    known: int
    entries: dict[int, TurnEntry]
    open: dict[ThreadName, int]
    peak: int


class Grouping:
    """Groups rows into turns as they come.  Belongs to one thread; what it hands out is never changed again,
    but for `ordinals`, which only grow.

    Rows may say with a number `settled` that those behind it can be others the next time: they are taken back
    then, and what that costs is what they were.
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
        """Rows that were taken for good."""
        self._peak = 0
        self._undo: _Undo | None = None

    def take(
        self,
        rows: Sequence[Row],
        pause: Callable[[], None] | None = None,
        *,
        complete: bool = False,
        kept: int | None = None,
    ) -> Growth:
        """What the rows from the last one taken on have changed.

        `rows` may grow meanwhile.  `complete`: there will be no more.  `kept`: only so many of the rows taken
        for good are still what they were.  `pause` is called every few thousand rows and may raise to stop.
        """
        known = len(self._entries) if self._undo is None else self._undo.known
        self._take_back()
        if kept is not None and kept < self._read:
            self._cut(rows, kept)
            known = min(known, len(self._entries))
        end, since = len(rows), self._read
        settled = min(end, getattr(rows, "settled", end))
        touched = set(self._untitled)
        # A title comes by the time that the next turn of the thread has a row, or it never does.
        nameless = {index for index in touched if self._entries[index].whole}
        for n in range(self._read, end):
            if pause is not None and n % 2048 == 0:
                pause()
            if n == settled:
                self._undo = _Undo(len(self._entries), {}, dict(self._open), self._peak)
            touched.add(self._take(rows[n]))
            if n < settled:
                self._read = n + 1
        for index in touched:
            self._entitle(index, rows)
        self._untitled = {
            index
            for index in touched
            if self._entries[index].title is None and not (index in nameless and self._entries[index].whole)
        }
        if complete:
            for index in self._open.values():
                self._close(index)
            self._open = {}
        changed = [(index, replace(self._entries[index])) for index in sorted(self._changed)]
        self._changed = set()
        return Growth(changed, rows, self._peak, known, since)

    def _take_back(self) -> None:
        """Forget the rows that were not taken for good."""
        undo, self._undo = self._undo, None
        if undo is None:
            return
        self._drop(undo.known)
        for index, entry in undo.entries.items():
            self._entries[index] = entry
            self._changed.add(index)
            self._untitled.add(index)
        self._open, self._peak = undo.open, undo.peak

    def _drop(self, count: int) -> None:
        """Forget the entries behind the first `count`."""
        for entry in self._entries[count:]:
            del self._places[entry.session, entry.thread, entry.turn]
        del self._entries[count:]
        self._changed = {index for index in self._changed if index < count}
        self._untitled = {index for index in self._untitled if index < count}

    def _cut(self, rows: Sequence[Row], kept: int) -> None:
        """Forget rows that were taken for good; costs the number of turns, and the rows of those hit."""
        entries = self._entries
        self._drop(sum(1 for entry in entries if entry.ordinals[0] < kept))
        self._open = {}
        for index, entry in enumerate(entries):
            if entry.last >= kept:
                ordinals = entry.ordinals[: bisect_left(entry.ordinals, kept)]
                entries[index] = TurnEntry(entry.session, entry.thread, entry.turn, None, ordinals)
                for ordinal in ordinals:
                    _add(entries[index], rows[ordinal])
                entries[index].whole = True
                self._changed.add(index)
                self._untitled.add(index)
            thread = (entry.session, entry.thread)
            before = self._open.get(thread)
            if before is None or entries[before].last < entries[index].last:
                self._open[thread] = index
        for index in self._open.values():
            if entries[index].whole:
                entries[index].whole = False
                self._changed.add(index)
        self._peak = max((rows[n].used for n in range(kept)), default=0)
        self._read = kept

    def _remember(self, index: int) -> TurnEntry:
        """Return an entry that is about to change; keep a copy of it where the change may be taken back."""
        entry, undo = self._entries[index], self._undo
        if undo is not None and index < undo.known and index not in undo.entries:
            undo.entries[index] = entry
            entry = self._entries[index] = replace(entry, ordinals=entry.ordinals[: entry.steps])
        self._changed.add(index)
        return entry

    def _take(self, row: Row) -> int:
        key = (row.session, row.thread, row.turn)
        index = self._places.get(key)
        if index is None:
            index = self._places[key] = len(self._entries)
            self._entries.append(TurnEntry(row.session, row.thread, row.turn))
        entry = self._remember(index)
        before = self._open.get((row.session, row.thread))
        if before != index:
            if before is not None:
                self._close(before)
            self._open[row.session, row.thread] = index
            entry.whole = False
        entry.ordinals.append(row.ordinal)
        _add(entry, row)
        self._peak = max(self._peak, row.used)
        return index

    def _close(self, index: int) -> None:
        self._remember(index).whole = True

    def _entitle(self, index: int, rows: Sequence[Row]) -> None:
        entry = self._entries[index]
        title = rows[entry.ordinals[0]].title
        if title != entry.title:
            entry.title = title
            self._changed.add(index)


def _add(entry: TurnEntry, row: Row) -> None:
    """Add one more step to the sums."""
    entry.steps += 1
    entry.used = row.used
    entry.method = row.method
    entry.new += row.new
    entry.freed += row.freed
    entry.cap = row.cap
    entry.compacted |= row.compacted
    entry.flagged |= warned(row)
    if row.used >= entry.peak:
        entry.peak, entry.peak_method = row.used, row.method
    entry.limit = row.limit
    entry.threshold = row.threshold
    entry.threshold_source = row.threshold_source
    entry.model = row.model
    entry.broken |= row.broken
    entry.missed += row.missed
    counts = row.counts
    entry.added += counts.added
    entry.updated += counts.updated
    entry.removed += counts.removed
    entry.omitted += counts.omitted
    entry.skipped = counts.skipped
    entry.reported = _more(entry.reported, row.reported)
    entry.cached = _more(entry.cached, row.cached)
    entry.answered = _more(entry.answered, row.answered)
    entry.partial |= row.has_partial_output


def step_entry(row: Row) -> TurnEntry:
    """A step by itself, as if it were a turn."""
    entry = TurnEntry(row.session, row.thread, row.turn, row.title)
    entry.ordinals.append(row.ordinal)
    _add(entry, row)
    return entry


def warned(row: Row) -> bool:
    """Whether the list marks the step: by its flags, or as it sent more than its cap."""
    return warns(row.flags, over=row.over)


def _more(known: int | None, more: int | None) -> int | None:
    """The sum of two numbers of which either may be unknown."""
    return known if more is None else (known or 0) + more


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
        """Most tokens that any step sent."""
        self.tree = ThreadTree()
        """Which thread began where."""
        self._before: list[tuple[int, int, bool]] = []
        """By entry, what was known before it: the thread's turns, the highest, and whether of the session."""

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
        """Take in what has become known."""
        if growth.since is not None:
            self.tree.cut_steps(growth.since)
        if growth.kept is not None:
            while len(self.entries) > growth.kept:
                self._forget(self.entries.pop())
        for index, entry in growth.entries:
            self.tree.take(index, entry, growth.rows)
            if index < len(self.entries):
                self.entries[index] = entry
                continue
            self.entries.append(entry)
            thread = (entry.session, entry.thread)
            total = self.totals.get(thread, 0)
            self._before.append((total, self.highest, entry.session in self.sessions))
            self.totals[thread] = max(total, entry.turn)
            self.highest = max(self.highest, entry.turn)
            self.sessions.add(entry.session)
        self.rows = growth.rows
        self.peak = growth.peak
        self.tree.settle()

    def _forget(self, entry: TurnEntry) -> None:
        """Forget the last entry."""
        self.tree.remove()
        total, self.highest, known = self._before.pop()
        if total:
            self.totals[entry.session, entry.thread] = total
        else:
            del self.totals[entry.session, entry.thread]
        if not known:
            self.sessions.discard(entry.session)

    @property
    def settled(self) -> int:
        """Leading rows of steps that are over; those behind them are still being written."""
        return int(getattr(self.rows, "settled", len(self.rows)))

    def total(self, entry: TurnEntry) -> int:
        """How many turns of the entry's thread are known."""
        return self.totals[entry.session, entry.thread]

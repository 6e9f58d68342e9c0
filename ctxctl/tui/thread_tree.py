"""Which thread began in which turn, and which turns stand at the top of the list.  Plain Python.

A thread that another one set off stands below the step that did; where the trace does not name that thread,
it stands below the step of the session's main thread during which it began, and is marked.  Steps are told
once they are over, so a thread that began in a step still open is moved there later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.model.vocab import MAIN_THREAD, UsedMethod
from ctxctl.tui.series import BROKEN, COMPACTED, FLAGGED, OMITTED, Figures, Series
from ctxctl.tui.step_series import MOST_TURNS, StepSeries, wants_steps
from ctxctl.tui.thread_names import ThreadName, ThreadNames

if TYPE_CHECKING:
    from ctxctl.model.outline import Row


_DEEPEST: Final = 64
"""Threads inside threads; one that would stand deeper stands at the top."""


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
    """Tokens that its last step sent."""
    method: UsedMethod = "recorded"
    """How that is known."""
    new: int = 0
    freed: int = 0
    cap: int | None = None
    compacted: bool = False
    flagged: bool = False
    """Some step has a warning."""
    peak: int = 0
    """Most tokens that any of its steps sent."""
    peak_method: UsedMethod = "recorded"
    """How that is known."""
    limit: int | None = None
    threshold: int | None = None
    threshold_source: str | None = None
    """Where the runtime compacts by itself, and which rule says so."""
    broken: bool = False
    """In some step a prompt cache could reuse less than nine tenths of the request before."""
    missed: int = 0
    """Tokens that caches could have given in its steps and did not, where nothing recorded explains it."""
    added: int = 0
    updated: int = 0
    removed: int = 0
    omitted: int = 0
    """Items, step by step, in sum."""
    skipped: int = 0
    """Items that its last step left as they were."""
    model: str | None = None
    """Of its last step."""
    cached: int | None = None
    reported: int | None = None
    answered: int | None = None
    """Tokens that the provider reported, of all its steps: served from a cache, sent, answered."""
    partial: bool = False
    """Some output was logged before the answer's end; `answered` has it as counted."""

    @property
    def notable(self) -> bool:
        """Whether it is worth a stop: a compaction, a warning, a cache that gave less, something left out."""
        return self.compacted or self.flagged or self.rewritten or self.omitted > 0

    @property
    def rewritten(self) -> bool:
        """Whether a cache gave less than it could have: it was broken, or missed."""
        return self.broken or self.missed > 0

    @property
    def marks(self) -> int:
        """What is to be marked of the turn in a chart."""
        return (
            COMPACTED * self.compacted
            | BROKEN * self.rewritten
            | FLAGGED * self.flagged
            | OMITTED * (self.omitted > 0)
        )

    @property
    def last(self) -> int:
        """Ordinal of its last step."""
        return self.ordinals[self.steps - 1]


class Place(NamedTuple):
    """What one line of the list stands for: a turn, or (`step` is not None) one step of it, both 0-based.

    The heading of a session has its first turn at the top, and `HEADING` for a step.
    """

    turn: int
    step: int | None


HEADING: Final = -1


@dataclass(slots=True, eq=False)
class Thread:
    """One thread: its turns, and where it began."""

    name: ThreadName
    turns: list[int] = field(default_factory=list)
    series: Series = field(default_factory=Series)
    """Figures of its turns, one after the other."""
    by_step: StepSeries | None = field(default_factory=StepSeries)
    """Figures of its steps; None: it has too many turns for anybody to ask."""
    at: Place | None = None
    """The step that it began in; None: it stands at the top."""
    recorded: bool = False
    """Whether the trace names the thread that set it off; else its place is derived from where it begins."""
    new: int = 0
    freed: int = 0
    steps: int = 0
    breaks: int = 0
    """Turns with a cache break."""
    compactions: int = 0
    """Turns with a compaction."""
    warnings: int = 0
    omissions: int = 0
    """Turns with a warning, and with items left out."""
    partial: int = 0
    """Turns with an output that was logged before the answer's end."""
    models: dict[str, int] = field(default_factory=dict)
    """Models by the number of turns that ended with them."""
    sums: list[int] = field(default_factory=lambda: [0] * 6)
    """What the provider reported, in tokens: input, cached, output, and of how many turns each is known."""

    def steps_for(self, room: int) -> StepSeries | None:
        """The steps that a chart of so many cells shows; None: it shows the turns."""
        wanted = self.by_step is not None and wants_steps(len(self.turns), self.steps, room)
        return self.by_step if wanted else None

    @property
    def reported(self) -> int | None:
        """Input tokens, of the turns of which they are known."""
        return self.sums[0] if self.sums[3] else None

    @property
    def cached(self) -> int | None:
        """Those of them that came from a cache."""
        return self.sums[1] if self.sums[4] else None

    @property
    def answered(self) -> int | None:
        """Output tokens."""
        return self.sums[2] if self.sums[5] else None


@dataclass(slots=True, eq=False)
class Session:
    """One session: its turns at the top, ascending, and those of them with something of note in or below."""

    name: str | None
    roots: list[int] = field(default_factory=list)
    notable: list[int] = field(default_factory=list)


class ThreadTree:
    """Threads, sessions and where each stands; kept up to date at the cost of what changes."""

    def __init__(self) -> None:
        self.threads: dict[ThreadName, Thread] = {}
        self.names = ThreadNames()
        """What threads are called."""
        self.sessions: dict[str | None, Session] = {}
        self.kids: dict[int, list[ThreadName]] = {}
        """By turn, the threads that began in it, in the order in which they became known."""
        self.parents: list[int] = []
        """Turns at the top that have something below, ascending."""
        self.billed = 0
        """Turns of which a bill is known."""
        self.freed = 0
        """Tokens that left, in all."""
        self.touched: set[int] = set()
        """Turns at the top with changes in or below them, until somebody takes note."""
        self._rows: Sequence[Row] = ()
        self._entries: list[TurnEntry] = []
        self._below: dict[int, int] = {}
        """By turn, how many turns of note stand below it."""
        self._told = 0
        """All steps with figures have lower ordinals."""
        self._floating: dict[ThreadName, None] = {}
        """Threads whose place may still change."""

    # What more is known

    def take(self, index: int, entry: TurnEntry, rows: Sequence[Row]) -> None:
        """A turn is new or has changed."""
        self._rows = rows
        name = (entry.session, entry.thread)
        thread = self.threads.get(name)
        if thread is None:
            thread = self.threads[name] = Thread(name)
            self._floating[name] = None
            self.names.take(*name, rows[entry.ordinals[0]].origin)
        noted = 0
        if index == len(self._entries):
            self._entries.append(entry)
            thread.turns.append(index)
        else:
            before, self._entries[index] = self._entries[index], entry
            noted = before.notable
            self._sum(thread, before, -1)
            if entry.steps < before.steps:
                self._floating.update(dict.fromkeys(self.kids.get(index, ())))
        self._sum(thread, entry, 1)
        self._count(thread.at, entry.notable - noted)
        at = bisect_left(thread.turns, index)
        thread.series.put(at, _figures(entry))
        if len(thread.turns) > MOST_TURNS:
            thread.by_step = None
        if thread.by_step is not None:
            thread.by_step.take(entry.ordinals, entry.steps, rows)
            self._told = max(self._told, entry.last + 1)
        if thread.at is None:
            self._raise(index)
        self._note(self.root(index))

    def cut_steps(self, ordinal: int) -> None:
        """Steps from an ordinal on are told anew: forget what was known of them."""
        if ordinal >= self._told:
            return
        for thread in self.threads.values():
            if thread.by_step is not None:
                thread.by_step.cut(ordinal)
        self._told = ordinal

    def settle(self) -> None:
        """Find the places of threads that may have one by now."""
        for name in list(self._floating):
            self._place(self.threads[name])

    def remove(self) -> None:
        """The last turn is no more."""
        index = len(self._entries) - 1
        entry = self._entries[index]
        thread = self.threads[entry.session, entry.thread]
        self._sum(thread, entry, -1)
        for name in self.kids.get(index, [])[:]:
            self._move(self.threads[name], None)
            self._floating[name] = None
        self._count(thread.at, -entry.notable)
        if thread.at is None:
            self._lower(index)
        else:
            self._note(self.root(index))
        thread.turns.pop()
        thread.series.pop()
        if not thread.turns:
            if thread.at is not None:
                self._move(thread, None)
            del self.threads[thread.name]
            self._floating.pop(thread.name, None)
        self._entries.pop()

    # Where things stand

    def thread_of(self, turn: int) -> Thread:
        """The thread of a turn."""
        entry = self._entries[turn]
        return self.threads[entry.session, entry.thread]

    def root(self, turn: int) -> int:
        """The turn at the top, below which (or as which) a turn stands."""
        at = self.thread_of(turn).at
        while at is not None:
            turn = at.turn
            at = self.thread_of(turn).at
        return turn

    def depth(self, turn: int) -> int:
        """How many threads a turn stands below."""
        depth = 0
        at = self.thread_of(turn).at
        while at is not None:
            depth += 1
            at = self.thread_of(at.turn).at
        return depth

    def session_of(self, root: int) -> Session:
        """The session in which a turn at the top is listed."""
        return self.sessions[self._entries[root].session]

    def session_name(self, session: str | None, room: int) -> str:
        """What a session is called in so many cells."""
        found = self.sessions.get(session)
        title = self._entries[found.roots[0]].title if found is not None and found.roots else None
        return self.names.session(session, title, room)

    def rank(self, root: int) -> int:
        """The place of a turn at the top among those of its session."""
        return bisect_left(self.session_of(root).roots, root)

    # Inside

    def _raise(self, index: int) -> None:
        """List a turn at the top."""
        name = self._entries[index].session
        session = self.sessions.get(name)
        if session is None:
            session = self.sessions[name] = Session(name)
        _put(session.roots, index)
        self._note(index)

    def _lower(self, index: int) -> None:
        """List a turn at the top no more."""
        session = self.session_of(index)
        _drop(session.roots, index)
        _drop(session.notable, index)
        _drop(self.parents, index)
        self.touched.add(index)
        if not session.roots:
            del self.sessions[session.name]

    def _note(self, root: int) -> None:
        """Keep the lists of turns at the top that have something below, and something of note."""
        self.touched.add(root)
        (_put if root in self.kids else _drop)(self.parents, root)
        notable = self._entries[root].notable or self._below.get(root, 0) > 0
        (_put if notable else _drop)(self.session_of(root).notable, root)

    def _count(self, at: Place | None, more: int) -> None:
        """Turns of note have come, or gone, below a place."""
        while at is not None and more:
            self._below[at.turn] = self._below.get(at.turn, 0) + more
            at = self.thread_of(at.turn).at

    def _sum(self, thread: Thread, entry: TurnEntry, sign: int) -> None:
        thread.new += sign * entry.new
        thread.freed += sign * entry.freed
        self.freed += sign * entry.freed
        thread.steps += sign * entry.steps
        thread.breaks += sign * entry.rewritten
        thread.compactions += sign * entry.compacted
        thread.warnings += sign * entry.flagged
        thread.omissions += sign * (entry.omitted > 0)
        thread.partial += sign * entry.partial
        for n, tokens in enumerate((entry.reported, entry.cached, entry.answered)):
            thread.sums[n] += sign * (tokens or 0)
            thread.sums[n + 3] += sign * (tokens is not None)
        self.billed += sign * (entry.reported is not None)
        if entry.model is not None:
            thread.models[entry.model] = thread.models.get(entry.model, 0) + sign
            if not thread.models[entry.model]:
                del thread.models[entry.model]

    def _place(self, thread: Thread) -> None:
        """Put a thread where it began, as far as that is known."""
        first = self._rows[self._entries[thread.turns[0]].ordinals[0]]
        parent = self._parent(thread, first)
        if parent is None:
            if first.origin is None and thread.name[1] == MAIN_THREAD:
                self._floating.pop(thread.name, None)  # nothing will ever be known of it
            return
        thread.recorded = first.origin is not None
        at, settled = self._step_at(parent, first.first_line)
        if at is None or self._would_loop(thread, at):
            at = None
        if at != thread.at:
            self._move(thread, at)
        if settled:
            self._floating.pop(thread.name, None)

    def _parent(self, thread: Thread, first: Row) -> Thread | None:
        """The thread that set one off: as recorded, or else the session's main one."""
        session, name = thread.name
        if first.origin is not None and first.origin.parent_thread is not None:
            parent_name = first.origin.parent_thread
            found = self.threads.get((session, parent_name)) or self.threads.get((parent_name, MAIN_THREAD))
        elif name != MAIN_THREAD:
            found = self.threads.get((session, MAIN_THREAD))
        else:
            found = None
        return None if found is thread else found

    def _step_at(self, parent: Thread, line: int) -> tuple[Place | None, bool]:
        """The step of a thread in which a line of the trace falls, and whether that is certain by now."""
        rows, entries = self._rows, self._entries
        n = bisect_right(parent.turns, line, key=lambda turn: rows[entries[turn].ordinals[0]].first_line)
        if n == 0:
            return None, False
        turn = parent.turns[n - 1]
        entry = entries[turn]
        steps = entry.ordinals[: entry.steps]
        step = bisect_right(steps, line, key=lambda ordinal: rows[ordinal].first_line) - 1
        return Place(turn, max(step, 0)), n < len(parent.turns) or step + 1 < entry.steps

    def _would_loop(self, thread: Thread, at: Place) -> bool:
        found: Place | None = at
        for _ in range(_DEEPEST):
            if found is None:
                return False
            above = self.thread_of(found.turn)
            if above is thread:
                return True
            found = above.at
        return True

    def _move(self, thread: Thread, at: Place | None) -> None:
        """Put a thread, with all that is below it, somewhere else."""
        noted = sum(self._entries[turn].notable + self._below.get(turn, 0) for turn in thread.turns)
        before, thread.at = thread.at, at
        if before is None:
            for turn in thread.turns:
                self._lower(turn)
        else:
            kids = self.kids[before.turn]
            kids.remove(thread.name)
            if not kids:
                del self.kids[before.turn]
            self._count(before, -noted)
            self._note(self.root(before.turn))
        if at is None:
            for turn in thread.turns:
                self._raise(turn)
        else:
            self.kids.setdefault(at.turn, []).append(thread.name)
            self._count(at, noted)
            self._note(self.root(at.turn))


def _figures(entry: TurnEntry) -> Figures:
    """A turn in a chart."""
    return Figures(
        entry.peak,
        entry.cap or 0,
        entry.limit or 0,
        entry.marks,
        entry.threshold or 0,
        expected=entry.peak if entry.peak_method == "expected" else 0,
        content=entry.peak if entry.peak_method == "recorded" else 0,
    )


def _put(values: list[int], value: int) -> None:
    """Into a list in ascending order, once."""
    if not values or values[-1] < value:
        values.append(value)
        return
    at = bisect_left(values, value)
    if values[at : at + 1] != [value]:
        insort(values, value)


def _drop(values: list[int], value: int) -> None:
    at = bisect_left(values, value)
    if values[at : at + 1] == [value]:
        del values[at]

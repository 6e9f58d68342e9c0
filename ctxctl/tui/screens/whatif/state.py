"""What the what-if screen remembers, and both replays by turn, as they come.  Plain Python.

A `Gathering` in the worker's thread takes the steps and hands out `News` now and then; the `Table` on the
event loop takes those in, which costs what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from ctxctl.item_names import Named, names
from ctxctl.model.turnpairs import TurnPair
from ctxctl.model.turnpairs import turn_begun as begun_pair
from ctxctl.model.vocab import MAIN_THREAD
from ctxctl.model.whatif import Pair, Supposition, Totals
from ctxctl.text import cells
from ctxctl.tui.screens.whatif.form import Form
from ctxctl.tui.thread_names import ThreadNames

if TYPE_CHECKING:
    from ctxctl.tui.thread_names import ThreadName

BUCKETS: Final = 240
"""Most cells of a chart; a wider one would repeat them."""
_SESSION: Final = 14
"""Cells of a session's name in front of a thread's."""


class Bucket(NamedTuple):
    """Some turns in one cell of a chart."""

    used: int
    """Most tokens."""
    over: bool
    """Whether any of them is over."""


class Chart(NamedTuple):
    """The use of the window over the trace, on both sides, against the same scale."""

    recorded: tuple[Bucket, ...] = ()
    simulated: tuple[Bucket, ...] = ()
    top: int = 0
    """The largest window use or cap of either side."""


class News(NamedTuple):
    """What more is known of a comparison."""

    turns: Sequence[tuple[int, TurnPair]]
    """Turns that are new or have changed, by their place in the table, ascending."""
    first: int | None
    """Place of the first turn that does not fit in the simulation."""
    recorded: Totals
    simulated: Totals
    chart: Chart
    part: float
    """Of the trace, 0 to 1."""


class Gathering:
    """Groups steps into turns."""

    def __init__(self, title_of: Callable[[int], str | None]) -> None:
        self._title_of = title_of
        """The title of the turn that begins at a step, if it is known."""
        self._turns: list[TurnPair] = []
        self._places: dict[tuple[str | None, str, int], int] = {}
        self._changed: set[int] = set()
        self._first: int | None = None
        self._top = 0

    def add(self, pair: Pair) -> None:
        """Take in one step."""
        key = (pair.session, pair.thread, pair.turn)
        at = self._places.get(key)
        if at is None:
            at = self._places[key] = len(self._turns)
            self._turns.append(begun_pair(pair, self._title_of(pair.ordinal)))
        self._turns[at] = self._turns[at].then(pair)
        self._changed.add(at)
        if pair.simulated.over and self._first is None:
            self._first = at
        for side in (pair.recorded, pair.simulated):
            self._top = max(self._top, side.used, side.cap or 0)

    def take(self, recorded: Totals, simulated: Totals, part: float) -> News:
        """What has changed since the last time."""
        changed = [(at, self._turns[at]) for at in sorted(self._changed)]
        self._changed = set()
        chart = Chart(self._charted(0), self._charted(1), self._top)
        return News(changed, self._first, recorded, simulated, chart, part)

    def _charted(self, which: int) -> tuple[Bucket, ...]:
        turns = self._turns
        count = min(len(turns), BUCKETS)
        found = []
        for n in range(count):
            some = turns[n * len(turns) // count : (n + 1) * len(turns) // count]
            sides = [turn.simulated if which else turn.recorded for turn in some]
            found.append(Bucket(max(s.used for s in sides), any(s.over for s in sides)))
        return tuple(found)


@dataclass(slots=True)
class Table:
    """The turns known so far.  Belongs to the event loop."""

    turns: list[TurnPair] = field(default_factory=list)
    first: int | None = None
    highest: int = 0
    several: bool = False
    """Whether there is more than one thread or session."""
    sessions: bool = False
    """Whether there is more than one session."""
    held: set[str] = field(default_factory=set)
    """Columns of numbers that some turn has."""
    threads: ThreadNames = field(default_factory=ThreadNames)
    """What threads are called."""
    longest: int = len(MAIN_THREAD)
    """Cells of the longest of these names."""
    _whose: dict[ThreadName, TurnPair] = field(default_factory=dict)
    """By thread, its first turn."""
    _fitted: dict[ThreadName, str] = field(default_factory=dict)
    _made: tuple[int, int] = (0, 0)
    """For how many cells, and of how many threads, names were fitted."""

    def grow(self, news: News) -> None:
        """Take in what more is known."""
        for at, turn in news.turns:
            self._hold(turn)
            if at < len(self.turns):
                self.turns[at] = turn
                continue
            self.turns.append(turn)
            self.highest = max(self.highest, turn.turn)
            one = self.turns[0]
            self.several = self.several or (one.session, one.thread) != (turn.session, turn.thread)
            self.sessions = self.sessions or one.session != turn.session
            self._take(turn)
        self.first = news.first

    def _take(self, turn: TurnPair) -> None:
        """Note whose a new turn is."""
        if (turn.session, turn.thread) not in self._whose:
            self._whose[turn.session, turn.thread] = turn
            self.longest = max(self.longest, cells(self._called(turn)))

    def _hold(self, turn: TurnPair) -> None:
        """Note which numbers a turn has."""
        for side in (turn.recorded, turn.simulated):
            has = {
                "omit": side.omitted, "cut": side.truncated, "comp": side.compactions, "cache": side.prefix,
                "cost": side.cost or side.unpriced,
            }  # fmt: skip
            self.held.update(name for name, value in has.items() if value)

    def name_of(self, turn: TurnPair, room: int) -> str:
        """What the thread of a turn is called in so many cells; no other in the table is called so."""
        if self._made != (room, len(self._whose)):
            self._made = (room, len(self._whose))
            rows = [Named(str(n), self._called(one)) for n, one in enumerate(self._whose.values(), 1)]
            self._fitted = dict(zip(self._whose, names(rows, room), strict=True))
        return self._fitted[turn.session, turn.thread]

    def _called(self, turn: TurnPair) -> str:
        """The session, where there are several, and the thread."""
        thread = "" if turn.thread == MAIN_THREAD else f"↳{self.threads.of(turn.session, turn.thread)}"
        if not self.sessions:
            return thread or turn.thread
        return f"{self.threads.session(turn.session, None, _SESSION)} {thread}".rstrip()

    def next_over(self, at: int, by: int) -> int | None:
        """The place of the next turn in one direction that does not fit, by our count or by the bill."""
        at += by
        while 0 <= at < len(self.turns):
            if self.turns[at].simulated.over:
                return at
            at += by
        return None


_NO_STEPS: Final = Totals()

Phase = Literal["empty", "running", "done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class View:
    """Everything but the table."""

    form: Form = field(default_factory=Form)
    phase: Phase = "empty"
    run: int = 0
    """Number of the last comparison that was asked for; what speaks of another one is late."""
    supposition: Supposition | None = None
    """What the table is of."""
    policy: str = "recorded"
    """What the recorded side is replayed under."""
    notes: tuple[str, ...] = ()
    reading: bool = False
    """The trace was still being read or written when this was simulated."""
    recorded: Totals = _NO_STEPS
    simulated: Totals = _NO_STEPS
    chart: Chart = field(default_factory=Chart)
    part: float = 0.0
    error: str = ""
    threads: ThreadNames = field(default_factory=ThreadNames)
    """What threads are called."""


@dataclass(slots=True)
class Memory:
    """The last what-if: it is there again when the screen is opened again."""

    view: View = field(default_factory=View)
    table: Table = field(default_factory=Table)
    cursor: int = 0


def begun(view: View, supposition: Supposition) -> View:
    """The view after a comparison was asked for."""
    fresh = View(form=view.form, policy=view.policy, threads=view.threads)
    return replace(fresh, phase="running", run=view.run + 1, supposition=supposition)


def answered(view: View, news: News, *, done: bool) -> View:
    """The view with more of the comparison; `done` when this was the last part."""
    return replace(
        view,
        phase="done" if done else "running",
        recorded=news.recorded,
        simulated=news.simulated,
        chart=news.chart,
        part=1.0 if done else news.part,
    )


def left(view: View) -> View:
    """The screen is closed; what runs is stopped."""
    return replace(view, phase="stopped") if view.phase == "running" else view

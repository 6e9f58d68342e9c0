"""Going to any step of a replay without beginning at the first one.

While a trace is replayed once, snapshots of the engine are kept, thinned out so that their number and size
stay bounded; a step is then reached from the nearest snapshot before it, or from where the last request
ended.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ctxctl.engine.replay.finish import settle_step
from ctxctl.engine.replay.rules import ReplayRules
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.thread import ThreadState
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.results import Placement, Step, Turn

_CELLS = 250_000
"""How much all snapshots may hold together, in units of 32 bytes (`Engine.weight`): 8 MB."""
_RECENT = 48
"""Steps kept whole."""
_RECENT_PLACEMENTS = 200_000
"""Placements that these may have together."""

Source = Callable[[int, int], Iterable[Event]]
"""Events from a byte offset and its line number on."""


class StepAt(NamedTuple):
    """A finished step with its frame, and the turn that it ended, if it did."""

    step: Step
    placements: list[Placement]
    turn: Turn | None

    @property
    def done(self) -> tuple[Step | Turn, ...]:
        """The step, and the turn if there is one."""
        return (self.step,) if self.turn is None else (self.step, self.turn)


class Snapshot(NamedTuple):
    """An engine as it was at some time, parked, and how to go on from there: with a copy of it."""

    done: int
    """Steps finished before it."""
    offset: int
    line: int
    engine: Engine
    cells: int
    mark: object
    """What the owner of the snapshots needs to go back to this state, if it ever does."""


def ignore_problem(_problem: Problem) -> None:
    """Drop a problem: the first pass has reported it already."""


def rest_of_trace(engine: Engine) -> Engine:
    """A copy that is good for `end` only: without threads that are over, and what new events would need."""
    twin = Engine(engine.rules, ignore_problem)
    twin.threads = {key: thread.copy() for key, thread in engine.threads.items() if thread.ids is not None}
    twin.turns = {key: turn.copy() for key, turn in engine.turns.items() if key in twin.threads}
    twin.totals = engine.totals.copy()
    return twin


class Snapshots:
    """Engine states along a trace, at a spacing that grows with their size."""

    def __init__(self, start: Engine, mark: object = None) -> None:
        twin = start.copy(ignore_problem)
        twin.park()
        self._all = [Snapshot(0, 0, 1, twin, 0, mark)]
        self._spacing = 16
        self._cells = 0

    def due(self, done: int) -> bool:
        """Whether a copy of an engine that has finished `done` steps would be kept."""
        return done - self._all[-1].done >= self._spacing

    def offer(self, engine: Engine, done: int, offset: int, line: int, mark: object = None) -> None:
        """Keep a copy of the engine if one is due; it has finished `done` steps and goes on at `offset`."""
        if not self.due(done):
            return
        cells = engine.weight()
        twin = engine.copy(ignore_problem)
        twin.park()
        self._all.append(Snapshot(done, offset, line, twin, cells, mark))
        self._cells += cells
        while self._cells > _CELLS and len(self._all) > 2:
            self._spacing *= 2
            kept = self._all[:1]
            for snapshot in self._all[1:]:
                if snapshot.done - kept[-1].done >= self._spacing:
                    kept.append(snapshot)
            if len(kept) == len(self._all):
                kept = kept[:1] + kept[1::2]
            self._all = kept
            self._cells = sum(s.cells for s in kept)

    def back(self, offset: int) -> Snapshot:
        """The last state that goes on at `offset` or before; those behind it are dropped."""
        kept = [snapshot for snapshot in self._all if snapshot.offset <= offset]
        self._all = kept
        self._cells = sum(s.cells for s in kept)
        return kept[-1]

    def before(self, ordinal: int) -> Snapshot:
        """The last state in which the step of this ordinal is not finished."""
        return self._all[bisect_right(self._all, ordinal, key=lambda s: s.done) - 1]


class RecentSteps:
    """The steps that were kept last, by ordinal: some dozens, fewer where their frames are large."""

    def __init__(self) -> None:
        self._ats: OrderedDict[int, StepAt] = OrderedDict()
        self._placements = 0

    def get(self, ordinal: int) -> StepAt | None:
        """A step, if it is one of them."""
        return self._ats.get(ordinal)

    def keep(self, ordinal: int, at: StepAt) -> None:
        """Keep another one."""
        self._ats[ordinal] = at
        self._placements += len(at.placements)
        while len(self._ats) > 1 and (len(self._ats) > _RECENT or self._placements > _RECENT_PLACEMENTS):
            _, oldest = self._ats.popitem(last=False)
            self._placements -= len(oldest.placements)


class ReplayCursor:
    """Fetches steps by ordinal.  Not thread-safe; the inspector serialises its use.

    `whole`: what is open where the source ends is over.  Without it there are only the steps that an event
    has finished, and the source may grow meanwhile.
    """

    def __init__(self, snapshots: Snapshots, source: Source, *, whole: bool = True) -> None:
        self._snapshots = snapshots
        self._source = source
        self._whole = whole
        self._recent: OrderedDict[int, StepAt] = OrderedDict()
        self._walk: Iterator[StepAt] | None = None
        self._next = 0

    def at(self, ordinal: int) -> StepAt:
        """The step of this ordinal; raises IndexError beyond the last."""
        found = self._recent.get(ordinal)
        if found is not None:
            self._recent.move_to_end(ordinal)
            return found
        start = self._snapshots.before(ordinal)
        if self._walk is None or not start.done <= self._next <= ordinal:
            self._walk = _walk(start, self._source, whole=self._whole)
            self._next = start.done
        for found in self._walk:
            self._keep(self._next, found)
            self._next += 1
            if self._next > ordinal:
                return found
        self._walk = None
        raise IndexError(ordinal)

    def _keep(self, ordinal: int, found: StepAt) -> None:
        self._recent[ordinal] = found
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)


def _walk(start: Snapshot, source: Source, *, whole: bool) -> Iterator[StepAt]:
    engine = start.engine.copy(ignore_problem)
    for event in source(start.offset, start.line):
        if done := engine.feed(event):
            yield from steps_with_turns(engine, done)
    if whole:
        yield from steps_with_turns(engine, engine.end())


def steps_with_turns(engine: Engine, done: Iterable[Step | Turn]) -> Iterator[StepAt]:
    """Each step with its frame, and with the turn that follows it where it is its turn's last."""
    waiting: Step | None = None
    for result in done:
        if not isinstance(result, Step):
            assert waiting is not None
            yield StepAt(waiting, engine.frame, result)
        elif engine.ends_turn:
            waiting = result
        else:
            yield StepAt(result, engine.frame, None)


Closed = Callable[[ThreadState], None]
"""Told of a thread whose step has just been closed: its frame and its ids are still that step's."""


class SizingEngine(Engine):
    """Takes events as `Engine` does, and works out what each step holds and how large that is: nothing that
    only views show.  It gives no steps and no turns: `closed` is told of each step.
    """

    def __init__(self, rules: ReplayRules, report: Callable[[Problem], None]) -> None:
        super().__init__(rules, report)
        self.closed: Closed | None = None
        """Not copied."""

    def _seal(self, thread: ThreadState) -> None:
        if thread.mode is None:
            thread.mode = self._mode(thread)
        thread.seal(only_sizes=True)

    def _close(self, thread: ThreadState, *, new_turn: bool) -> list[Step | Turn]:
        if thread.ids is None:
            return []
        if thread.sealed is None:
            self._seal(thread)
        settle_step(thread, self.rules)
        if self.closed is not None:
            self.closed(thread)
        if self._order is not None:
            self._order.done(thread.key)
        if new_turn:
            thread.ids = None
        return []

"""Random access to the steps of a replay.

The first replay of a trace keeps snapshots of the engine, thinned out so that their number and size are
bounded. A step is then replayed from the nearest snapshot before it, or from the last position.
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

_MAX_SNAPSHOT_CELLS = 250_000
"""Most memory of all snapshots, in units of 32 bytes (`Engine.weight`): 8 MB."""
_MAX_RECENT = 48
"""Most recent steps kept whole."""
_MAX_RECENT_CELLS = 200_000
"""Most placements that the recent steps may hold together."""

Source = Callable[[int, int], Iterable[Event]]
"""Returns events from a byte offset and its line number on."""


class StepAt(NamedTuple):
    """A finished step with its frame, and the turn that it ended, if any."""

    step: Step
    placements: list[Placement]
    turn: Turn | None

    @property
    def done(self) -> tuple[Step | Turn, ...]:
        """The step, and the turn if it ended one."""
        return (self.step,) if self.turn is None else (self.step, self.turn)


class Snapshot(NamedTuple):
    """A parked engine, and where to continue with a copy of it."""

    done: int
    """Number of steps finished before it."""
    offset: int
    line: int
    engine: Engine
    cells: int
    mark: object
    """Data for the snapshots' owner to return to this state."""


def ignore_problem(_problem: Problem) -> None:
    """Drop a problem: the first pass has already reported it."""


def rest_of_trace(engine: Engine) -> Engine:
    """Return a reduced copy for `end` only, without ended threads and data for new events."""
    twin = Engine(engine.rules, ignore_problem)
    twin.threads = {key: thread.copy() for key, thread in engine.threads.items() if thread.ids is not None}
    twin.turns = {key: turn.copy() for key, turn in engine.turns.items() if key in twin.threads}
    twin.totals = engine.totals.copy()
    return twin


class Snapshots:
    """Engine snapshots along a trace, with a spacing that grows with their size."""

    def __init__(self, start: Engine, mark: object = None) -> None:
        twin = start.copy(ignore_problem)
        twin.park()
        self._all = [Snapshot(0, 0, 1, twin, 0, mark)]
        self._spacing = 16
        self._cells = 0

    def due(self, done: int) -> bool:
        """Return whether a snapshot after `done` steps would be kept."""
        return done - self._all[-1].done >= self._spacing

    def offer(self, engine: Engine, done: int, offset: int, line: int, mark: object = None) -> None:
        """Keep a copy of the engine if one is due. It has finished `done` steps and continues at `offset`."""
        if not self.due(done):
            return
        cells = engine.weight()
        twin = engine.copy(ignore_problem)
        twin.park()
        self._all.append(Snapshot(done, offset, line, twin, cells, mark))
        self._cells += cells
        while self._cells > _MAX_SNAPSHOT_CELLS and len(self._all) > 2:
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
        """Return the last snapshot at or before `offset`. Drop the later ones."""
        kept = [snapshot for snapshot in self._all if snapshot.offset <= offset]
        self._all = kept
        self._cells = sum(s.cells for s in kept)
        return kept[-1]

    def before(self, ordinal: int) -> Snapshot:
        """Return the last snapshot before the step of this ordinal is finished."""
        return self._all[bisect_right(self._all, ordinal, key=lambda s: s.done) - 1]


class RecentSteps:
    """The last steps by ordinal: some dozens, fewer if their frames are large."""

    def __init__(self) -> None:
        self._ats: OrderedDict[int, StepAt] = OrderedDict()
        self._placements = 0

    def get(self, ordinal: int) -> StepAt | None:
        """Return a step if it is kept; else None."""
        return self._ats.get(ordinal)

    def keep(self, ordinal: int, at: StepAt) -> None:
        """Keep one more step."""
        self._ats[ordinal] = at
        self._placements += len(at.placements)
        while len(self._ats) > 1 and (len(self._ats) > _MAX_RECENT or self._placements > _MAX_RECENT_CELLS):
            _, oldest = self._ats.popitem(last=False)
            self._placements -= len(oldest.placements)


class ReplayCursor:
    """Fetches steps by ordinal. Not thread-safe; the inspector serialises its use.

    With `whole`, steps still open at the end of the source are finished. Without it, only steps that an event
    finished exist, and the source may grow.
    """

    def __init__(self, snapshots: Snapshots, source: Source, *, whole: bool = True) -> None:
        self._snapshots = snapshots
        self._source = source
        self._whole = whole
        self._recent: OrderedDict[int, StepAt] = OrderedDict()
        self._walk: Iterator[StepAt] | None = None
        self._next = 0

    def at(self, ordinal: int) -> StepAt:
        """Return the step of this ordinal. Raises IndexError beyond the last."""
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
        if len(self._recent) > _MAX_RECENT:
            self._recent.popitem(last=False)


def _walk(start: Snapshot, source: Source, *, whole: bool) -> Iterator[StepAt]:
    engine = start.engine.copy(ignore_problem)
    for event in source(start.offset, start.line):
        if done := engine.feed(event):
            yield from steps_with_turns(engine, done)
    if whole:
        yield from steps_with_turns(engine, engine.end())


def steps_with_turns(engine: Engine, done: Iterable[Step | Turn]) -> Iterator[StepAt]:
    """Yield each step with its frame, and with its turn if it is the last step of it."""
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
"""Called with a thread when its step is closed, while its frame and ids are still that step's."""


class SizingEngine(Engine):
    """Computes only each step's contents and sizes, nothing that only views show. It returns no steps or
    turns but calls `closed` for each step."""

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

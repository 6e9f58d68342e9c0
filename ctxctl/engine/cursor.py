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

from ctxctl.engine.replay import Engine
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.results import Placement, Step, Turn

_CELLS = 1_500_000
"""Placements and items that all snapshots may hold together."""
_RECENT = 48
"""Steps kept whole."""

Source = Callable[[int, int], Iterable[Event]]
"""Events from a byte offset and its line number on."""


class At(NamedTuple):
    """A finished step with its frame, and the turn that it ended, if it did."""

    step: Step
    placements: list[Placement]
    turn: Turn | None


class _Snapshot(NamedTuple):
    done: int
    """Steps finished before it."""
    offset: int
    line: int
    engine: Engine
    cells: int


def ignore(_problem: Problem) -> None:
    """The first pass has reported it."""


class Snapshots:
    """Engine states along a trace, at a spacing that grows with their size."""

    def __init__(self, start: Engine) -> None:
        self._all = [_Snapshot(0, 0, 1, start.copy(ignore), 0)]
        self._spacing = 16
        self._cells = 0

    def offer(self, engine: Engine, done: int, offset: int, line: int) -> None:
        """Keep a copy of the engine if one is due; it has finished `done` steps and goes on at `offset`."""
        if done - self._all[-1].done < self._spacing:
            return
        cells = engine.weight()
        self._all.append(_Snapshot(done, offset, line, engine.copy(ignore), cells))
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

    def before(self, ordinal: int) -> _Snapshot:
        """The last state in which the step of this ordinal is not finished."""
        return self._all[bisect_right(self._all, ordinal, key=lambda s: s.done) - 1]


class Cursor:
    """Fetches steps by ordinal.  Not thread-safe; the inspector serialises its use."""

    def __init__(self, snapshots: Snapshots, source: Source) -> None:
        self._snapshots = snapshots
        self._source = source
        self._recent: OrderedDict[int, At] = OrderedDict()
        self._walk: Iterator[At] | None = None
        self._next = 0

    def at(self, ordinal: int) -> At:
        """The step of this ordinal; raises IndexError beyond the last."""
        found = self._recent.get(ordinal)
        if found is not None:
            self._recent.move_to_end(ordinal)
            return found
        start = self._snapshots.before(ordinal)
        if self._walk is None or not start.done <= self._next <= ordinal:
            self._walk = _walk(start, self._source)
            self._next = start.done
        for found in self._walk:
            self._keep(self._next, found)
            self._next += 1
            if self._next > ordinal:
                return found
        self._walk = None
        raise IndexError(ordinal)

    def _keep(self, ordinal: int, found: At) -> None:
        self._recent[ordinal] = found
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)


def _walk(start: _Snapshot, source: Source) -> Iterator[At]:
    engine = start.engine.copy(ignore)
    for event in source(start.offset, start.line):
        if done := engine.feed(event):
            yield from _paired(engine, done)
    yield from _paired(engine, engine.end())


def _paired(engine: Engine, done: Iterable[Step | Turn]) -> Iterator[At]:
    """Each step with its frame, and with the turn that follows it where it is its turn's last."""
    waiting: Step | None = None
    frame: list[Placement] = []
    for result in done:
        if isinstance(result, Step):
            waiting, frame = result, engine.frame
        else:
            assert waiting is not None
            yield At(waiting, frame, result)
            waiting = None
    if waiting is not None:
        yield At(waiting, frame, None)

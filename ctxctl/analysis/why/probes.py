"""Replays of one session up to one step, each under a policy and an input limit.

Until a window first exceeds the limit, nothing is left out under any policy, so all replays are the same so
far. The unlimited replay shows where each limit is first exceeded. Other replays continue from a copy of an
engine at that point.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from ctxctl.engine.replay.cursor import SizingEngine, ignore_problem
from ctxctl.engine.replay.rules import ReplayRules
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.replay.thread import ThreadState
from ctxctl.engine.replay.thread_rules import limits_under
from ctxctl.model.event import Event
from ctxctl.model.fitting import Fitter, Follower
from ctxctl.model.whatif import MOST_TOKENS, Limits

_MAX_STARTS: Final = 3
"""Number of engine copies kept to continue from: the earliest, and the latest."""


class Sought(NamedTuple):
    """The item and step in question."""

    item: str
    key: ThreadKey
    turn: int
    step: int


class Seen(NamedTuple):
    """What one replay showed of the step."""

    present: bool
    """Whether a whole current copy is there."""
    wanted: int
    """The most tokens of any step so far if nothing had been left out."""


class _Start(NamedTuple):
    """An engine after `events` events, none of which exceeded the limit."""

    taken: int
    engine: SizingEngine
    """The engine to copy."""
    present: bool


class Probes:
    """All replays of one session."""

    def __init__(
        self, rules: ReplayRules, events: Sequence[Event], sought: Sought, told: Callable[[int], None]
    ) -> None:
        """`told` is called with the number of each replay before it is made."""
        self.count = 0
        self._rules = self._unlimited = msgspec.structs.replace(rules, policy=None, recomputer=None)
        self._events = events
        self._sought = sought
        self._told = told
        self._peaks: list[int] = []
        """New maxima of tokens wanted by a step; ascending."""
        self._reached: list[int] = []
        """Number of events before the end of each such step."""
        self._starts: list[_Start] = []
        self._present = False
        """Whether the current replay has the item at the step."""

    @property
    def events(self) -> int:
        """Number of events in each replay."""
        return len(self._events)

    def unlimited(self, policy: Fitter) -> Seen:
        """Replay without a limit."""
        self._next()
        self._unlimited = self._under(policy, MOST_TOKENS)
        engine, noted = self._engine(self._unlimited), _is_plain(policy)
        self._present = False
        for number, event in enumerate(self._events):
            deque(engine.feed(event) or (), 0)
            if noted:
                self._note(engine, number)
        self._end(engine)
        if noted:
            self._note(engine, len(self._events))
        thread = engine.threads.get(self._sought.key)
        fitting = thread.fitting if thread is not None else None
        return Seen(self._present, fitting.peak if fitting is not None else 0)

    def present(self, policy: Fitter, cap: int) -> bool:
        """Return whether the item is there under an input limit of `cap` tokens."""
        self._next()
        rules = self._under(policy, cap)
        if not self._peaks or not _is_plain(policy):
            start = _Start(0, self._engine(rules), False)
            return self._ended(start.engine, start)
        start = self._start(cap)
        present = self._ended(self._fitted(start.engine, rules), start)
        if not present or not self._starts:
            self._keep(start)
        return present

    def _next(self) -> None:
        self.count += 1
        self._told(self.count)

    def _under(self, policy: Fitter, cap: int) -> ReplayRules:
        return msgspec.structs.replace(self._rules, fitter=policy, limits=Limits(cap, 0, cap))

    def _engine(self, rules: ReplayRules) -> SizingEngine:
        engine = SizingEngine(rules, ignore_problem)
        engine.closed = self._look
        return engine

    def _start(self, cap: int) -> _Start:
        """Return a replay just before the first event that exceeds the limit."""
        peak = bisect_right(self._peaks, cap)
        end = self._reached[peak] if peak < len(self._reached) else len(self._events)
        start = _Start(0, self._engine(self._unlimited), False)
        for known in self._starts:
            if known.taken <= end:
                start = known
        if start.taken == end:
            return start
        engine = self._apart(start.engine) if start.taken else start.engine
        self._present = start.present
        self._feed(engine, start.taken, end)
        return _Start(end, engine, self._present)

    def _keep(self, start: _Start) -> None:
        if any(known.taken == start.taken for known in self._starts):
            return
        self._starts = sorted([*self._starts, start], key=lambda one: one.taken)
        if len(self._starts) > _MAX_STARTS:
            del self._starts[1]

    def _apart(self, engine: SizingEngine) -> SizingEngine:
        """Return a copy that does not change what it was copied from."""
        twin = engine.copy(ignore_problem)
        thread = twin.threads.get(self._sought.key)
        if thread is not None and thread.shared:
            twin.threads[self._sought.key] = thread.copy()
        twin.aside()
        twin.closed = self._look
        return twin

    def _fitted(self, engine: SizingEngine, rules: ReplayRules) -> SizingEngine:
        """Return a copy that continues under other rules."""
        twin = self._apart(engine)
        twin.rules = rules
        thread = twin.threads.get(self._sought.key)
        if thread is not None and thread.fitting is not None and rules.fitter is not None:
            thread.fitting = thread.fitting.under(rules.fitter, limits_under(rules))
        return twin

    def _ended(self, engine: SizingEngine, start: _Start) -> bool:
        """Return whether the item is there after a replay has continued to its end."""
        self._present = start.present
        self._feed(engine, start.taken, len(self._events))
        self._end(engine)
        return self._present

    def _feed(self, engine: SizingEngine, taken: int, end: int) -> None:
        for number in range(taken, end):
            deque(engine.feed(self._events[number]) or (), 0)

    def _end(self, engine: SizingEngine) -> None:
        deque(engine.end(), 0)

    def _note(self, engine: SizingEngine, number: int) -> None:
        thread = engine.threads.get(self._sought.key)
        if thread is None or thread.fitting is None:
            return
        if thread.fitting.peak > (self._peaks[-1] if self._peaks else 0):
            self._peaks.append(thread.fitting.peak)
            self._reached.append(number)

    def _look(self, thread: ThreadState) -> None:
        sought, ids = self._sought, thread.ids
        if (
            thread.key == sought.key
            and ids is not None
            and (ids.turn, ids.step) == (sought.turn, sought.step)
        ):
            frame = thread.frame.placements
            self._present = any(p.item == sought.item and not p.stale and not p.truncated for p in frame)


def _is_plain(policy: Fitter) -> bool:
    """Return whether a policy does nothing while everything fits."""
    return not isinstance(policy, Follower) and not getattr(policy, "early", False)

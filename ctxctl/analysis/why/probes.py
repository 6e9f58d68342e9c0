"""Replays of one session up to one step, each under a policy and a limit on input.

Until a window first exceeds the limit nothing is left out, under any policy: so far all of these replays are
one.  Where each limit is first exceeded shows in the replay without a limit; another one goes on from a copy
of an engine that has come so far.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from ctxctl.engine.replay.cursor import ignore_problem
from ctxctl.engine.replay.rules import ReplayRules
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.replay.thread_rules import limits_under
from ctxctl.model.event import Event
from ctxctl.model.fitting import Fitter, Follower
from ctxctl.model.results import Step
from ctxctl.model.whatif import MOST_TOKENS, Limits

_STARTS: Final = 3
"""Copies of an engine that are kept to go on from: the earliest, and the latest."""


class Sought(NamedTuple):
    """What is looked for, and where."""

    item: str
    key: ThreadKey
    turn: int
    step: int


class Seen(NamedTuple):
    """What one replay showed of the step."""

    present: bool
    """A current copy is there, whole."""
    wanted: int
    """The most tokens that any step up to it would hold, had nothing been left out."""


class _Start(NamedTuple):
    """An engine that has taken in so many events, none of which exceeded the limit in question."""

    taken: int
    engine: Engine
    """To be copied."""
    seen: Seen


class Probes:
    """All replays of one session that somebody asks for."""

    def __init__(
        self, rules: ReplayRules, events: Sequence[Event], sought: Sought, told: Callable[[int], None]
    ) -> None:
        """`told` is told the number of each replay before it is made."""
        self.count = 0
        self._rules = self._unlimited = msgspec.structs.replace(rules, policy=None, recomputer=None)
        self._events = events
        self._sought = sought
        self._told = told
        self._peaks: list[int] = []
        """What some step wanted more than all before it; ascending."""
        self._reached: list[int] = []
        """By such a step, how many events had been taken in before the one that it ended with."""
        self._starts: list[_Start] = []

    @property
    def events(self) -> int:
        """How many events each of them goes through."""
        return len(self._events)

    def unlimited(self, policy: Fitter) -> Seen:
        """Without a limit."""
        self._next()
        self._unlimited = self._under(policy, MOST_TOKENS)
        engine = Engine(self._unlimited, ignore_problem)
        return self._run(engine, 0, Seen(False, 0), noted=_is_plain(policy))

    def present(self, policy: Fitter, cap: int) -> bool:
        """Whether the item is there with so many tokens of input."""
        self._next()
        rules = self._under(policy, cap)
        if not self._peaks or not _is_plain(policy):
            return self._run(Engine(rules, ignore_problem), 0, Seen(False, 0)).present
        start = self._start(cap)
        seen = self._run(self._fitted(start.engine, rules), start.taken, start.seen)
        if not seen.present or not self._starts:
            self._keep(start)
        return seen.present

    def _next(self) -> None:
        self.count += 1
        self._told(self.count)

    def _under(self, policy: Fitter, cap: int) -> ReplayRules:
        return msgspec.structs.replace(self._rules, fitter=policy, limits=Limits(cap, 0, cap))

    def _start(self, cap: int) -> _Start:
        """A replay just before the first event with which the limit is exceeded."""
        peak = bisect_right(self._peaks, cap)
        end = self._reached[peak] if peak < len(self._reached) else len(self._events)
        known = [start for start in self._starts if start.taken <= end]
        if not known:
            engine = Engine(self._unlimited, ignore_problem)
            taken, seen = 0, Seen(False, 0)
        else:
            last = max(known, key=lambda start: start.taken)
            if last.taken == end:
                return last
            engine, taken, seen = self._apart(last.engine), last.taken, last.seen
        return _Start(end, engine, self._fed(engine, taken, end, seen))

    def _keep(self, start: _Start) -> None:
        if any(known.taken == start.taken for known in self._starts):
            return
        self._starts = sorted([*self._starts, start], key=lambda one: one.taken)
        if len(self._starts) > _STARTS:
            del self._starts[1]

    def _apart(self, engine: Engine) -> Engine:
        """A copy that shares no size with others that it does not have yet."""
        twin = engine.copy(ignore_problem)
        thread = twin.threads.get(self._sought.key)
        if thread is not None and thread.shared:
            twin.threads[self._sought.key] = thread.copy()
        return twin.aside()

    def _fitted(self, engine: Engine, rules: ReplayRules) -> Engine:
        """A copy that goes on under other rules."""
        twin = self._apart(engine)
        twin.rules = rules
        thread = twin.threads.get(self._sought.key)
        if thread is not None and thread.fitting is not None and rules.fitter is not None:
            thread.fitting = thread.fitting.under(rules.fitter, limits_under(rules))
        return twin

    def _run(self, engine: Engine, taken: int, seen: Seen, *, noted: bool = False) -> Seen:
        seen = self._fed(engine, taken, len(self._events), seen, noted=noted)
        seen = self._look(engine, engine.end(), seen)
        if noted:
            self._note(engine, len(self._events))
        return seen

    def _fed(self, engine: Engine, taken: int, end: int, seen: Seen, *, noted: bool = False) -> Seen:
        for number in range(taken, end):
            if done := engine.feed(self._events[number]):
                seen = self._look(engine, done, seen)
            if noted:
                self._note(engine, number)
        return seen

    def _note(self, engine: Engine, number: int) -> None:
        thread = engine.threads.get(self._sought.key)
        if thread is None or thread.fitting is None:
            return
        if thread.fitting.peak > (self._peaks[-1] if self._peaks else 0):
            self._peaks.append(thread.fitting.peak)
            self._reached.append(number)

    def _look(self, engine: Engine, done: Iterable[object], seen: Seen) -> Seen:
        sought = self._sought
        present, wanted = seen
        for step in done:
            if not isinstance(step, Step) or (step.session, step.thread) != sought.key:
                continue
            thread = engine.threads[sought.key]
            if thread.fitted is not None:
                wanted = max(wanted, thread.fitted.wanted)
            if (step.turn, step.step) == (sought.turn, sought.step):
                present = any(p.item == sought.item and not p.stale and not p.truncated for p in engine.frame)
        return Seen(present, wanted)


def _is_plain(policy: Fitter) -> bool:
    """Whether a policy does nothing while all fits."""
    return not isinstance(policy, Follower) and not getattr(policy, "early", False)

"""Looking through the whole trace for what decides a thread's mode, where its first step does not."""

from __future__ import annotations

from ctxctl.engine.rules import Ahead
from ctxctl.engine.track import ThreadKey, Tracker
from ctxctl.model.records import Assembly, Injection
from ctxctl.model.vocab import ABOUT_THE_TRACE, Mode, mode_of
from ctxctl.trace.reader import Trace

_NOTHING = Ahead(frozenset(), None)


class Lookahead:
    """The injection points and the declared mode of each thread and one target; one pass over envelopes."""

    def __init__(self, trace: Trace, target: str) -> None:
        self._trace = trace
        self._target = target
        self._tracker = Tracker()
        self._points: dict[ThreadKey, set[str]] = {}
        self._declared: dict[ThreadKey, Mode] = {}
        self._end = 0
        self.extend()

    def extend(self) -> None:
        """Look through what the trace has grown by, if it has; it must have ended with a line end."""
        start, self._end = self._end, self._trace.source.size
        if start == self._end:
            return
        for event in self._trace.headers(start):
            if event.event_type in ABOUT_THE_TRACE:
                # An end changes a thread's turns, but not which thread an event is of.
                continue
            key = self._tracker.place(event).cursor.key
            record = event.record
            if isinstance(record, Injection):
                if record.target == self._target and record.injection_point is not None:
                    self._points.setdefault(key, set()).add(record.injection_point)
            elif isinstance(record, Assembly) and record.target == self._target:
                mode = mode_of(record.mode)
                if mode is not None:
                    self._declared.setdefault(key, mode)

    def of(self, key: ThreadKey) -> Ahead:
        """What the trace says of a thread."""
        points = self._points.get(key)
        declared = self._declared.get(key)
        if points is None and declared is None:
            return _NOTHING
        return Ahead(frozenset(points or ()), declared)

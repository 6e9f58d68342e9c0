"""Looking through the whole trace for what decides a thread's mode, where its first step does not."""

from __future__ import annotations

from ctxctl.engine.replay import Ahead
from ctxctl.engine.track import ThreadKey, Tracker
from ctxctl.model.records import Assembly, Injection
from ctxctl.model.vocab import ABOUT_THE_TRACE, Mode, mode_of
from ctxctl.trace.reader import Trace

_NOTHING = Ahead(frozenset(), None)


class Lookahead:
    """The injection points and the declared mode of each thread and one target; one pass over envelopes."""

    def __init__(self, trace: Trace, target: str) -> None:
        points: dict[ThreadKey, set[str]] = {}
        declared: dict[ThreadKey, Mode] = {}
        tracker = Tracker()
        for event in trace.headers():
            if event.event_type in ABOUT_THE_TRACE:
                # An end changes a thread's turns, but not which thread an event is of.
                continue
            place = tracker.place(event)
            record = event.record
            if isinstance(record, Injection):
                if record.target == target and record.injection_point is not None:
                    points.setdefault(place.cursor.key, set()).add(record.injection_point)
            elif isinstance(record, Assembly) and record.target == target:
                mode = mode_of(record.mode)
                if mode is not None:
                    declared.setdefault(place.cursor.key, mode)
        keys = points.keys() | declared.keys()
        self._found = {key: Ahead(frozenset(points.get(key, ())), declared.get(key)) for key in keys}

    def of(self, key: ThreadKey) -> Ahead:
        """What the trace says of a thread."""
        return self._found.get(key, _NOTHING)

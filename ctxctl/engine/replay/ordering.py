"""The order of steps: by where they begin in the trace, also if threads run in parallel.

A thread's step is known to be over only when its next one begins, and a sub-agent's last step has none. The
index of a trace knows where each step ends. So a step is finished there, and later steps of other threads
wait until then: their events are held, in line order. Without overlap, nothing is held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ctxctl.engine.replay.step_tracker import EventPlace, ThreadKey, position_of
from ctxctl.model.event import Event


class Until(NamedTuple):
    """What the index knows of a step that has begun."""

    end: int
    """End of the last line that belongs to it, as a byte offset."""
    turn: bool
    """Whether it is the last step of its turn."""
    over: bool
    """Whether its thread ends with it."""


Ends = Callable[[ThreadKey, int], Until | None]
"""Returns a step's end by its thread and first byte; None if unknown."""


class WaitingEvent(NamedTuple):
    """An event that waits. Without a place, it is the end of its thread."""

    event: Event
    place: EventPlace | None
    key: ThreadKey


class StepOrder:
    """The step being processed, and the events that wait for it, by step in the order of their beginning."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.head: ThreadKey | None = None
        """The thread whose open step all later steps wait for."""
        self.until: dict[ThreadKey, Until] = {}
        """Known ends of open steps."""
        self._waiting: dict[int, list[WaitingEvent]] = {}
        self._newest: dict[ThreadKey, int] = {}
        """The last waiting step of each thread."""
        self._count = 0

    def copy(self) -> StepOrder:
        """Return an independent copy, for a snapshot of a replay."""
        twin = StepOrder(self.ends)
        twin.head, twin._count = self.head, self._count
        twin.until = dict(self.until)
        twin._waiting = {number: list(events) for number, events in self._waiting.items()}
        twin._newest = dict(self._newest)
        return twin

    @property
    def weight(self) -> int:
        """Number of events that wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def waits(self) -> bool:
        """Whether any event waits."""
        return bool(self._waiting)

    @property
    def is_due(self) -> bool:
        """Whether `next` returns anything."""
        return self.head is None and bool(self._waiting)

    def holds(self, place: EventPlace) -> bool:
        """Return whether an event has to wait."""
        if place.opened:
            return self.head is not None or bool(self._waiting)
        return place.cursor.key in self._newest

    def hold(self, event: Event, place: EventPlace) -> None:
        """Let an event wait. Its thread's cursor moves on meanwhile."""
        key = place.cursor.key
        if place.opened:
            self._count += 1
            self._newest[key] = self._count
            self._waiting[self._count] = []
        frozen = place._replace(cursor=position_of(place.cursor))
        self._waiting[self._newest[key]].append(WaitingEvent(event, frozen, key))

    def hold_end(self, event: Event, key: ThreadKey) -> bool:
        """Let a thread's end wait for its step, if that waits."""
        number = self._newest.get(key)
        if number is not None:
            self._waiting[number].append(WaitingEvent(event, None, key))
        return number is not None

    def next(self) -> list[WaitingEvent] | None:
        """Return the held events of the first step, once none precedes it."""
        if not self.is_due:
            return None
        number = next(iter(self._waiting))
        found = self._waiting.pop(number)
        key = found[0].key
        if self._newest[key] == number:
            del self._newest[key]
        return found

    def begun(self, key: ThreadKey, first_byte: int) -> None:
        """Note that a step is being processed."""
        until = self.ends(key, first_byte)
        if until is None:
            self.until.pop(key, None)  # nothing waits for a step with an unknown end
        else:
            self.until[key] = until
            self.head = key

    def reached(self, key: ThreadKey, event: Event) -> Until | None:
        """Return what is known of a thread's open step, if this event ends it."""
        until = self.until.get(key)
        return until if until is not None and event.offset + event.length + 1 >= until.end else None

    def done(self, key: ThreadKey) -> None:
        """Note that a thread's open step is finished."""
        self.until.pop(key, None)
        if self.head == key:
            self.head = None


def no_lookahead() -> Ends | None:
    """Return None: the trace is still growing, or the order of its threads does not matter."""
    return None

"""The order of steps: that in which they begin in the trace, also where threads run side by side.

A thread's step is known to be over only when its next one begins, and a sub-agent's last step has none.
What looks ahead (an index of the trace) knows where each step says its last word.  So a step is finished
there, and what steps of other threads say that began later waits until then: it is held, in line order, and
taken as if each step stood by itself.  Held is what overlaps and no more; a trace whose steps stand one
behind the other holds nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ctxctl.engine.replay.step_tracker import EventPlace, ThreadKey, position_of
from ctxctl.model.event import Event


class Until(NamedTuple):
    """What lies ahead of a step that has begun."""

    end: int
    """Byte behind the last line that belongs to it."""
    turn: bool
    """It is the last one of its turn."""
    over: bool
    """Its thread ends with it."""


Ends = Callable[[ThreadKey, int], Until | None]
"""By thread and the byte at which a step begins, where it ends; None: not known."""


class WaitingEvent(NamedTuple):
    """An event that waits; without a place it is the end of its thread."""

    event: Event
    place: EventPlace | None
    key: ThreadKey


class StepOrder:
    """Which step is being taken, and what waits behind it, by step in the order in which they began."""

    def __init__(self, ends: Ends) -> None:
        self.ends = ends
        self.head: ThreadKey | None = None
        """The thread whose open step everything that began later waits for."""
        self.until: dict[ThreadKey, Until] = {}
        """Of open steps."""
        self._waiting: dict[int, list[WaitingEvent]] = {}
        self._newest: dict[ThreadKey, int] = {}
        """By thread, the last of its steps that wait."""
        self._count = 0

    def copy(self) -> StepOrder:
        """An independent copy, for a snapshot of a replay."""
        twin = StepOrder(self.ends)
        twin.head, twin._count = self.head, self._count
        twin.until = dict(self.until)
        twin._waiting = {number: list(events) for number, events in self._waiting.items()}
        twin._newest = dict(self._newest)
        return twin

    @property
    def weight(self) -> int:
        """How many events wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def waits(self) -> bool:
        """Whether any event waits."""
        return bool(self._waiting)

    @property
    def is_due(self) -> bool:
        """Whether `next` gives something."""
        return self.head is None and bool(self._waiting)

    def holds(self, place: EventPlace) -> bool:
        """Whether an event has to wait."""
        if place.opened:
            return self.head is not None or bool(self._waiting)
        return place.cursor.key in self._newest

    def hold(self, event: Event, place: EventPlace) -> None:
        """Let it wait; its thread's cursor goes on meanwhile."""
        key = place.cursor.key
        if place.opened:
            self._count += 1
            self._newest[key] = self._count
            self._waiting[self._count] = []
        frozen = place._replace(cursor=position_of(place.cursor))
        self._waiting[self._newest[key]].append(WaitingEvent(event, frozen, key))

    def hold_end(self, event: Event, key: ThreadKey) -> bool:
        """Let the end of a thread wait for its step, if that waits."""
        number = self._newest.get(key)
        if number is not None:
            self._waiting[number].append(WaitingEvent(event, None, key))
        return number is not None

    def next(self) -> list[WaitingEvent] | None:
        """What was held of the step that began first, once nothing stands before it."""
        if not self.is_due:
            return None
        number = next(iter(self._waiting))
        found = self._waiting.pop(number)
        key = found[0].key
        if self._newest[key] == number:
            del self._newest[key]
        return found

    def begun(self, key: ThreadKey, first_byte: int) -> None:
        """Note that a step is being taken."""
        until = self.ends(key, first_byte)
        if until is None:
            self.until.pop(key, None)  # nothing waits for a step of which nobody knows when it ends
        else:
            self.until[key] = until
            self.head = key

    def reached(self, key: ThreadKey, event: Event) -> Until | None:
        """What is known of a thread's open step, if it is over with this event."""
        until = self.until.get(key)
        return until if until is not None and event.offset + event.length + 1 >= until.end else None

    def done(self, key: ThreadKey) -> None:
        """A thread's open step is finished."""
        self.until.pop(key, None)
        if self.head == key:
            self.head = None


def no_lookahead() -> Ends | None:
    """Answer that nothing lies ahead: the trace is still being written, or its threads do not matter."""
    return None

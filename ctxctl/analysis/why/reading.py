"""Read the events of a step, and those among them that refer to one item."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Assembly, Injection
from ctxctl.model.why import Moment, Rest

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector
    from ctxctl.trace.index import Span

_MAX_CACHED_STEPS = 8
"""Number of steps whose events are cached."""


class Found(NamedTuple):
    """An event, and its step."""

    event: Event
    moment: Moment


class StepReader:
    """Reads single steps of a trace. Each costs its own lines and those of the previous step."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._places = inspector.places()
        self._lines: list[tuple[int, int]] | None = None
        self._read: dict[int, list[Event]] = {}

    def span(self, ordinal: int) -> Span:
        """Return where a step is."""
        return self._places.spans[ordinal]

    def moment(self, ordinal: int) -> Moment:
        """Return a step's numbers."""
        span = self._places.spans[ordinal]
        return Moment(ordinal, span.turn, span.step)

    def steps_of(self, ordinal: int) -> list[int]:
        """Return the ordinals of all steps of a step's thread, ascending."""
        span = self.span(ordinal)
        return self._places.by_thread[ThreadKey(span.session, span.thread)]

    def end_line(self, ordinal: int) -> int:
        """Return the last line of a step."""
        events = self.own(ordinal)
        return events[-1].line if events else self.span(ordinal).line

    def own(self, ordinal: int) -> list[Event]:
        """Return the events of a step's own thread between its first and last line."""
        known = self._read.get(ordinal)
        if known is None:
            span = self.span(ordinal)
            stop = span.end if span.end < self._inspector.trace.source.size else None
            events = self._inspector.trace.events(span.start, span.line, stop)
            known = [event for event in events if _is_of(event, span)]
            if len(self._read) >= _MAX_CACHED_STEPS:
                del self._read[next(iter(self._read))]
            self._read[ordinal] = known
        return known

    def of(self, ordinal: int) -> list[Event]:
        """Return the events that shape a step's frame: from the previous step's seal to its own."""
        target = self._inspector.params.target
        before = self._places.previous(ordinal)
        earlier = self.own(before) if before is not None else []
        tail = [e for e in earlier[_seal(earlier, target) + 1 :] if not isinstance(e.record, Injection)]
        mine = self.own(ordinal)
        end = _seal(mine, target) + 1
        return tail + mine[:end] + [e for e in mine[end:] if isinstance(e.record, Injection)]

    def at_line(self, line: int) -> Event | None:
        """Return the event of a line; None if the line has none."""
        if line <= 0:
            return None
        if self._lines is None:
            self._lines = sorted((span.line, span.start) for span in self._places.spans)
        at = bisect_right(self._lines, (line, self._inspector.trace.source.size)) - 1
        first, offset = self._lines[at] if at >= 0 else (1, 0)
        stop = self._lines[at + 1][1] if at + 1 < len(self._lines) else None
        for event in self._inspector.trace.events(offset, first, stop):
            if event.line >= line:
                return event if event.line == line else None
        return None

    def rest(self, event: Event) -> Rest:
        """Return how a sentence names its event."""
        ours = self._inspector.trace.metadata(event).get("ctxctl")
        line = ours.get("source_line") if isinstance(ours, dict) else None
        file = ours.get("source_file") if isinstance(ours, dict) else None
        return Rest(
            event.line, event.event_id, event.event_type,
            line if isinstance(line, int) and not isinstance(line, bool) else None,
            file if isinstance(file, str) else None,
        )  # fmt: skip

    def rest_at(self, line: int) -> Rest | None:
        """Return `rest` for the event on a line; None if the line has none."""
        event = self.at_line(line)
        return self.rest(event) if event is not None else None


def _is_of(event: Event, span: Span) -> bool:
    """Return whether an event is of a span's thread; one without a thread is of the last one named."""
    thread = event.thread_id if event.thread_id is not None else vocab.MAIN_THREAD
    if event.event_type in vocab.ABOUT_THE_TRACE or thread != span.thread:
        return False
    return event.may_be_of(span.session)


def _seal(events: list[Event], target: str) -> int:
    """Return the index of the event that seals a step: its first injection, else its last assembly."""
    assembled = None
    for at, event in enumerate(events):
        record = event.record
        if isinstance(record, Injection) and record.target == target:
            return at
        if isinstance(record, Assembly) and record.target == target:
            assembled = at
    return len(events) - 1 if assembled is None else assembled

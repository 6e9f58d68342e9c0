"""The steps of a trace and their places, from the index. No content is read.

The index comes from the user's cache if it is this file's, is extended if the file has grown, and is built
otherwise. `ordinal_by_id` finds the step of a context, turn or step id of the runtime.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final, NamedTuple

import xxhash

from ctxctl.engine.replay.ordering import Until
from ctxctl.engine.replay.step_tracker import EventPlace, StepTracker, ThreadKey
from ctxctl.errors import UsageError
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Injection
from ctxctl.session.redaction import Redactor
from ctxctl.trace.index import Span, StepIndex
from ctxctl.trace.reader import Trace

_SHAPES: Final = frozenset(
    {
        vocab.ITEM_ADDED, vocab.ITEM_UPDATED, vocab.ITEM_REMOVED, vocab.SUMMARY_CREATED,
        vocab.SELECTION_STARTED, vocab.SELECTION_COMPLETED, vocab.BUDGET_APPLIED, vocab.ASSEMBLY_CREATED,
        vocab.COMPACTION_STARTED, vocab.COMPACTION_COMPLETED, vocab.REDACTION_APPLIED,
        vocab.INJECTION_APPLIED,
    }
)  # fmt: skip
"""Records that shape a frame, so that they are late after their step's seal."""


_TURNBACK_BYTES: Final = 1 << 19
"""About the bytes between two places that the index can be taken back to, and after the last of them."""


class StepPlaces(NamedTuple):
    """The steps of a trace in the order in which they begin, as in a replay."""

    spans: tuple[Span, ...]
    by_thread: dict[ThreadKey, list[int]]
    """Ordinals of each thread's steps, ascending."""
    late: int = 0
    """Number of events after their step's end, as a replay reports them (`late-event`, `late-usage`)."""

    def previous(self, ordinal: int) -> int | None:
        """Return the ordinal of the thread's previous step."""
        span = self.spans[ordinal]
        mine = self.by_thread[ThreadKey(span.session, span.thread)]
        at = bisect_left(mine, ordinal)
        return mine[at - 1] if at else None

    def turn_end(self, ordinal: int) -> int:
        """Return the ordinal of the last step of a step's turn."""
        span = self.spans[ordinal]
        mine = self.by_thread[ThreadKey(span.session, span.thread)]
        at = bisect_left(mine, ordinal)
        while at + 1 < len(mine) and self.spans[mine[at + 1]].turn == span.turn:
            at += 1
        return mine[at]

    def until(self, key: ThreadKey, first_byte: int) -> Until | None:
        """Return what the index knows of the step of a thread that begins at a byte."""
        at = bisect_left(self.spans, first_byte, key=_start)
        while at < len(self.spans) and self.spans[at].start == first_byte:
            span = self.spans[at]
            if (span.session, span.thread) == key:
                mine = self.by_thread[key]
                behind = bisect_left(mine, at) + 1
                after = self.spans[mine[behind]] if behind < len(mine) else None
                over = after is None or after.start != span.finished
                return Until(span.end, after is None or after.turn != span.turn, over)
            at += 1
        return None


def _start(span: Span) -> int:
    return span.start


def step_places(index: StepIndex, redactor: Redactor | None = None) -> StepPlaces:
    """Return the steps of an index by their beginning, with names that may be shown."""
    spans = tuple(index)
    if redactor:
        named = {
            name: redactor.name(name)
            for row in spans
            for name in (row.session, row.thread)
            if name is not None
        }
        spans = tuple(
            row._replace(session=named.get(row.session), thread=named[row.thread])  # type: ignore[arg-type]
            for row in spans
        )
    ordinals: dict[tuple[Any, ...], list[int]] = {}
    for ordinal, span in enumerate(spans):
        ordinals.setdefault(span[:2], []).append(ordinal)
    by_thread = {ThreadKey(session, thread): mine for (session, thread), mine in ordinals.items()}
    return StepPlaces(spans, by_thread, index.late)


def step_index(trace: Trace, progress: Callable[[float], None] | None = None) -> StepIndex:
    """Return the trace's index: loaded, extended or built, and saved for the next run."""
    source = trace.source
    index = StepIndex.load(source)
    if index is None:
        index = StepIndex()
    if index.covered < source.size:
        _extend(index, trace, progress)
        index.save(source)
    return index


def _extend(index: StepIndex, trace: Trace, progress: Callable[[float], None] | None) -> None:
    """Continue from where the index ends."""
    state = index.state
    tracker = StepTracker.restored(state["tracker"]) if state else StepTracker()
    lateness = _Lateness(index.late, state["sealed"] if state else ())
    rows: dict[ThreadKey, int] = {ThreadKey(*key): row for *key, row in state["rows"]} if state else {}
    seen, add_seen = index.seen, index.add_seen
    ends: dict[ThreadKey, int] = {}
    size = max(1, trace.source.size)
    line, end, last = index.lines, index.covered, 0
    apart = min(_TURNBACK_BYTES, size // 8)
    due: float = max(index.covered, size - apart)
    if index.turnback > due - apart:
        due = inf
    for count, event in enumerate(trace.headers(index.covered, index.lines + 1)):
        if event.offset >= due:
            due = inf
            for key, at in ends.items():
                index.extend_row(rows[key], at)
            index.late = lateness.count
            state = _state(tracker, rows, lateness)
            index.may_turn_back(trace.source, event.offset, event.line - 1, rows.values(), state)
        if event.event_id is not None:
            if (key_of := _key(event)) in seen:
                continue
            add_seen(key_of)
        if event.event_type in vocab.ABOUT_THE_TRACE:
            if event.event_type == vocab.SESSION_ENDED:
                for cursor in tracker.ended(event):
                    index.finish_row(rows[cursor.key], event.offset)
                    lateness.over(cursor.key)
            last, line = event.length, event.line
            end = event.offset + last + 1
            continue
        place = tracker.place(event)
        key = place.cursor.key
        if event.record is not None or place.opened or place.late or lateness.sealed:
            lateness.note(key, event, place)
        if place.opened:
            if key in ends:
                index.extend_row(rows[key], ends[key])
            if key in rows:
                index.finish_row(rows[key], event.offset)
            stood = place.cursor
            rows[key] = index.append(
                key.session, key.thread, stood.turn, stood.step, event.offset, event.offset, event.line
            )
        last = event.length
        end = ends[key] = event.offset + last + 1
        line = event.line
        if progress is not None and not count & 4095:
            progress(event.offset / size)
    for key, at in ends.items():
        index.extend_row(rows[key], at)
    if end > trace.source.size:
        # The last line has no end and may still grow, so the next run reads it again, as a repeat.
        end, line = end - last - 1, line - 1
    index.covered, index.lines = end, line
    index.state = _state(tracker, rows, lateness)
    index.late = lateness.count


def _state(tracker: StepTracker, rows: dict[ThreadKey, int], lateness: _Lateness) -> dict[str, Any]:
    """Return the state that `_extend` continues from."""
    return {
        "tracker": tracker.state(),
        "rows": [[*key, row] for key, row in rows.items()],
        "sealed": lateness.state(),
    }


class _Lateness:
    """Counts records after their step's end or seal, as the engine reports them."""

    def __init__(self, count: int, sealed: Iterable[Sequence[Any]]) -> None:
        self.count = count
        self.sealed = {ThreadKey(*key) for key in sealed}
        """Threads whose open step is sealed."""

    def state(self) -> list[list[Any]]:
        """Return the threads whose open step is sealed, as JSON values."""
        return [list(key) for key in self.sealed]

    def over(self, key: ThreadKey) -> None:
        """Note that a thread, and its open step, has ended."""
        self.sealed.discard(key)

    def note(self, key: ThreadKey, event: Event, place: EventPlace) -> None:
        """Note an event and its place."""
        record = event.record
        ours = getattr(record, "target", vocab.MODEL) == vocab.MODEL
        if place.opened:
            self.sealed.discard(key)
        elif place.late or (
            key in self.sealed and event.step_id is not None and event.event_type in _SHAPES and ours
        ):
            self.count += 1
        if isinstance(record, Injection) and ours and not place.late:
            self.sealed.add(key)


def _key(event: Event) -> int:
    """Return the key by which a replay recognises a repeated event."""
    return xxhash.xxh3_64_intdigest(f"{event.session_id}\0{event.source}\0{event.event_id}".encode())


class _At(NamedTuple):
    key: ThreadKey
    turn: int
    step: int


def ordinal_by_id(name: str, trace: Trace, places: StepPlaces, *, context_only: bool) -> int:
    """Return the ordinal of the last step with an id. Reads the envelopes of the whole trace.

    A context id precedes a turn id, and that a step id.

    Raises:
        UsageError: `bad-address` if no event has it, `ambiguous-session` if several sessions do.
    """
    found: dict[str, list[_At]] = {"context": [], "turn": [], "step": []}
    for kind, at in _bearers(name, trace):
        found[kind].append(at)
    kinds = ("context",) if context_only else ("context", "turn", "step")
    bearing = next((found[kind] for kind in kinds if found[kind]), None)
    if bearing is None:
        what = f"no context is called {name!r}" if context_only else f"{name!r} is not an address of a frame"
        raise UsageError(
            "bad-address", what,
            hint="an address is [SESSION/][THREAD:]TURN[.STEP], ctx:CONTEXT_ID, or a turn's own id",
        )  # fmt: skip
    sessions = {at.key.session for at in bearing}
    if len(sessions) > 1:
        raise UsageError(
            "ambiguous-session", f"{name!r} names frames of {len(sessions)} sessions",
            hint="write [SESSION/][THREAD:]TURN[.STEP] instead",
        )  # fmt: skip
    last = bearing[-1]
    for ordinal in reversed(places.by_thread[last.key]):
        span = places.spans[ordinal]
        if (span.turn, span.step) == (last.turn, last.step):
            return ordinal
    raise UsageError("no-such-frame", f"{name!r}: its step is not in the index")


def _bearers(name: str, trace: Trace) -> Iterator[tuple[str, _At]]:
    tracker = StepTracker()
    seen: set[tuple[str | None, str | None, str | None]] = set()
    for event in trace.headers():
        identity = (event.session_id, event.source, event.event_id)
        if event.event_id is not None:
            if identity in seen:
                continue
            seen.add(identity)
        if event.event_type in vocab.ABOUT_THE_TRACE:
            if event.event_type == vocab.SESSION_ENDED:
                tracker.ended(event)
            continue
        place = tracker.place(event)
        if place.late:
            continue
        cursor = place.cursor
        at = _At(cursor.key, cursor.turn, cursor.step)
        if name in (event.context_id, _enveloped(trace, event)):
            yield "context", at
        if event.turn_id == name:
            yield "turn", at
        if event.step_id == name:
            yield "step", at


def _enveloped(trace: Trace, event: Event) -> str | None:
    """Return the context id of an envelope that an event exports."""
    if event.event_type != vocab.EXPORTED:
        return None
    line = trace.fields(event) or {}
    data = line.get("data")
    found = data.get("context_id") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None

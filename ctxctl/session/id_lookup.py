"""The step that an id of the runtime names: a context, a turn or a step, as the trace calls it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ctxctl.engine.replay.step_tracker import StepTracker, ThreadKey
from ctxctl.errors import UsageError
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.session.places import StepPlaces
from ctxctl.trace.reader import Trace


class _At(NamedTuple):
    key: ThreadKey
    turn: int
    step: int


def ordinal_by_id(name: str, trace: Trace, places: StepPlaces, *, context_only: bool) -> int:
    """The ordinal of the last step that bears an id; reads the envelopes of the whole trace.

    A context id goes before a turn id, that before a step id.

    Raises:
        UsageError: `bad-address` if no event bears it, `ambiguous-session` if several sessions do.
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
    """The context id of an envelope that an event exports."""
    if event.event_type != vocab.EXPORTED:
        return None
    line = trace.fields(event) or {}
    data = line.get("data")
    found = data.get("context_id") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None

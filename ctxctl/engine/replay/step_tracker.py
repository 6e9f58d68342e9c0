"""Assign each event to a step (DESIGN section 2, last bullets; section 3, "a step is sealed").

The tracker uses the envelope's ids, and model assemblies and injections where a trace has no step ids. It
holds no content, so the index uses it too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.records import Assembly, Ended, Injection


class ThreadKey(NamedTuple):
    """Identifies a thread. Threads share no state."""

    session: str | None
    thread: str


class Cursor:
    """A thread's open turn and step."""

    __slots__ = (
        "asm_ids",
        "assembled",
        "attempt",
        "inj_ids",
        "injected",
        "key",
        "named_steps",
        "number",
        "pending",
        "seen",
        "stays",
        "step",
        "step_id",
        "task",
        "turn",
        "turn_id",
        "turns",
    )

    def __init__(self, key: ThreadKey, number: int = 0) -> None:
        self.key = key
        self.number = number
        """Position among the trace's threads, in the order in which they begin."""
        self.turn = 0
        """1-based number of the open turn; 0 before the first event."""
        self.turn_id: str | None = None
        self.step = 0
        """1-based number of the open step; 0 before the first event and after the thread's end."""
        self.step_id: str | None = None
        self.turns: dict[str, int] = {}
        self.seen: set[str] = set()
        """Finished steps: turn and step id, joined by a NUL."""
        self.named_steps: dict[str, int] = {}
        """Numbers of the open turn's steps, by step id."""
        self.assembled = False
        """Whether the open step has a model assembly."""
        self.injected = False
        self.pending = False
        """Whether a record for the next frame came after the open step's model injection."""
        self.asm_ids: set[str] = set()
        self.inj_ids: set[str] = set()
        self.stays = EventPlace(self, False, False, False)
        """The place of an event that belongs to the open step and opens nothing."""
        self.attempt: str | None = None
        """The attempt that the open step belongs to, if named. `task` is the task attempted."""
        self.task: str | None = None

    def copy(self) -> Cursor:
        """Return an independent copy, for a snapshot of a replay."""
        twin = Cursor.__new__(Cursor)
        for name in Cursor.__slots__:
            value = getattr(self, name)
            setattr(twin, name, value.copy() if isinstance(value, dict | set) else value)
        twin.stays = EventPlace(twin, False, False, False)
        return twin

    def state(self) -> list[Any]:
        """Return the cursor as JSON values. `restored` reverses it."""
        return [
            self.key.session, self.key.thread, self.turn, self.turn_id, self.step, self.step_id,
            self.turns, self.named_steps, self.assembled, self.injected, self.pending,
            sorted(self.asm_ids), sorted(self.inj_ids), sorted(self.seen),
            self.attempt, self.task,
        ]  # fmt: skip

    @classmethod
    def restored(cls, state: list[Any], number: int) -> Cursor:
        """Return the cursor that `state` described."""
        cursor = cls(ThreadKey(state[0], state[1]), number)
        cursor.turn, cursor.turn_id, cursor.step, cursor.step_id = state[2:6]
        cursor.turns, cursor.named_steps = state[6:8]
        cursor.assembled, cursor.injected, cursor.pending = state[8:11]
        cursor.asm_ids, cursor.inj_ids, cursor.seen = set(state[11]), set(state[12]), set(state[13])
        cursor.attempt, cursor.task = state[14:16]
        return cursor

    def open_turn(self, turn_id: str | None) -> None:
        """Begin the next turn."""
        self.end()
        self.turn += 1
        self.turn_id = turn_id
        if turn_id is not None:
            self.turns[turn_id] = self.turn

    def end(self) -> None:
        """End the open turn. No other turn begins."""
        self.seen.update(f"{self.turn_id}\0{step_id}" for step_id in self.named_steps)
        self.named_steps.clear()
        self.step = 0

    def open_step(self, step_id: str | None) -> None:
        """Begin the next step of the open turn."""
        self.step += 1
        self.step_id = step_id
        if step_id is not None:
            self.named_steps[step_id] = self.step
        self.assembled = self.injected = self.pending = False
        self.attempt = self.task = None
        self.asm_ids.clear()
        self.inj_ids.clear()


class CursorPosition(NamedTuple):
    """A thread's position at an event that is processed later."""

    key: ThreadKey
    turn: int
    step: int
    turn_id: str | None
    step_id: str | None


def position_of(cursor: Cursor | CursorPosition) -> CursorPosition:
    """Return the position of a cursor, for an event that is processed later."""
    return CursorPosition(cursor.key, cursor.turn, cursor.step, cursor.turn_id, cursor.step_id)


class EventPlace(NamedTuple):
    """The thread, turn and step that an event belongs to."""

    cursor: Cursor | CursorPosition
    opened: bool
    """Whether the event is the first of a new step, which is now the cursor's open step."""
    new_turn: bool
    late: bool
    """Whether it names a turn or step that is over. It is reported and takes effect in the next frame."""


_SETTLES = frozenset({vocab.ASSEMBLY_CREATED, vocab.INJECTION_APPLIED})
_FRAME_EVENTS = frozenset(
    {
        vocab.ITEM_ADDED,
        vocab.ITEM_UPDATED,
        vocab.ITEM_REMOVED,
        vocab.SELECTION_COMPLETED,
        vocab.COMPACTION_COMPLETED,
        vocab.SURFACE_CREATED,
    }
)


class StepTracker:
    """Assigns events, in line order, to threads, turns and steps."""

    def __init__(self) -> None:
        self.cursors: dict[ThreadKey, Cursor] = {}
        self._session_of: dict[str, str | None] = {}
        self._last_session: str | None = None
        self._memo: dict[tuple[str | None, str | None], Cursor] = {}
        self._open: dict[str | None, dict[int, Cursor]] = {}
        """Threads that have not ended, by session and number."""

    def copy(self) -> StepTracker:
        """Return an independent copy, for a snapshot of a replay."""
        twin = StepTracker()
        twin._take(cursor.copy() for cursor in self.cursors.values())
        twin._session_of = dict(self._session_of)
        twin._last_session = self._last_session
        return twin

    def state(self) -> dict[str, Any]:
        """Return the tracker as JSON values, from which an index resumes."""
        return {
            "cursors": [cursor.state() for cursor in self.cursors.values()],
            "sessions": self._session_of,
            "last": self._last_session,
        }

    @classmethod
    def restored(cls, state: dict[str, Any]) -> StepTracker:
        """Return the tracker that `state` described."""
        tracker = cls()
        tracker._take(Cursor.restored(row, number) for number, row in enumerate(state["cursors"]))
        tracker._session_of = state["sessions"]
        tracker._last_session = state["last"]
        return tracker

    def _take(self, cursors: Iterable[Cursor]) -> None:
        for cursor in cursors:
            self.cursors[cursor.key] = cursor
            if cursor.step:
                self._open.setdefault(cursor.key.session, {})[cursor.number] = cursor

    def ended(self, event: Event) -> list[Cursor]:
        """Take a `SESSION_ENDED` event. Return the threads that it ends, in the order in which they began.

        The event belongs to no step. It does not set the session of later events that name none.
        """
        session, name = event.session_id, event.thread_id
        if session is None:
            last = self._last_session
            session = last if name is None else self._session_of.get(name, last)
        elif session == vocab.UNNAMED_SESSION:
            session = None
        still = self._open.get(session, {})
        if name is None:
            found = [still[number] for number in sorted(still)]
        else:
            cursor = self.cursors.get(ThreadKey(session, name))
            found = [cursor] if cursor is not None and cursor.step else []
        is_final = isinstance(event.record, Ended) and event.record.final
        for cursor in found:
            cursor.end()
            if is_final:
                cursor.turns, cursor.seen, cursor.named_steps = {}, set(), {}
            del still[cursor.number]
        return found

    def place(self, event: Event) -> EventPlace:
        """Assign one event. Call this once for each event that belongs to a step, in line order."""
        cursor = self._cursor(event.session_id, event.thread_id)
        if event.attempt_id is not None:
            return self._attempted(cursor, event)
        return self._place(cursor, event)

    def _attempted(self, cursor: Cursor, event: Event) -> EventPlace:
        """Place an event of an attempt. Another attempt at a task is another step."""
        again = _another_attempt(cursor, event)
        here = event.turn_id is None or event.turn_id == cursor.turn_id
        if again and here and event.step_id is None and cursor.step:
            cursor.open_step(None)
            place = self._settle(cursor, event, opened=True)
        else:
            place = self._place(cursor, event)
        if not place.late:
            cursor.attempt = event.attempt_id
            cursor.task = event.task_id or cursor.task
        return place

    def _place(self, cursor: Cursor, event: Event) -> EventPlace:
        """Place an event by its turn and step ids alone."""
        turn_id, step_id = event.turn_id, event.step_id
        if (
            (turn_id is None or turn_id == cursor.turn_id)
            and (step_id is None or step_id == cursor.step_id)
            and cursor.step
        ):
            if event.event_type in _SETTLES:
                return self._settle(cursor, event)
            if cursor.injected and event.event_type in _FRAME_EVENTS:
                cursor.pending = True
            return cursor.stays
        return self._move(cursor, event)

    def _cursor(self, named: str | None, thread: str | None) -> Cursor:
        """Return the cursor of a thread, in the named session or else the thread's last one."""
        known = self._memo.get((named, thread))
        if known is not None and named is not None:
            self._session_of[known.key.thread] = self._last_session = known.key.session
            return known
        name = thread if thread is not None else vocab.MAIN_THREAD
        if named is None:
            session = self._session_of.get(name, self._last_session)
        else:
            session = named if named != vocab.UNNAMED_SESSION else None
        self._session_of[name] = self._last_session = session
        key = ThreadKey(session, name)
        cursor = self.cursors.get(key)
        if cursor is None:
            cursor = self.cursors[key] = Cursor(key, len(self.cursors))
            self._open.setdefault(session, {})[cursor.number] = cursor
        if named is not None:
            self._memo[named, thread] = cursor
        return cursor

    def _move(self, cursor: Cursor, event: Event) -> EventPlace:
        """Place an event that is the thread's first or names another turn or step than the open one."""
        turn_id, step_id = event.turn_id, event.step_id
        if cursor.turn and not cursor.step:
            return self._resume(cursor, event)
        if turn_id is not None and turn_id != cursor.turn_id:
            if turn_id in cursor.turns and (step_id is None or f"{turn_id}\0{step_id}" in cursor.seen):
                return EventPlace(cursor, False, False, True)
            if cursor.turn and cursor.turn_id is None and not (cursor.assembled or cursor.injected):
                # Records before the first turn id (tools, system prompt) belong to that turn.
                cursor.turn_id = turn_id
                cursor.turns[turn_id] = cursor.turn
            else:
                cursor.open_turn(turn_id)
                cursor.open_step(step_id)
                return self._settle(cursor, event, opened=True, new_turn=True)
        elif not cursor.turn:
            cursor.open_turn(turn_id)
            cursor.open_step(step_id)
            return self._settle(cursor, event, opened=True, new_turn=True)
        if step_id is None or step_id == cursor.step_id:
            return self._settle(cursor, event)
        if step_id in cursor.named_steps:
            return EventPlace(cursor, False, False, True)
        second = event.event_type == vocab.ASSEMBLY_CREATED and cursor.assembled and _for_model(event)
        if cursor.step_id is None and not cursor.named_steps and not second:
            cursor.step_id = step_id
            cursor.named_steps[step_id] = cursor.step
            return self._settle(cursor, event)
        cursor.open_step(step_id)
        return self._settle(cursor, event, opened=True)

    def _resume(self, cursor: Cursor, event: Event) -> EventPlace:
        """Place an event after its thread's end. Known turn and step ids are late."""
        turn_id, step_id = event.turn_id, event.step_id
        if step_id is not None:
            late = f"{turn_id if turn_id is not None else cursor.turn_id}\0{step_id}" in cursor.seen
        elif turn_id is not None:
            late = turn_id in cursor.turns
        else:
            late = event.event_type in (vocab.USAGE_REPORTED, vocab.TOTAL_STATED)
        if late:
            return EventPlace(cursor, False, False, True)
        cursor.open_turn(turn_id)
        cursor.open_step(step_id)
        self._open.setdefault(cursor.key.session, {})[cursor.number] = cursor
        return self._settle(cursor, event, opened=True, new_turn=True)

    def _settle(
        self, cursor: Cursor, event: Event, *, opened: bool = False, new_turn: bool = False
    ) -> EventPlace:
        """Note model assemblies and injections. Without step ids, a second one opens a new step."""
        record = event.record
        if isinstance(record, Assembly) and record.target == vocab.MODEL:
            if event.step_id is None and not opened and _another_window(cursor, record):
                cursor.open_step(None)
                opened = True
            cursor.assembled = True
            if record.assembly_id is not None:
                cursor.asm_ids.add(record.assembly_id)
        elif isinstance(record, Injection) and record.target == vocab.MODEL:
            if event.step_id is None and not opened and _another_request(cursor, record):
                cursor.open_step(None)
                opened = True
            cursor.injected = True
            if record.assembly_id is not None:
                cursor.inj_ids.add(record.assembly_id)
        elif cursor.injected and event.event_type in _FRAME_EVENTS:
            cursor.pending = True
        return EventPlace(cursor, opened, new_turn, False) if opened else cursor.stays


def _another_attempt(cursor: Cursor, event: Event) -> bool:
    """Return whether the open step belongs to another attempt. Attempts of two tasks may share a name."""
    if cursor.attempt is None:
        return False
    if cursor.attempt != event.attempt_id:
        return True
    return cursor.task is not None and event.task_id not in (None, cursor.task)


def _for_model(event: Event) -> bool:
    record = event.record
    return isinstance(record, Assembly) and record.target == vocab.MODEL


def _another_window(cursor: Cursor, assembly: Assembly) -> bool:
    """Return whether an assembly without a step id belongs to another request."""
    return cursor.assembled or (cursor.injected and assembly.assembly_id not in cursor.inj_ids)


def _another_request(cursor: Cursor, injection: Injection) -> bool:
    """Return whether an injection without a step id is another request, not a second point of one."""
    if not cursor.injected:
        return False
    if injection.assembly_id is None:
        return cursor.pending
    return injection.assembly_id not in cursor.asm_ids and injection.assembly_id not in cursor.inj_ids

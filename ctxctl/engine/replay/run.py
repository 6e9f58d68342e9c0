"""Replay: turn a stream of events into measured steps and turns (DESIGN sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Self

import msgspec

from ctxctl.engine.replay.finish import finish_step
from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.replay.ordering import StepOrder, Until
from ctxctl.engine.replay.rules import ReplayRules
from ctxctl.engine.replay.step_tracker import EventPlace, StepTracker, ThreadKey
from ctxctl.engine.replay.sums import RunningTotals, TurnState
from ctxctl.engine.replay.thread import DeclaredMode, SealedStep, ThreadState
from ctxctl.engine.replay.thread_data import StepIds
from ctxctl.engine.replay.thread_rules import follow_model, new_thread
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.problem import Problem
from ctxctl.model.records import (
    Answered,
    Assembly,
    Budget,
    Compaction,
    Dropped,
    Ended,
    Envelope,
    Failure,
    Fidelity,
    Injection,
    Item,
    Missing,
    Redaction,
    Selection,
    Surface,
    Totals,
    Usage,
)
from ctxctl.model.results import Placement, Step, Turn


class Engine:
    """Feeds events to threads. `feed` and `end` return the steps and turns that are complete."""

    def __init__(self, rules: ReplayRules, report: Callable[[Problem], None]) -> None:
        self.rules = rules
        self.report = report
        self.tracker = StepTracker()
        self.threads: dict[ThreadKey, ThreadState] = {}
        self.turns: dict[ThreadKey, TurnState] = {}
        self.totals = RunningTotals()
        self._last: ThreadState | None = None
        """The thread of the previous event. `_last_ids` holds the session and thread ids of that event."""
        self._last_ids: tuple[str | None, str | None] = (None, None)
        self.frame: list[Placement] = []
        """Placements of the last closed step."""
        self.sealed: SealedStep | None = None
        """The record of the last closed step, and how its frame was made."""
        self.ends_turn = False
        """Whether the last closed step is the last of its turn. If so, the turn is the next result."""
        self.seen: Callable[[Event, Engine], None] | None = None
        """Called with each event after it was taken, and after the steps that it finished."""
        self._order: StepOrder | None = None
        """Set when the steps of two threads overlap for the first time."""
        self._opened: ThreadKey | None = None
        """The thread that opened a step last."""

    def copy(self, report: Callable[[Problem], None]) -> Self:
        """Return an independent copy, for a snapshot."""
        twin = type(self)(self.rules, report)
        twin.tracker = self.tracker.copy()
        twin.threads = {key: thread.kept() for key, thread in self.threads.items()}
        twin.turns = {key: turn.copy() for key, turn in self.turns.items()}
        twin.totals = self.totals.copy()
        twin._order = self._order.copy() if self._order is not None else None
        twin._opened = self._opened
        return twin

    def aside(self) -> Engine:
        """Mark this copy as a preview: sizes that it computes are not kept. Return it."""
        for thread in self.threads.values():
            if not thread.shared:
                thread.placer.weigher.look()
        return self

    def park(self) -> None:
        """Free what can be rebuilt. After this, the engine can only be copied."""
        for thread in self.threads.values():
            if not thread.over:  # the original engine holds those too
                thread.park()

    def weight(self) -> int:
        """Return about how much a parked copy holds, in units of 32 bytes. Snapshots are limited by it."""
        cursors = sum(
            2 * len(cursor.turns) + 3 * len(cursor.seen) for cursor in self.tracker.cursors.values()
        )
        threads = sum(thread.weight() for thread in self.threads.values() if not thread.over)
        waiting = 16 * self._order.weight if self._order is not None else 0
        return 100 * len(self.threads) + cursors + threads + waiting

    def run(self, events: Iterable[Event]) -> Iterator[Step | Turn]:
        """Replay a whole stream of events. Yield steps and turns."""
        for event in events:
            if done := self.feed(event):
                yield from done
        yield from self.end()

    def feed(self, event: Event) -> Iterable[Step | Turn] | None:
        """Take one event. Return the steps and turns that it finishes, in the order in which they began.

        Consume them one by one before feeding the next event: `frame` belongs to the last one consumed.
        """
        self.totals.events += 1
        if self._order is not None:
            return self._in_order(event)
        done: Iterable[Step | Turn] | None = None
        if not self._again(event):
            if event.event_type in vocab.ABOUT_THE_TRACE:
                done = self._about(event)
            else:
                place = self.tracker.place(event)
                if place.opened and self._overlaps(place.cursor.key):
                    return self._beside(event, place)
                done = self._take(event, place)
        return done if self.seen is None else self._shown(event, done)

    def _shown(self, event: Event, done: Iterable[Step | Turn] | None) -> Iterator[Step | Turn]:
        yield from done or ()
        if self.seen is not None:
            self.seen(event, self)

    def _about(self, event: Event) -> Iterable[Step | Turn] | None:
        """Take an event that belongs to no step."""
        if isinstance(event.record, Fidelity):
            self.totals.fidelity += (event.record,)
        elif isinstance(event.record, Dropped):
            self.report(Problem(event.line, event.offset, "events-lost", _lost(event.record)))
        return self._ended(event) if event.event_type == vocab.SESSION_ENDED else None

    # -- where steps of several threads overlap ------------------------------------------------------------

    def _overlaps(self, key: ThreadKey) -> bool:
        """Return whether a step begins during another thread's step whose end the index knows."""
        last = self.threads.get(self._opened) if self._opened is not None else None
        if last is None or last.ids is None or last.key == key:
            return False
        ends = self.rules.ends()
        if ends is None:
            return False
        self._order = StepOrder(ends)
        self._order.begun(last.key, last.ids.first_byte)
        return True

    def _beside(self, event: Event, place: EventPlace) -> Iterator[Step | Turn]:
        """Take the first event of the first step that overlaps another one."""
        assert self._order is not None
        for key, until in list(self._order.until.items()):
            if until.end <= event.offset:
                yield from self._finish(self.threads[key], until)
        yield from self._placed(event, place) or ()

    def _in_order(self, event: Event) -> Iterable[Step | Turn] | None:
        if event.event_type in vocab.ABOUT_THE_TRACE:
            return self._about_in_order(event)
        return self._placed(event, self.tracker.place(event))

    def _about_in_order(self, event: Event) -> Iterator[Step | Turn]:
        yield from self._shown(event, self._about(event))
        yield from self._held()

    def _placed(self, event: Event, place: EventPlace) -> Iterable[Step | Turn] | None:
        order = self._order
        assert order is not None
        if order.holds(place):
            order.hold(event, place)
            return None
        # Most events of a trace that resends its window give no result. Avoid a generator for them.
        if self.seen is None and self._repeats(event, place) and not order.is_due:
            until = order.reached(place.cursor.key, event)
            return None if until is None else self._finish_and_go_on(place.cursor.key, until)
        return self._taken_and_held(event, place)

    def _finish_and_go_on(self, key: ThreadKey, until: Until) -> Iterator[Step | Turn]:
        yield from self._finish(self.threads[key], until)
        yield from self._held()

    def _taken_and_held(self, event: Event, place: EventPlace) -> Iterator[Step | Turn]:
        yield from self._taken(event, place)
        yield from self._held()

    def _held(self) -> Iterator[Step | Turn]:
        """Take the events that waited for a step that has ended."""
        assert self._order is not None
        while (held := self._order.next()) is not None:
            for event, place, key in held:
                if place is None:
                    yield from self._over(self.threads[key])
                else:
                    yield from self._taken(event, place)

    def _taken(self, event: Event, place: EventPlace) -> Iterator[Step | Turn]:
        assert self._order is not None
        key = place.cursor.key
        yield from self._shown(event, None if self._repeats(event, place) else self._take(event, place))
        until = self._order.reached(key, event)
        if until is not None:
            yield from self._finish(self.threads[key], until)

    def _repeats(self, event: Event, place: EventPlace) -> bool:
        """Return whether an event may be skipped; see `_again`."""
        if place.opened or place.late or self.threads.get(place.cursor.key) is not self._last:
            return False
        return self._again(event)

    def _finish(self, thread: ThreadState, until: Until) -> list[Step | Turn]:
        """Finish a step after its last event."""
        thread.over = thread.over or until.over
        done = self._close(thread, new_turn=until.turn or until.over)
        thread.ids = None
        return done

    # -- one event -----------------------------------------------------------------------------------------

    def _take(self, event: Event, place: EventPlace) -> list[Step | Turn] | None:
        """Pass an event to its thread. Return the step and the turn that it ends."""
        cursor = place.cursor
        thread = self.threads.get(cursor.key)
        self._last, self._last_ids = thread, (event.session_id, event.thread_id)
        if thread is None:
            self._last = thread = self.threads[cursor.key] = new_thread(cursor.key, self.rules)
        elif thread.shared:
            self._last = thread = self.threads[cursor.key] = thread.copy()
        done = None
        if place.opened:
            done = self._close(thread, new_turn=place.new_turn)
            self._open(thread, place, event)
        elif place.late:
            self._late(event, "names a turn or step that is over" if _names(event) else "that has ended")
        elif thread.ids is not None and (event.step_id is not None or event.turn_id is not None):
            self._adopt(thread, place, event)
        if (event.context_id or event.task_id or event.run_id or event.attempt_id) and not place.late:
            thread.annotations.named(event)
        record = event.record
        if place.late and type(record) in _OF_THEIR_STEP:
            return done
        if type(record) is Item:
            self._item(thread, event, record)
        elif record is not None:
            self._record(thread, event, record)
        return done

    def _again(self, event: Event) -> bool:
        """Return whether an event only repeats a live item in its current version, and so can be skipped.

        True only where processing would change nothing: same open step as the event before, not yet sealed,
        `window` mode (in `append` mode a repeated item is sent again).
        """
        thread, record = self._last, event.record
        if thread is None or type(record) is not Item:
            return False
        version = thread.book.known.get(record)
        if version is None or thread.book.live.get(version.item) is not version:
            return False
        ids, mode = thread.ids, thread.mode
        return (
            event.session_id == self._last_ids[0]
            and event.attempt_id is None
            and event.thread_id == self._last_ids[1]
            and ids is not None
            and event.turn_id == ids.turn_id
            and event.step_id == ids.step_id
            and thread.sealed is None
            and mode is not None
            and mode.mode == "window"
            and thread.simulation is None
            and self.rules.target == vocab.MODEL
            and event.event_type in _ENTERS
        )

    @property
    def order(self) -> StepOrder | None:
        """Events that wait, once the steps of two threads have overlapped."""
        return self._order

    @property
    def current(self) -> ThreadState | None:
        """The thread of the last event that belongs to one."""
        return self._last

    def delta(self) -> FrameDelta:
        """Return how the last closed step's frame differs from the previous frame of its thread."""
        assert self.sealed is not None
        return self.sealed.delta

    def end(self) -> Iterator[Step | Turn]:
        """Close all open steps, in the order in which they began."""
        while self._order is not None and self._order.waits:
            self._order.head = None
            yield from self._held()
        for thread in sorted(self.threads.values(), key=_begun):
            yield from self._over(thread)

    def _ended(self, event: Event) -> Iterator[Step | Turn]:
        keys = [cursor.key for cursor in self.tracker.ended(event)]
        if isinstance(event.record, Ended) and event.record.final:
            for thread in filter(None, map(self.threads.get, keys)):
                thread.final = True
        if self._order is not None:
            keys = [key for key in keys if not self._order.hold_end(event, key)]
        for thread in sorted((self.threads[key] for key in keys), key=_begun):
            yield from self._over(thread)

    def _over(self, thread: ThreadState) -> list[Step | Turn]:
        thread.over = True
        done = self._close(thread, new_turn=True)
        if thread.final:
            del self.threads[thread.key]
        return done

    def _open(self, thread: ThreadState, place: EventPlace, event: Event) -> None:
        cursor = place.cursor
        thread.opens(
            StepIds(
                turn=cursor.turn,
                step=cursor.step,
                turn_id=cursor.turn_id,
                step_id=cursor.step_id,
                time=event.time if event.time != vocab.NO_TIME else None,
                first_line=event.line,
                first_byte=event.offset,
                new_turn=place.new_turn,
            )
        )
        # A bill, or an assembly after the last seal, may have named the model.
        follow_model(thread, thread.facts.model or thread.model, self.rules)
        self._opened = thread.key
        if self._order is not None:
            self._order.begun(thread.key, event.offset)

    def _adopt(self, thread: ThreadState, place: EventPlace, event: Event) -> None:
        """Give the open step the ids that its first events lacked. Report what comes after its seal."""
        ids = thread.ids
        assert ids is not None
        cursor = place.cursor
        if ids.step_id is not cursor.step_id or ids.turn_id is not cursor.turn_id:
            thread.ids = ids._replace(step_id=cursor.step_id, turn_id=cursor.turn_id)
        # A frame for another target is sealed separately.
        shapes = type(event.record) in _SHAPES_FRAME and (
            getattr(event.record, "target", self.rules.target) == self.rules.target
        )
        if thread.sealed is not None and event.step_id is not None and shapes:
            self._late(event, "comes after its step was sealed")

    def _late(self, event: Event, what: str) -> None:
        slug = "late-usage" if isinstance(event.record, Usage) else "late-event"
        where = _names(event) or "a thread"
        then = "is left out" if type(event.record) in _OF_THEIR_STEP else "counts for the next frame"
        message = f"{event.event_type} for {where} {what}; it {then}"
        self.report(Problem(event.line, event.offset, slug, message))

    def _item(self, thread: ThreadState, event: Event, record: Item) -> None:
        facts = thread.facts if thread.later is None else thread.later
        kind = event.event_type
        if kind == vocab.ITEM_REMOVED:
            item = thread.book.item_of(record.item_id)
            if item not in thread.book.latest:
                message = f"{item} is removed, and this thread never had it; nothing is removed"
                self.report(Problem(event.line, event.offset, "unknown-item", message))
            thread.book.leave(item)
            facts.removed[item] = record.cause
            facts.entered.pop(item, None)
        elif kind == vocab.SUMMARY_CREATED:
            thread.book.learn(record, event.line)
        else:
            if record.redaction is not None:
                thread.annotations.redacted(record.redaction, thread.book)
            version = thread.book.enter(record, event.line)
            facts.entered[version.item] = None
            if facts.removed:
                facts.removed.pop(version.item, None)

    def _record(self, thread: ThreadState, event: Event, record: object) -> None:
        target = self.rules.target
        if isinstance(record, Assembly):
            if record.target == target:
                self._assembly(thread, event, record)
        elif isinstance(record, Injection):
            if record.target == target:
                thread.asked = event.time
                self._injection(thread, record)
            else:
                self._elsewhere(thread, record)
        elif isinstance(record, Totals):
            thread.stated += record.totals
        elif isinstance(record, Usage):
            thread.asked = thread.asked or event.time
            self._usage(thread, record)
        elif isinstance(record, Failure):
            thread.failures += (record,)
        elif isinstance(record, Answered):
            thread.answered()
        elif isinstance(record, Budget):
            if record.target == target:
                thread.open_facts().budgets.append(record)
        else:
            self._fact(thread, event, record)

    def _fact(self, thread: ThreadState, event: Event, record: object) -> None:
        facts = thread.open_facts()
        if isinstance(record, Selection):
            if event.event_type == vocab.SELECTION_COMPLETED:
                facts.selection = record
                facts.chosen = [thread.placer.known(ref.ref) for ref in record.selected]
                facts.model = record.model or facts.model
                follow_model(thread, record.model, self.rules)
        elif isinstance(record, Surface):
            facts.surfaces.append(record)
        elif isinstance(record, Compaction):
            if event.event_type == vocab.COMPACTION_COMPLETED:
                facts.compactions.append(record)
                if facts.selection is not None or thread.facts.selection is not None:
                    facts.cuts.append(record)
                self._compact(thread, event, record)
        elif isinstance(record, Missing):
            facts.missing.append(record)
            thread.annotations.lacks(_settled(record, event))
        elif isinstance(record, Redaction):
            facts.redacted.add(thread.book.item_of(record.item_id))
            thread.annotations.redacted(record, thread.book)
        elif isinstance(record, Envelope):
            thread.annotations.bound(record)

    def _compact(self, thread: ThreadState, event: Event, record: Compaction) -> None:
        """Remove a compaction's sources from the live items and add its summary."""
        for ref in record.sources:
            thread.book.compact(ref)
        if record.summary is not None:
            thread.book.summarised(record.summary, event.line)

    def _assembly(self, thread: ThreadState, event: Event, record: Assembly) -> None:
        facts = thread.open_facts()
        if record.root is not None:
            if thread.root is not None and thread.root != record.root:
                facts.causes = "branched"
                facts.rerooted = True
            thread.root = record.root
        facts.causes = record.cause if record.cause in vocab.CAUSES else facts.causes
        facts.assembly = record
        facts.model = record.model or facts.model
        if record.model is not None and record.model != thread.model and self.rules.model is None:
            # This is the first request to another model. Count new content as that model counts.
            thread.placer.weigher.scale = self.rules.scales.scale(record.model, None)
        follow_model(thread, record.model, self.rules)
        declared = vocab.mode_of(record.mode)
        if declared is not None and thread.mode is None:
            thread.mode = DeclaredMode(declared, True)
        thread.take_assembly()
        fault = thread.windows.fault
        if fault is not None:
            own = fault == "unknown-base" and record.base == record.assembly_id
            what = _FAULTS["own-base" if own else fault].format(assembly=record.assembly_id, base=record.base)
            if not thread.windows.goes_on:
                self.report(Problem(event.line, event.offset, fault, what))
            facts.faults.add(fault)

    def _injection(self, thread: ThreadState, record: Injection) -> None:
        if thread.sealed is not None:
            thread.injected_again(record)
            return
        follow_model(thread, record.model, self.rules)
        thread.take_injection(record)
        if not record.awaits_answer:
            self._seal(thread)

    def _elsewhere(self, thread: ThreadState, record: Injection) -> None:
        """Note an injection for another target with the model's request of the same step."""
        facts = thread.sealed.facts if thread.sealed is not None else thread.open_facts()
        facts.elsewhere[record.target] = None

    def _usage(self, thread: ThreadState, record: Usage) -> None:
        if thread.ids is not None:
            thread.usage = record
            # A billed request was answered. An interrupted answer is billed before its failure is recorded.
            thread.answered()

    def _seal(self, thread: ThreadState) -> None:
        if thread.mode is None:
            thread.mode = self._mode(thread)
        thread.seal(list_skipped=self.rules.list_skipped)
        if thread.windows.given_up:
            self._tell_unmarked(thread)

    def _tell_unmarked(self, thread: ThreadState) -> None:
        ids = thread.ids
        assert ids is not None
        # Lines of an import are not lines of the original capture.
        place = (0, 0) if self.rules.imported else (ids.first_line, ids.first_byte)
        for item in thread.windows.take_given_up():
            what = _UNMARKED.format(item=item, turn=ids.turn, step=ids.step)
            self.report(Problem(*place, "stale-cut", what))

    def _mode(self, thread: ThreadState) -> DeclaredMode:
        """Return `append` if all the target's injections are at an appendix, else `window`."""
        points = {i.injection_point for i in thread.facts.injections if i.injection_point is not None}
        if points and not points <= vocab.APPEND_POINTS:
            # Decide without looking ahead. A later declaration of another mode is ignored.
            return DeclaredMode("window", False)
        ahead = self.rules.ahead(thread.key)
        if ahead.declared is not None:
            return DeclaredMode(ahead.declared, True)
        append = bool(ahead.points) and ahead.points <= vocab.APPEND_POINTS
        return DeclaredMode("append" if append else "window", False)

    def _close(self, thread: ThreadState, *, new_turn: bool) -> list[Step | Turn]:
        if thread.ids is None:
            return []
        if thread.sealed is None:
            self._seal(thread)
        step = finish_step(thread, self.rules)
        self.frame = thread.frame.placements
        self.sealed = thread.sealed
        turn = self.turns.get(thread.key)
        if turn is None or turn.number != step.turn:
            turn = self.turns[thread.key] = TurnState(thread, step)
        turn.add(thread, step)
        self.totals.add(step)
        self.ends_turn = new_turn
        if self._order is not None:
            self._order.done(thread.key)
        done: list[Step | Turn] = [step]
        if new_turn:
            done.append(turn.finish(thread, self.rules))
            self.totals.turns += 1
            del self.turns[thread.key]
            thread.ids = None
        return done


def _begun(thread: ThreadState) -> int:
    return thread.ids.first_byte if thread.ids is not None else -1


def _names(event: Event) -> str | None:
    return event.step_id if event.step_id is not None else event.turn_id


def _lost(record: Dropped) -> str:
    """Return how many events are missing here and why, the most frequent reasons first."""
    counts = {why: n for why, n in record.reasons.items() if isinstance(n, int)}
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    more = f", {len(ranked) - _MAX_REASONS} more" if len(ranked) > _MAX_REASONS else ""
    why = ", ".join(f"{reason[:80]} {n:,}" for reason, n in ranked[:_MAX_REASONS])
    number = record.count if record.count is not None else sum(counts.values())
    what = "event was" if number == 1 else "events were"
    return f"{number:,} {what} not recorded before this one{f' ({why}{more})' if why else ''}"


_MAX_REASONS = 4


def _settled(record: Missing, event: Event) -> Missing:
    """Return a record with status `resolved` if its event says so and the record has no status."""
    if event.event_type == vocab.MISSING_RESOLVED and record.status is None:
        return msgspec.structs.replace(record, status="resolved")
    return record


_FAULTS = {
    "unknown-base": "assembly {assembly} is spliced onto {base}, which this thread has not shown lately; "
    "its blocks are put behind the last window",
    "own-base": "assembly {assembly} is spliced onto itself; its blocks are put behind the last window",
    "bad-splice": "a splice of assembly {assembly} reaches beyond the end of its base {base}",
    "windows-too-large": "windows of so many items are changed so often that assembly {assembly} is not "
    "worked out from {base}: it, and those that build on it, are shown with their own blocks alone",
}
_UNMARKED = (
    "versions of {item} take turns in a window that holds many copies of each: "
    "from step {turn}.{step} on none of them is told to be stale"
)
_ENTERS = frozenset({vocab.ITEM_ADDED, vocab.ITEM_UPDATED})
_OF_THEIR_STEP = frozenset({Usage, Totals, Injection, Failure, Answered})
"""Records that affect only their own step, not later frames."""
_SHAPES_FRAME = frozenset({Item, Selection, Budget, Assembly, Compaction, Redaction, Injection})

"""An inspector of a trace that is still being written. One engine is fed only what is new.

One thread feeds, and any thread may ask meanwhile. They see what was published last: the finished steps, then
those that would be finished if nothing more came, which a copy of the engine computes. `LiveRows` are both
kinds of steps at one moment.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import msgspec

from ctxctl.engine.replay.cursor import (
    RecentSteps,
    ReplayCursor,
    Snapshots,
    StepAt,
    rest_of_trace,
    steps_with_turns,
)
from ctxctl.engine.replay.ordering import Ends
from ctxctl.engine.replay.rules import ThreadAhead
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.errors import UsageError
from ctxctl.model import vocab
from ctxctl.model.event import Event
from ctxctl.model.outline import Row
from ctxctl.model.problem import Problem
from ctxctl.model.results import Step, Summary, Turn
from ctxctl.policies.registry import Strategy
from ctxctl.session.facade import Inspector, Outline, Progress, ReportedProblems
from ctxctl.session.item_words import ItemWords
from ctxctl.session.opening import Opened
from ctxctl.session.params import Params
from ctxctl.session.places import StepPlaces
from ctxctl.session.survey import Survey, row_of
from ctxctl.trace.contents import ContentMark
from ctxctl.trace.growing import GrowingTrace
from ctxctl.trace.index import Span
from ctxctl.trace.reader import TracePass, key_of

_MAX_FED = 32
"""Events fed between two calls of `enough`. With large frames and new texts, they take some milliseconds."""

Take = Callable[[Step | Turn], None]


class _ResumePoint(NamedTuple):
    """What returning to a snapshot needs besides the engine."""

    problems: int
    """Number of problems that the engine had reported."""
    kept: int
    contents: ContentMark
    keys: int
    late: int
    """Number of these problems that are events after their step's end."""


class LiveInspector(Inspector):
    """The inspector of a growing trace. One thread calls `feed` and `publish`, any thread everything else."""

    trace: GrowingTrace

    def __init__(
        self,
        opened: Opened,
        params: Params,
        policy: Strategy | None,
        take: Take | None,
        *,
        rewinds: bool,
        skipped: bool = False,
        seeks: bool = True,
    ) -> None:
        super().__init__(opened, params, policy)
        assert isinstance(opened.trace, GrowingTrace)
        self._keeps = rewinds or seeks
        """Whether snapshots are kept. Without them, `at` replays from the first line."""
        self.rewinds = rewinds
        """Whether `go_back` may be called, which costs memory."""
        self._seeks = seeks
        self._recent = RecentSteps()
        """The last finished steps, which are read most while a session grows."""
        self._take = take
        self._reading = opened.trace.reading()
        self._waiting: list[Event] = []
        """Events that were read and are to be fed next."""
        self._keys = array("q")
        self._sent: dict[tuple[object, ...], int] = {}
        """A hash of each result that was delivered and may be repeated."""
        self._engine_now = self._engine(self._found.add, skipped=skipped)
        self._snapshots = Snapshots(self._engine_now, self._resume_point())
        self._published: tuple[LiveRows, LiveTail, Survey] = (
            LiveRows((), 0, (), {}),
            empty_tail(0),
            self._survey_rows,
        )
        self._answered: dict[ThreadKey, ThreadAhead] = {}
        """What was assumed of the rest of the trace, by thread. It may prove wrong."""
        self._low: int | None = None
        """Rows before this one did not change when the trace was read again."""
        self._learnt_when_published = 0
        """The redactor's `news` when rows were published last."""
        self.kept = 0
        """Number of leading rows that are identical to those published before."""
        self.words = ItemWords(self)
        """Names of the items in delivered results."""
        self.told: list[Problem] = []
        """Problems of following the file."""
        self.over = False

    # Used by the feeding thread.

    @property
    def events(self) -> int:
        """Number of events read so far."""
        return self._engine_now.totals.events

    @property
    def read(self) -> int:
        """Bytes fed so far."""
        return self._waiting[0].offset if self._waiting else self._reading.at

    def feed(self, enough: Callable[[], bool]) -> bool:
        """Read until the end or until `enough`, which is called every few dozen events. Return whether more
        is left."""
        waiting, self._waiting = self._waiting, []
        if not self._feed(waiting, enough):
            for batch in self._reading.run():
                self._counter.foresee(batch, self.trace.contents)
                if self._feed(batch, enough):
                    break
        return bool(self._waiting) or self._reading.at < self.trace.source.size

    def _feed(self, batch: list[Event], enough: Callable[[], bool]) -> bool:
        """Feed events and keep the rest waiting. Return whether it was enough."""
        engine, survey = self._engine_now, self._survey_rows
        assert self._snapshots is not None
        for n, event in enumerate(batch, 1):
            done = engine.feed(event)
            if self.rewinds and event.event_id is not None:
                self._keys.append(key_of(event))
            if done:
                self._note(survey, done)
                ended = len(survey.rows)
                if self._keeps and self._snapshots.due(ended):
                    at = event.offset + event.length + 1
                    self._snapshots.offer(engine, ended, at, event.line + 1, self._resume_point())
            if n % _MAX_FED == 0 and n < len(batch) and batch[n].offset > event.offset and enough():
                self._waiting = batch[n:]
                return True
        return bool(batch) and enough()

    def _note(self, survey: Survey, done: Iterable[Step | Turn]) -> None:
        results: list[Step | Turn] = []
        if self._seeks:
            for ordinal, at in enumerate(steps_with_turns(self._engine_now, done), len(survey.rows)):
                self._recent.keep(ordinal, at)
                survey.note(at.done, self._engine_now.delta)
                results += at.done
        else:
            results += self._seen(done)
            survey.note(results)
        for result in results:
            self._give(result)

    def _seen(self, done: Iterable[Step | Turn]) -> Iterator[Step | Turn]:
        """Yield what the engine finishes, with its current frame."""
        for result in done:
            if self._take is not None and isinstance(result, Step):
                self.words.see(StepAt(result, self._engine_now.frame, None))
            yield result

    def _give(self, result: Step | Turn) -> None:
        """Deliver a result, unless the same one was delivered before the trace was read again."""
        if self._take is None:
            return
        if self.redactor:  # the engine may hold names read before their redaction
            result = self.redactor.struct(result)
        if self.rewinds:
            key = (result.session, result.thread, result.turn, result.step if isinstance(result, Step) else 0)
            mark = _hash(result)
            if self._sent.get(key) == mark:
                return
            self._sent[key] = mark
        self._take(result)

    def opened_anew(self, opened: Opened) -> None:
        """Take the problems of a repeated import of the capture."""
        self.opened = opened

    def lookahead_changed(self) -> bool:
        """Return whether an assumption about the rest of the trace proved wrong. If so, replay again."""
        if not self._answered:
            return False
        with self._lock:
            if self._ahead is not None:
                self._ahead.extend()
            return any(
                _outcome(Inspector._look_ahead(self, key)) != _outcome(answer)
                for key, answer in self._answered.items()
            )

    def _look_ahead(self, key: Any) -> Any:
        answer = super()._look_ahead(key)
        self._answered[key] = answer
        return answer

    def _ends(self) -> Ends | None:
        """Return None: while the trace is being written, steps come when they are over."""
        return None

    def go_back(self, at: int, then: int) -> None:
        """Discard everything from byte `at` (the start of a line) on. What follows is at `then`."""
        with self._lock:
            assert self._snapshots is not None
            snapshot = self._snapshots.back(at)
            here = snapshot.mark
            assert isinstance(here, _ResumePoint)
            self._found.kept = self._found.kept[: here.kept]
            self._found.count, self._found.late = here.problems, here.late
            self._engine_now = snapshot.engine.copy(self._found.add)
            self._low = min(snapshot.done, self._low if self._low is not None else snapshot.done)
            self._survey_rows = self._survey_rows.cut(snapshot.done)
            del self._keys[here.keys :]
            self.trace.cut(at, then)
            self.trace.contents.forget(here.contents)
            self._reading.back(snapshot.offset, snapshot.line - 1, set(self._keys))
            self._cursor = None
            self._recent = RecentSteps()
            self._waiting = []
            self._ahead = None

    def _resume_point(self) -> _ResumePoint:
        found = self._found
        contents = self.trace.contents.mark()
        return _ResumePoint(found.count, len(found.kept), contents, len(self._keys), found.late)

    def publish(self, aside: bytes = b"", *, line: bool = False, open_too: bool = True) -> None:
        """Publish what was read, for all threads.

        `aside` holds lines that may still change; with `line`, one unfinished line, which counts if it is
        valid. Without `open_too`, unfinished steps are shown as before until a step is finished.
        """
        survey = self._survey_rows
        if self._learnt_when_published != self.redactor.news:
            self._learnt_when_published = self.redactor.news
            first = survey.reword(self.redactor.words)
            if first is not None:
                self._low = first if self._low is None else min(first, self._low)
        _, tail, shown = self._published
        if open_too:
            tail = self._ended(survey, aside, line=line)
        elif shown is not survey or tail.first < len(survey.rows):
            tail = empty_tail(len(survey.rows))
        self._show(survey, tail)

    def _ended(self, survey: Survey, aside: bytes, *, line: bool) -> LiveTail:
        with self.trace.contents.aside():
            events = self._reading.aside(aside, whole=line) if aside else []
            engine = (
                self._engine_now.copy(_report_nothing) if events else rest_of_trace(self._engine_now)
            ).aside()
            ats: list[StepAt] = []
            for event in events:
                ats += steps_with_turns(engine, engine.feed(event) or ())
            ats += steps_with_turns(engine, engine.end())
            return tail_of(survey, ats, self._totals(engine))

    def settle(self, aside: bytes) -> None:
        """Deliver the last step and turn as they are now, because the runtime says that its turn is over.

        This applies to the main thread; others have ends of their own. Later changes deliver them again.
        `aside` holds lines after those read, which may still change.
        """
        done: list[Step | Turn] = []
        with self.trace.contents.aside():
            engine = self._engine_now.copy(_report_nothing).aside()
            for event in self._reading.aside(aside, whole=False) if aside else ():
                done += engine.feed(event) or ()
            done += engine.end()
        for result in done:
            if result.thread == vocab.MAIN_THREAD:
                self._give(result)

    def _totals(self, engine: Engine) -> Summary:
        return engine.totals.summary(problems=self.problem_count, unique_contents=len(self.trace.contents))

    def finish(self) -> None:
        """Finish what is open. Nothing more will come."""
        engine, survey = self._engine_now, self._survey_rows

        def results() -> Iterator[Step | Turn]:
            for result in self._seen(engine.end()):
                self._give(result)
                yield result

        ats = list(steps_with_turns(engine, results()))
        self._counter.flush()
        self.over = True
        self._show(survey, tail_of(survey, ats, self._totals(engine)))

    def _show(self, survey: Survey, tail: LiveTail) -> None:
        rows = LiveRows(survey.rows, tail.first, tail.rows, tail.titles)
        old = self._published[0]
        kept = old.settled
        if self._low is not None:
            kept, most = min(kept, self._low), min(kept, tail.first)
            while kept < most and _same(rows[kept], old[kept]):
                kept += 1
            self._low = None
        self.kept = kept
        if tail.summary is not None:
            self._summary = tail.summary
        with self._lock:
            self._published = (rows, tail, survey)
            self._places = None

    # Used by any thread.

    @property
    def rows(self) -> LiveRows:
        """The last published steps."""
        return self._published[0]

    @property
    def known(self) -> Sequence[Row]:
        """The last published steps."""
        return self._published[0]

    @property
    def problems(self) -> list[Problem]:
        """The problems so far, by line and byte."""
        return sorted([*super().problems, *map(self.redactor.problem, self.told)])

    @property
    def problem_count(self) -> int:
        """Number of problems so far."""
        return super().problem_count + len(self.told)

    def outline(self, progress: Progress | None = None) -> Outline:
        """Return the last published steps. Nothing is read."""
        summary = self._summary
        return Outline(tuple(self.known), summary if summary is not None else self._totals(self._engine_now))

    def _finish(self, engine: Engine, found: ReportedProblems) -> None:
        """Change nothing after a pass beside the feeding one."""

    def _begin(self) -> ReportedProblems:
        return ReportedProblems()

    def at(self, ordinal: int) -> StepAt:
        """Return a step with its placements, by its last published ordinal. Raises UsageError."""
        at = self._at(ordinal)
        if not self.redactor:
            return at
        struct = self.redactor.struct
        turn = None if at.turn is None else struct(at.turn)
        return at._replace(step=struct(at.step), placements=[struct(p) for p in at.placements], turn=turn)

    def _at(self, ordinal: int) -> StepAt:
        with self._lock:
            rows, tail, _ = self._published
            if tail.first <= ordinal < len(rows):
                return tail.ats[ordinal - tail.first]
            recent = self._recent.get(ordinal) if ordinal < tail.first else None
            if recent is not None:
                return recent
            if self._cursor is None:
                assert self._snapshots is not None
                self._cursor = ReplayCursor(self._snapshots, self._events, whole=False)
            try:
                if 0 <= ordinal < tail.first:
                    return self._cursor.at(ordinal)
            except IndexError:
                pass
            raise UsageError("no-such-frame", f"the trace has no step {ordinal}")

    def _events(self, start: int, first_line: int) -> Iterator[Event]:
        """Yield what the feeding thread has read, and what it reads while this is suspended."""
        one = TracePass(self.trace, start, first_line)
        last = -1
        while last < one.at < (end := self.read):
            last = one.at
            for batch in one.run(end):
                yield from batch

    def _batches(self, *_: object) -> Iterator[list[Event]]:
        """Yield the events that the feeding thread has read so far."""
        return TracePass(self.trace).run(self.read)

    def turn(self, ordinal: int) -> Turn:
        """Return the turn of a step. An open turn is returned as far as it goes."""
        rows, tail, survey = self._published
        if 0 <= ordinal < len(rows):
            row = rows[ordinal]
            found = tail.turns.get((ThreadKey(row.session, row.thread), row.turn))
            if found is not None:
                return found[1]
            end = survey.turn_end(ordinal)
            turn = self.at(end).turn if end is not None and end < tail.first else None
            if turn is not None:
                return turn
        raise UsageError("no-such-frame", f"the turn of step {ordinal} is still being read")

    def previous(self, ordinal: int) -> int | None:
        """Return the ordinal of the thread's previous step."""
        rows, tail, survey = self._published
        if not 0 <= ordinal < len(rows):
            raise UsageError("no-such-frame", f"the trace has no step {ordinal}")
        return survey.before[ordinal] if ordinal < tail.first else tail.before[ordinal - tail.first]

    def places(self, progress: Progress | None = None) -> StepPlaces:
        """Return the last published steps, for addresses."""
        with self._lock:
            if self._places is None:
                self._places = _places(self._published[0])
            return self._places


def _places(rows: LiveRows) -> StepPlaces:
    spans = tuple(
        Span(row.session, row.thread, row.turn, row.step, row.offset, row.offset, row.first_line)
        for row in rows
    )
    by_thread: dict[ThreadKey, list[int]] = {}
    for ordinal, span in enumerate(spans):
        by_thread.setdefault(ThreadKey(span.session, span.thread), []).append(ordinal)
    return StepPlaces(spans, by_thread)


def _outcome(ahead: ThreadAhead) -> object:
    """Return the mode that an engine derives from a look ahead."""
    if ahead.declared is not None:
        return ahead.declared, True
    return bool(ahead.points) and ahead.points <= vocab.APPEND_POINTS


def _same(a: Row, b: Row) -> bool:
    return a == b or a == msgspec.structs.replace(b, offset=a.offset)


def _report_nothing(_problem: Problem) -> None:
    """Drop a problem of the engine's copy. The engine itself will report it."""


def _hash(result: Step | Turn) -> int:
    """Return a hash that is equal for results that differ only in their place in the file."""
    if isinstance(result, Step):
        result = msgspec.structs.replace(result, first_byte=0)
    return hash(repr(result))


TurnKey = tuple[ThreadKey, int]


class LiveRows(Sequence[Row]):
    """The rows of one moment. They never change, whatever happens to the trace later."""

    __slots__ = ("_over", "_provisional", "_titles", "settled")

    def __init__(
        self, over: Sequence[Row], settled: int, provisional: tuple[Row, ...], titles: dict[int, str]
    ) -> None:
        self._over = over
        self.settled = settled
        """Number of rows of finished steps. Later rows may change."""
        self._provisional = provisional
        self._titles = titles
        """Titles of open turns, by the ordinal of their first step."""

    def __len__(self) -> int:
        return self.settled + len(self._provisional)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        if index >= self.settled:
            return self._provisional[index - self.settled]
        row = self._over[index]
        title = self._titles.get(index)
        return row if title is None or row.title is not None else _titled(row, title)

    def __iter__(self) -> Iterator[Row]:
        return (self[n] for n in range(len(self)))


class LiveTail(NamedTuple):
    """What would be finished if nothing more came. Its values cannot be found by replaying."""

    first: int
    """Ordinal of its first step."""
    ats: tuple[StepAt, ...]
    rows: tuple[Row, ...]
    before: tuple[int | None, ...]
    turns: dict[TurnKey, tuple[int, Turn]]
    """The open turns, each with the ordinal of its last step."""
    titles: dict[int, str]
    summary: Summary | None


def empty_tail(first: int) -> LiveTail:
    """Return a tail without steps: nothing is open, or nobody has looked."""
    return LiveTail(first, (), (), (), {}, {}, None)


def tail_of(survey: Survey, ats: Iterable[StepAt], summary: Summary) -> LiveTail:
    """Return the tail of a survey, as an immutable copy."""
    first = len(survey.rows)
    found: list[StepAt] = []
    rows: list[Row] = []
    before: list[int | None] = []
    turns: dict[TurnKey, tuple[int, Turn]] = {}
    titles: dict[int, str] = {}
    last: dict[ThreadKey, int] = {}
    began: dict[ThreadKey, int] = {}
    for at in ats:
        step, ordinal = at.step, first + len(rows)
        key = ThreadKey(step.session, step.thread)
        if step.step == 1:
            began[key] = ordinal
        before.append(last.get(key, survey.last(key)))
        last[key] = ordinal
        found.append(at)
        rows.append(row_of(ordinal, step))
        if at.turn is None:
            continue
        turns[key, at.turn.turn] = (ordinal, at.turn)
        start = began.get(key, survey.first_of_turn(key))
        if at.turn.title is not None and start is not None:
            if start < first:
                titles[start] = at.turn.title
            else:
                rows[start - first] = _titled(rows[start - first], at.turn.title)
    return LiveTail(first, tuple(found), tuple(rows), tuple(before), turns, titles, summary)


def _titled(row: Row, title: str) -> Row:
    return msgspec.structs.replace(row, title=title)

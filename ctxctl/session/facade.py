"""The façade for all views: a trace, its replay parameters (policy, encoding, …), and its caches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ctxctl.engine.replay.cursor import ReplayCursor, Snapshots, StepAt, ignore_problem, steps_with_turns
from ctxctl.engine.replay.ordering import Ends
from ctxctl.engine.replay.placements import Count
from ctxctl.engine.replay.rules import Encodings, ReplayRules
from ctxctl.engine.replay.run import Engine
from ctxctl.engine.replay.walked import walked_by
from ctxctl.errors import UsageError
from ctxctl.model import vocab
from ctxctl.model.content import Content
from ctxctl.model.event import Event
from ctxctl.model.outline import Life, Row
from ctxctl.model.problem import DOUBTS, Problem
from ctxctl.model.results import Cut, Frame, Step, Summary, Turn
from ctxctl.model.whatif import AS_RECORDED, Limits, Texts
from ctxctl.policies.registry import Strategy
from ctxctl.session.addresses import address_id, step_ordinal
from ctxctl.session.assembly import assembled_text
from ctxctl.session.calibration import NONE, SESSION, fitted_to
from ctxctl.session.counting import Recounts
from ctxctl.session.kept_replays import KeptReplays
from ctxctl.session.learned.choice import OFF
from ctxctl.session.opening import Opened, native_line, open_trace
from ctxctl.session.params import (
    LimitFinder,
    ModeLookahead,
    OwnModels,
    Params,
    fitter_of,
    planner_of,
    recomputer_of,
    resolve_params,
    same_ranks,
)
from ctxctl.session.places import StepPlaces, step_index, step_places
from ctxctl.session.redaction import redactor_of
from ctxctl.session.results import FrameDiff, Outline, ReportedProblems, compared_frames, life_of
from ctxctl.session.scales import scales_of
from ctxctl.session.survey import Survey
from ctxctl.session.walked import walked
from ctxctl.trace.cache_files import DamagedError

if TYPE_CHECKING:
    from ctxctl.engine.replay.edits import Edits
    from ctxctl.session.edits import Resolved
    from ctxctl.session.inventory import Inventory
    from ctxctl.store.file import SessionStore, StoreWriter
    from ctxctl.store.lives import OpenRows

__all__ = ["FrameDiff", "Inspector", "Outline", "Progress", "ReportedProblems"]

Progress = Callable[[float], None]
"""Called from time to time with the share of the trace read so far, 0 to 1."""


_SOURCE_LINE: Final = re.compile(rb'"source_line":([0-9]{1,15})')
"""The key that an import writes near the start of each event."""
_EVENT_HEAD: Final = 1 << 11
"""Bytes at the start of an event that may hold the key."""


class Inspector:
    """One opened trace. Methods may be called from several threads; `replay` passes are independent."""

    def __init__(self, opened: Opened, params: Params, policy: Strategy | None) -> None:
        self.opened = opened
        self.trace = opened.trace
        self.redactor = redactor_of(opened.trace)
        """Masks what was redacted in the trace, for every view."""
        self.format = opened.format
        self.learned = opened.learned
        """What was added to a log from a learned set."""
        self.params = self.redactor.params(params)
        self.strategy = policy
        """The policy that the trace is replayed under; None for `recorded`."""
        self._lock = RLock()
        """Guards the cursor and the caches. It is never held for a whole pass."""
        self._surveying = RLock()
        self._indexing = RLock()
        self._survey_rows = Survey()
        self._counter = params.counter()
        self._recounts = Recounts(self._counter, opened.trace.contents)
        self._limiter = LimitFinder(params.runtime, params.own_models)
        self._found = ReportedProblems()
        """The engine's reports of the first pass, or of the last complete one."""
        self._summary: Summary | None = None
        self._outline: Outline | None = None
        self._snapshots: Snapshots | None = None
        self._cursor: ReplayCursor | None = None
        self._places: StepPlaces | None = None
        self._ahead: ModeLookahead | None = None
        self.kept_replays = KeptReplays(self.trace)
        self.store_rows: tuple[int, OpenRows] | None = None
        """The trace's size and its rows, once requested by `rows_of`."""
        self.inventory: Inventory | None = None
        """The items of the trace, once requested."""
        self.edits: Edits | None = None
        """Edits of a what-if; None without any."""

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        target: str = vocab.MODEL,
        model: str | None = None,
        encoding: str | None = None,
        policy: str | None = None,
        format: str | None = None,  # noqa: A002 - the name users type
        limits: Limits = AS_RECORDED,
        drop: Sequence[str] = (),
        set: Texts = (),  # noqa: A002 - what the option is called
        calibration: str | None = NONE,
        learned: str = OFF,
        own_models: OwnModels | None = None,
    ) -> Inspector:
        """Open a native or foreign trace; `-` is stdin.

        Args:
            limits: Supposed limits that replace the recorded ones.
            drop: Items to leave out: `kind:KIND`, `source:SOURCE`, `server:SERVER`, `item:ID`, or a bare
                word that is only one of these.
            set: Texts that replace items' own, by `ID` or `ID@VERSION`.
            calibration: See `calibration.chosen_calibration`; `session` reads the trace once to fit it.
            learned: See `choose_set`.
            own_models: The models of the user's settings. The settings are not read here.

        Raises UnreadableError, UsageError (unknown names) or UnavailableError (an extra is not installed).
        """
        opened = open_trace(path, format, learned)
        try:
            params, strategy = resolve_params(
                opened, target, model, encoding, policy, calibration, own_models
            )
            made = cls(opened, msgspec.structs.replace(params, limits=limits), strategy)
            if params.calibration.origin == SESSION:
                steps = (at.step for at in made.steps())
                fitted = fitted_to(steps, params.encoding, params.encoding_of)
                made.params = msgspec.structs.replace(made.params, calibration=fitted)
            if drop or set:
                made.edit(drop, set)
        except BaseException:
            opened.trace.close()
            raise
        return made

    def edit(self, drop: Sequence[str], set: Texts) -> None:  # noqa: A002
        """Apply edits of a what-if from now on. Raises UsageError (see `resolve_edits`)."""
        self.edits, edited = self.edits_of(drop, set)
        self.params = msgspec.structs.replace(self.params, edited=edited)

    def edits_of(self, drop: Sequence[str], set: Texts) -> Resolved:  # noqa: A002
        """Return such edits resolved against this trace. Raises UsageError (see `resolve_edits`)."""
        from ctxctl.session.edits import resolved_edits

        return resolved_edits(self.items, self.trace.contents, drop, set, self.text)

    def items(self, progress: Progress | None = None) -> Inventory:
        """Return the items of the trace. Reads the trace if it was not read yet, or has grown."""
        from ctxctl.session.inventory import Inventory

        known = self.inventory
        if known is None or known.size != self.trace.source.size:
            known = self.inventory = Inventory(self.trace, self.params.target, progress)
        return known

    @property
    def name(self) -> str:
        """The trace's name as the user typed it."""
        return self.trace.source.name

    @property
    def problems(self) -> list[Problem]:
        """The problems so far, by line and byte. An importer's problems have places in the foreign file."""
        found = sorted([*self.opened.problems, *self.trace.problems, *self._found.kept])
        return [self.redactor.problem(problem) for problem in found]

    @property
    def problem_count(self) -> int:
        """Number of problems so far, including those not kept."""
        return len(self.opened.problems) + self.trace.problem_count + self._found.count

    @property
    def doubts(self) -> tuple[str, ...]:
        """What the import did not understand of the capture as a whole, as sentences, by line."""
        found = sorted(problem for problem in self.opened.problems if problem.slug in DOUBTS)
        return tuple(
            f"line {p.line:,}: {p.message}" if p.line else p.message
            for p in map(self.redactor.problem, found)
        )

    @property
    def finding_count(self) -> int:
        """`problem_count` without notes: the number for ``--strict``."""
        return self.problem_count - sum(problem.is_note for problem in self.opened.problems)

    @property
    def summary(self) -> Summary | None:
        """Totals of the last complete replay."""
        return self._summary

    def replay(self, progress: Progress | None = None, *, skipped: bool = False) -> Iterator[Step | Turn]:
        """Replay from the first line. Yield steps in order of their beginning, each turn after its last step.

        With `skipped`, changes include the skipped items: as many as the frame holds, at each step.
        """
        kept = None if skipped else self.kept_replay()
        told = 0
        try:
            for step, turn in kept.results() if kept is not None else ():
                told += 1
                yield from (step,) if turn is None else (step, turn)
        except DamagedError:
            self.forget_replay()
            kept = None
        if kept is not None:
            self.take_over(kept)
            return
        for at, _ in islice(self.walk(progress, skipped=skipped, settle=True), told, None):
            yield from at.done

    def steps(self, progress: Progress | None = None, *, settle: bool = False) -> Iterator[StepAt]:
        """Yield each step with its frame, from the cached replay if there is one."""
        yield from (one.at for one in walked(self, progress, settle=settle))

    def read_whole(self, progress: Progress | None = None) -> None:
        """Make `problems` and `summary` cover the whole trace, by a replay if they do not."""
        if self._summary is not None:
            return
        kept = self.kept_replay()
        if kept is None:
            self.outline(progress)
        else:
            self.take_over(kept)

    def kept_replay(self) -> SessionStore | None:
        """Return the cached replay of the trace; None if there is none or there cannot be one."""
        with self._lock:
            return self.kept_replays.of(self)

    def keeps_replay(self) -> bool:
        """Return whether a complete pass would be cached: it can be, and none is yet."""
        return self.kept_replay() is None and self.kept_replays.keeps(self.params, self.strategy, self.edits)

    def take_over(self, kept: SessionStore, *, settle: bool = True) -> None:
        """Take problems and summary from a cached replay; without `settle`, only the problems of reading."""
        if settle:
            self._found, self._summary = ReportedProblems(), kept.summary
            self._found.kept, self._found.count = list(kept.about.found), kept.about.found_count
            self._found.late = kept.about.late
        self.trace.restore(kept.about.problems, kept.about.problem_count)

    def forget_replay(self) -> None:
        """Drop a damaged cached replay and do without it."""
        with self._lock:
            self.kept_replays.forget()

    def _keeping(self, *, skipped: bool) -> StoreWriter | None:
        """Return a writer that caches a pass; None if it is cached already or cannot be."""
        if skipped or self.kept_replay() is not None:
            return None
        return self.kept_replays.writer(self.params, self.strategy, self.edits)

    def counted(self, start: int = 0, first_line: int = 1) -> Iterator[list[Event]]:
        """Yield the events in batches as they are read. Contents are counted ahead where that pays."""
        return self.counted_of(self.trace.batches(start, first_line))

    def counted_of(self, batches: Iterable[list[Event]]) -> Iterator[list[Event]]:
        """Yield batches of the trace's events, with contents counted ahead as in `counted`."""
        return self._counter.counted(batches, self.trace.contents)

    def _batches(
        self, engine: Engine, found: ReportedProblems, writer: StoreWriter | None
    ) -> Iterator[list[Event]]:
        """Yield the events of a pass. For a cached pass, mark where a later run may continue."""
        if writer is None or not writer.marks:
            return self.counted()
        from ctxctl.session.grown_replay import Marking

        return Marking.whole(self, found).batches(engine, writer)

    @property
    def looked_ahead(self) -> bool:
        """Whether a thread's mode was looked up in the whole trace; it may change when the trace grows."""
        return self._ahead is not None

    def _events(self, start: int, first_line: int) -> Iterator[Event]:
        for batch in self.counted(start, first_line):
            yield from batch

    def walk(
        self,
        progress: Progress | None = None,
        *,
        skipped: bool = False,
        seen: Callable[[Event, Engine], None] | None = None,
        settle: bool = False,
    ) -> Iterator[tuple[StepAt, Engine]]:
        """Replay from the first line. Yield each step with its frame, and the engine that finished it.

        The pass changes no state of the inspector, which reports the trace's problems by other passes. With
        `settle`, the complete pass sets `problems` and `summary`. `seen` is called with each event after the
        engine has taken it, and after the steps that it finished.
        """
        found = self.reporting() if settle else ReportedProblems()
        engine = self._engine(found.add, skipped=skipped)
        engine.seen = seen
        writer = self._keeping(skipped=skipped)
        try:
            for at in self._pass(engine, self._batches(engine, found, writer), progress):
                if writer is not None:
                    writer.add(walked_by(engine, at))
                yield at, engine
            if settle:
                self._finish(engine, found)
            if writer is not None:
                writer.finish(engine, self.trace, self.summary_of(engine, found), found.told)
        finally:
            if writer is not None:
                writer.give_up()

    def _pass(
        self, engine: Engine, batches: Iterable[list[Event]], progress: Progress | None
    ) -> Iterator[StepAt]:
        size = max(1, self.trace.source.size)
        for batch in batches:
            if progress is not None:
                progress(batch[0].offset / size)
            for event in batch:
                if done := engine.feed(event):
                    yield from steps_with_turns(engine, done)
        yield from steps_with_turns(engine, engine.end())

    def summary_of(self, engine: Engine, found: ReportedProblems) -> Summary:
        """Return the totals of a complete pass."""
        problems = len(self.opened.problems) + self.trace.problem_count + found.count
        return engine.totals.summary(problems=problems, unique_contents=len(self.trace.contents))

    def _finish(self, engine: Engine, found: ReportedProblems) -> None:
        self._found = found
        self._counter.flush()
        self._recounts.flush()
        self._summary = self.summary_of(engine, found)

    def places(self, progress: Progress | None = None) -> StepPlaces:
        """Return the trace's steps, from the index. Nothing is replayed."""
        with self._indexing:
            if self._places is None:
                self._places = step_places(step_index(self.trace, progress), self.redactor)
            return self._places

    def outline(self, progress: Progress | None = None) -> Outline:
        """Return one row for each step. The first call replays the trace; later calls return the same value.

        Meanwhile `known` has the rows so far, and other threads may open those steps.
        """
        with self._surveying:
            if self._outline is None:
                self._outline = self._survey(progress)
            return self._outline

    @property
    def known(self) -> Sequence[Row]:
        """The rows so far of a running `outline`; it only grows at the end."""
        return self._survey_rows.rows

    @property
    def surveyed(self) -> Survey:
        """The notes of a running or finished `outline`."""
        return self._survey_rows

    @property
    def late_events(self) -> int:
        """Number of events so far that came after their step's end and are missing from it."""
        return self._found.late

    def _survey(self, progress: Progress | None) -> Outline:
        """Keep a row for each step and, if the trace is replayed, snapshots for random access."""
        kept = self.kept_replay()
        if kept is not None:
            survey = self._survey_rows = Survey()
            try:
                survey.note_all(kept.walked(), kept.steps, progress)
                self.take_over(kept)
                return Outline(tuple(survey.rows), kept.summary)
            except DamagedError:
                self.forget_replay()
        found = self.reporting()
        engine = self._engine(found.add)
        survey = self._survey_rows = Survey()
        snapshots = Snapshots(engine)
        writer = self._keeping(skipped=False)

        def noted(done: Iterable[Step | Turn]) -> Iterator[Step | Turn]:
            return iter(done) if writer is None else writer.taken(done, engine)

        with self._lock:
            self._snapshots, self._cursor = snapshots, None
        size = max(1, self.trace.source.size)
        for batch in self._batches(engine, found, writer):
            if progress is not None:
                progress(batch[0].offset / size)
            for event in batch:
                if done := engine.feed(event):
                    survey.note(noted(done), engine.delta)
                    ended = len(survey.rows)
                    snapshots.offer(engine, ended, event.offset + event.length + 1, event.line + 1)
        survey.note(noted(engine.end()), engine.delta)
        self._finish(engine, found)
        if writer is not None:
            writer.finish(engine, self.trace, self.summary_of(engine, found), found.told)
        return Outline(tuple(survey.rows), self.summary_of(engine, found))

    def reporting(self) -> ReportedProblems:
        """Return the problems of a new pass. They are visible at once if no pass is complete yet."""
        found = ReportedProblems()
        if self._summary is None:
            self._found = found
        return found

    def _engine(self, report: Callable[[Problem], None], *, skipped: bool = False) -> Engine:
        return Engine(self.rules(skipped=skipped), report)

    def rules(self, *, skipped: bool = False) -> ReplayRules:
        """Return the rules of this inspector's replays."""
        params = self.params
        return ReplayRules(
            target=params.target,
            store=self.trace.contents,
            count=self._count,
            encoding=params.encoding,
            known=params.uses_encoding,
            ahead=self._look_ahead,
            ends=self._ends,
            list_skipped=skipped,
            model=params.model,
            limits=params.limits,
            policy=planner_of(self.strategy),
            fitter=fitter_of(self.strategy),
            recomputer=recomputer_of(self.strategy),
            trim=self._counter.trim,
            edits=self.edits,
            encodings=Encodings(params.encoding_of, self._counter_of) if not params.one_encoding else None,
            scales=scales_of(params, self.written),
            first_model=params.first_model,
            imported=params.runtime is not None,
            rebuilds_windows=_rebuilds_windows(params.runtime),
            catalogue=self._limiter.catalogue,
            compacts_at=self._limiter.compacts_at,
            compacted_window=self._limiter.compacted_window,
            read=self.text,
        )

    def _count(self, content: Content) -> tuple[int, bool]:
        """Return a content's tokens, and whether they are exact. Each distinct text is counted only once."""
        return content.count or self._counter.count_of(content, self.trace.contents)

    def _counter_of(self, encoding: str) -> Count:
        """Return the counter of an encoding, for steps of models that have another one than the replay."""
        if same_ranks(encoding, self.params.encoding):
            return self._count
        return self._recounts.of(encoding).count

    def written(self, content: Content, encoding: str) -> int | None:
        """Return the tokens of a tool's definition in the form that OpenAI gives to models of an encoding.

        None if it is no definition of a function, because its form is unknown.
        """
        return self._recounts.written(content, encoding, own=same_ranks(encoding, self.params.encoding))

    def _look_ahead(self, key: Any) -> Any:
        """Return what the whole trace says about a thread's mode, if its first step does not settle it."""
        with self._lock:
            if self._ahead is None:
                self._ahead = ModeLookahead(self.trace, self.params.target)
            return self._ahead.of(key)

    def _ends(self) -> Ends | None:
        """Return where steps end, from the index."""
        return self.places().until

    def at(self, ordinal: int) -> StepAt:
        """Return a step with its placements, by its ordinal. Raises UsageError("no-such-frame").

        Replays from the nearest snapshot before it, or from the start if there is none.
        """
        with self._lock:
            kept = self.kept_replay()
            if kept is not None:
                try:
                    return kept.at(ordinal)
                except DamagedError:
                    self.forget_replay()
                except IndexError:
                    raise UsageError("no-such-frame", f"the trace has no step {ordinal}") from None
            if self._cursor is None:
                if self._snapshots is None:
                    self._snapshots = Snapshots(self._engine(ignore_problem))
                self._cursor = ReplayCursor(self._snapshots, self._events)
            try:
                if ordinal >= 0:
                    return self._cursor.at(ordinal)
            except IndexError:
                pass
            raise UsageError("no-such-frame", f"the trace has no step {ordinal}")

    def step(self, ordinal: int) -> Step:
        """Return a step, by its ordinal."""
        return self.at(ordinal).step

    def frame(self, ordinal: int) -> Frame:
        """Return a step's placements in order, by its ordinal."""
        at = self.at(ordinal)
        return Frame(at.step, tuple(at.placements))

    def turn(self, ordinal: int) -> Turn:
        """Return the turn of a step, by the step's ordinal."""
        end = self._survey_rows.turn_end(ordinal)
        turn = self.at(end if end is not None else self.places().turn_end(ordinal)).turn
        assert turn is not None
        return turn

    def previous(self, ordinal: int) -> int | None:
        """Return the ordinal of the previous step of the same session and thread."""
        if ordinal < len(self._survey_rows.rows):
            return self._survey_rows.before[ordinal]
        return self.places().previous(ordinal)

    def resolve(self, address: str) -> int:
        """Return the ordinal for ``[SESSION/][THREAD:]TURN[.STEP]`` or for an id of the runtime.

        Raises UsageError: `no-such-frame`, `bad-address`, `ambiguous-session`.
        """
        places = self.places()
        name = address_id(address, places.spans)
        if name is None:
            return step_ordinal(address, places.spans)
        from ctxctl.session.places import ordinal_by_id

        return ordinal_by_id(name, self.trace, places, context_only=name != address)

    def text(self, content: Content) -> str:
        """Return a content's text without what was redacted."""
        return self.redactor.text(content)

    def assembled(self, ordinal: int, *, canonical: bool = False) -> str:
        """Return the texts of a frame as sent, in order, with the assembly's recorded separators.

        A line end stands for an unknown separator. What a step appended keeps its own separators. With
        `canonical`, JSON is in its canonical form.
        """
        at = self.at(ordinal)
        return assembled_text(at.step, at.placements, self.text, canonical=canonical)

    def native(self, line: int) -> dict[str, Any]:
        """Return all fields of a line, without what was redacted. Raises UsageError("no-such-line")."""
        return native_line(self.trace, self.places().spans, line)

    def capture_lines(self, cut: Cut) -> tuple[int, int]:
        """Return the capture's lines for a cut's lines of the trace."""
        first, last = (
            int(found[1]) if (found := _SOURCE_LINE.search(self.trace.source.read(at, _EVENT_HEAD))) else line
            for line, at in zip(cut.lines, cut.offsets, strict=True)
        )
        return first, last

    def life(self, item: str, *, session: str | None = None, thread: str | None = None) -> list[Life]:
        """Return what happened to an item at each step that mentions it, in line order."""
        return list(self.moments(item, session=session, thread=thread))

    def moments(
        self,
        item: str,
        *,
        session: str | None = None,
        thread: str | None = None,
        progress: Progress | None = None,
    ) -> Iterator[Life]:
        """Yield what `life` returns while the trace is being replayed."""
        return life_of(self.replay(progress), item, session, thread)

    def compare(self, a: Frame, b: Frame) -> FrameDiff:
        """Compare any two frames, also of two traces, by the plain definition."""
        return compared_frames(a, b)

    def close(self) -> None:
        """Close the files. The inspector cannot be used afterwards."""
        self.kept_replays.close()
        if self.store_rows is not None:
            self.store_rows[1].db.close()
        self._counter.close()
        self._recounts.close()
        self.trace.close()

    def __enter__(self) -> Inspector:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _rebuilds_windows(runtime: str | None) -> bool:
    """Return whether the importer of this format rebuilds windows from a history."""
    if runtime is None:
        return False
    from ctxctl.importers.registry import rebuilds_windows

    return rebuilds_windows(runtime)

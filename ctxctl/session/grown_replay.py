"""A replay of a trace that has grown since: gone on with from where the kept one was marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from ctxctl.engine.replay.cursor import steps_with_turns
from ctxctl.engine.replay.walked import walked_by
from ctxctl.session.engine_state import mark_of, resume
from ctxctl.session.results import ReportedProblems
from ctxctl.store.file import StoreKey, StoreWriter, marked, marked_placements
from ctxctl.store.mark import Mark
from ctxctl.trace.cache_files import DamagedError
from ctxctl.trace.object_graph import NotKeptError
from ctxctl.trace.reader import SeenEvents, TracePass, no_events

if TYPE_CHECKING:
    from ctxctl.engine.replay.edits import Edits
    from ctxctl.engine.replay.rules import ReplayRules
    from ctxctl.engine.replay.run import Engine
    from ctxctl.model.event import Event
    from ctxctl.model.results import Summary
    from ctxctl.policies.registry import Strategy
    from ctxctl.session.params import Params
    from ctxctl.session.places import StepPlaces
    from ctxctl.trace.reader import Trace

MOST: Final = 0.5
"""Share of a trace that may have come since; where more has, it is replayed whole, and progress is told."""
_THREADS: Final = 500
"""Threads of a trace that is marked: to write down the state of more costs as much as to replay them."""
AGAIN: Final = 0.02
"""Share of a trace from which on another mark is made: what is read again until then costs less than that."""


class Inspected(Protocol):
    """What is asked of an inspector."""

    trace: Trace
    params: Params
    strategy: Strategy | None
    edits: Edits | None

    def rules(self) -> ReplayRules:
        """What every replay of it is made under."""

    def places(self) -> StepPlaces:
        """Which steps there are."""

    def counted_of(self, batches: Iterable[list[Event]]) -> Iterator[list[Event]]:
        """Batches of events, their contents counted."""

    def summary_of(self, engine: Engine, found: ReportedProblems) -> Summary:
        """Totals of a pass that has come to its end."""

    @property
    def looked_ahead(self) -> bool:
        """Whether the whole trace was asked for a thread's mode."""


class GrownReplay:
    """A kept replay whose trace is longer now."""

    def __init__(
        self, key: StoreKey, trace: Trace, rows: Path, mark: Mark, kept: Callable[[Path], None]
    ) -> None:
        self._key = key
        self._trace = trace
        self._rows = rows
        self._mark = mark
        self._kept = kept

    @classmethod
    def find(cls, key: StoreKey, trace: Trace, kept: Callable[[Path], None]) -> GrownReplay | None:
        """The kept replay of a part of a trace; `kept` is told once that of the whole is in its place."""
        found = marked(key)
        if found is None:
            return None
        mark, rows = found
        size = trace.source.size
        return cls(key, trace, rows, mark, kept) if (1 - MOST) * size <= mark.offset <= size else None

    def bring_up(self, inspector: Inspected) -> bool:
        """Replay what has come since, and keep the whole; False where that cannot be."""
        found = ReportedProblems()
        rules, mark = inspector.rules(), self._mark
        try:
            resumed = resume(
                mark, self._trace, rules, found, given(inspector), inspector.places,
                partial(marked_placements, self._rows),
            )  # fmt: skip
        except DamagedError:
            return False
        if resumed is None:
            return False
        # What was read from takes some room, and is of no use any more.
        self._mark = mark = msgspec.structs.replace(mark, graph=b"", seen=b"", contents=[])
        engine, reading = resumed.engine, resumed.reading
        before = self._rows, resumed.writer
        writer = StoreWriter(self._key, self._trace.contents, self._kept, before)
        stop = None
        if self._trace.source.size - mark.offset > AGAIN * self._trace.source.size:
            stop = inspector.places().spans[-1].start
        try:
            marking = Marking(inspector, reading, resumed.seen, found, stop)
            for batch in marking.batches(engine, writer):
                for event in batch:
                    for at in steps_with_turns(engine, engine.feed(event) or ()):
                        writer.add(walked_by(engine, at))
            for at in steps_with_turns(engine, engine.end()):
                writer.add(walked_by(engine, at))
            writer.finish(engine, self._trace, inspector.summary_of(engine, found), found.told)
        finally:
            writer.give_up()
        return True


class Marking:
    """A pass over a trace that is marked on its way, so that a later run can go on from there."""

    def __init__(
        self, inspector: Inspected, reading: TracePass, seen: SeenEvents, found: ReportedProblems,
        stop: int | None,
    ) -> None:  # fmt: skip
        self._inspector = inspector
        self._reading = reading
        self._seen = seen
        self._found = found
        self._stop = stop

    @classmethod
    def whole(cls, inspector: Inspected, found: ReportedProblems) -> Marking:
        """A pass from the first line, marked where the last step begins: what comes then may still change."""
        seen = SeenEvents()
        spans = inspector.places().spans
        return cls(
            inspector, TracePass(inspector.trace, seen=seen), seen, found, spans[-1].start if spans else None
        )

    def batches(self, engine: Engine, writer: StoreWriter) -> Iterator[list[Event]]:
        """The events, each batch to be fed to the engine before the next one is asked for."""
        reading = self._reading
        for batch in self._inspector.counted_of(self._stretches()):
            if batch:
                yield batch
            else:
                self._mark(engine, writer)
        if reading.start == 0 and not reading.found:
            raise no_events(self._inspector.trace.source)

    def _stretches(self) -> Iterator[list[Event]]:
        """What is read, with an empty batch where it is marked: nothing behind it is read before that."""
        if self._stop is not None:
            yield from self._reading.run(self._stop)
            yield []
        yield from self._reading.run()

    def _mark(self, engine: Engine, writer: StoreWriter) -> None:
        inspector = self._inspector
        state = writer.state()
        if state is None or inspector.looked_ahead or len(engine.threads) > _THREADS:
            return
        try:
            mark = mark_of(
                self._reading, self._seen, engine, self._found, given(inspector), inspector.places(),
                state,
            )  # fmt: skip
        except NotKeptError:
            return
        writer.mark(mark)


def given(inspector: Inspected) -> str:
    """What the trace's head and its importer say that a replay rests on."""
    return f"{inspector.params.first_model}\0{inspector.params.runtime}"

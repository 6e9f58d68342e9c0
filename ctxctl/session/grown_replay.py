"""Continue a cached replay of a trace that has grown since, from its mark."""

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
"""Largest share of a trace that may be new. If more is, the trace is replayed whole, with progress."""
_MAX_THREADS: Final = 500
"""Most threads of a trace that is marked: writing the state of more costs as much as a replay."""
AGAIN: Final = 0.02
"""Share of a trace after which a new mark is made: reading less again costs less than the mark."""


class Inspected(Protocol):
    """What continuing a replay needs of an inspector."""

    trace: Trace
    params: Params
    strategy: Strategy | None
    edits: Edits | None

    def rules(self) -> ReplayRules:
        """Return the rules of its replays."""

    def places(self) -> StepPlaces:
        """Return its steps."""

    def counted_of(self, batches: Iterable[list[Event]]) -> Iterator[list[Event]]:
        """Yield batches of events with contents counted ahead."""

    def summary_of(self, engine: Engine, found: ReportedProblems) -> Summary:
        """Return the totals of a complete pass."""

    @property
    def looked_ahead(self) -> bool:
        """Whether a thread's mode was looked up in the whole trace."""


class GrownReplay:
    """A cached replay of a trace that is longer now."""

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
        """Return a cached replay of a part; `kept` is called once the whole one has replaced it."""
        found = marked(key)
        if found is None:
            return None
        mark, rows = found
        size = trace.source.size
        return cls(key, trace, rows, mark, kept) if (1 - MOST) * size <= mark.offset <= size else None

    def bring_up(self, inspector: Inspected) -> bool:
        """Replay what is new, and cache the whole; return False if that is impossible."""
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
        # The old files take space and are not needed any more.
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
    """A pass over a trace that makes a mark, so that a later run can continue from there."""

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
        """Return a pass from the first line, marked where the last step begins, which may change."""
        seen = SeenEvents()
        spans = inspector.places().spans
        return cls(
            inspector, TracePass(inspector.trace, seen=seen), seen, found, spans[-1].start if spans else None
        )

    def batches(self, engine: Engine, writer: StoreWriter) -> Iterator[list[Event]]:
        """Yield the events. Each batch must be fed to the engine before the next one is requested."""
        reading = self._reading
        for batch in self._inspector.counted_of(self._stretches()):
            if batch:
                yield batch
            else:
                self._mark(engine, writer)
        if reading.start == 0 and not reading.found:
            raise no_events(self._inspector.trace.source)

    def _stretches(self) -> Iterator[list[Event]]:
        """Yield what is read, and an empty batch at the mark, before anything after it is read."""
        if self._stop is not None:
            yield from self._reading.run(self._stop)
            yield []
        yield from self._reading.run()

    def _mark(self, engine: Engine, writer: StoreWriter) -> None:
        inspector = self._inspector
        state = writer.state()
        if state is None or inspector.looked_ahead or len(engine.threads) > _MAX_THREADS:
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
    """Return what a replay depends on in the trace's head and its importer."""
    return f"{inspector.params.first_model}\0{inspector.params.runtime}"

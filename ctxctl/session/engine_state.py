"""The state of an unfinished replay as data, from which another run continues when the trace has grown.

The data holds the engine, the writer's state and the trace reader's state. The parameters of a run (rules,
counters, the content store) are not in it; each run has its own.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import xxhash

from ctxctl.engine.replay import annotations as annotation_state
from ctxctl.engine.replay import (
    changes,
    frames,
    item_table,
    ordering,
    placements,
    reweighing,
    run,
    stale_copies,
    step_facts,
    step_tracker,
    sums,
    thread,
    thread_data,
    window_mode,
)
from ctxctl.engine.sizes import bills, cache_misses, cache_settings, prefix, scales, sent, weighing
from ctxctl.model import annotations as told
from ctxctl.model import event, records, results, terms
from ctxctl.model.content import Content
from ctxctl.model.results import Placement
from ctxctl.store.mark import Mark
from ctxctl.store.writer import WriterState
from ctxctl.tokens.calibrate import expect, following
from ctxctl.trace.cache_files import DamagedError, digest_of_beginning
from ctxctl.trace.contents import StoredContent
from ctxctl.trace.graph_decode import decode_graph
from ctxctl.trace.graph_encode import encode_graph
from ctxctl.trace.object_graph import GraphTable, NotKeptError, classes_of
from ctxctl.trace.reader import SeenEvents, TracePass

if TYPE_CHECKING:
    from ctxctl.engine.replay.rules import ReplayRules
    from ctxctl.engine.replay.run import Engine
    from ctxctl.session.places import StepPlaces
    from ctxctl.session.results import ReportedProblems
    from ctxctl.trace.contents import Contents
    from ctxctl.trace.reader import Trace

_TABLE: Final = GraphTable(
    (
        annotation_state, changes, frames, item_table, ordering, placements, reweighing, run,
        stale_copies, step_facts, step_tracker, sums, thread, thread_data, window_mode, bills,
        cache_misses, cache_settings, prefix, scales, sent, weighing, told, event, records, results, terms,
        expect, following,
    ),
    {
        # These follow from the rest, or are keyed by the identity of objects of one run.
        item_table.ItemTable: {"known": dict, "versions": dict, "newest": dict, "_digests": dict},
        placements.Placer: {"_blocks": dict},
        reweighing.Reweigher: {"_lists": dict},
        # The run that continues has its own of these.
        run.Engine: {"seen": lambda: None},
        ordering.StepOrder: {"ends": lambda: None},
        weighing.Weigher: {"_count": lambda: None},
    },
    plain={
        placements.Placer: {"_keys": tuple[tuple[str, str | None, str | None, int], int]},
        weighing.Weigher: {"_sizes": tuple[int, tuple[int, str]]},
    },
    records=(*classes_of(records), results.Placement),
    shared=Content,
    methods=(
        (item_table.ItemTable, "item_of"),
        (step_facts.FactsReading, "cause_of"),
        (thread.ThreadState, "_differs"),
    ),
)  # fmt: skip


PlacementsOf = Callable[[Sequence[int], Sequence[Content]], list[Placement]]
"""Takes numbers of placements, and the contents by their numbers."""


class Resumed(msgspec.Struct, frozen=True):
    """A replay that can continue."""

    engine: Engine
    reading: TracePass
    seen: SeenEvents
    writer: WriterState


def mark_of(
    reading: TracePass,
    seen: SeenEvents,
    engine: Engine,
    found: ReportedProblems,
    given: str,
    places: StepPlaces,
    writer: WriterState,
) -> Mark:
    """Return the state of a pass that has fed its engine everything read.

    Raises NotKeptError if part of it cannot be encoded.
    """
    trace, at = reading.trace, reading.at
    if trace.repeats or trace.covered < at:
        raise NotKeptError("events that were left out")
    written = [placement for placement, _ in writer.known]
    known = dict.fromkeys(writer.texts)
    known.update(dict.fromkeys(content for content in trace.contents.known() if _is_before(content, at)))
    outside = [*_outside(engine.rules, engine.report), *known, *written]
    graph = encode_graph(
        _TABLE, [engine, writer.windows, writer.steps, writer.placements, len(writer.texts)], outside
    )
    order = engine.order
    return Mark(
        at, reading.line, digest_of_beginning(trace.source, at), given,
        b"" if order is None else _digest_of_ends(places, at),
        seen.seed, array("Q", seen.keys).tobytes(),
        tuple(trace.problems), trace.problem_count, tuple(found.kept), found.count, found.late,
        _stored(trace.contents, known), array("I", [number for _, number in writer.known]).tobytes(), graph,
    )  # fmt: skip


def resume(
    mark: Mark,
    trace: Trace,
    rules: ReplayRules,
    found: ReportedProblems,
    given: str,
    places: Callable[[], StepPlaces],
    placed: PlacementsOf,
) -> Resumed | None:
    """Return the replay over a trace that begins like the marked one; None if it cannot continue.

    The trace must not have been read yet. Raises DamagedError.
    """
    if (
        mark.given != given
        or trace.source.size < mark.offset
        or digest_of_beginning(trace.source, mark.offset) != mark.beginning
    ):
        return None
    if mark.ends and mark.ends != _digest_of_ends(places(), mark.offset):
        return None
    known = _restored(trace.contents, mark.contents)
    numbers = array("I")
    numbers.frombytes(mark.placements)
    written = placed(numbers, known)
    outside = [*_outside(rules, found.add), *known, *written]
    engine, windows, steps, placements, contents = decode_graph(_TABLE, mark.graph, outside)
    writer = WriterState(
        steps, placements, list(zip(written, numbers, strict=True)),
        {content: at for at, content in enumerate(known[:contents])}, windows,
    )  # fmt: skip
    found.kept, found.count, found.late = list(mark.found), mark.found_count, mark.late
    trace.restore(mark.problems, mark.problem_count, mark.offset)
    keys = array("Q")
    keys.frombytes(mark.seen)
    seen = SeenEvents(mark.seed, keys)
    _bring(engine, rules, places)
    return Resumed(engine, TracePass(trace, mark.offset, mark.line + 1, seen), seen, writer)


def _outside(rules: ReplayRules, report: object) -> Sequence[object]:
    """Return the objects that every run has itself, in a fixed order."""
    return rules, rules.store, rules.count, report, getattr(rules.scales, "written", None)


def _bring(engine: Engine, rules: ReplayRules, places: Callable[[], StepPlaces]) -> None:
    """Give an engine the run's own objects, and the current lookahead of its open steps."""
    for one in engine.threads.values():
        one.book.relearn()
        weigher = one.placer.weigher
        kinds, encoding = rules.encodings, weigher.encoding
        weigher.brought(rules.count if kinds is None or encoding is None else kinds.counting(encoding))
    order = engine.order
    if order is None:
        return
    order.ends = places().until
    for key in list(order.until):
        ids = engine.threads[key].ids
        until = None if ids is None else order.ends(key, ids.first_byte)
        if until is None:
            raise DamagedError
        order.until[key] = until


def _is_before(content: Content, at: int) -> bool:
    """Return whether a text was made, or inline, before `at`."""
    first = getattr(content.origin, "first", None)
    return first is None or first < at


def _stored(contents: Contents, known: Iterable[Content]) -> list[StoredContent]:
    numbers: dict[Content, int] = {}
    made: list[StoredContent] = []
    for content in known:
        base = contents.inside(content)
        at = None if base is None else numbers.get(base)
        stored = contents.stored(content, at)
        if stored is None or (base is not None and at is None):
            raise NotKeptError("a text that is not in the trace")
        numbers[content] = len(made)
        made.append(stored)
    return made


def _restored(contents: Contents, stored: list[StoredContent]) -> list[Content]:
    known: list[Content] = []
    for one in stored:
        if one.base is not None and not 0 <= one.base < len(known):
            raise DamagedError
        known.append(contents.restored(one, None if one.base is None else known[one.base]))
    return known


def _digest_of_ends(places: StepPlaces, at: int) -> bytes:
    """Return a digest of the lookahead for steps that begin before a byte; later ends count only as later."""
    digest = xxhash.xxh3_128()
    for span in places.spans:
        if span.start >= at:
            break
        until = places.until(step_tracker.ThreadKey(span.session, span.thread), span.start)
        over = until if until is not None and until.end <= at else None
        digest.update(repr((span.start, over)).encode())
    return digest.digest()

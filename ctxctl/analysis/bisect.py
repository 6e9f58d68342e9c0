"""Find where a query turns true in one trace, and where two traces of one task diverge.

Matching a step costs little beside reading it, so every step is matched. So the result is right even for a
query that turns true and false repeatedly, where a binary search would find any one turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from ctxctl.analysis.series import UNKNOWN, ThreadSeries, thread_series
from ctxctl.analysis.sessions import SeriesPair, aligned_turns, item_differences, paired_threads
from ctxctl.analysis.where import steps_where
from ctxctl.engine.query import Query
from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.textdiff.turn_alignment import AlignedTurns
from ctxctl.model.blame import Moment
from ctxctl.model.results import Change, Step
from ctxctl.model.sessions import By, ItemDiff
from ctxctl.session.results import Ceilings

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress
    from ctxctl.tokens.catalogue.rates import RateBook

KEPT = 10_000
"""Most flips of a thread that are kept; further ones are only counted."""


class Flip(NamedTuple):
    """A step at which a query's result changed."""

    at: Moment
    truth: bool


class QueryTurns:
    """Where a query matches in one thread, and how often its result changed."""

    def __init__(self, key: ThreadKey) -> None:
        self.key = key
        self.steps = self.held = self.undecided = self.turns = 0
        """Number of steps, of matching steps, of undecidable steps, and of changes."""
        self.first: Step | None = None
        """The first step that matches."""
        self.changes: tuple[Change, ...] = ()
        """The changes of that step that match."""
        self.before: Moment | None = None
        """The previous step; None if the thread's first step matches."""
        self.ceilings = Ceilings()
        """The limits of its steps."""
        self.flips: list[Flip] = []
        """Every step at which the result changed, including the first match."""
        self._last: bool = False
        self._moment: Moment | None = None

    @property
    def monotone(self) -> bool:
        """Whether it turned true at most once, and stayed true."""
        return self.turns <= 1

    def add(self, moment: Moment, step: Step, truth: bool | None, changes: tuple[Change, ...]) -> None:
        """Add the next step. An undecidable one changes nothing."""
        self.steps += 1
        self.ceilings.add(step.window)
        if truth is None:
            self.undecided += 1
        elif truth != self._last:
            self._last = truth
            self.turns += 1
            if len(self.flips) < KEPT:
                self.flips.append(Flip(moment, truth))
            if self.first is None:
                self.first, self.changes, self.before = step, changes, self._moment
        self.held += truth is True
        self._moment = moment


def bisect(
    inspector: Inspector, query: Query, book: RateBook | None = None, progress: Progress | None = None
) -> list[QueryTurns]:
    """Match a query against every step. Return the results by thread, as their first steps end."""
    found: dict[ThreadKey, QueryTurns] = {}
    for stop in steps_where(inspector, query, progress, book=book):
        step = stop.at.step
        key = ThreadKey(step.session, step.thread)
        turned = found.get(key)
        if turned is None:
            turned = found[key] = QueryTurns(key)
        turned.add(Moment(stop.ordinal, step.turn, step.step), step, stop.held.truth, stop.held.changes)
    return list(found.values())


# Two traces -------------------------------------------------------------------------------------------------

Why = Literal["window", "query", "step", "turn"]
"""Windows differ; the query matches on one side; one side has an additional step or turn."""


class Parting(NamedTuple):
    """Where two threads diverge. If `a` or `b` is None, that side has no such step."""

    why: Why
    a: StepAt | None
    b: StepAt | None
    ordinal_a: int | None
    ordinal_b: int | None
    by: By | None
    """How the turns were aligned."""
    holds: bool | None
    """Whether the `query` matches in `a`, and so not in `b`."""
    items: tuple[ItemDiff, ...]
    """The items that only one window has."""


class Parted(NamedTuple):
    """Two aligned threads. If `parting` is None, they do not diverge."""

    a: ThreadKey | None
    b: ThreadKey | None
    steps: int
    """Number of compared pairs of steps."""
    alone: int
    """Number of steps without a partner so far."""
    undecided: int
    """Number of pairs for which it is unknown whether the query matches both."""
    parting: Parting | None


class _Place(NamedTuple):
    why: Why
    a: int | None
    b: int | None
    by: By | None
    holds: bool | None = None


def first_parting(
    one: Inspector,
    two: Inspector,
    query: Query | None = None,
    book: RateBook | None = None,
    progress: Progress | None = None,
) -> list[Parted]:
    """Return where two traces of one task first differ: by a query, or else by their windows.

    Threads and turns are aligned as in `compare_sessions`, and the steps of two aligned turns in order.
    Windows are equal if they hold the same texts, in any order and under any names.
    """
    if book is None:
        from ctxctl.tokens.catalogue.rates import RateBook

        book = RateBook()
    left, right = thread_series(one, book, query, progress), thread_series(two, book, query, progress)
    return [_parted(one, two, pair, query is not None) for pair in paired_threads(left, right)]


class _Count:
    def __init__(self) -> None:
        self.steps = self.alone = self.undecided = 0


def _parted(one: Inspector, two: Inspector, pair: SeriesPair, asked: bool) -> Parted:
    count = _Count()
    place = next(_places(pair, asked, count), None)
    keys = [course.key if course is not None else None for course in pair]
    parting = _parting(one, two, place) if place is not None else None
    return Parted(keys[0], keys[1], count.steps, count.alone, count.undecided, parting)


def _places(pair: SeriesPair, asked: bool, count: _Count) -> Iterator[_Place]:
    """Yield the places at which two threads differ, the first of each turn."""
    for turn in aligned_turns(pair)[0]:
        steps = (_steps(pair.a, turn.a), _steps(pair.b, turn.b))
        by: By | None = None
        if turn.a is not None and turn.b is not None:
            by = "prompt" if turn.equal else "order"
            yield from _in_turn(pair, turn, by, asked, count)
        common = min(map(len, steps))
        rest = [list(found)[common:] for found in steps]
        if rest[0] or rest[1]:
            count.alone += len(rest[0]) + len(rest[1])
            if not asked:
                why: Why = "turn" if by is None else "step"
                ends = [
                    _ordinal(course, left[0]) if left else None
                    for course, left in zip(pair, rest, strict=True)
                ]
                yield _Place(why, ends[0], ends[1], by)


def _in_turn(pair: SeriesPair, turn: AlignedTurns, by: By, asked: bool, count: _Count) -> Iterator[_Place]:
    assert pair.a is not None
    assert pair.b is not None
    for m, n in zip(_steps(pair.a, turn.a), _steps(pair.b, turn.b), strict=False):
        count.steps += 1
        a, b = pair.a.ordinals[m], pair.b.ordinals[n]
        if not asked:
            if pair.a.prints[m] != pair.b.prints[n]:
                yield _Place("window", a, b, by)
                return
            continue
        first, second = pair.a.truths[m], pair.b.truths[n]
        if UNKNOWN in (first, second):
            count.undecided += 1
        elif first != second:
            yield _Place("query", a, b, by, bool(first))
            return


def _steps(course: ThreadSeries | None, turn: int | None) -> range:
    return course.steps_of(turn) if course is not None and turn is not None else range(0)


def _ordinal(course: ThreadSeries | None, step: int) -> int | None:
    return course.ordinals[step] if course is not None else None


def _parting(one: Inspector, two: Inspector, place: _Place) -> Parting:
    a = one.at(place.a) if place.a is not None else None
    b = two.at(place.b) if place.b is not None else None
    items = tuple(item_differences(a.placements, b.placements)) if a is not None and b is not None else ()
    return Parting(place.why, a, b, place.a, place.b, place.by, place.holds, items)

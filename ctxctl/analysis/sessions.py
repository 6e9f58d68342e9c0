"""Compare two whole sessions: align threads and turns, then compare their windows turn by turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ctxctl.analysis.series import ThreadSeries, TurnSeries, content_key, thread_series
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.textdiff.turn_alignment import AlignedTurns, align_turns
from ctxctl.model.results import Placement
from ctxctl.model.sessions import (
    ItemDiff,
    SessionDiff,
    SideTotal,
    ThreadPair,
    TurnPair,
    TurnSide,
)

if TYPE_CHECKING:
    from ctxctl.session.facade import Inspector, Progress
    from ctxctl.tokens.catalogue.rates import RateBook


def compare_sessions(
    one: Inspector, two: Inspector, book: RateBook | None = None, progress: Progress | None = None
) -> SessionDiff:
    """Compare two sessions of one task. Each is replayed once.

    Sessions are paired in order; their threads by name, else in order; turns by prompt, else in order.
    Windows are compared at the end of each turn, current copies only, by content, whatever the items' names.
    But an item with one id on both sides, given by the runtimes, counts as one that `differs`.
    """
    if book is None:
        from ctxctl.tokens.catalogue.rates import RateBook

        book = RateBook()
    left, right = thread_series(one, book, progress=progress), thread_series(two, book, progress=progress)
    threads: list[ThreadPair] = []
    minimal = True
    for pair in paired_threads(left, right):
        found, best = _threads(pair)
        threads.append(found)
        minimal = minimal and best
    turns = [turn for thread in threads for turn in thread.turns]
    return SessionDiff(
        threads=tuple(threads),
        total_a=_total(turn.a for turn in turns),
        total_b=_total(turn.b for turn in turns),
        by_prompt=sum(turn.by == "prompt" for turn in turns),
        by_order=sum(turn.by == "order" for turn in turns),
        alone_a=sum(turn.b is None for turn in turns),
        alone_b=sum(turn.a is None for turn in turns),
        minimal=minimal,
    )


class SeriesPair(NamedTuple):
    """Two paired threads."""

    a: ThreadSeries | None
    b: ThreadSeries | None


def paired_threads(
    left: Mapping[ThreadKey, ThreadSeries], right: Mapping[ThreadKey, ThreadSeries]
) -> list[SeriesPair]:
    """Return the paired threads of two traces: session by session, by name, else in order."""
    found: list[SeriesPair] = []
    ours, theirs = _by_session(left.values()), _by_session(right.values())
    for n in range(max(len(ours), len(theirs))):
        mine = ours[n] if n < len(ours) else []
        others = theirs[n] if n < len(theirs) else []
        named = {course.key.thread: course for course in others}
        partner = {course.key.thread: named.pop(course.key.thread, None) for course in mine}
        spare = iter([course for course in others if course.key.thread in named])
        for course in mine:
            other = partner[course.key.thread] or next(spare, None)
            found.append(SeriesPair(course, other))
        found += [SeriesPair(None, course) for course in spare]
    return found


def _by_session(found: Iterable[ThreadSeries]) -> list[list[ThreadSeries]]:
    sessions: dict[str | None, list[ThreadSeries]] = {}
    for course in found:
        sessions.setdefault(course.key.session, []).append(course)
    return list(sessions.values())


def aligned_turns(pair: SeriesPair) -> tuple[list[AlignedTurns], bool]:
    """Return the aligned turns of two threads, and whether the alignment is optimal."""
    a, b = (course.turns if course is not None else [] for course in pair)
    return align_turns([turn.prompt for turn in a], [turn.prompt for turn in b])


def _threads(pair: SeriesPair) -> tuple[ThreadPair, bool]:
    found, minimal = aligned_turns(pair)
    held = _Held()
    turns = tuple(
        held.step(
            pair.a.turns[one.a] if pair.a is not None and one.a is not None else None,
            pair.b.turns[one.b] if pair.b is not None and one.b is not None else None,
            equal=one.equal,
        )
        for one in found
    )
    keys = [None if c is None else (c.key.session, c.key.thread) for c in pair]
    return ThreadPair(keys[0], keys[1], turns), minimal


class _Held:
    """Both windows by content, at the end of the last turns."""

    def __init__(self) -> None:
        self._a: Counter[str] = Counter()
        self._b: Counter[str] = Counter()
        self._known: dict[str, Placement] = {}
        self._told: dict[str, int] = {}
        """Contents with more copies on one side at the last pair: by how many more `a` has."""
        self._open: dict[str, None] = {}
        """Contents whose number of copies has changed on a side since then."""
        self._same = self._only_a = self._only_b = 0

    def step(self, a: TurnSeries | None, b: TurnSeries | None, *, equal: bool) -> TurnPair:
        """Proceed to the next turns, one of which may be missing."""
        for side, turn in ((self._a, a), (self._b, b)):
            if turn is not None:
                for placement in turn.came:
                    self._move(side, placement, 1)
                for placement in turn.went:
                    self._move(side, placement, -1)
        sides = (a.side if a is not None else None, b.side if b is not None else None)
        if a is None or b is None:
            return TurnPair(*sides, None, self._same, (), 0, self._only_a, self._only_b)
        fresh = self._fresh()
        standing = len(self._told) - len(fresh)
        items = tuple(_items([(self._known[key], self._told[key]) for key in fresh]))
        by = "prompt" if equal else "order"
        return TurnPair(*sides, by, self._same, items, standing, self._only_a, self._only_b)  # type: ignore[arg-type]

    def _move(self, side: Counter[str], placement: Placement, copies: int) -> None:
        key = content_key(placement)
        self._known.setdefault(key, placement)
        self._count(key, -1)
        side[key] += copies
        self._count(key, 1)
        self._open[key] = None

    def _count(self, key: str, sign: int) -> None:
        a, b, tokens = self._a[key], self._b[key], self._known[key].tokens
        self._same += sign * min(a, b)
        self._only_a += sign * tokens * max(0, a - b)
        self._only_b += sign * tokens * max(0, b - a)

    def _fresh(self) -> list[str]:
        """Return contents that differ now and did not differ so at the last pair."""
        fresh = []
        for key in self._open:
            more = self._a[key] - self._b[key]
            if not more:
                self._told.pop(key, None)
                if not self._a[key]:
                    del self._a[key], self._b[key], self._known[key]
            elif self._told.get(key) != more:
                self._told[key] = more
                fresh.append(key)
        self._open = {}
        return fresh


def item_differences(a: Sequence[Placement], b: Sequence[Placement]) -> list[ItemDiff]:
    """Return the items of one of two windows that the other lacks, without stale copies."""
    ours = Counter(content_key(p) for p in a if not p.stale)
    theirs = Counter(content_key(p) for p in b if not p.stale)
    known = {content_key(p): p for p in (*b, *a)}
    keys = dict.fromkeys(content_key(p) for p in (*a, *b) if not p.stale)
    return list(_items([(known[k], ours[k] - theirs[k]) for k in keys if ours[k] != theirs[k]]))


def _items(found: Sequence[tuple[Placement, int]]) -> Iterator[ItemDiff]:
    """Yield differences; those of one item on both sides are one."""
    other = {p.item: p for p, more in found if more < 0 and not p.derived}
    mine = {p.item for p, more in found if more > 0 and not p.derived}
    for p, more in found:
        twin = other.get(p.item) if not p.derived else None
        if more > 0 and twin is not None:
            yield ItemDiff("differs", p.item, p.kind, p.title, p.source, p.tokens, twin.tokens)
        elif more > 0:
            yield ItemDiff("only_a", p.item, p.kind, p.title, p.source, p.tokens * more, 0, more)
        elif p.derived or p.item not in mine:
            yield ItemDiff("only_b", p.item, p.kind, p.title, p.source, 0, -p.tokens * more, -more)


def _total(sides: Iterable[TurnSide | None]) -> SideTotal:
    found = [side for side in sides if side is not None]
    billed = [side.billed for side in found if side.billed is not None]
    return SideTotal(
        turns=len(found),
        steps=sum(side.steps for side in found),
        new=sum(side.new for side in found),
        freed=sum(side.freed for side in found),
        billed=sum(billed) if billed else None,
        cost=sum((side.cost for side in found), start=SideTotal().cost),
        unpriced=sum(side.unpriced for side in found),
        partial_outputs=sum(side.partial_outputs for side in found),
        expected=sum(side.expected for side in found),
        least=sum(side.least for side in found),
    )

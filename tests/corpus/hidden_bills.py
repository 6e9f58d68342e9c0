"""Bills that are hidden and foretold: how far off, and how often within the stated error, by family.

Pure: `Trail`s are what a replay tells of a thread; `tests.corpus.calibrating` gathers them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ctxctl.model.results import Step
from ctxctl.tokens.calibrate import expect
from ctxctl.tokens.calibrate.calibration import Calibration
from ctxctl.tokens.calibrate.expect import ModelWeights
from ctxctl.tokens.calibrate.features import CLASSES, NOTHING, Vector, movement, vector_sum
from ctxctl.tokens.calibrate.following import ThreadExpectation, expected_request
from ctxctl.tokens.calibrate.points import Lane, family, plausible

ENCODING = "o200k_base"
FOLDS = 5
LEAST_BILL = 1000
"""Tokens; after a break of less, shares say nothing."""
GONE = frozenset({"compacted", "cleared"})
KEPT = 0.5
WIDE = len(CLASSES)


class Seen(NamedTuple):
    """One request of a thread."""

    model: str
    bill: int | None
    """None: there is none, or it cannot be one."""
    moved: Vector
    blind: int
    """Items without text or count that came, less those that went."""
    broken: bool
    """The history was compacted, cleared, or left by more than half."""


class Capture(NamedTuple):
    """What one capture tells."""

    name: str
    sessions: tuple[tuple[Lane, ...], ...]
    """Lanes by session."""
    trails: tuple[tuple[Seen, ...], ...]
    """By thread."""


class Told(NamedTuple):
    """One hidden bill."""

    model: str
    basis: str
    method: str
    truth: int
    expected: int
    half: int
    broken: bool
    switched: bool
    """The last bill is of another model."""
    requests: int

    @property
    def error(self) -> float:
        """As a share of the bill."""
        return abs(self.expected - self.truth) / self.truth

    @property
    def within(self) -> bool:
        """Whether the bill is inside of the stated error."""
        return abs(self.expected - self.truth) <= self.half


class Follower:
    """Makes trails of a replay's steps."""

    def __init__(self) -> None:
        self._trails: dict[tuple[str | None, str], list[Seen]] = {}
        self._sizes: dict[tuple[str | None, str], Vector] = {}
        self._uncounted: dict[tuple[str | None, str], int] = {}
        self._last: dict[tuple[str | None, str], tuple[int, int]] = {}

    def add(self, step: Step) -> None:
        """Take one step in."""
        if "simulated" in step.flags:
            return
        key = step.session, step.thread
        moved = movement(step)
        sizes = self._sizes[key] = vector_sum(self._sizes.get(key, NOTHING), moved)
        blind = step.window.uncounted - self._uncounted.get(key, 0)
        self._uncounted[key] = step.window.uncounted
        ledger = step.ledger
        broken = not GONE.isdisjoint(step.flags) or ledger.freed > KEPT * ledger.window_before
        bill = self._bill(step, key, sum(sizes[:WIDE]))
        seen = Seen(family(step.model or ""), bill, moved, blind, broken)
        self._trails.setdefault(key, []).append(seen)

    def _bill(self, step: Step, key: tuple[str | None, str], counted: int) -> int | None:
        usage = step.usage
        if usage is None or step.model is None or usage.provenance != "native" or not counted:
            return None
        bill, last = usage.reported_input, self._last.get(key)
        if bill is None or not plausible(bill, counted) or (last and last[0] == bill and last[1] != counted):
            return None
        self._last[key] = bill, counted
        return bill

    def trails(self) -> tuple[tuple[Seen, ...], ...]:
        """Of threads with two bills or more."""
        kept = (tuple(trail) for trail in self._trails.values())
        return tuple(trail for trail in kept if sum(one.bill is not None for one in trail) > 1)


Weigh = Callable[[str], ModelWeights]


class _Thread:
    """What the engine has of one thread."""

    def __init__(self, weigh: Weigh) -> None:
        self.weigh = weigh
        self.following = ThreadExpectation()
        self.recorded = 0

    def enter(self, seen: Seen) -> None:
        """Content comes and goes, at the slopes that are in force."""
        slopes = expect.slopes(self.weigh(seen.model), self.following.of(seen.model))
        moved = [round(slope * counted) for slope, counted in zip(slopes, seen.moved, strict=False)]
        self.recorded += sum(moved)
        self.following = self.following.entered(
            moved, seen.moved[WIDE:], blind=seen.blind, broken=seen.broken
        )

    def tell(self, seen: Seen) -> Told | None:
        """What the bill should be; None: there is none before it."""
        how, following = self.weigh(seen.model), self.following
        told = expected_request(following, seen.model, how, self.recorded)
        if told is None or following.last is None or seen.bill is None:
            return None
        method = expect.method(how, following.of(seen.model)).partition(":")[0]
        return Told(
            seen.model, how.basis, method, seen.bill, told.size, told.half, following.broken,
            following.last.model != seen.model, following.requests,
        )  # fmt: skip

    def take(self, seen: Seen) -> None:
        """A bill is shown."""
        assert seen.bill is not None
        how = self.weigh(seen.model)
        self.following = self.following.billed(seen.model, how, seen.bill, self.recorded)


def foretold(trail: Sequence[Seen], weigh: Weigh, hidden: Callable[[int], bool]) -> Iterator[Told]:
    """Every hidden bill of a thread, from those before it that are shown."""
    thread, n = _Thread(weigh), 0
    for seen in trail:
        thread.enter(seen)
        if seen.bill is None:
            continue
        n += 1
        if not hidden(n):
            thread.take(seen)
        elif told := thread.tell(seen):
            yield told


def foretold_and_shown(trail: Sequence[Seen], weigh: Weigh) -> Iterator[Told]:
    """Every bill of a thread, from all those before it."""
    thread = _Thread(weigh)
    for seen in trail:
        thread.enter(seen)
        if seen.bill is not None:
            if told := thread.tell(seen):
                yield told
            thread.take(seen)


def every(k: int) -> Callable[[int], bool]:
    """Hides every k-th bill."""
    return lambda n: n % k == 0


def all_but(k: int) -> Callable[[int], bool]:
    """Shows every k-th bill only."""
    return lambda n: n % k != 1


def separate(captures: Sequence[Capture]) -> list[list[Capture]]:
    """Captures in heaps that share no request: what was resumed or forked lies with what it grew from."""
    heap_of: dict[tuple[int, Vector], int] = {}
    parent = list(range(len(captures)))

    def root(n: int) -> int:
        while parent[n] != n:
            parent[n] = parent[parent[n]]
            n = parent[n]
        return n

    for n, capture in enumerate(captures):
        for point in (point for lanes in capture.sessions for lane in lanes for point in lane.points):
            at = heap_of.setdefault((point.reported, point.sizes), n)
            parent[root(n)] = root(at)
    heaps: dict[int, list[Capture]] = defaultdict(list)
    for n, capture in enumerate(captures):
        heaps[root(n)].append(capture)
    return sorted(heaps.values(), key=lambda heap: (-_weight(heap), heap[0].name))


def _weight(heap: Iterable[Capture]) -> int:
    return sum(len(trail) for capture in heap for trail in capture.trails)


def folds(captures: Sequence[Capture]) -> list[list[Capture]]:
    """Heaps dealt out so that every fold has about as much of each model."""
    dealt: list[list[Capture]] = [[] for _ in range(FOLDS)]
    size: dict[str, list[int]] = defaultdict(lambda: [0] * FOLDS)
    for heap in separate(captures):
        names = [one.model for capture in heap for trail in capture.trails for one in trail]
        model = max(sorted(set(names)), key=names.count) if names else ""
        at = size[model].index(min(size[model]))
        size[model][at] += len(names)
        dealt[at] += heap
    return dealt


def unrepeated(captures: Iterable[Capture]) -> list[tuple[Seen, ...]]:
    """Their trails, less those that another one holds already."""
    trails = [trail for capture in captures for trail in capture.trails]
    seen: set[tuple[int, Vector]] = set()
    kept = []
    for trail in sorted(trails, key=lambda trail: (-len(trail), trail[-1].bill or 0, trail[-1].moved)):
        sizes, marks = NOTHING, set()
        for one in trail:
            sizes = vector_sum(sizes, one.moved)
            if one.bill is not None:
                marks.add((one.bill, sizes))
        if 2 * len(marks & seen) <= len(marks):
            kept.append(trail)
        seen |= marks
    return kept


def weigher(calibration: Calibration | None) -> Weigh:
    """`expect.weighing` with a memory."""
    known: dict[str, ModelWeights] = {}

    def weigh(model: str) -> ModelWeights:
        if model not in known:
            known[model] = expect.model_weights(calibration, model, ENCODING)
        return known[model]

    return weigh


def calibrations(
    dealt: Sequence[Sequence[Capture]], build: Callable[[Sequence[Capture]], Calibration]
) -> list[Calibration]:
    """For each fold one that is built from all others."""
    return [
        build([one for n, fold in enumerate(dealt) if n != left for one in fold])
        for left in range(len(dealt))
    ]


def tried(
    dealt: Sequence[Sequence[Capture]],
    made: Sequence[Calibration],
    hidden: Callable[[int], bool],
) -> list[Told]:
    """Every hidden bill, foretold by a calibration that was fitted to other sessions."""
    return [
        told
        for fold, calibration in zip(dealt, made, strict=True)
        for weigh in [weigher(calibration)]
        for trail in unrepeated(fold)
        for told in foretold(trail, weigh, hidden)
    ]

"""Bills that are hidden and foretold: how far off, and how often within the stated error, by family.

Pure: `Trail`s are what a replay tells of a thread; `tests.corpus.calibrating` gathers them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ctxctl.model.results import Step
from ctxctl.tokens.calibrate import expect
from ctxctl.tokens.calibrate.book import Calibration
from ctxctl.tokens.calibrate.errors import quantile
from ctxctl.tokens.calibrate.expect import Learned, Weighing
from ctxctl.tokens.calibrate.features import CLASSES, NOTHING, Vector, movement, plus
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
        sizes = self._sizes[key] = plus(self._sizes.get(key, NOTHING), moved)
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


Weigh = Callable[[str], Weighing]


class _Thread:
    """What the engine remembers of one thread."""

    def __init__(self, weigh: Weigh) -> None:
        self.weigh = weigh
        self.learned: dict[str, Learned] = {}
        self.last: int | None = None
        self.model = ""
        self.recorded = 0
        self.clear()

    def clear(self) -> None:
        self.moved = [0] * WIDE
        self.items = [0] * WIDE
        self.blind = self.requests = 0
        self.broken = False

    def enter(self, seen: Seen) -> Weighing:
        """Content comes and goes, at the slopes that are in force."""
        how = self.weigh(seen.model)
        slopes = expect.slopes(how, self.learned.get(seen.model))
        for n in range(WIDE):
            tokens = round(slopes[n] * seen.moved[n])
            self.moved[n] += tokens
            self.recorded += tokens
            self.items[n] += seen.moved[n + WIDE]
        self.blind += seen.blind
        self.requests += 1
        self.broken = self.broken or seen.broken
        return how

    def tell(self, seen: Seen, how: Weighing) -> Told | None:
        """What the bill should be; None: there is none before it of this model."""
        if self.last is None or self.model != seen.model or seen.bill is None:
            return None
        learned = self.learned.get(seen.model)
        size = expect.expected(
            how, learned, self.last, self.moved, self.items,
            blind=self.blind, broken=self.broken, recorded=self.recorded,
        )  # fmt: skip
        half = expect.half_width(
            how, learned, self.moved, self.items, size,
            requests=self.requests, blind=self.blind, broken=self.broken,
        )  # fmt: skip
        method = expect.method(how, learned).partition(":")[0]
        return Told(seen.model, how.basis, method, seen.bill, size, half, self.broken, self.requests)

    def take(self, seen: Seen, how: Weighing) -> None:
        """A bill is shown."""
        assert seen.bill is not None
        other = self.model != seen.model
        change = seen.bill - (self.last or 0)
        self.learned[seen.model] = expect.refine(
            self.learned.get(seen.model), how, self.moved, self.items, change, seen.bill,
            requests=self.requests, blind=self.blind, broken=self.broken or other, recorded=self.recorded,
        )  # fmt: skip
        self.last, self.model = seen.bill, seen.model
        self.clear()


def foretold(trail: Sequence[Seen], weigh: Weigh, hidden: Callable[[int], bool]) -> Iterator[Told]:
    """Every hidden bill of a thread, from those before it that are shown."""
    thread, n = _Thread(weigh), 0
    for seen in trail:
        how = thread.enter(seen)
        if seen.bill is None:
            continue
        n += 1
        if not hidden(n):
            thread.take(seen, how)
        elif told := thread.tell(seen, how):
            yield told


def foretold_and_shown(trail: Sequence[Seen], weigh: Weigh) -> Iterator[Told]:
    """Every bill of a thread, from all those before it."""
    thread = _Thread(weigh)
    for seen in trail:
        how = thread.enter(seen)
        if seen.bill is not None:
            if told := thread.tell(seen, how):
                yield told
            thread.take(seen, how)


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
            sizes = plus(sizes, one.moved)
            if one.bill is not None:
                marks.add((one.bill, sizes))
        if 2 * len(marks & seen) <= len(marks):
            kept.append(trail)
        seen |= marks
    return kept


def weigher(calibration: Calibration | None) -> Weigh:
    """`expect.weighing` with a memory."""
    known: dict[str, Weighing] = {}

    def weigh(model: str) -> Weighing:
        if model not in known:
            known[model] = expect.weighing(calibration, model, ENCODING)
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


LEAST = 20
"""Hidden bills of a model below which it stands with others of its kind."""
KINDS = {
    "exact": "others with a public tokenizer",
    "fitted": "others that are fitted",
    "kin": "others, by a relative's fit",
    "estimated": "others that nobody fitted",
}
HIDDEN = (2, 3, 5)


class Line(NamedTuple):
    """Hidden bills of one kind in sum."""

    name: str
    bills: int
    p50: float
    p95: float
    within: float
    half: float
    """The median of the stated error, as a share of what is expected."""


def line(name: str, told: Sequence[Told]) -> Line:
    """Errors and coverage of some."""
    errors = sorted(one.error for one in told)
    halves = sorted(one.half / max(1, one.expected) for one in told)
    within = sum(one.within for one in told) / len(told)
    return Line(name, len(told), quantile(errors, 0.5), quantile(errors, 0.95), within, quantile(halves, 0.5))


class Withheld(NamedTuple):
    """What came of hiding bills, foretold by calibrations that were fitted to other captures."""

    hidden: dict[int, list[Told]]
    """Every k-th hidden."""
    shown: list[Told]
    """All but every fifth hidden."""
    breaks: list[Told]
    """Of every bill after a break, none hidden after it was foretold."""


def withheld(dealt: Sequence[Sequence[Capture]], made: Sequence[Calibration]) -> Withheld:
    """Foretell the bills of all folds."""
    hidden = {k: [t for t in tried(dealt, made, every(k)) if not t.broken] for k in HIDDEN}
    shown = [t for t in tried(dealt, made, all_but(5)) if not t.broken]
    breaks = [
        told
        for fold, calibration in zip(dealt, made, strict=True)
        for weigh in [weigher(calibration)]
        for trail in unrepeated(fold)
        for told in foretold_and_shown(trail, weigh)
        if told.broken and told.truth >= LEAST_BILL
    ]
    return Withheld(hidden, shown, breaks)


def named(told: Sequence[Told], most: Sequence[Told]) -> dict[str, list[Told]]:
    """By model where there are enough in `most`, else by kind; those of most bills first, kinds last."""
    counts = Counter(one.model for one in most)
    groups: dict[str, list[Told]] = defaultdict(list)
    for one in told:
        groups[one.model if counts[one.model] >= LEAST else KINDS[one.basis]].append(one)
    last = list(KINDS.values())
    order = sorted(groups, key=lambda name: (name in last, -len(groups[name]), name))
    return {name: groups[name] for name in order}


def per_cent(share: float) -> str:
    """Two digits that say something."""
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:,.0f} %"


def table(found: Withheld) -> Iterator[str]:
    """By model, every second, third and fifth bill hidden; in Markdown."""
    yield (
        "| model | "
        + " | ".join(f"k = {k}: bills | p50 | p95 | within" for k in HIDDEN)
        + " | stated error |"
    )
    yield "|---|" + "---:|" * (4 * len(HIDDEN) + 1)
    most = found.hidden[HIDDEN[0]]
    groups = {k: named(told, most) for k, told in found.hidden.items()}
    for name, told in groups[HIDDEN[0]].items():
        cells = []
        for k in HIDDEN:
            own = groups[k].get(name)
            cells.append(_cells(line(name, own)) if own else "0 | - | - | -")
        yield f"| {name} | " + " | ".join(cells) + f" | {per_cent(line(name, told).half)} |"
    cells = [_cells(line("all", told)) for told in found.hidden.values()]
    yield "| all | " + " | ".join(cells) + f" | {per_cent(line('all', most).half)} |"


def others_table(found: Withheld) -> Iterator[str]:
    """Where four of five bills are hidden, and after breaks."""
    yield "| what is expected | bills | p50 | p95 | within | stated error |"
    yield "|---|---:|---:|---:|---:|---:|"
    groups = {basis: [one for one in found.shown if one.basis == basis] for basis in KINDS}
    rows = [line(f"four of five bills hidden, {basis}", told) for basis, told in groups.items() if told]
    rows.append(line("after a compaction, all models", found.breaks))
    for row in rows:
        yield f"| {row.name} | {_cells(row)} | {per_cent(row.half)} |"


def _cells(row: Line) -> str:
    return f"{row.bills:,} | {per_cent(row.p50)} | {per_cent(row.p95)} | {row.within:.0%}"

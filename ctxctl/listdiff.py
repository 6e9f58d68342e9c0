"""How one list becomes another: as splices where little changed, or by all that the two share in order.

`splices` compares windows: what both begin and end with is passed over at the speed of slices, and a matcher
says what stays in between (`longest`, `forward`).  `solve` finds a longest common subsequence of lines or
items in bounded work; its algorithms, in the order in which they are tried, are listed in `engine.textdiff`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain, count, pairwise
from math import isqrt
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

_QUICK = 1 << 11
"""Steps of the greedy algorithm that the smallest table is worth: about 1 ms."""
_GREEDY = 1 << 16
"""Steps of one call of it on the shared lines: about 30 ms; all calls together may take twice as many."""
_TABLE = 1 << 28
"""Cells of one alignment table (32 MB of bits, about 0.1 s); all tables together may have twice as many."""
_WINDOW = 1 << 12
"""Lines of each text in a window."""
_DEPTH = 16
"""How often a piece between two unique lines is divided again: each level reads all its lines."""
_STRIDE = 256
"""Equal lines passed over at the cost of one step."""
_SLICE = 1 << 15
"""Lines, or characters, compared at once: slices that stay in the processor's cache."""
_NEAR = 32
"""Items at either end of a list among which one is looked for first."""
_CODES = 0x110000
"""Different lines that can have a character each."""

_Lines: TypeAlias = Any
"""`list[str]`: lines; or `str`: one character for each line, which compares and slices many times as fast."""


T = TypeVar("T")
_H = TypeVar("_H", bound=Hashable)


class Splice(NamedTuple, Generic[T]):
    """Replace `removed` items at `at` of the old list by `inserted`."""

    at: int
    removed: int
    inserted: list[T]


Matcher: TypeAlias = Callable[[Sequence[_H], Sequence[_H]], Iterable[tuple[int, int]]]
"""Gives the places (in the old list, in the new one) of what stays; both ascend."""


class Run(NamedTuple):
    """`size` equal lines, from line `a` of the old text and line `b` of the new one."""

    a: int
    b: int
    size: int


class Work:
    """What one diff may still spend."""

    __slots__ = ("cells", "steps")

    def __init__(self) -> None:
        self.steps = 2 * _GREEDY
        self.cells = 2 * _TABLE


def same(a: _Lines, b: _Lines, x: int, y: int, limit: int) -> int:
    """How many lines (or characters) are equal from `x` and `y` on, at most `limit`, which both must have.

    Slices of doubling size are compared, then halves of the one that differs.
    """
    at, step = 0, 8
    while at < limit:
        step = min(step, limit - at)
        if a[x + at : x + at + step] == b[y + at : y + at + step]:
            at += step
            step = min(2 * step, _SLICE)
            continue
        while step > 1:
            half = step // 2
            if a[x + at : x + at + half] == b[y + at : y + at + half]:
                at += half
                step -= half
            else:
                step = half
        break
    return at


def place_of(one: Any, items: list[Any]) -> int | None:
    """Where an object stands among others that are equal to none but themselves; None if it does not.

    Looked for from both ends at once: what is sought is mostly near one of them.
    """
    low, high, step = 0, len(items), _NEAR
    while low < high:
        for start, end in ((low, min(low + step, high)), (max(low, high - step), high)):
            try:
                return items.index(one, start, end)
            except ValueError:
                continue
        low, high, step = low + step, high - step, 2 * step
    return None


def same_start(a: _Lines, b: _Lines, at: int = 0) -> int:
    """How many items two lists begin with alike; `at` are known to be.

    Mostly one is the beginning of the other: then they are compared at once.
    """
    limit = min(len(a), len(b))
    if at < limit <= at + _SLICE and a[limit - 1] == b[limit - 1] and a[at:limit] == b[at:limit]:
        return limit
    return at + same(a, b, at, at, limit - at)


def same_end(a: _Lines, b: _Lines, limit: int, at: int = 0) -> int:
    """How many of the last lines (or characters) are equal, at most `limit`; `at` are known to be."""
    at, step = min(at, limit), 8
    x, y = len(a), len(b)
    while at < limit:
        step = min(step, limit - at)
        if a[x - at - step : x - at] == b[y - at - step : y - at]:
            at += step
            step = min(2 * step, _SLICE)
            continue
        while step > 1:
            half = step // 2
            if a[x - at - half : x - at] == b[y - at - half : y - at]:
                at += half
                step -= half
            else:
                step = half
        break
    return at


def trimmed(at: int, old: list[T], new: list[T]) -> Splice[T] | None:
    """The smallest single splice that makes `new` of `old`, which stands at `at`; None if they are equal."""
    head = same_start(old, new)
    tail = same_end(old, new, min(len(old), len(new)) - head)
    if head == len(old) == len(new):
        return None
    return Splice(at + head, len(old) - head - tail, new[head : len(new) - tail])


def joined(found: Iterable[Splice[T]]) -> list[Splice[T]]:
    """Ascending splices with those that touch made one, as a trace's must not share a position."""
    result: list[Splice[T]] = []
    for one in found:
        if result and result[-1].at + result[-1].removed == one.at:
            last = result.pop()
            one = Splice(last.at, last.removed + one.removed, last.inserted + one.inserted)
        result.append(one)
    return result


def longest(old: Sequence[_H], new: Sequence[_H]) -> Iterable[tuple[int, int]]:
    """A longest run of items that keep their order (a longest increasing subsequence of their places).

    Takes n log n steps, and n where nothing moved.  Minimal where no item stands in the old list twice: of
    such a one only the last copy can stay.
    """
    where = {item: at for at, item in enumerate(old)}
    found = [(where[item], here) for here, item in enumerate(new) if item in where]
    if all(a[0] < b[0] for a, b in pairwise(found)):
        return found
    return [found[n] for n in _ascending([there for there, _ in found])]


def _ascending(numbers: Sequence[int]) -> list[int]:
    """Places of a longest strictly increasing subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for index, number in enumerate(numbers):
        at = bisect_left(tails, number)
        back.append(ends[at - 1] if at else -1)
        tails[at : at + 1], ends[at : at + 1] = [number], [index]
    found: list[int] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(at)
        at = back[at]
    return found[::-1]


def forward(old: Sequence[_H], new: Sequence[_H]) -> Iterator[tuple[int, int]]:
    """Each new item with its next occurrence in the old list, from the front: linear, copies included.

    Not minimal where items moved: one that moved to the front gives up all that it passed.
    """
    places: dict[_H, deque[int]] = {}
    for at, item in enumerate(old):
        places.setdefault(item, deque()).append(at)
    at = 0
    for here, item in enumerate(new):
        queue = places.get(item)
        while queue and queue[0] < at:
            queue.popleft()
        if queue:
            there = queue.popleft()
            yield there, here
            at = there + 1


def splices(
    old: Sequence[_H], new: Sequence[_H], stays: Matcher[_H] = longest, head: int = 0
) -> list[Splice[_H]]:
    """Ascending splices that make `new` of `old`; no two share a position, and none if the two are equal.

    Args:
        old: The list before.
        new: The list after.
        stays: What stays between the parts that both begin and end with.
        head: A number of items that both are known to begin with.
    """
    limit = min(len(old), len(new))
    head = same_start(old, new, min(head, limit))
    tail = same_end(old, new, limit - head)
    was, now = old[head : len(old) - tail], new[head : len(new) - tail]
    made: list[Splice[_H]] = []
    at = start = 0
    kept = stays(was, now) if was and now else ()
    for there, here in chain(kept, [(len(was), len(now))]):
        if there > at or here > start:
            made.append(Splice(head + at, there - at, list(now[start:here])))
        at, start = there + 1, here + 1
    return made


def greedy(a: _Lines, b: _Lines, allowance: int, work: Work) -> list[Run] | None:
    """The equal runs of a minimal diff, or None if finding them takes more than `allowance` steps.

    `reach[k]` is the furthest line of the longer text on diagonal `k` (its line minus the line of the shorter
    text) with `p` lines of the shorter text given up; `via[k]` the runs on the way there, last first.
    """
    swapped = len(a) > len(b)
    short, long = (b, a) if swapped else (a, b)
    rows, columns = len(short), len(long)
    extra = columns - rows
    left = min(allowance, work.steps)
    most = min(rows, isqrt(left))
    zero = most + 1
    goal = zero + extra
    if extra >= left:
        return None
    reach = [-1] * (extra + 2 * most + 3)
    via: list[Any] = [None] * len(reach)
    work.steps -= left
    for p in range(most + 1):
        left -= extra + 2 * p + 1
        if left < 0:
            return None
        for k in chain(range(zero - p, goal), range(goal + p, goal - 1, -1)):
            y, trail = reach[k - 1] + 1, via[k - 1]
            if reach[k + 1] >= y:
                y, trail = reach[k + 1], via[k + 1]
            x = y - k + zero
            if x < rows and y < columns and short[x] == long[y]:
                size = same(short, long, x, y, min(rows - x, columns - y))
                trail = (x, y, size, trail)
                y += size
                left -= size // _STRIDE
                if left < 0:
                    return None
            reach[k], via[k] = y, trail
        if reach[goal] >= columns:
            work.steps += left
            return _unwound(via[goal], swapped)
    return None


def _unwound(trail: Any, swapped: bool) -> list[Run]:
    runs: list[Run] = []
    while trail is not None:
        x, y, size, trail = trail
        runs.append(Run(y, x, size) if swapped else Run(x, y, size))
    return runs[::-1]


def solve(a: _Lines, b: _Lines, at_a: int, at_b: int, work: Work, out: list[Run], depth: int) -> bool:
    """Append the equal runs of `a` and `b`, which start at `at_a` and `at_b`; True if they are minimal."""
    head = same(a, b, 0, 0, min(len(a), len(b)))
    tail = same_end(a, b, min(len(a), len(b)) - head)
    if head:
        out.append(Run(at_a, at_b, head))
    end_a, end_b = len(a) - tail, len(b) - tail
    exact = True
    if head < end_a and head < end_b:
        inner: list[Run] = []
        a, b, gaps_a, gaps_b = _shared(a[head:end_a], b[head:end_b])
        exact = not a or not b or _align(a, b, work, inner, depth)
        out.extend(_spread(inner, gaps_a, gaps_b, at_a + head, at_b + head))
    if tail:
        out.append(Run(at_a + end_a, at_b + end_b, tail))
    return exact


def _shared(a: _Lines, b: _Lines) -> tuple[_Lines, _Lines, list[int], list[int]]:
    """Both without the lines that only one has, as characters; and where those were, in what is left."""
    codes: dict[Any, Any] = {}
    names = map(chr, range(_CODES)) if len(a) <= _CODES else count()
    in_a: list[Any] = list(map(codes.setdefault, a, names))
    in_b: list[Any] = list(map(codes.get, b))
    both = set(in_b)
    lost_a = [at for at, code in enumerate(in_a) if code not in both]
    lost_b = [at for at, code in enumerate(in_b) if code is None]
    if lost_a:
        in_a = list(filter(both.__contains__, in_a))
    if lost_b:
        in_b = [code for code in in_b if code is not None]
    gaps_a = [at - before for before, at in enumerate(lost_a)]
    gaps_b = [at - before for before, at in enumerate(lost_b)]
    if len(a) > _CODES:
        return in_a, in_b, gaps_a, gaps_b
    return "".join(in_a), "".join(in_b), gaps_a, gaps_b


def _spread(runs: list[Run], gaps_a: list[int], gaps_b: list[int], at_a: int, at_b: int) -> Iterator[Run]:
    """The runs with the lines that `_shared` left out counted again, and cut where one was."""
    for a, b, size in runs:
        cuts = {gap - a for gap in gaps_a[bisect_right(gaps_a, a) : bisect_left(gaps_a, a + size)]}
        cuts.update(gap - b for gap in gaps_b[bisect_right(gaps_b, b) : bisect_left(gaps_b, b + size)])
        ends = [*sorted(cuts), size]
        start = 0
        for end in ends:
            from_a, from_b = a + start, b + start
            yield Run(
                at_a + from_a + bisect_right(gaps_a, from_a),
                at_b + from_b + bisect_right(gaps_b, from_b),
                end - start,
            )
            start = end


def _align(a: _Lines, b: _Lines, work: Work, out: list[Run], depth: int) -> bool:
    """Append the equal runs of two texts without shared ends; True if they are minimal."""
    cells = len(a) * len(b)
    # A small table is cheaper than many steps, and then the steps are left for who needs them.
    runs = greedy(a, b, min(_GREEDY, _QUICK + (cells >> 12)), work)
    if runs is not None:
        out.extend(runs)
        return True
    if cells <= min(_TABLE, work.cells):
        out.extend(_indel(a, b, 0, 0, work))
        return True
    many_a: Counter[Any] = Counter(a)
    many_b: Counter[Any] = Counter(b)
    found: list[Run] = []
    anchors = _anchors(a, b, many_a, many_b) if depth < _DEPTH else []
    if anchors:
        from_a = from_b = 0
        for in_a, in_b in [*anchors, (len(a), len(b))]:
            solve(a[from_a:in_a], b[from_b:in_b], from_a, from_b, work, found, depth + 1)
            if in_a < len(a):
                found.append(Run(in_a, in_b, 1))
            from_a, from_b = in_a + 1, in_b + 1
    else:
        _slide(a, b, work, found)
    out.extend(found)
    return sum(run.size for run in found) == (many_a & many_b).total()


def _indel(a: _Lines, b: _Lines, at_a: int, at_b: int, work: Work) -> Iterator[Run]:
    from rapidfuzz.distance import Indel

    work.cells -= len(a) * len(b)
    for op in Indel.opcodes(a, b):
        if op.tag == "equal":
            yield Run(at_a + op.src_start, at_b + op.dest_start, op.src_end - op.src_start)


def _anchors(a: _Lines, b: _Lines, many_a: Counter[Any], many_b: Counter[Any]) -> list[tuple[int, int]]:
    """The longest chain of lines that occur once in both texts, in an order that both share."""
    once = {line for line, n in many_a.items() if n == 1 and many_b[line] == 1}
    place = {line: at for at, line in enumerate(b) if line in once}
    pairs = [(at, place[line]) for at, line in enumerate(a) if line in once]
    return [pairs[n] for n in _ascending([row for _, row in pairs])]


def _slide(a: _Lines, b: _Lines, work: Work, out: list[Run]) -> None:
    """Append the runs of window after window; what no table is left for stays without any.

    Of each window but the last only three quarters are believed: near its end an alignment lacks the lines
    that it would have been for.
    """
    x = y = 0
    while x < len(a) and y < len(b):
        in_a, in_b = a[x : x + _WINDOW], b[y : y + _WINDOW]
        if len(in_a) * len(in_b) > work.cells:
            return
        last = x + _WINDOW >= len(a) and y + _WINDOW >= len(b)
        until = _WINDOW if last else max(1, _WINDOW * 3 // 4)
        to_x, to_y = min(x + until, len(a)), min(y + until, len(b))
        end_x, end_y = x, y
        for run in _indel(in_a, in_b, x, y, work):
            if run.a >= to_x or run.b >= to_y:
                # The next window starts on the way to this run, not past lines that it may need.
                to_x, to_y = min(run.a, to_x), min(run.b, to_y)
                break
            out.append(run)
            end_x, end_y = run.a + run.size, run.b + run.size
        x, y = max(end_x, to_x), max(end_y, to_y)

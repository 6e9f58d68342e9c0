"""Figures of many turns, or steps, aggregated beforehand: what a chart asks for costs its width.

Plain Python.  Each level of the pyramid sums up `_FAN` values of the one below, so a value set or taken away
costs the logarithm of their number.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from ctxctl.model.vocab import UsedMethod

COMPACTED: Final = 1
BROKEN: Final = 2
FLAGGED: Final = 4
OMITTED: Final = 8
"""What may be so of a turn; those of several turns are or-ed."""

LEVELS: Final = "▁▂▃▄▅▆▇█"
"""Heights of a cell, from the lowest."""
_FAN: Final = 8


class Figures(NamedTuple):
    """Figures of one turn; of several turns, the highest of each figure and all marks."""

    used: int = 0
    """Tokens that were sent; of a turn, with the fullest of its steps."""
    cap: int = 0
    """0: unknown."""
    limit: int = 0
    """The window's whole size, what is reserved for the answer included; 0: unknown."""
    marks: int = 0
    threshold: int = 0
    """Where the runtime compacts by itself; 0: unknown."""
    expected: int = 0
    """`used` where nobody billed it, and it is expected; else 0."""
    content: int = 0
    """`used` where it is of what is recorded only; else 0."""

    @property
    def method(self) -> UsedMethod:
        """How the highest `used` is known."""
        if self.used and self.used == max(self.expected, self.content):
            return "expected" if self.used == self.expected else "recorded"
        return "reported"


_Level: TypeAlias = "tuple[array[int], ...]"
"""As many values as `Figures` has, in its order."""


class Series:
    """Figures of the turns of a thread, by their place in it."""

    def __init__(self) -> None:
        self._levels: list[_Level] = [_level()]
        self._columns: dict[tuple[int, int, int], list[Figures]] = {}
        """Columns as they were asked for lately, until a turn changes."""

    def __len__(self) -> int:
        return len(self._levels[0][0])

    def put(self, n: int, figures: Figures) -> None:
        """Set the figures of turn `n`, or add them where `n` is the number of turns."""
        self._columns.clear()
        lowest = self._levels[0]
        if n == len(lowest[0]):
            for values, value in zip(lowest, figures, strict=True):
                values.append(value)
            self._raise(n, figures)
            return
        before = Figures(*(values[n] for values in lowest))
        for values, value in zip(lowest, figures, strict=True):
            values[n] = value
        if _both(before, figures) == figures:
            self._raise(n, figures)
        else:
            self._sum_up(n)

    def _raise(self, n: int, figures: Figures) -> None:
        """Tell the levels above of figures that are nowhere less than what was there before."""
        for k, level in enumerate(self._levels[1:], 1):
            n //= _FAN
            if n == len(level[0]):
                self._fill(k, n)
                continue
            raised = _both(Figures(*(values[n] for values in level)), figures)
            for values, value in zip(level, raised, strict=True):
                values[n] = value
        if len(self._levels[-1][0]) > _FAN:
            self._levels.append(_level())
            for at in range(-(-len(self._levels[-2][0]) // _FAN)):
                self._fill(len(self._levels) - 1, at)

    def _fill(self, k: int, at: int) -> None:
        """Sum up one place of a level, its last one or the one behind that."""
        merged = _merged(self._levels[k - 1], at * _FAN, (at + 1) * _FAN)
        for values, value in zip(self._levels[k], merged, strict=True):
            if at == len(values):
                values.append(value)
            else:
                values[at] = value

    def _sum_up(self, n: int) -> None:
        """Sum up anew all that turn `n` is in."""
        for k in range(1, len(self._levels)):
            n //= _FAN
            self._fill(k, n)

    def extend(self, figures: Sequence[Figures]) -> None:
        """Add the figures of some more turns behind the last one."""
        if not figures:
            return
        self._columns.clear()
        start = len(self)
        for values, more in zip(self._levels[0], zip(*figures, strict=True), strict=True):
            values.extend(more)
        k = 0
        while (below := len(self._levels[k][0])) > _FAN or k + 1 < len(self._levels):
            k += 1
            if k == len(self._levels):
                self._levels.append(_level())
            first = min(start // _FAN**k, len(self._levels[k][0]))
            for at in range(first, -(-below // _FAN)):
                self._fill(k, at)

    def pop(self) -> None:
        """Take the last turn away."""
        self.cut(len(self) - 1)

    def cut(self, count: int) -> None:
        """Take away all turns behind the first `count`."""
        self._columns.clear()
        for k, level in enumerate(self._levels):
            size = -(-count // _FAN**k)
            for values in level:
                del values[size:]
        if count:
            self._sum_up(count - 1)

    def over(self, start: int, stop: int) -> Figures:
        """What turns `start` to `stop`, not included, have in sum: the maxima and all marks."""
        found = Figures()
        stop = min(stop, len(self))
        k = 0
        while start < stop:
            level = self._levels[k]
            if k + 1 == len(self._levels) or stop - start < 2 * _FAN:
                return _both(found, _merged(level, start, stop))
            inner, outer = -(-start // _FAN) * _FAN, stop // _FAN * _FAN
            found = _both(found, _merged(level, start, inner))
            found = _both(found, _merged(level, outer, stop))
            start, stop, k = inner // _FAN, outer // _FAN, k + 1
        return found

    def columns(self, width: int, start: int = 0, stop: int | None = None) -> list[Figures]:
        """The turns in at most `width` columns: one for each, or for several in a row."""
        stop = len(self) if stop is None else min(stop, len(self))
        key = (width, start, stop)
        found = self._columns.get(key)
        if found is None:
            count = max(stop - start, 0)
            shown = min(width, count)
            edges = [start + n * count // shown for n in range(shown + 1)] if shown else []
            found = self._columns[key] = [self.over(a, b) for a, b in pairwise(edges)]
        return found


def column_of(n: int, count: int, width: int) -> int:
    """The column in which turn `n` of `count` stands; inverse of the edges of `columns`."""
    shown = min(width, count)
    return ((n + 1) * shown - 1) // count if count else 0


def turns_of(column: int, count: int, width: int) -> range:
    """The turns that stand in a column."""
    shown = min(width, count)
    return range(column * count // shown, (column + 1) * count // shown) if shown else range(0)


def _level() -> _Level:
    return tuple(array("q") for _ in Figures._fields)


def _merged(level: _Level, start: int, stop: int) -> Figures:
    if stop <= start or start >= len(level[0]):
        return Figures()
    used, cap, limit, marks, threshold, expected, content = (values[start:stop] for values in level)
    found = 0
    for mark in marks:
        found |= mark
    return Figures(max(used), max(cap), max(limit), found, max(threshold), max(expected), max(content))


def _both(a: Figures, b: Figures) -> Figures:
    return Figures(
        max(a.used, b.used),
        max(a.cap, b.cap),
        max(a.limit, b.limit),
        a.marks | b.marks,
        max(a.threshold, b.threshold),
        max(a.expected, b.expected),
        max(a.content, b.content),
    )


def level_sign(part: int, whole: int) -> str:
    """One cell that shows how full something is."""
    if whole <= 0 or part <= 0:
        return " " if part <= 0 else LEVELS[-1]
    return LEVELS[min(part * len(LEVELS) // whole, len(LEVELS) - 1)]


_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


def size_bar(part: int, whole: int, width: int) -> str:
    """A bar of at most `width` cells, to an eighth of a cell; what is there at all has an eighth."""
    if part <= 0 or whole <= 0:
        return ""
    eighths = min(-(-part * 8 * width // whole), 8 * width)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

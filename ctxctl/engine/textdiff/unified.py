"""A unified diff of two texts in bounded work (DESIGN section 9, last rows).

What the texts share at their ends is cut off.  The rest is compared by the first of these that can afford it:

1. the greedy algorithm of Wu, Manber, Myers and Miller ("An O(NP) Sequence Comparison Algorithm", 1990),
   whose work grows with the number of edits and not with the texts; once on the texts as they are with few
   steps allowed, then on their lines without those that only one text has, which no diff can keep;
2. rapidfuzz's alignment, if its table is small enough;
3. the same again between lines that occur once in both texts;
4. rapidfuzz's alignment in windows that slide along both texts;
5. when the table's allowance is used up: one replaced block.

The first two are minimal.  What the others find is minimal too if it keeps each line as often as both texts
have it; only if it does not, the diff is said to be `degraded`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import accumulate, chain, repeat
from math import isqrt
from typing import Any, Literal, NamedTuple

from ctxctl.listdiff import Run, Work, same, same_end, solve

_QUICK_STEPS = 1 << 11
"""Steps of the greedy algorithm on the unsplit texts: about 2 ms."""
_CHARS_PER_STEP = 1 << 14
"""Equal characters that cost as much as one step."""

Kind = Literal[" ", "+", "-", "@"]


class DiffLine(NamedTuple):
    """One line of a diff; `@` lines head a hunk and hold ``-a,b +c,d``."""

    kind: Kind
    text: str


class TextDiff(NamedTuple):
    """A unified diff."""

    lines: tuple[DiffLine, ...]
    degraded: bool
    """Whether it may not be minimal, because a block was compared by parts or given up.  False is a proof: no
    diff has fewer changed lines."""
    added: int
    removed: int


class _Edit(NamedTuple):
    """An edit that replaces lines [a0, a1) of the old text by lines [b0, b1) of the new one.

    Their characters, with line ends, are [c0, c1) and [d0, d1).
    """

    a0: int
    a1: int
    b0: int
    b1: int
    c0: int
    c1: int
    d0: int
    d1: int


def unified_diff(old: str, new: str, *, context: int = 3) -> TextDiff:
    """Compare two texts line by line, with `context` equal lines around each hunk.

    Lines end only at a line feed: a carriage return is a character of its line.
    """
    if old == new:
        return TextDiff((), False, 0, 0)
    least = min(len(old), len(new))
    end = len(old) + 1
    head = same(old, new, 0, 0, least)
    tail = same_end(old, new, least - head)
    start = old.rfind("\n", 0, head) + 1
    # If the shared tail begins within a line, that line is not shared as a whole.
    stop = old.find("\n", len(old) - tail) + 1
    if not stop:
        # If the last lines differ, end both texts with a line feed, so that all compared lines are alike.
        old, new = old + "\n", new + "\n"
        stop = len(old)
    to = stop - len(old) + len(new)
    edits = _walk(old, new, start, stop, to)
    exact = edits is not None
    if edits is None:
        exact, edits = _by_line(old, new, start, stop, to)
    first = old.count("\n", 0, start)
    lines = tuple(_hunks(old, new, edits, first, end, context))
    added = sum(e.b1 - e.b0 for e in edits)
    removed = sum(e.a1 - e.a0 for e in edits)
    return TextDiff(lines, not exact, added, removed)


# The texts as they are --------------------------------------------------------------------------------------


def _walk(old: str, new: str, start: int, stop: int, to: int) -> list[_Edit] | None:
    """Run `listdiff.greedy` on the lines of `old[start:stop]` and `new[start:to]` without splitting them.

    `spot` holds the characters that belong to `reach`.
    """
    rows, columns = old.count("\n", start, stop), new.count("\n", start, to)
    swapped = rows > columns
    short, long = (new, old) if swapped else (old, new)
    if swapped:
        rows, columns, stop, to = columns, rows, to, stop
    extra = columns - rows
    left = _QUICK_STEPS
    most = min(rows, isqrt(left))
    zero = most + 1
    goal = zero + extra
    if extra >= left:
        return None
    reach = [-1] * (extra + 2 * most + 3)
    spot = [(start, start)] * len(reach)
    via: list[Any] = [None] * len(reach)
    for p in range(most + 1):
        left -= extra + 2 * p + 1
        if left < 0:
            return None
        for k in chain(range(zero - p, goal), range(goal + p, goal - 1, -1)):
            y = reach[k - 1] + 1
            if reach[k + 1] >= y:
                y, trail = reach[k + 1], via[k + 1]
                c, d = spot[k + 1]
                c = short.find("\n", c) + 1
            else:
                trail = via[k - 1]
                c, d = spot[k - 1]
                d = long.find("\n", d) + 1 if y else start
            end = short.find("\n", c, stop) + 1
            if end and long.startswith(short[c:end], d, to):
                end = short.rfind("\n", c, c + same(short, long, c, d, min(stop - c, to - d))) + 1
                size = short.count("\n", c, end)
                trail = (y - k + zero, y, size, c, d, end - c, trail)
                left -= (end - c) // _CHARS_PER_STEP
                if left < 0:
                    return None
                y, c, d = y + size, end, d + end - c
            reach[k], spot[k], via[k] = y, (c, d), trail
        if reach[goal] >= columns:
            return _walked((rows, columns, 0, stop, to, 0, via[goal]), start, swapped)
    return None


def _walked(trail: Any, start: int, swapped: bool) -> list[_Edit]:
    """Return the edits between the runs of a trail. Its last run is empty and marks the ends of the texts."""
    runs: list[tuple[int, int, int, int, int, int]] = []
    while trail is not None:
        x, y, size, c, d, chars, trail = trail
        runs.append((y, x, size, d, c, chars) if swapped else (x, y, size, c, d, chars))
    edits: list[_Edit] = []
    a = b = 0
    at_c = at_d = start
    for x, y, size, c, d, chars in reversed(runs):
        if x > a or y > b:
            edits.append(_Edit(a, x, b, y, at_c, c, at_d, d))
        a, b, at_c, at_d = x + size, y + size, c + chars, d + chars
    return edits


# Line by line -----------------------------------------------------------------------------------------------


def _by_line(old: str, new: str, start: int, stop: int, to: int) -> tuple[bool, list[_Edit]]:
    """Return whether the edits are minimal, and the edits."""
    a, b = old[start:stop].split("\n"), new[start:to].split("\n")
    # There is no line after the last line end.
    a.pop()
    b.pop()
    runs: list[Run] = []
    exact = solve(a, b, 0, 0, Work(), runs, 0)
    # Count characters without line ends, of which each line has one.
    chars_a = list(accumulate(map(len, a), initial=start))
    chars_b = list(accumulate(map(len, b), initial=start))
    edits: list[_Edit] = []
    x = y = 0
    for to_x, to_y, size in [*runs, Run(len(a), len(b), 0)]:
        if to_x > x or to_y > y:
            chars = (chars_a[x] + x, chars_a[to_x] + to_x, chars_b[y] + y, chars_b[to_y] + to_y)
            edits.append(_Edit(x, to_x, y, to_y, *chars))
        x, y = to_x + size, to_y + size
    return exact, edits


# Hunks ------------------------------------------------------------------------------------------------------


def _hunks(old: str, new: str, edits: list[_Edit], before: int, end: int, context: int) -> list[DiffLine]:
    """Return the diff, with `before` lines before the counted ones; the very last line ends at `end`."""
    out: list[DiffLine] = []
    for group in _groups(edits, context):
        first, last = group[0], group[-1]
        start, stop = first.c0, last.c1
        lead = trail = 0
        while lead < context and start:
            start = old.rfind("\n", 0, start - 1) + 1
            lead += 1
        while trail < context and stop < end:
            stop = old.find("\n", stop) + 1 or end
            trail += 1
        span_a = _span(before + first.a0 - lead, before + last.a1 + trail)
        span_b = _span(before + first.b0 - lead, before + last.b1 + trail)
        out.append(DiffLine("@", f"-{span_a} +{span_b}"))
        for edit in group:
            _part(out, " ", old, start, edit.c0)
            _part(out, "-", old, edit.c0, edit.c1)
            _part(out, "+", new, edit.d0, edit.d1)
            start = edit.c1
        _part(out, " ", old, start, stop)
    return out


_line = partial(tuple.__new__, DiffLine)
"""`DiffLine._make` without a Python call per line."""


def _part(out: list[DiffLine], kind: Kind, text: str, start: int, stop: int) -> None:
    if start < stop:
        out.extend(map(_line, zip(repeat(kind), text[start : stop - 1].split("\n"))))


def _groups(edits: list[_Edit], context: int) -> Iterator[list[_Edit]]:
    group: list[_Edit] = []
    for edit in edits:
        if group and edit.a0 - group[-1].a1 > 2 * context:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _span(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"

"""Which lines of a replaced block belong together, and which words differ in them, in bounded work.

`textdiff` says that some lines became some others.  A reader wants the line that was edited beside what it
was edited from: the pairs here keep the order of both sides and make the sum of likenesses largest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ctxctl.listdiff import Run, Work, solve

_ALIKE: Final = 0.5
"""Likeness below which two lines are no versions of each other."""
_HEAD: Final = 400
"""Characters of a line that its likeness is judged by."""
_BLOCK: Final = 60
"""Lines of each side up to which a block's best pairs are looked for; beyond, lines pair in order."""
_TOKENS: Final = 1200
"""Words of a line up to which the changed ones are looked for."""

# Symbols beyond ASCII stay together: an emoji sequence must not be cut.
_WORDS: Final = re.compile(r"\w+|[ \t]+|[^\x00-\x7f\w]+|[\x00-\x7f][^\x00-\x7f\w]*", re.DOTALL)

Span = tuple[int, int]
"""A stretch of a line, as offsets of characters."""


class Pair(NamedTuple):
    """An old line and the new one it became; either is None where there is no counterpart."""

    old: int | None
    new: int | None


class DiffEffort:
    """What the pairs and words of one diff may still cost, in compared lines and words."""

    __slots__ = ("left",)

    def __init__(self, left: int = 400_000) -> None:
        self.left = left


def line_pairs(old: Sequence[str], new: Sequence[str], effort: DiffEffort) -> list[Pair]:
    """Every line of both sides once, in order; lines in one pair are versions of each other."""
    cost = len(old) * len(new)
    if not old or not new:
        return [Pair(n, None) for n in range(len(old))] + [Pair(None, n) for n in range(len(new))]
    if max(len(old), len(new)) > _BLOCK or cost > effort.left:
        matched = _in_step(old, new, effort)
    else:
        effort.left -= cost
        matched = _best(old, new)
    found: list[Pair] = []
    a = b = 0
    for to_a, to_b in [*matched, (len(old), len(new))]:
        found += [Pair(n, None) for n in range(a, to_a)]
        found += [Pair(None, n) for n in range(b, to_b)]
        if to_a < len(old):
            found.append(Pair(to_a, to_b))
        a, b = to_a + 1, to_b + 1
    return found


def _in_step(old: Sequence[str], new: Sequence[str], effort: DiffEffort) -> list[tuple[int, int]]:
    """The like lines that have the same place on both sides, if the sides have as many lines."""
    if len(old) != len(new) or len(old) > effort.left:
        return []
    effort.left -= len(old)
    return [
        (n, n)
        for n, line in enumerate(old)
        if _likeness(line.strip()[:_HEAD], new[n].strip()[:_HEAD]) >= _ALIKE
    ]


def _likeness(a: str, b: str) -> float:
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity(a, b) if a and b else 0.0


def _best(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of like lines with the largest sum of likenesses, both sides in order."""
    heads = [line.strip()[:_HEAD] for line in new]
    likeness = []
    for line in old:
        head = line.strip()[:_HEAD]
        likeness.append([_likeness(head, other) for other in heads])
    rows, columns = len(old), len(new)
    sums = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best = max(sums[i + 1][j], sums[i][j + 1])
            if likeness[i][j] >= _ALIKE:
                best = max(best, sums[i + 1][j + 1] + likeness[i][j])
            sums[i][j] = best
    found = []
    i = j = 0
    while i < rows and j < columns:
        if likeness[i][j] >= _ALIKE and sums[i][j] == sums[i + 1][j + 1] + likeness[i][j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif sums[i][j] == sums[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def changed_words(old: str, new: str, effort: DiffEffort) -> tuple[list[Span], list[Span]]:
    """What of two versions of a line is not in the other: whole words, stretches joined where they touch.

    Nothing where that would take too long.
    """
    if len(old) + len(new) > effort.left:
        return [], []
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    effort.left -= len(a) + len(b)
    if max(len(a), len(b)) > _TOKENS:
        return [], []
    runs: list[Run] = []
    work = Work()
    work.steps, work.cells = 1 << 13, 1 << 21
    solve(a, b, 0, 0, work, runs, 0)
    runs.append(Run(len(a), len(b), 0))
    return _gaps(a, [(run.a, run.size) for run in runs]), _gaps(b, [(run.b, run.size) for run in runs])


def _gaps(words: list[str], kept: list[tuple[int, int]]) -> list[Span]:
    """The stretches of a line between the words that are kept; a lone character between two is taken in."""
    found: list[Span] = []
    at = chars = 0
    for start, size in kept:
        length = sum(map(len, words[at:start]))
        if length:
            found.append((chars, chars + length))
        same = sum(map(len, words[start : start + size]))
        chars += length + same
        at = start + size
    joined: list[Span] = []
    for begin, end in found:
        if joined and begin - joined[-1][1] <= 1:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined

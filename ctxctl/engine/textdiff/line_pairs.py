"""Pair the lines of a replaced block, and find the changed words in them, in bounded work.

A diff says which lines became which others. The pairs here keep the order of both sides and have the largest
sum of similarities, so that an edited line is shown beside its original.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ctxctl.listdiff import Run, Work, solve

_MIN_SIMILARITY: Final = 0.5
"""Similarity below which two lines are not versions of each other."""
_COMPARED_CHARS: Final = 400
"""Characters of a line that determine its similarity."""
_MAX_BLOCK_LINES: Final = 60
"""Most lines of each side for which a block's best pairs are found; beyond, lines pair in order."""
_MAX_LINE_WORDS: Final = 1200
"""Most words of a line for which changed words are found."""

# Symbols beyond ASCII stay together: an emoji sequence must not be cut.
_WORDS: Final = re.compile(r"\w+|[ \t]+|[^\x00-\x7f\w]+|[\x00-\x7f][^\x00-\x7f\w]*", re.DOTALL)

Span = tuple[int, int]
"""A range of a line, as character offsets."""


class Pair(NamedTuple):
    """An old line and the new one that it became; None without a counterpart."""

    old: int | None
    new: int | None


class DiffEffort:
    """Remaining effort for the pairs and words of one diff, in compared lines and words."""

    __slots__ = ("left",)

    def __init__(self, left: int = 400_000) -> None:
        self.left = left


def line_pairs(old: Sequence[str], new: Sequence[str], effort: DiffEffort) -> list[Pair]:
    """Return each line of both sides once, in order. Paired lines are versions of each other."""
    cost = len(old) * len(new)
    if not old or not new:
        return [Pair(n, None) for n in range(len(old))] + [Pair(None, n) for n in range(len(new))]
    if max(len(old), len(new)) > _MAX_BLOCK_LINES or cost > effort.left:
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
    """Return similar lines at the same place, if both sides have as many lines."""
    if len(old) != len(new) or len(old) > effort.left:
        return []
    effort.left -= len(old)
    return [
        (n, n)
        for n, line in enumerate(old)
        if _likeness(line.strip()[:_COMPARED_CHARS], new[n].strip()[:_COMPARED_CHARS]) >= _MIN_SIMILARITY
    ]


def _likeness(a: str, b: str) -> float:
    from rapidfuzz.distance import Indel

    return Indel.normalized_similarity(a, b) if a and b else 0.0


def _best(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of similar lines with the largest sum of similarities, in the order of both sides."""
    heads = [line.strip()[:_COMPARED_CHARS] for line in new]
    likeness = []
    for line in old:
        head = line.strip()[:_COMPARED_CHARS]
        likeness.append([_likeness(head, other) for other in heads])
    rows, columns = len(old), len(new)
    sums = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best = max(sums[i + 1][j], sums[i][j + 1])
            if likeness[i][j] >= _MIN_SIMILARITY:
                best = max(best, sums[i + 1][j + 1] + likeness[i][j])
            sums[i][j] = best
    found = []
    i = j = 0
    while i < rows and j < columns:
        if likeness[i][j] >= _MIN_SIMILARITY and sums[i][j] == sums[i + 1][j + 1] + likeness[i][j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif sums[i][j] == sums[i + 1][j]:
            i += 1
        else:
            j += 1
    return found


def changed_words(old: str, new: str, effort: DiffEffort) -> tuple[list[Span], list[Span]]:
    """Return the words of each version that the other lacks, as ranges, joined where they touch.

    Returns nothing if that would take too long.
    """
    if len(old) + len(new) > effort.left:
        return [], []
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    effort.left -= len(a) + len(b)
    if max(len(a), len(b)) > _MAX_LINE_WORDS:
        return [], []
    runs: list[Run] = []
    work = Work()
    work.steps, work.cells = 1 << 13, 1 << 21
    solve(a, b, 0, 0, work, runs, 0)
    runs.append(Run(len(a), len(b), 0))
    return _gaps(a, [(run.a, run.size) for run in runs]), _gaps(b, [(run.b, run.size) for run in runs])


def _gaps(words: list[str], kept: list[tuple[int, int]]) -> list[Span]:
    """Return the ranges between kept words. A lone character between two ranges is included."""
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

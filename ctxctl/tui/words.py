"""Which words of a changed line are others than before.  Plain Python, bounded work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ctxctl.tui.spans import Spans

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST: Final = 2000
"""Characters of a line up to which its words are compared."""
_PAIRS: Final = 2000
"""Pairs of lines that are compared, of one diff."""
_RUN: Final = 50
"""Lines of one change up to which they are taken for pairs."""
_ALIKE: Final = 0.4
"""Part of the longer line that both must share: of lines that share less, nothing stands out."""
_CHECK: Final = 64


def emphasised(lines: Sequence[tuple[str, str]], check: Callable[[], None] | None = None) -> Spans:
    """The changed words of (kind, text) lines as stretches of the lines joined by line feeds."""
    starts = []
    at = 0
    for _, text in lines:
        starts.append(at)
        at += len(text) + 1
    spans = []
    for n, (old, new) in enumerate(_pairs(lines)):
        if n >= _PAIRS:
            break
        if check is not None and n % _CHECK == 0:
            check()
        gone, come = changed(lines[old][1], lines[new][1])
        spans += [(starts[old] + a, starts[old] + b, "del-word") for a, b in gone]
        spans += [(starts[new] + a, starts[new] + b, "add-word") for a, b in come]
    return Spans(sorted(spans))


def _pairs(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Removed and added lines that stand for each other: the n-th of each, of every change."""
    n = 0
    while n < len(lines):
        if lines[n][0] != "-":
            n += 1
            continue
        first = n
        while n < len(lines) and lines[n][0] == "-":
            n += 1
        middle = n
        while n < len(lines) and lines[n][0] == "+":
            n += 1
        if n - first <= 2 * _RUN:
            yield from zip(range(first, middle), range(middle, n), strict=False)


def changed(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What only the old line has, and what only the new one has, as stretches; nothing where too much is."""
    from rapidfuzz.distance import LCSseq

    if max(len(old), len(new)) > _LONGEST:
        return [], []
    a, b = _WORD.findall(old), _WORD.findall(new)
    at_a, at_b = _offsets(a), _offsets(b)
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    shared = 0
    for step in LCSseq.opcodes(a, b):
        a0, a1, b0, b1 = step.src_start, step.src_end, step.dest_start, step.dest_end
        if step.tag == "equal":
            shared += sum(len(word) for word in a[a0:a1] if not word.isspace())
            continue
        if a1 > a0:
            _extend(gone, at_a[a0], at_a[a1], old)
        if b1 > b0:
            _extend(come, at_b[b0], at_b[b1], new)
    longer = max(len("".join(old.split())), len("".join(new.split())))
    return (gone, come) if shared >= _ALIKE * longer else ([], [])


def _extend(found: list[tuple[int, int]], start: int, end: int, text: str) -> None:
    """One more stretch; joined to the one before where only blanks are between."""
    if found and not text[found[-1][1] : start].strip():
        start = found.pop()[0]
    found.append((start, end))


def _offsets(words: Sequence[str]) -> list[int]:
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    return offsets

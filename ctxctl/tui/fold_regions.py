"""Lines that can be folded away under the line that they belong to.  Plain Python."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from ctxctl.labels import plural


class Fold(NamedTuple):
    """The lines behind `line` up to and with `last`; folded, `line` stands for all of them."""

    line: int
    last: int
    end: int
    """Offset at which the last line ends, its line feed not counted."""
    depth: int
    """0 for one that no other holds."""
    hint: str
    """What stands behind the folded line, such as ``… 12 keys }``."""


def hint(count: int, word: str, closing: str) -> str:
    """What stands behind the opening bracket of a folded value: how much it holds, and the closing one."""
    return f" … {plural(count, word)} {closing}"


class FoldRegions:
    """All that can be folded in one text; of two of them, either one holds the other or they lie apart."""

    __slots__ = ("_by_line", "_lines", "_parents")

    def __init__(self, folds: Iterable[Fold]) -> None:
        self._by_line = {fold.line: fold for fold in sorted(folds) if fold.last > fold.line}
        self._lines = array("Q", self._by_line)
        self._parents: dict[int, Fold] = {}
        around: list[Fold] = []
        for fold in self._by_line.values():
            while around and around[-1].last < fold.line:
                around.pop()
            if around:
                self._parents[fold.line] = around[-1]
            around.append(fold)

    def __len__(self) -> int:
        return len(self._by_line)

    def at(self, line: int) -> Fold | None:
        """The region that can be folded under a line."""
        return self._by_line.get(line)

    def around(self, line: int) -> Fold | None:
        """What a line can be folded with: what begins there, else the innermost that holds it."""
        n = bisect_right(self._lines, line) - 1
        fold = self._by_line[self._lines[n]] if n >= 0 else None
        while fold is not None and fold.last < line:
            fold = self._parents.get(fold.line)
        return fold

    def deeper(self, depth: int, least: int = 0) -> frozenset[int]:
        """The lines of those at this depth that hide more than `least` lines."""
        folds = self._by_line.values()
        return frozenset(f.line for f in folds if f.depth == depth and f.last - f.line > least)

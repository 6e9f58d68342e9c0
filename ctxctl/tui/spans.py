"""Which stretches of a text have a style of their own.  Plain Python.

Offsets are those of the text as a whole, so that one list serves every way of breaking it into rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ctxctl.text import visible

Span = tuple[int, int, str]
"""Start, end, style name."""


class Spans:
    """Stretches in order that do not overlap; nine bytes and two a stretch."""

    __slots__ = ("_ends", "_names", "_starts", "_styles")

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._starts = array("Q")
        self._ends = array("Q")
        self._styles = bytearray()
        self._names: list[str] = []
        for start, end, name in spans:
            self.add(start, end, name)

    def add(self, start: int, end: int, name: str) -> None:
        """One more, behind all others; of one that begins before the last one's end, only the rest."""
        if self._ends:
            start = max(start, self._ends[-1])
        if start >= end:
            return
        if name not in self._names:
            self._names.append(name)
        self._starts.append(start)
        self._ends.append(end)
        self._styles.append(self._names.index(name))

    def __len__(self) -> int:
        return len(self._starts)

    def within(self, start: int, end: int) -> list[Span]:
        """What there is of them between two offsets."""
        found = []
        n = max(bisect_right(self._starts, start) - 1, 0)
        while n < len(self._starts) and self._starts[n] < end:
            first, last = max(self._starts[n], start), min(self._ends[n], end)
            if first < last:
                found.append((first, last, self._names[self._styles[n]]))
            n += 1
        return found


def overlaid(below: Sequence[Span], above: Sequence[Span]) -> list[Span]:
    """Both lists as one, in order; where they overlap, `above` is seen."""
    found: list[Span] = list(above)
    for start, end, name in below:
        at = start
        for first, last, _ in above:
            if last <= at or first >= end:
                continue
            if first > at:
                found.append((at, first, name))
            at = max(at, last)
        if at < end:
            found.append((at, end, name))
    return sorted(found)


def styled_pieces(text: str, start: int, spans: Sequence[Span], style: str) -> list[tuple[str, str]]:
    """A row's text as it is shown, cut where styles change; `start` is its offset, `style` that of the rest.

    The row is made visible as a whole: a tab's width depends on what stands before it, and a joined character
    must not be torn.
    """
    if not spans:
        return [(text, style)]
    plain = text.isascii() and text.isprintable()
    shown = text if plain else visible(text, newline=True)
    made: list[tuple[str, str]] = []
    done = 0

    def until(offset: int) -> int:
        if plain:
            return offset
        head = visible(text[:offset], newline=True)
        return len(head) if shown.startswith(head) else done

    for first, last, name in spans:
        a, b = until(first - start), until(last - start)
        if b <= max(a, done):
            continue
        if a > done:
            made.append((shown[done:a], style))
        made.append((shown[max(a, done) : b], name))
        done = b
    if done < len(shown):
        made.append((shown[done:], style))
    return made

"""Finding a word in a text of any size, in slices of bounded work.  Plain Python."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import Final

from ctxctl.tui.spans import Span
from ctxctl.wording import number

SLICE: Final = 1 << 18
"""Characters looked through by one `Find.extend`: some milliseconds at most."""
MOST: Final = 100_000
"""Matches after which it is given up to look for more."""
_COST: Final = 64
"""What one match costs, in characters."""


class Find:
    """The places of `query`; without a capital in it, capitals make no difference."""

    def __init__(self, text: str, query: str) -> None:
        self.text = text
        self.query = query
        self.places = array("Q")
        self.done = not query
        self._bare = not any(char.isupper() for char in query)
        self._wanted = query.replace("İ", "i").lower() if self._bare else query
        self._at = 0

    @property
    def limited(self) -> bool:
        """Whether there may be more than were found."""
        return len(self.places) >= MOST

    @property
    def searched(self) -> int:
        """Up to which offset all matches are known."""
        return len(self.text) if self.done and not self.limited else self._at

    def extend(self, work: int = SLICE) -> None:
        """Look through a bounded stretch more; matches do not overlap."""
        size = len(self._wanted)
        first = self._at
        stretch = self.text[first : first + work + size - 1]
        if self._bare:
            stretch = stretch.replace("İ", "i").lower()
        at = 0
        while work > 0 and not self.limited:
            found = stretch.find(self._wanted, at)
            if found < 0 or found >= work:
                self._at = max(first + at, min(first + work, len(self.text)))
                self.done = first + work >= len(self.text)
                return
            self.places.append(first + found)
            at = found + size
            work -= _COST
        self._at = first + at
        self.done = self.limited or self._at >= len(self.text)

    def from_(self, offset: int) -> int | None:
        """The number (from 0) of the first match at an offset or behind it, as far as is known."""
        n = bisect_left(self.places, offset)
        return n if n < len(self.places) else None

    def within(self, start: int, end: int, current: int | None) -> list[Span]:
        """The matches between two offsets, as stretches; the current one has a style of its own."""
        size = len(self._wanted)
        n = bisect_left(self.places, max(start - size + 1, 0))
        found: list[Span] = []
        while n < len(self.places) and self.places[n] < end:
            at = self.places[n]
            first, last = max(at, start), min(at + size, end)
            if first < last:
                found.append((first, last, "current" if n == current else "match"))
            n += 1
        return found

    def said(self, current: int | None, wrapped: bool = False) -> str:
        """A phrase that says which match of how many is shown."""
        count = number(len(self.places)) + ("+" if self.limited else "" if self.done else "…")
        if current is None:
            return "" if not self.query else "no match" if self.done and not self.places else "looking…"
        return f"match {number(current + 1)} of {count}" + (", wrapped around" if wrapped else "")

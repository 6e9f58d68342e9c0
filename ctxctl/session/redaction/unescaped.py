"""A text read without the escapes of JSON, however deep: so a secret is found in any spelling."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

_ESCAPE: Final = re.compile(
    r"(?:\\(?:u005[cC])?)+"  # backslashes, of as many levels as there are
    r"(?:u([dD][89abAB][0-9a-fA-F]{2})\\+u([dD][c-fC-F][0-9a-fA-F]{2})"  # one character above 65,535
    r"|u([0-9a-fA-F]{4})|([nrtbf]))?"
    r"|[\x00-\x1f]"
)


class Unescaped:
    """One reading of a text: backslashes gone, what they spell in their place, line ends and tabs as spaces.

    Two spellings of the same text read alike, as does the text itself where it has backslashes: which level
    an escape is of cannot be known, so the reading is compared with readings only, and never shown.
    """

    def __init__(self, text: str) -> None:
        pieces: list[str] = []
        self._read: list[int] = [0]
        """Places in the reading from which on what it says stands elsewhere."""
        self._stands: list[int] = [0]
        """Where it stands in the text."""
        size = last = 0
        for match in _ESCAPE.finditer(text):
            sign = _sign(match)
            pieces += [text[last : match.start()], sign]
            size += match.start() - last
            if sign:
                self._read.append(size)
                self._stands.append(match.start())
            size += len(sign)
            last = match.end()
            self._read.append(size)
            self._stands.append(last)
        self.text = "".join([*pieces, text[last:]])

    def at(self, place: int) -> int:
        """Where in the text a character of the reading begins."""
        n = bisect_right(self._read, place) - 1
        return self._stands[n] + place - self._read[n]

    def end(self, place: int) -> int:
        """Where in the text a stretch ends that ends before `place` of the reading; `place` is above 0."""
        n = bisect_right(self._read, place - 1) - 1
        after = self._stands[n] + place - self._read[n]
        if n + 1 < len(self._read) and self._read[n + 1] == place:
            return max(after, self._stands[n + 1])
        return after


def _sign(match: re.Match[str]) -> str:
    high, low, unit, letter = match.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if unit:
        sign = chr(int(unit, 16))
        return " " if sign < " " else sign
    return " " if letter or match[0] < " " else ""


class Stretch(Protocol):
    """A part of a text."""

    @property
    def start(self) -> int:
        """Its first character."""

    @property
    def end(self) -> int:
        """The character behind it."""


_Stretch = TypeVar("_Stretch", bound=Stretch)


def apart(found: Iterable[_Stretch]) -> Iterator[_Stretch]:
    """Stretches in order; of two that overlap the first, else the longer."""
    end = 0
    for one in sorted(found, key=lambda held: (held.start, -held.end)):
        if one.start >= end:
            yield one
            end = one.end

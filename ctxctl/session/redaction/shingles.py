"""Runs of words: what is left of a text that somebody repeats in part, with other spaces, lines or marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

RUN: Final = 5
"""Words in a row that make a shingle."""
_LEAST: Final = 16
"""Letters that they have together at least."""
_WORD: Final = re.compile(r"\w+")


class CommonRun(NamedTuple):
    """A stretch of a text that stands in another one word for word."""

    start: int
    end: int
    name: str
    number: str
    """Which one it is: the numbers of its first and last shingle."""


class Shingles:
    """Runs of words with what they are of."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[str, int, int]] = {}
        """What each is of, since when, and its number."""
        self._added = 0

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, text: str, name: str, since: int) -> None:
        """Remember those of a text, which was first said at `since`."""
        for shingle, _, _ in _shingles(text):
            if shingle not in self._of:
                self._added += 1
                self._of[shingle] = (name, since, self._added)

    def remove(self, text: str) -> None:
        """Forget those of a text."""
        for shingle, _, _ in _shingles(text):
            self._of.pop(shingle, None)

    def spare(self, text: str, at: int) -> None:
        """Forget those that somebody else said at `at`, before they were said here."""
        for shingle, _, _ in _shingles(text):
            known = self._of.get(shingle)
            if known is not None and at < known[1]:
                del self._of[shingle]

    def runs(self, text: str) -> list[CommonRun]:
        """The stretches of a text that consist of them, in order and without overlaps."""
        made: list[CommonRun] = []
        if not self._of:
            return made
        for shingle, start, end in _shingles(text):
            known = self._of.get(shingle)
            if known is None:
                continue
            if made and start <= made[-1].end:
                first = made[-1].number.partition("-")[0]
                made[-1] = made[-1]._replace(end=end, number=f"{first}-{known[2]}")
            else:
                made.append(CommonRun(start, end, known[0], str(known[2])))
        return made


def _shingles(text: str) -> Iterator[tuple[int, int, int]]:
    """Hashes of all runs of words, with where they begin and end."""
    if len(text) < _LEAST:
        return
    words = [(match.group().lower(), match.start(), match.end()) for match in _WORD.finditer(text)]
    for n in range(len(words) - RUN + 1):
        run = words[n : n + RUN]
        joined = " ".join([word[0] for word in run])
        if len(joined) >= _LEAST + RUN - 1:
            yield hash(joined), run[0][1], run[-1][2]

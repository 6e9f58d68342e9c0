"""Finding what was meant by a few typed letters.  Plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_PREFIX, _WORD, _INSIDE, _LETTERS = range(4)


class Match(NamedTuple):
    """How well a text fits, and which of its characters were typed; a lower cost is a better fit."""

    cost: int
    places: tuple[int, ...]


def match(query: str, text: str) -> Match | None:
    """Every word of the query is found in the text: at a word's beginning, inside one, or letter by letter.

    Letters in their order, upper or lower case; the order of the query's words does not matter.
    """
    folded = text.casefold() if len(text.casefold()) == len(text) else text.lower()
    if len(folded) != len(text):
        folded = text
    cost = 0
    places: set[int] = set()
    for word in query.casefold().split():
        found = _word(word, folded)
        if found is None:
            return None
        cost += found.cost
        places.update(found.places)
    return Match(cost, tuple(sorted(places)))


def _word(word: str, text: str) -> Match | None:
    at = _at_word(word, text)
    if at is None:
        at = text.find(word)
        if at >= 0:
            return Match(_INSIDE * 1000 + min(at, 99), tuple(range(at, at + len(word))))
        return _letters(word, text)
    grade = _PREFIX if at == 0 else _WORD
    return Match(grade * 1000 + min(at, 99), tuple(range(at, at + len(word))))


def _at_word(word: str, text: str) -> int | None:
    """Where a word of the text begins with this one."""
    at = text.find(word)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum():
            return at
        at = text.find(word, at + 1)
    return None


def _letters(word: str, text: str) -> Match | None:
    """The letters one after the other, beginnings of words before others, with as few gaps as that allows."""
    best: Match | None = None
    for start in _starts(word[0], text):
        places = [start]
        for letter in word[1:]:
            at = text.find(letter, places[-1] + 1)
            if at < 0:
                break
            if at != places[-1] + 1:
                at = next((n for n in _starts(letter, text) if n > places[-1]), at)
            places.append(at)
        if len(places) < len(word):
            continue
        gaps = sum(b - a > 1 for a, b in pairwise(places))
        cost = _LETTERS * 1000 + gaps * 20 + min(places[-1] - places[0], 99)
        if best is None or cost < best.cost:
            best = Match(cost, tuple(places))
    return best


def _starts(letter: str, text: str) -> Sequence[int]:
    """Where a letter begins a word; everywhere it is, if nowhere so."""
    found = [n for n, other in enumerate(text) if other == letter]
    first = [n for n in found if n == 0 or not text[n - 1].isalnum()]
    return first + [n for n in found if n not in first][:1] if first else found

"""Texts that say the same, or nearly: found in one pass over each text, without comparing all with all.

A text is the set of its runs of four words; two texts are nearly the same if most of their runs are common
(Jaccard).  Of each set only the runs with the smallest hashes are kept: a fair sample, the same one of every
text, so that equal texts have equal samples.  Hashes do not depend on the process.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import xxhash

NEAR: Final = 80
"""Per cent of the runs that two texts must have in common to be nearly the same."""
_RUN: Final = 4
_LEAST: Final = 12
"""Runs below which a text is compared as a whole only."""
_SAMPLE: Final = 256
_SIGNS: Final = 24
"""Smallest hashes by which candidates are found: texts that share none of them have little in common."""
_SHARED: Final = 10
"""How many of them a candidate has in common, at least: of texts with 80 % in common hardly any has fewer."""
_CANDIDATES: Final = 8
"""Texts that a text is held against."""
_BUCKET: Final = 16
"""Texts by one hash; of a boilerplate that all have in common, the first ones."""
_MOST: Final = 1 << 20
"""Characters of a text that are looked at for runs."""
_WORD: Final = re.compile(r"\w+")


class NearDuplicate(NamedTuple):
    """Which earlier text a text repeats."""

    number: int
    share: int
    """Per cent; 100 only for equal texts."""


class SeenTexts:
    """Texts in order; each is held against those before it."""

    def __init__(self) -> None:
        self._equal: dict[str, int] = {}
        self._samples: dict[int, frozenset[int]] = {}
        self._signs: dict[int, list[int]] = {}

    def add(self, number: int, digest: str, text: str) -> NearDuplicate | None:
        """Take in the next text; the first one that is equal to it, else the one that is most like it."""
        first = self._equal.setdefault(digest, number)
        if first != number:
            return NearDuplicate(first, 100)
        sample = sample_of(text)
        if sample is None:
            return None
        signs = sorted(sample)[:_SIGNS]
        found = self._nearest(sample, signs)
        self._samples[number] = sample
        for sign in signs:
            bucket = self._signs.setdefault(sign, [])
            if len(bucket) < _BUCKET:
                bucket.append(number)
        return found

    def _nearest(self, sample: frozenset[int], signs: list[int]) -> NearDuplicate | None:
        common: dict[int, int] = {}
        for sign in signs:
            for number in self._signs.get(sign, ()):
                common[number] = common.get(number, 0) + 1
        least = min(_SHARED, len(signs) // 2)
        enough = [number for number, shared in common.items() if shared >= least]
        likely = sorted(enough, key=lambda number: (-common[number], number))[:_CANDIDATES]
        best: NearDuplicate | None = None
        for number in sorted(likely):
            share = min(jaccard(sample, self._samples[number]), 99)
            if share >= NEAR and (best is None or share > best.share):
                best = NearDuplicate(number, share)
        return best


def sample_of(text: str) -> frozenset[int] | None:
    """The sample of a text's runs of words; None for one with too few of them."""
    words = _WORD.findall(text[:_MOST])
    if len(words) < _LEAST + _RUN:
        return None
    digest = xxhash.xxh3_64_intdigest
    runs = zip(*(words[n:] for n in range(_RUN)), strict=False)
    return frozenset(sorted({digest(" ".join(run).encode()) for run in runs})[:_SAMPLE])


def jaccard(a: frozenset[int], b: frozenset[int]) -> int:
    """Per cent of the runs that two texts have in common, by their samples, rounded down."""
    together = sorted(a | b)[:_SAMPLE]
    return 100 * sum(run in a and run in b for run in together) // max(1, len(together))

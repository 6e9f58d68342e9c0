"""Find texts that are equal or nearly so, in one pass, without comparing all pairs.

A text is the set of its runs of four words. Two texts are nearly equal if they share most of their runs
(Jaccard). Only the runs with the smallest hashes are kept of each set: a fair sample, the same for equal
texts. Hashes do not depend on the process.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import xxhash

NEAR: Final = 80
"""Per cent of runs that two nearly equal texts share at least."""
_RUN: Final = 4
_MIN_RUNS: Final = 12
"""Fewest runs for a sample; a text with fewer is only compared as a whole."""
_SAMPLE_SIZE: Final = 256
_SIGNATURE_SIZE: Final = 24
"""Smallest hashes by which candidates are found. Texts that share none of them have little in common."""
_MIN_SHARED: Final = 10
"""Fewest of these hashes that a candidate shares. Texts with 80 % in common rarely share fewer."""
_MAX_CANDIDATES: Final = 8
"""Most candidates that a text is compared with."""
_MAX_BUCKET: Final = 16
"""Most texts kept per hash. Of a common boilerplate, the first ones are kept."""
_MAX_CHARS: Final = 1 << 20
"""Most characters of a text that are searched for runs."""
_WORD: Final = re.compile(r"\w+")


class NearDuplicate(NamedTuple):
    """The earlier text that a text repeats."""

    number: int
    share: int
    """In per cent; 100 only for equal texts."""


class SeenTexts:
    """Texts in order. Each is compared with those before it."""

    def __init__(self) -> None:
        self._equal: dict[str, int] = {}
        self._samples: dict[int, frozenset[int]] = {}
        self._signs: dict[int, list[int]] = {}

    def add(self, number: int, digest: str, text: str) -> NearDuplicate | None:
        """Add the next text. Return the first equal text, or else the most similar one."""
        first = self._equal.setdefault(digest, number)
        if first != number:
            return NearDuplicate(first, 100)
        sample = sample_of(text)
        if sample is None:
            return None
        signs = sorted(sample)[:_SIGNATURE_SIZE]
        found = self._nearest(sample, signs)
        self._samples[number] = sample
        for sign in signs:
            bucket = self._signs.setdefault(sign, [])
            if len(bucket) < _MAX_BUCKET:
                bucket.append(number)
        return found

    def _nearest(self, sample: frozenset[int], signs: list[int]) -> NearDuplicate | None:
        common: dict[int, int] = {}
        for sign in signs:
            for number in self._signs.get(sign, ()):
                common[number] = common.get(number, 0) + 1
        least = min(_MIN_SHARED, len(signs) // 2)
        enough = [number for number, shared in common.items() if shared >= least]
        likely = sorted(enough, key=lambda number: (-common[number], number))[:_MAX_CANDIDATES]
        best: NearDuplicate | None = None
        for number in sorted(likely):
            share = min(jaccard(sample, self._samples[number]), 99)
            if share >= NEAR and (best is None or share > best.share):
                best = NearDuplicate(number, share)
        return best


def sample_of(text: str) -> frozenset[int] | None:
    """Return the sample of a text's runs of words; None if it has too few."""
    words = _WORD.findall(text[:_MAX_CHARS])
    if len(words) < _MIN_RUNS + _RUN:
        return None
    digest = xxhash.xxh3_64_intdigest
    runs = zip(*(words[n:] for n in range(_RUN)), strict=False)
    return frozenset(sorted({digest(" ".join(run).encode()) for run in runs})[:_SAMPLE_SIZE])


def jaccard(a: frozenset[int], b: frozenset[int]) -> int:
    """Return the per cent of runs that two texts share, by their samples, rounded down."""
    together = sorted(a | b)[:_SAMPLE_SIZE]
    return 100 * sum(run in a and run in b for run in together) // max(1, len(together))

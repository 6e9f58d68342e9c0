"""Align the turns of two sessions, by their prompts, and between equal prompts by order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ctxctl.listdiff import Run, Work, solve


class AlignedTurns(NamedTuple):
    """A turn of each side, by its index from 0; None without a partner."""

    a: int | None
    b: int | None
    equal: bool
    """Whether they have the same prompt."""


def align_turns(a: Sequence[str | None], b: Sequence[str | None]) -> tuple[list[AlignedTurns], bool]:
    """Align two sessions by their turns' prompts; return the pairs, and whether they are minimal.

    A prompt of None is unknown and equals no other. Common prompts are a longest common subsequence, found in
    linear space and bounded work. Turns between them are paired in order; the rest has no partner.
    """
    runs: list[Run] = []
    minimal = solve(_names(a, "a"), _names(b, "b"), 0, 0, Work(), runs, 0)
    pairs: list[AlignedTurns] = []
    at_a = at_b = 0
    for run in [*sorted(runs), Run(len(a), len(b), 0)]:
        pairs += _between(at_a, run.a, at_b, run.b)
        pairs += [AlignedTurns(run.a + n, run.b + n, True) for n in range(run.size)]
        at_a, at_b = run.a + run.size, run.b + run.size
    return pairs, minimal


def _names(prompts: Sequence[str | None], side: str) -> list[str]:
    """Return lines to align. An unknown prompt equals none of the other side."""
    return [f"={p}" if p is not None else f"?{side}{n}" for n, p in enumerate(prompts)]


def _between(at_a: int, end_a: int, at_b: int, end_b: int) -> Iterator[AlignedTurns]:
    common = min(end_a - at_a, end_b - at_b)
    for n in range(common):
        yield AlignedTurns(at_a + n, at_b + n, False)
    for n in range(at_a + common, end_a):
        yield AlignedTurns(n, None, False)
    for n in range(at_b + common, end_b):
        yield AlignedTurns(None, n, False)

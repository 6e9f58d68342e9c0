"""Plans of sessions that have one prompt each: what they count is requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ctxctl.budget.observe import Observed
from ctxctl.budget.plan import DRIFT, MOST_DRAWS, MOST_SEEN, MOST_TURNS, Arrival

LEAST: Final = 10
"""Requests that each session must have had; a turn of fewer is drawn as one."""
_RUNS: Final = 200


def is_single(threads: Sequence[Observed]) -> bool:
    """Whether the sessions have one turn each, of many requests."""
    return all(len(thread.turns) == 1 and thread.steps >= LEAST for thread in threads)


def begins(threads: Sequence[Observed]) -> list[int]:
    """By session, what of the conversation its first request brings: the task."""
    return [max(0, sum(thread.course.arrivals[0]) - thread.earlier) for thread in threads]


def turns(threads: Sequence[Observed]) -> int:
    """Requests of the longest session, as far as they can be drawn."""
    most = int(MOST_DRAWS / (_RUNS * 20))
    return min(MOST_TURNS, most, max(thread.steps for thread in threads))


def arrivals(thread: Observed) -> list[Arrival]:
    """What each request after the first brought."""
    return thread.course.arrivals[1:]


def conversation(threads: Sequence[Observed], drift: float | None) -> Iterator[str]:
    """The table: requests as they were, in place of sizes."""
    seen = [arrival for thread in threads for arrival in arrivals(thread)][-MOST_SEEN:]
    yield "[conversation]"
    yield 'unit = "request"   # each session has one prompt'
    yield f"turns = {turns(threads)}   # the longest session"
    yield "together = 5   # so many are drawn in a row"
    told = "by so much the growth of a request differs from session to session"
    yield f"drift = {DRIFT if drift is None else drift:.2f}   # {told}"
    yield f"# What was new in {len(seen):,} requests: user, answer, tool calls, tool results."
    yield "seen = ["
    yield from (f"  [{list(arrival)}]," for arrival in seen)
    yield "]"

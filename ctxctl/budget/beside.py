"""What was billed beside the record: how large it is, and how much of a session's growth it makes up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ctxctl.budget.plan import Arrival
from ctxctl.model.results import Step
from ctxctl.text import visible

COLUMN: Final = {
    "user_message": 0,
    "assistant_message": 1,
    "reasoning": 1,
    "tool_call": 2,
    "tool_result": 3,
}
"""Where a kind stands in an `Arrival`."""
ANSWER: Final = 1
"""Where growth of which nothing is recorded goes in an `Arrival`: records lack what a model thinks."""
_LEAP: Final = 5
"""More than one part in so many of the window is a leap: a compaction, other tools, another history.  It does
not come again with what arrives."""
_SMALL: Final = 500
"""Below so many tokens a change of what is not recorded is no leap."""


class SentBesideRecord:
    """What was sent of one thread beside what is recorded; feed it its steps in their order."""

    def __init__(self) -> None:
        self.first: int | None = None
        """What was not recorded of the first request of which that is known; may be below zero."""
        self._before: tuple[int, int] | None = None
        """Of the request before: tokens sent, and of these what is not recorded."""
        self._owed = 0

    def grown(self, step: Step, arrived: int) -> int:
        """By how many tokens the conversation grew with this request, by the provider's count.

        That is what arrived, less what left, and the change of what is not recorded: wrappers, reminders,
        hidden thinking.  It is what arrived alone where that cannot be told (nothing billed, the first
        request, a leap), and 0 where the sum is below that: what follows is less by as much.

        Args:
            step: The request.
            arrived: Tokens of what is recorded as new in the conversation.
        """
        beside, before = step.window.unrecorded, self._before
        self._before = None if beside is None else (step.window.used, beside)
        if self.first is None:
            self.first = beside
        if before is None or beside is None:
            return arrived
        gone, more = _gone(step), beside - before[1]
        leap = before[0] // _LEAP
        if gone > leap or abs(more) > leap + _SMALL:
            self._owed = 0
            return arrived
        grew = arrived - gone + more - self._owed
        self._owed = max(0, -grew)
        return max(0, grew)


def _gone(step: Step) -> int:
    """Tokens of the conversation that left with a step."""
    found = 0
    for change in step.changes:
        if change.kind in COLUMN:
            if change.status == "removed":
                found += change.freed
            elif change.status == "updated":
                found += max(0, change.freed - change.new)
    return found


def scaled_arrivals(sums: Sequence[int], total: int) -> Arrival:
    """What arrived, made `total` in all: each kind by the same share; answers where nothing is recorded."""
    arrived = sum(sums)
    if not arrived:
        found = [0, 0, 0, 0]
        found[ANSWER] = total
    else:
        found = [tokens * total // arrived for tokens in sums]
        found[max(range(4), key=sums.__getitem__)] += total - sum(found)
    return found[0], found[1], found[2], found[3]


def part_name(lacking: str) -> str:
    """The name of the part; `lacking` are the words for what the format holds nothing of, may be empty."""
    return f"not recorded: {visible(lacking)[:150]}" if lacking else "not recorded"


def part_of(name: str, tokens: str, now: int | None, comment: str) -> Iterator[str]:
    """The part as TOML; `name` and `tokens` as they stand in it."""
    yield f"# {comment}"
    yield from ("[[part]]", f"name = {name}", 'segment = "system"', f"tokens = {tokens}")
    if now is not None:
        yield f"now = {now}"
    yield ""


def fewer_tokens(history: Sequence[Sequence[int]], less: int) -> list[Any]:
    """Rows of a history that hold `less` tokens fewer in all, each by the same share; at most all of them."""
    held = sum(map(sum, history))
    left = max(0, held - less)
    rows = [[tokens * left // held for tokens in row] for row in history] if held else []
    if rows:
        rows[-1][max(range(4), key=rows[-1].__getitem__)] += left - sum(map(sum, rows))
    return rows

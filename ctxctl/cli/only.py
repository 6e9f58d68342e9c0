"""Narrowing a replay to some turns or one thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ctxctl.errors import UsageError

if TYPE_CHECKING:
    from ctxctl.model.results import Step, Turn

_RANGE = re.compile(r"(-?\d{1,9})?(\.\.)?(-?\d{1,9})?")
_HINT = "write a turn, for example 3 or -1, or turns from and to, for example 3..5 or -3..-1"


class Where(Protocol):
    """Where a step is, as the index of a trace knows it."""

    @property
    def session(self) -> str | None:
        """Its session."""
        ...

    @property
    def thread(self) -> str:
        """Its thread."""
        ...

    @property
    def turn(self) -> int:
        """Its turn, from 1."""
        ...


class Only(NamedTuple):
    """Which steps and turns are shown; turns are ready to compare, per session and thread."""

    first: int | None
    last: int | None
    thread: str | None
    ends: dict[tuple[str | None, str], int]
    """Last turn of each thread; filled only where a negative number needs it."""

    def __call__(self, result: Step | Turn) -> bool:
        """Whether a step or turn is shown."""
        if self.thread is not None and result.thread != self.thread:
            return False
        first, last = self.first, self.last
        if first is None and last is None:
            return True
        end = self.ends.get((result.session, result.thread), 0)
        low = 1 if first is None else first if first > 0 else end + first + 1
        high = result.turn if last is None else last if last > 0 else end + last + 1
        return low <= result.turn <= high


def only(turn: str | None, thread: str | None, rows: Callable[[], Sequence[Where]]) -> Only:
    """Read ``--turn`` and ``--thread``; `rows` is called only for negative turns.

    Raises UsageError (`bad-turn`).
    """
    first = last = None
    if turn is not None:
        match = _RANGE.fullmatch(turn.strip())
        if (
            match is None
            or not (match[1] or match[3])
            or "0" in (match[1], match[3])
            or (match[3] and not match[2])
        ):
            raise UsageError("bad-turn", f"{turn!r} is not a turn", hint=_HINT)
        first = int(match[1]) if match[1] else None
        last = int(match[3]) if match[3] else None if match[2] else first
    ends: dict[tuple[str | None, str], int] = {}
    if (first is not None and first < 0) or (last is not None and last < 0):
        for row in rows():
            ends[row.session, row.thread] = max(row.turn, ends.get((row.session, row.thread), 0))
    return Only(first, last, thread, ends)


def nothing_there(turn: str | None, thread: str | None, rows: Sequence[Where]) -> UsageError:
    """The error for a selection that fits no step, with what there is."""
    threads = list(dict.fromkeys(row.thread for row in rows))
    if thread is not None and thread not in threads:
        there = ", ".join(threads[:8]) + (", ..." if len(threads) > 8 else "")
        return UsageError("no-such-frame", f"no thread is called {thread!r}", hint=f"there are: {there}")
    turns = max((row.turn for row in rows if thread in (None, row.thread)), default=0)
    return UsageError("no-such-frame", f"no turn {turn}", hint=f"the trace has turns 1 to {turns}")

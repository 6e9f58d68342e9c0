"""How much of a forked rollout is a copy of its parent's: history that this thread's requests carry, but
requests and counts that are not its own.

From about 0.15 the session's record tells: `subagent_history_start_ordinal` is the line that the own part
begins with, and `history_base` (`codex.bases`) a stretch of the parent's rollout that is not copied at all.
Before, where the parent's rollout still lies beside it, what both hold is the copy; what two forks of one
parent hold is a copy at least (`codex.parents`).  Else: Codex writes a copied line anew, with the time of the
fork.  Turn ids are UUIDs of version 7 and hold their time: a turn from before the session id is the parent's.
Where there are no such ids, what was written in one burst with the first line is the copy.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from ctxctl.formats.codex.parents import Copied

_UUID7: Final = re.compile(
    r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE
)
_BURST: Final = 0.5
"""Seconds between two lines of one burst; no request is answered and logged faster."""
_TICK: Final = 1.0
"""The same where times are written in whole seconds."""


class Fork:
    """Follows the lines of a forked rollout and says where its own part begins."""

    def __init__(self, session: str | None, told: Copied | None = None, *, until: int | None = None) -> None:
        self._told = told
        """What the parent's file, or another fork of it, tells."""
        self._until = until
        """Ordinal of the first line that is this thread's own, where the session's record names it."""
        self._born = born(session)
        self._ids = False
        """A turn id has told that the copy goes on."""
        self._first: float | None = None
        self._last: float | None = None
        self._paused = False
        """More than one burst was seen."""
        self.copying = True

    def line(self, time: Any, number: int, ordinal: Any = None) -> None:
        """A line with its timestamp, which ends the copy only where neither the session's record nor the
        parent nor turn ids tell."""
        if self._until is not None:
            if type(ordinal) is int:
                self.copying = ordinal < self._until
            return
        told = self._told
        if told is not None and told.exact:
            self.copying = number <= told.until
            return
        seconds = _seconds(time)
        if not self.copying or seconds is None:
            return
        last, self._last = self._last, seconds
        if self._first is None:
            self._first = seconds
        elif not self._ids and last is not None and seconds >= self._first:
            whole = seconds.is_integer() and last.is_integer()
            self._paused = self._paused or seconds - last > (_TICK if whole else _BURST)
            self.copying = not self._paused or (told is not None and number <= told.until)

    def turn(self, turn: str) -> None:
        """A turn begins."""
        exact = self._until is not None or (self._told is not None and self._told.exact)
        made = None if exact else born(turn)
        if not self.copying or made is None or self._born is None:
            return
        self._ids = made < self._born
        self.copying = self._ids


def born(name: str | None) -> int | None:
    """Milliseconds since the epoch that a UUID of version 7 was made at; None for other ids."""
    match = _UUID7.match(name) if name is not None else None
    return int(match.group(1) + match.group(2), 16) if match is not None else None


def _seconds(value: Any) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        return None

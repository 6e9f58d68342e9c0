"""Sessions of a dataset put into groups and summed up.  Plain Python.

A sum counts what was added up; what some of it cannot say is counted beside it, so that a view can write "at
least".  What none of it says is None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final, Literal, NamedTuple

from ctxctl.dataset.session_values import Figures, SessionRow

By = Literal["project", "client", "week", "session"]
BY: Final[tuple[By, ...]] = ("project", "client", "week", "session")
"""What sessions are grouped by; `session`: not at all."""


class Group(NamedTuple):
    """Sessions that have something in common, each request counted once over all captures."""

    key: str | None
    """Project, client, or the Monday (UTC) of the week in which they began; None: not recorded."""
    sessions: int
    figures: Figures
    copies: int
    """Requests that another capture of the dataset counts, not in `figures`."""


def key_of(row: SessionRow, by: By) -> str | None:
    """What a session is grouped under."""
    if by == "project":
        return row.project
    if by == "client":
        return row.client
    if by == "session":
        return row.key
    began = row.started
    return None if began is None else (began - timedelta(days=began.weekday())).strftime("%Y-%m-%d")


def grouped(rows: Iterable[SessionRow], by: By) -> list[Group]:
    """The groups, in the order in which their first sessions come."""
    found: dict[str | None, list[SessionRow]] = {}
    for row in rows:
        found.setdefault(key_of(row, by), []).append(row)
    return [summed(key, some) for key, some in found.items()]


def summed(key: str | None, rows: Iterable[SessionRow]) -> Group:
    """One group of some sessions."""
    sums, keys, copies = _Sums(), set(), 0
    for row in rows:
        keys.add(row.key)
        copies += row.copied.requests
        sums.add(row.own, row.copied)
    return Group(key, len(keys), sums.figures(), copies)


class _Sums:
    def __init__(self) -> None:
        self.requests = self.sent = self.unbilled = self.unlimited = self.unpriced = self.unread = 0
        self.least = self.counted = self.compactions = 0
        self.filled: float | None = None
        self.read: int | None = None
        self.read_of: int | None = None
        self.usd: float | None = None
        self.misses: int | None = None

    def add(self, own: Figures, copied: Figures) -> None:
        """Take in a session without what counts elsewhere."""
        requests = own.requests - copied.requests
        self.requests += requests
        self.sent += own.sent - copied.sent
        self.unbilled += own.unbilled - copied.unbilled
        self.unlimited += own.unlimited
        self.unpriced += own.unpriced - copied.unpriced
        self.least += own.least - copied.least
        self.counted += own.counted - copied.counted
        self.compactions += own.compactions - copied.compactions
        if own.filled is not None:
            self.filled = max(own.filled, self.filled or 0.0)
        self.read = _plus(self.read, _less(own.read, copied.read, requests))
        self.read_of = _plus(self.read_of, _less(own.read_of, copied.read_of, requests))
        if own.unpriced - copied.unpriced < requests:
            self.usd = (self.usd or 0.0) + max((own.usd or 0.0) - (copied.usd or 0.0), 0.0)
        self.misses = _plus(self.misses, _less(own.misses, copied.misses, requests))
        self.unread += own.unread if requests else 0

    def figures(self) -> Figures:
        """The sums."""
        return Figures(
            self.requests, self.sent, self.unbilled, self.filled, self.unlimited, self.read,
            self.read_of or None, self.usd, self.unpriced, self.least, self.counted, self.misses, self.unread,
            self.compactions,
        )  # fmt: skip


def _less(own: int | None, copied: int | None, requests: int) -> int | None:
    """A figure without its part that counts elsewhere; None where nothing is left that could say it."""
    left = 0 if own is None else own - (copied or 0)
    return None if own is None or not (requests or left) else left


def _plus(whole: int | None, more: int | None) -> int | None:
    return whole if more is None else more + (whole or 0)

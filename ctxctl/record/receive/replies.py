"""Answers of the receivers, and the guard that refuses what cannot be written for now.

What is refused stays with its sender, so nothing of it counts as lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from ctxctl.record.journal import Journal


JSON = "application/json"


class Reply(NamedTuple):
    """An answer to a request."""

    status: int
    body: bytes = b""
    media: str = JSON
    retry_after: int | None = None
    """Seconds after which the request may be tried again."""


def error_reply(status: int, why: str, *, wait: float | None = None, **more: Any) -> Reply:
    """Return an answer that says why; `wait`: seconds after which it is worth trying again."""
    return Reply(status, orjson.dumps({"error": why, **more}), JSON, whole_seconds(wait))


def whole_seconds(wait: float | None) -> int | None:
    """Round up to whole seconds, at least one, for `Retry-After`."""
    return None if wait is None else max(1, math.ceil(wait))


class NotWrittenError(Exception):
    """The trace cannot be written to for now; the text says why."""


class WriteGuard:
    """Undoes what the recorder counts as lost while the sender still has it.

    Nobody else may use the recorder at that time: what it counts then would be undone too.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def wait(self) -> float:
        """Return the seconds until it is worth trying again; 0: now."""
        return max(0.0, self._journal._retry_at - monotonic())

    @property
    def why(self) -> str:
        """The reason why the last write failed."""
        return self._journal._reason or "the trace cannot be written to"

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Raise NotWrittenError if what is recorded inside was dropped, and undo the count of it.

        Where it is too early to try again, it raises at once.
        """
        journal = self._journal
        if self.wait():
            raise NotWrittenError(self.why)
        dropped, errors = journal.dropped, dict(journal.errors)
        lost, span, missed, seq = (
            dict(journal._lost),
            list(journal._lost_range),
            list(journal._missed),
            journal._seq,
        )
        yield
        if journal.dropped > dropped:
            journal.dropped, journal.errors = dropped, errors
            journal._lost, journal._lost_range, journal._missed, journal._seq = lost, span, missed, seq
            raise NotWrittenError(self.why)

"""Where a live trace's bytes come from: what a feed of them does, and the one of a native file."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ctxctl.model.problem import Problem
from ctxctl.session.opening import Opened
from ctxctl.trace.follow import Follower, FollowRestart, OpenFile, PathFiles, Span, State
from ctxctl.trace.growing import GrowingSource, GrowingTrace

_LINE: Final = 1 << 20
"""Longest last line without an end that is read as if it were whole."""


class Rollback(NamedTuple):
    """What stood from byte `at` on counts no longer; what follows there begins at byte `next`."""

    at: int
    next: int


class FeedLook(NamedTuple):
    """What a look found, besides what was added to the source."""

    state: State
    changed: bool
    opened: Opened | None = None
    """The trace is there for the first time, or anew."""
    restart: Problem | None = None
    """Why it is there anew."""
    rollback: Rollback | None = None
    problems: tuple[Problem, ...] = ()


class Feed(Protocol):
    """One capture that is followed."""

    aside: bytes
    """Lines behind the source's end that may still change."""
    whole: bool
    """They are one line that has no end yet."""
    rewinds: bool
    """Looks may roll the trace back."""

    def look(self, now: float) -> FeedLook:
        """Add what is new to the source; `now` in seconds of a clock that never goes back."""
        ...

    def due(self, now: float) -> float:
        """Seconds until a look is worth it again, if nothing happens to the file."""
        ...

    def last(self) -> FeedLook:
        """Nothing more will come: add what was held back."""
        ...

    def again(self) -> Opened:
        """Open the same trace again, to be read from its first line."""
        ...

    def turn_over(self, now: float) -> bool:
        """Whether what is there now says that the turn is over; once for each state of the capture."""
        ...

    def close(self) -> None:
        """Let the files go; those of traces that were opened stay."""
        ...


class NativeFeed:
    """A file of native lines."""

    rewinds = False
    whole = True

    def __init__(self, name: str, path: Path) -> None:
        self._name, self._path = name, path
        self._follower = Follower(PathFiles(path))
        self._source: GrowingSource | None = None
        self.aside = b""

    def look(self, now: float) -> FeedLook:
        """Follow the file; see `trace.follow`."""
        seen = self._follower.look()
        restart: Problem | None = None
        opened: Opened | None = None
        changed = False
        for found in seen.found:
            changed = True
            if isinstance(found, FollowRestart):
                restart, self._source, opened = found.problem, None, None
                continue
            if self._source is not None and self._source.full:
                message = "its files were renamed too often to keep them all; begun anew with the last one"
                restart, self._source = Problem(0, 0, "trace-rotated", message), None
            if self._source is None:
                self._source = GrowingSource(self._name, self._path)
                opened = self._opened()
            self._add(found)
        self.aside = self._unfinished(seen.unfinished)
        return FeedLook(seen.state, changed, opened, restart, None, tuple(seen.problems))

    def _add(self, span: Span) -> None:
        assert self._source is not None
        assert isinstance(span.handle, OpenFile)
        self._source.add(span.handle, span.offset, span.length)

    def _opened(self) -> Opened:
        assert self._source is not None
        return Opened(GrowingTrace(self._source), "native", "recorded", ())

    def _unfinished(self, size: int) -> bytes:
        """The last line, if it may be whole but for its end."""
        if not 2 <= size <= _LINE:
            return b""
        rest = [span.handle.read(span.offset, span.length) for span in self._follower.rest()[-1:]]
        return rest[0] if rest and rest[0].rstrip().endswith(b"}") else b""

    def due(self, now: float) -> float:
        """A look costs next to nothing."""
        return 3600.0

    def last(self) -> FeedLook:
        """The unfinished lines are read as those of a file that ends there."""
        self.aside = b""
        opened: Opened | None = None
        rest = self._follower.rest()
        for span in rest:
            if self._source is None:
                self._source = GrowingSource(self._name, self._path)
                opened = self._opened()
            self._add(span)
        return FeedLook("following", bool(rest), opened)

    def again(self) -> Opened:
        """The bytes so far."""
        assert self._source is not None
        self._source = self._source.again()
        return self._opened()

    def turn_over(self, now: float) -> bool:
        """Events say so themselves."""
        return False

    def close(self) -> None:
        """Let the file go."""
        self._follower.close()

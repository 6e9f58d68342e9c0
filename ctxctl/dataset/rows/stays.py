"""The stays of one thread's items in its windows, from what each request put in and took out.

Nothing walks a whole window: a stay is opened by the request that brings it and settled when it changes or
ends, from running sums of the thread.  So a request costs what it changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ctxctl.dataset.rows.names import ItemOrigin
    from ctxctl.engine.replay.frames import FrameDelta
    from ctxctl.model.results import Change, Placement

UNKNOWN_CAUSE: Final = "unrecorded"
"""Of what is gone without anything that says why."""


class StayEnd(NamedTuple):
    """What a stay came to."""

    last: int
    """`ordinal` of the last request that had it."""
    requests: int
    token_steps: int
    stale_token_steps: int
    usd: float | None
    left: str | None


class Stay:
    """One copy of an item's version in a thread's windows."""

    __slots__ = (
        "began", "copy", "end", "entered", "first", "number", "origin", "priced", "settled", "stale",
        "stale_steps", "steps", "tokens", "usd",
    )  # fmt: skip

    def __init__(
        self, number: int, copy: Placement, origin: ItemOrigin, entered: str, first: int, at: Sums
    ) -> None:
        self.number = number
        self.copy = copy
        self.origin = origin
        self.entered = entered
        self.first = first
        """`ordinal` of the request that brought it."""
        self.began = at.requests
        self.settled = at
        """The thread's sums up to which the figures below go."""
        self.tokens = copy.tokens
        self.stale = False
        self.steps = 0
        self.stale_steps = 0
        self.usd = 0.0
        self.priced = False
        self.end: StayEnd | None = None

    @property
    def is_counted(self) -> bool:
        """Whether anybody knows its tokens."""
        return self.copy.method != "uncounted"

    def settle(self, at: Sums) -> None:
        """Take in the requests since the last time, all of which had it as it is now."""
        before, self.settled = self.settled, at
        steps = self.tokens * (at.requests - before.requests)
        self.steps += steps
        if self.stale:
            self.stale_steps += steps
        if at.priced != before.priced:
            self.priced = True
            self.usd += self.tokens * (at.rate - before.rate)

    def finish(self, at: Sums, last: int, left: str | None) -> None:
        """It is over, or the thread is."""
        self.settle(at)
        usd = self.usd if self.priced and self.is_counted else None
        self.end = StayEnd(last, at.requests - self.began, self.steps, self.stale_steps, usd, left)


class Sums(NamedTuple):
    """Over the requests of a thread so far."""

    requests: int = 0
    priced: int = 0
    """Those with a price."""
    rate: float = 0.0
    """US dollars that a token which all of them sent has cost."""


class _Copies(NamedTuple):
    """The open stays of one version in one rendering, the oldest first."""

    fresh: deque[Stay]
    stale: deque[Stay]


class ThreadStays:
    """Follows one thread's windows.

    Args:
        numbers: Gives each stay its number in the session.
        origin: Of which tool, server and file a placement is.
    """

    def __init__(self, numbers: Iterator[int], origin: Callable[[Placement], ItemOrigin]) -> None:
        self._numbers = numbers
        self._origin = origin
        self._open: dict[int, _Copies] = {}
        """By the key of a placement."""
        self._sums = Sums()
        self._last = -1
        self._frame: list[Placement] = []
        self.ended: list[Stay] = []

    def step(
        self, ordinal: int, placements: list[Placement], delta: FrameDelta, changes: Iterable[Change]
    ) -> None:
        """Take in a request's window.

        Args:
            ordinal: The request's.
            placements: Its window.
            delta: How that differs from the thread's window before.
            changes: What the request says became of items.
        """
        if delta.before is not self._frame and delta.before != self._frame:  # compared by identity
            self._reweigh(self._frame, delta.before)
        self._frame = placements
        if not delta.inserted and not delta.removed:
            return
        said = {change.item: change for change in changes}
        moved: dict[int, list[int]] = {}
        came: dict[int, list[Placement]] = {}
        gone: dict[int, Placement] = {}
        for p in delta.removed:
            _count(moved, p, -1)
            gone[p.key] = p
        for p in delta.inserted:
            _count(moved, p, 1)
            came.setdefault(p.key, []).append(p)
        for key, (copies, stale) in moved.items():
            held = self._open.get(key)
            wanted = stale + (len(held.stale) if held is not None else 0)
            if copies < 0:
                self._leave(key, -copies, max(0, -stale), _cause(said.get(gone[key].item)))
            for p in came[key][:copies] if copies > 0 else ():
                self._enter(ordinal, p, said.get(p.item))
            if stale or wanted:
                self._set_stale(key, wanted)

    def priced(self, ordinal: int, rate: float | None) -> None:
        """The request was sent: `rate`, US dollars for each token of it; None: it has no price."""
        sums = self._sums
        self._last = ordinal
        if rate is None:
            self._sums = sums._replace(requests=sums.requests + 1)
        else:
            self._sums = Sums(sums.requests + 1, sums.priced + 1, sums.rate + rate)

    def finish(self) -> list[Stay]:
        """All stays, those of the last window too."""
        for copies in self._open.values():
            for stay in (*copies.fresh, *copies.stale):
                stay.finish(self._sums, self._last, None)
                self.ended.append(stay)
        self._open = {}
        return self.ended

    def _enter(self, ordinal: int, p: Placement, change: Change | None) -> None:
        entered = "updated" if change is not None and change.status == "updated" else "added"
        stay = Stay(
            next(self._numbers),
            p,
            self._origin(p),
            entered if self._sums.requests else "start",
            ordinal,
            self._sums,
        )
        self._open.setdefault(p.key, _Copies(deque(), deque())).fresh.append(stay)

    def _leave(self, key: int, copies: int, stale: int, left: str) -> None:
        """The oldest go, so many of them from among the stale ones."""
        held = self._open[key]
        for n in range(copies):
            queue = held.stale if (n < stale and held.stale) or not held.fresh else held.fresh
            stay = queue.popleft()
            stay.finish(self._sums, self._last, left)
            self.ended.append(stay)
        if not held.fresh and not held.stale:
            del self._open[key]

    def _set_stale(self, key: int, wanted: int) -> None:
        """Have so many copies be stale: the oldest ones, and of those that are again fresh the newest."""
        held = self._open.get(key)
        if held is None:
            return
        while len(held.stale) < wanted and held.fresh:
            stay = held.fresh.popleft()
            stay.settle(self._sums)
            stay.stale = True
            held.stale.append(stay)
        while len(held.stale) > wanted:
            stay = held.stale.pop()
            stay.settle(self._sums)
            stay.stale = False
            held.fresh.appendleft(stay)

    def _reweigh(self, before: list[Placement], after: list[Placement]) -> None:
        """Another model counts otherwise: the same placements have other sizes from here on."""
        sizes = {new.key: new for old, new in zip(before, after, strict=True) if new is not old}
        for key, p in sizes.items():
            for queue in self._open.get(key, ()):
                for stay in queue:
                    stay.settle(self._sums)
                    stay.tokens = p.tokens


def _count(moved: dict[int, list[int]], p: Placement, sign: int) -> None:
    found = moved.get(p.key)
    if found is None:
        found = moved[p.key] = [0, 0]
    found[0] += sign
    found[1] += sign * p.stale


def _cause(change: Change | None) -> str:
    if change is None:
        return UNKNOWN_CAUSE
    if change.status == "updated":
        return "updated"
    return change.cause or UNKNOWN_CAUSE

"""What is being searched for and what was found.  Plain Python."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ctxctl.engine.query import Query, QueryError, parse_query
from ctxctl.model.hits import Found, Hit

Phase = Literal["idle", "running", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the typed query, and at which of its characters."""

    column: int
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Finds:
    """What one search has found so far.  `hits` grows at its end, shared by older and newer values."""

    query: Query
    serial: int
    """Answers to other searches are not for this one."""
    hits: list[Hit]
    count: int = 0
    """How many of `hits` this value speaks of."""
    total: int = 0
    part: float = 0.0
    steps: int = 0
    textless: int = 0
    withheld: int = 0
    phase: Phase = "running"
    why: str = ""
    """Why the search failed."""


@dataclass(frozen=True, slots=True)
class Search:
    """The whole view."""

    typed: str = ""
    query: Query | None = None
    """What is typed, where it says anything."""
    fault: Fault | None = None
    asked: Finds | None = None
    """The newest search, before it has said anything."""
    finds: Finds | None = None
    """What is listed: of the newest search that has said anything."""
    cursor: int = 0
    serial: int = 0

    @property
    def running(self) -> bool:
        """Whether more may be found."""
        return self.asked is not None or (self.finds is not None and self.finds.phase == "running")

    @property
    def hit(self) -> Hit | None:
        """The hit under the cursor."""
        finds = self.finds
        return finds.hits[self.cursor] if finds is not None and self.cursor < finds.count else None

    @property
    def newest(self) -> Query | None:
        """What was searched for last."""
        latest = self.asked or self.finds
        return None if latest is None else latest.query


def typed(state: Search, text: str) -> Search:
    """Another text stands in the line."""
    if not text.strip():
        return replace(state, typed=text, query=None, fault=None)
    try:
        return replace(state, typed=text, query=parse_query(text), fault=None)
    except QueryError as error:
        fault = Fault(error.column, error.what, error.hint or "")
        return replace(state, typed=text, query=None, fault=fault)


def asked(state: Search, *, again: bool = False) -> Search:
    """Search for what is typed; the same state where there is nothing to search for, or that is being done.

    What was found before stays listed until the new search has said something.  `again`: the trace may
    have more by now.
    """
    query = state.query
    if query is None or (query == state.newest and not again and not _failed(state)):
        return state
    serial = state.serial + 1
    return replace(state, serial=serial, asked=Finds(query, serial, []))


def _failed(state: Search) -> bool:
    return state.asked is None and state.finds is not None and state.finds.phase == "failed"


def found(state: Search, serial: int, news: Found) -> Search:
    """A search has said something; one that nobody waits for any more is not heard."""
    finds, cursor = state.finds, state.cursor
    if state.asked is not None and state.asked.serial == serial:
        finds, cursor = state.asked, 0
    elif finds is None or finds.serial != serial or state.asked is not None:
        return state
    del finds.hits[finds.count :]
    finds.hits.extend(news.hits)
    finds = replace(
        finds,
        count=len(finds.hits),
        total=news.total,
        part=news.part,
        steps=news.steps,
        textless=news.textless,
        withheld=news.withheld,
        phase="done" if news.done else "running",
    )
    return replace(state, asked=None, finds=finds, cursor=cursor)


def failed(state: Search, serial: int, why: str) -> Search:
    """A search cannot be made or has broken off; what it found stays."""
    finds = state.asked if state.asked is not None else state.finds
    if finds is None or finds.serial != serial:
        return state
    return replace(state, asked=None, finds=replace(finds, phase="failed", why=why))


def moved(state: Search, line: int) -> Search:
    """The cursor is on another hit."""
    count = 0 if state.finds is None else state.finds.count
    return replace(state, cursor=min(max(line, 0), max(count - 1, 0)))


def stepped(state: Search, by: int, first: int, last: int) -> Search:
    """Go to the next hit (`by` 1) or the one before (-1), seen from the steps `first` to `last`.

    From the hit under the cursor, if it is in these steps; else from the steps.  The ends do not meet.
    """
    finds = state.finds
    if finds is None or not finds.count:
        return state
    here = state.hit
    if here is not None and first <= here.ordinal <= last:
        return moved(state, state.cursor + by)
    hits: Sequence[Hit] = finds.hits
    if by > 0:
        line = bisect_right(hits, last, hi=finds.count, key=_ordinal)
    else:
        line = bisect_left(hits, first, hi=finds.count, key=_ordinal) - 1
    return moved(state, line) if 0 <= line < finds.count else state


def _ordinal(hit: Hit) -> int:
    return hit.ordinal

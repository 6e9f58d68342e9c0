"""A session as a series: the turns of each thread, with what each added to the window and removed.

It takes one pass over the trace and keeps the changes of each turn. So its size is that of the session's
changes, however large the windows are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctxctl.analysis.request_cost import cost_of
from ctxctl.analysis.turn_sums import paid_for
from ctxctl.analysis.where import WhereQuery
from ctxctl.engine.replay.cursor import StepAt
from ctxctl.engine.replay.frames import delta_of
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.money import ZERO
from ctxctl.model.results import Placement, Step, Turn
from ctxctl.model.sessions import TurnSide
from ctxctl.session.walked import walked

if TYPE_CHECKING:
    from ctxctl.engine.query import Query
    from ctxctl.engine.replay.walked import Walked
    from ctxctl.session.facade import Inspector, Progress
    from ctxctl.tokens.catalogue.rates import RateBook

_WRAP = (1 << 63) - 1
UNKNOWN = 2
"""Marks in `ThreadSeries.truths` that the trace does not say."""


def content_key(p: Placement) -> str:
    """Return a key that copies with the same content share, whatever their names.

    Copies without text and digest share a key if they are one version of one item.
    """
    return p.digest if p.digest is not None else f"{p.item}\0{p.version}\0{p.tokens}"


class TurnSeries:
    """One turn."""

    __slots__ = ("came", "first", "prompt", "side", "went")

    def __init__(
        self, side: TurnSide, prompt: str | None, came: list[Placement], went: list[Placement], first: int
    ) -> None:
        self.side = side
        self.prompt = prompt
        """Digest of the prompt; None if the trace has none."""
        self.came = came
        """Current copies at the turn's end that were not current at the previous turn's end."""
        self.went = went
        self.first = first
        """Index of its first step in the thread, from 0."""


class ThreadSeries:
    """One thread, in order."""

    def __init__(self, key: ThreadKey) -> None:
        self.key = key
        self.turns: list[TurnSeries] = []
        self.ordinals = array("l")
        """Ordinals of the thread's steps."""
        self.prints = array("q")
        """A sum over each step's window, equal for windows with the same texts."""
        self.truths = array("b")
        """Whether the query matches each step: 0, 1 or `UNKNOWN`."""
        self._held: list[Placement] = []
        self._print = 0
        self._open: _Open | None = None

    def add(self, ordinal: int, one: Walked, truth: bool | None, book: RateBook) -> None:
        """Add the next step."""
        at, delta = one.at, one.delta
        for placement in delta.inserted:
            self._print += hash_of(placement)
        for placement in delta.removed:
            self._print -= hash_of(placement)
        self.ordinals.append(ordinal)
        self.prints.append(self._print & _WRAP)
        self.truths.append(UNKNOWN if truth is None else int(truth))
        if self._open is None:
            self._open = _Open(len(self.ordinals) - 1)
        self._open.add(at.step, delta.inserted, book)
        if at.turn is not None:
            self._close(ordinal, at, at.turn)

    def _close(self, ordinal: int, at: StepAt, turn: Turn) -> None:
        assert self._open is not None
        current = [p for p in at.placements if not p.stale]
        delta = delta_of(self._held, current)
        self._held = current
        side = self._open.side(ordinal, at.step, turn)
        self.turns.append(
            TurnSeries(side, self._open.prompt, delta.inserted, delta.removed, self._open.first)
        )
        self._open = None

    def steps_of(self, turn: int) -> range:
        """Return the indices of a turn's steps in the thread."""
        end = self.turns[turn + 1].first if turn + 1 < len(self.turns) else len(self.ordinals)
        return range(self.turns[turn].first, end)


class _Open:
    """The turn that is being read."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.prompt: str | None = None
        self._billed: int | None = None
        self._cost = ZERO
        self._unpriced = 0
        self._partial = self._expected = self._least = 0

    def add(self, step: Step, came: Iterable[Placement], book: RateBook) -> None:
        if self.prompt is None:
            self.prompt = next((content_key(p) for p in came if p.kind == "user_message"), None)
        cost = cost_of(step, book)
        paid = paid_for(cost)
        self._cost += paid.cost
        self._unpriced += paid.unpriced
        self._expected += cost.billed_tokens is None and not paid.unpriced
        self._least += paid.is_least
        self._partial += step.has_partial_output
        if step.usage is not None and step.usage.reported_input is not None:
            self._billed = (self._billed or 0) + step.usage.reported_input

    def side(self, ordinal: int, step: Step, turn: Turn) -> TurnSide:
        ledger = turn.ledger
        return TurnSide(
            ordinal, turn.session, turn.thread, turn.turn, step.step, turn.steps, turn.title,
            step.window.used, ledger.new, ledger.freed, self._billed, self._cost, self._unpriced,
            self._partial, self._expected, self._least, step.window.recorded, step.window.used_method,
        )  # fmt: skip


def hash_of(p: Placement) -> int:
    """Return a number for a copy's content, the same in every trace."""
    import xxhash

    return xxhash.xxh3_64_intdigest(content_key(p).encode("utf-8", "replace")) >> 1


def thread_series(
    inspector: Inspector,
    book: RateBook,
    query: Query | None = None,
    progress: Progress | None = None,
) -> dict[ThreadKey, ThreadSeries]:
    """Read a trace. Return a series for each thread, in the order in which their first steps end."""
    found: dict[ThreadKey, ThreadSeries] = {}
    asked = WhereQuery(inspector, query, book) if query is not None else None
    skipped = query is not None and query.asks_skipped
    for ordinal, one in enumerate(walked(inspector, progress, skipped=skipped, settle=True)):
        course = found.get(one.key)
        if course is None:
            course = found[one.key] = ThreadSeries(one.key)
        truth = asked.held(one).truth if asked is not None else None
        course.add(ordinal, one, truth, book)
    return found

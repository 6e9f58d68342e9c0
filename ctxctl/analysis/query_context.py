"""What a query needs of a step beyond the step itself: its whole window, and its cost.

Windows are updated by what entered and left, so the cost of a step is proportional to its changes, and each
distinct text is read once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ctxctl.engine.query import Query, Value
from ctxctl.engine.query.facts import CENTS
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.engine.replay.walked import Walked
from ctxctl.model.content import Content
from ctxctl.model.results import Placement, Step

if TYPE_CHECKING:
    from ctxctl.tokens.catalogue.rates import RateBook

_UNIT: Final = 10**CENTS


class QueryContexts:
    """Follows the windows of all threads of one replay; call `of` at each step, in order."""

    def __init__(self, query: Query, text: Callable[[Content], str], book: RateBook | None = None) -> None:
        self._query = query
        self._text = text
        self._book = book
        self._bits: dict[Content, int] = {}
        """By text: bit n says whether it has the query's nth value."""
        self._windows: dict[ThreadKey, _Window] = {}

    def of(self, one: Walked) -> _Window | None:
        """Return the window of the next step; None if the query asks nothing of it."""
        if not self._query.asks_around:
            return None
        if self._query.asks_cost and self._book is None:
            self._book = _prices()
        window = self._windows.get(one.key)
        if window is None:
            window = self._windows[one.key] = _Window(self._query.window, self._book)
        window.step = one.at.step
        if self._query.window:
            for placement in one.delta.inserted:
                window.count(placement, self._has(placement), 1)
            for placement in one.delta.removed:
                window.count(placement, self._has(placement), -1)
        return window

    def alone(self, step: Step, frame: Iterable[Placement]) -> _Window | None:
        """Return the query context of one step by itself, from its whole frame; None if it needs none."""
        if not self._query.asks_around:
            return None
        if self._query.asks_cost and self._book is None:
            self._book = _prices()
        window = _Window(self._query.window, self._book)
        window.step = step
        for placement in frame if self._query.window else ():
            window.count(placement, self._has(placement), 1)
        return window

    def _has(self, placement: Placement) -> int:
        """Return which of the query's values one copy matches, as bits."""
        found = 0
        texts = False
        for n, (field, value) in enumerate(self._query.window):
            if field == "text":
                texts = True
            elif not placement.stale and _is_called(placement, value):
                found |= 1 << n
        if texts and placement.content is not None:
            found |= self._said(placement.content)
        return found

    def _said(self, content: Content) -> int:
        bits = self._bits.get(content)
        if bits is None:
            text = self._text(content)
            bits = 0
            for n, (field, value) in enumerate(self._query.window):
                if field == "text" and value.fits(text):
                    bits |= 1 << n
            self._bits[content] = bits
        return bits


def _prices() -> RateBook:
    from ctxctl.tokens.catalogue.rates import RateBook

    return RateBook()


def _is_called(placement: Placement, value: Value) -> bool:
    return value.fits(placement.item) or (placement.title is not None and value.fits(placement.title))


class _Window:
    """The number of copies in one thread's window that match each value; implements `QueryContext`."""

    def __init__(self, values: tuple[tuple[str, Value], ...], book: RateBook | None) -> None:
        self._numbers = {asked: n for n, asked in enumerate(values)}
        self._copies = [0] * len(values)
        self._textless = 0
        self._book = book
        self.step: Step | None = None

    def count(self, placement: Placement, bits: int, sign: int) -> None:
        """Count a copy that entered (1) or left (-1)."""
        if placement.content is None:
            self._textless += sign
        n = 0
        while bits:
            if bits & 1:
                self._copies[n] += sign
            bits >>= 1
            n += 1

    def holds(self, field: str, value: Value) -> bool | None:
        """Return whether a copy matches; None if none is known to, but some have no text."""
        if self._copies[self._numbers[field, value]]:
            return True
        return None if field == "text" and self._textless else False

    def cost(self) -> int | None:
        """The price of the step's bill in nanodollars, with a partial output as counted."""
        from ctxctl.analysis.request_cost import cost_of

        assert self.step is not None
        assert self._book is not None
        billed = cost_of(self.step, self._book).believed
        return None if billed is None else int(billed.total * _UNIT)

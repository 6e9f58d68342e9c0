"""What steps, turns and threads cost, as far as it has been worked out.  Plain Python.

A step takes nine bytes, so that a column of a million steps costs what a picture does.  Belongs to the event
loop, which is told of the steps in their order.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from ctxctl.model.cost_sums import Paid
from ctxctl.model.outline import Row
from ctxctl.tui.thread_names import ThreadName

_DIGITS: Final = 10
"""Digits behind the point of a dollar: a token at a hundredth of a dollar a million."""
_PRICED: Final = 1
_COUNTED: Final = 2
_LEAST: Final = 4
_KNOWN: Final = 8

TurnName = tuple[str | None, str, int]


class Paids(NamedTuple):
    """What some steps in a row cost."""

    start: int
    """Ordinal of the first of them."""
    amounts: array[int]
    """In `10**-10` US dollars."""
    flags: bytes

    @classmethod
    def of(cls, start: int, paid: Sequence[Paid]) -> Paids:
        """The same in the form in which it is told."""
        amounts = array("q", [int(one.cost.scaleb(_DIGITS)) for one in paid])
        flags = (
            _PRICED * (not one.unpriced)
            | _COUNTED * one.is_counted
            | _LEAST * one.is_least
            | _KNOWN * one.is_known
            for one in paid
        )
        return cls(start, amounts, bytes(flags))


class CostColumn:
    """Grows at its end."""

    def __init__(self) -> None:
        self._amounts = array("q")
        self._flags = bytearray()
        self._sums: dict[TurnName | ThreadName | None, list[int]] = {}
        """By turn, by thread, and of all: steps, amounts, those without a price, and all flags."""

    def __len__(self) -> int:
        return len(self._flags)

    def take(self, told: Paids, rows: Sequence[Row]) -> None:
        """Take in what some more steps cost; what does not follow on what is known is passed over."""
        if told.start != len(self) or told.start + len(told.flags) > len(rows):
            return
        self._amounts.extend(told.amounts)
        self._flags.extend(told.flags)
        for n, (amount, flags) in enumerate(zip(told.amounts, told.flags, strict=True), told.start):
            row = rows[n]
            for key in ((row.session, row.thread, row.turn), (row.session, row.thread), None):
                held = self._sums.setdefault(key, [0, 0, 0, 0])
                held[0] += 1
                held[1] += amount
                held[2] += not flags & _PRICED
                held[3] |= flags

    def cut(self, count: int) -> None:
        """Forget everything where steps from `count` on are others now."""
        if count < len(self):
            del self._amounts[:], self._flags[:]
            self._sums.clear()

    @property
    def is_priced(self) -> bool:
        """Whether the price of any step is known."""
        held = self._sums.get(None)
        return held is not None and held[2] < held[0] and bool(held[3] & _KNOWN)

    def step(self, ordinal: int) -> Paid | None:
        """What a step cost; None: it has not been worked out."""
        if ordinal >= len(self):
            return None
        return _paid(1, self._amounts[ordinal], int(not self._flags[ordinal] & _PRICED), self._flags[ordinal])

    def sum(self, of: TurnName | ThreadName | None, steps: int) -> Paid | None:
        """What a turn, a thread or all (None) cost; None: not all of its `steps` have been worked out."""
        held = self._sums.get(of)
        return None if held is None or held[0] != steps else _paid(*held)


def _paid(steps: int, amount: int, unpriced: int, flags: int) -> Paid:
    cost = Decimal(amount).scaleb(-_DIGITS)
    marks = (bool(flags & mark) for mark in (_COUNTED, _LEAST, _KNOWN))
    return Paid(steps, cost, unpriced, *marks)

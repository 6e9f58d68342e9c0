"""Money as exact values: what tokens cost, by what kind of billing they fall under."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

ZERO: Final = Decimal(0)
MILLION: Final = 1_000_000
MARK: Final = "≈"
"""Stands before a figure in which a part of a bill is as counted, because the bill cannot be true."""
BILL_PARTS: Final = ("input", "output")
"""What of a bill can be doubted."""


class Rates(NamedTuple):
    """US dollars for a million tokens; None: not known (and not: free)."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


class Tokens(NamedTuple):
    """Tokens of one request by how they are billed; all but `output` are its context."""

    input: int = 0
    """Neither read from a cache nor written to one."""
    cached: int = 0
    written: int = 0
    output: int = 0


class Money(NamedTuple):
    """US dollars, exact."""

    input: Decimal = ZERO
    cached: Decimal = ZERO
    written: Decimal = ZERO
    output: Decimal = ZERO

    @property
    def total(self) -> Decimal:
        """All of it."""
        return self.input + self.cached + self.written + self.output

    @property
    def context(self) -> Decimal:
        """Without the answer."""
        return self.input + self.cached + self.written

    def plus(self, other: Money) -> Money:
        """The sum."""
        return Money(*(a + b for a, b in zip(self, other, strict=True)))


def priced(tokens: Tokens, rates: Rates) -> Money | None:
    """What a request costs; None where a rate that it needs is not known."""
    parts = []
    for count, rate in zip(
        tokens, (rates.input, rates.cache_read, rates.cache_write, rates.output), strict=True
    ):
        if count and rate is None:
            return None
        parts.append(rate * count / MILLION if count and rate is not None else ZERO)
    return Money(*parts)

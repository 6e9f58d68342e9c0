"""What cache misses cost (at what their tokens were billed, less what reading them would have been), and why
there were any, in words."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ctxctl.model.money import MILLION, ZERO, Rates, Tokens
from ctxctl.model.results import Cache, Miss


class MissSum(NamedTuple):
    """The misses of one cause."""

    number: int = 0
    tokens: int = 0
    money: Decimal = ZERO
    unpriced: int = 0
    """Misses whose price is not known."""


class MissSums:
    """Misses and their money by cause."""

    def __init__(self) -> None:
        self._by: dict[str, MissSum] = {}

    def add(self, miss: Miss | None, money: Decimal | None) -> None:
        """Take in one step's; `money`: None where a rate is unknown."""
        if miss is None:
            return
        was = self._by.get(miss.cause, MissSum())
        self._by[miss.cause] = MissSum(
            was.number + 1,
            was.tokens + miss.tokens,
            was.money + (money or ZERO),
            was.unpriced + (money is None),
        )

    @property
    def by_cause(self) -> dict[str, MissSum]:
        """The dearest cause first; among equals by tokens, then by name."""
        return dict(sorted(self._by.items(), key=lambda row: (-row[1].money, -row[1].tokens, row[0])))

    @property
    def whole(self) -> MissSum:
        """All of them."""
        found = self._by.values()
        return MissSum(
            sum(s.number for s in found), sum(s.tokens for s in found),
            sum((s.money for s in found), ZERO), sum(s.unpriced for s in found),
        )  # fmt: skip


def miss_price(miss: Miss | None, billed: Tokens | None, rates: Rates) -> Decimal | None:
    """US dollars that a miss cost more than a read would have; None: no miss, or a rate is unknown.

    Its tokens stand right behind what was read, so they were written (for an hour first: Anthropic wants
    those in front) before any of them were plain input.
    """
    if miss is None or billed is None or rates.cache_read is None:
        return None
    left, money = miss.tokens, ZERO
    kinds = (
        (billed.written_1h, rates.cache_write_1h), (billed.written, rates.cache_write),
        (billed.input, rates.input),
    )  # fmt: skip
    for held, rate in kinds:
        taken = min(left, held)
        if taken and rate is None:
            return None
        money += (rate or ZERO) * taken
        left -= taken
    return (money - rates.cache_read * (miss.tokens - left)) / MILLION


def write_rate(cache: Cache, rates: Rates) -> Decimal | None:
    """What a token behind a break was billed at: most of them are written again where anything was."""
    if not cache.reported_cache_write:
        return rates.input
    hour = cache.reported_cache_write_1h or 0
    return rates.cache_write_1h if hour * 2 > cache.reported_cache_write else rates.cache_write

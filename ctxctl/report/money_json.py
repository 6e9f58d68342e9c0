"""Money, tokens and rates as JSON has them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from ctxctl.model.money import Money, Rates, Tokens

_ALWAYS: Final = ("input", "cached", "written", "output", "written_1h")
"""Parts of a bill that JSON has even where there is nothing of them."""


def exact(amount: Decimal | None) -> str | None:
    """All digits, for JSON; None where nobody knows."""
    return None if amount is None else f"{amount.normalize():f}"


def money_object(money: Money | None) -> dict[str, str | None] | None:
    """By part, and in all; the parts that few bills have only where there is something of them."""
    if money is None:
        return None
    told = {name: exact(amount) for name, amount in money._asdict().items() if amount or name in _ALWAYS}
    return {**told, "total": exact(money.total)}


def tokens_object(tokens: Tokens | None) -> dict[str, int] | None:
    """As `money_object`."""
    if tokens is None:
        return None
    return {name: count for name, count in tokens._asdict().items() if count or name in _ALWAYS}


def rates_object(rates: Rates) -> dict[str, str | None]:
    """US dollars for a million tokens; the rates that few models have only where they are known."""
    always = Rates._fields[:5]
    return {name: exact(r) for name, r in rates._asdict().items() if r is not None or name in always}


def listed(prices: Any, always: int) -> dict[str, Any]:
    """Prices of the table; the first `always` fields even where they are not known."""
    told = prices._asdict()
    return {name: p for at, (name, p) in enumerate(told.items()) if p is not None or at < always}

"""Money as text."""

from __future__ import annotations

from decimal import Decimal


def dollars(amount: Decimal | None) -> str:
    """US dollars to a hundredth of a cent; `-` where nobody knows."""
    if amount is None:
        return "-"
    return f"{'-' if amount < 0 else ''}${abs(amount):,.4f}"


def exact(amount: Decimal | None) -> str | None:
    """All digits, for JSON; None where nobody knows."""
    return None if amount is None else f"{amount.normalize():f}"

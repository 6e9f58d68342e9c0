"""What a request costs that was not served as usual: in a batch, by a tier of its own, fast, in one country.

Prices by tier are `genai-prices`' (OpenAI's flex, priority and fast; batches of both; Anthropic's fast mode).
Two rules that Anthropic documents for all its models stand here: half the price in a batch, and 1.1 times the
price of tokens where inference is held in the United States (platform.claude.com, Pricing: Batch processing,
Data residency).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from ctxctl.model.money import Rates
from ctxctl.model.terms import Terms

_HALF: Final = Decimal("0.5")
_BATCH_IS_HALF: Final = frozenset(("anthropic",))
_PLACED: Final = {("anthropic", "us"): Decimal("1.1")}
"""By provider and place, what the price of tokens is multiplied by."""


class Assumed(NamedTuple):
    """What is not listed as such."""

    factor: Decimal = Decimal(1)
    """What all rates are multiplied by."""
    notes: tuple[str, ...] = ()


def served(terms: Terms) -> str:
    """How the request was served, in words; untrusted text."""
    said = (
        ("service tier", terms.service_tier), ("speed", terms.speed),
    )  # fmt: skip
    return " and ".join(f"{name} {value!r}" for name, value in said if value is not None)


def placed(rates: Rates, provider: str | None, terms: Terms) -> Rates:
    """The rates where inference was held."""
    place = terms.inference_geo.lower() if terms.inference_geo is not None else ""
    factor = _PLACED.get((provider or "", place))
    if factor is None:
        # Elsewhere ("global") it costs what it costs everywhere.
        return rates
    return rates._replace(**{n: r * factor for n, r in rates._asdict().items() if r is not None})


def prices(model: Any, provider: str, day: datetime, terms: Terms) -> tuple[Any, Assumed] | None:
    """The library's prices of a model on a day for these terms; None where none are known for them."""
    context = _context(terms)
    standard = model.get_prices(day)
    for key, value in context.items():
        listed = [v for v in model.price_variants or () if v.when.get(key) == value]
        if not listed:
            half = (
                (key, value) == ("processing", "batch") and provider in _BATCH_IS_HALF and len(context) == 1
            )
            return (standard, Assumed(_HALF)) if half else None
        if all(v.constraint is not None and not v.constraint.active(day) for v in listed):
            return _since(model, context, standard, listed) if len(context) == 1 else None
    return (model.get_prices(day, context) if context else standard), Assumed()


def _context(terms: Terms) -> dict[str, str]:
    """As the library names what it goes by."""
    made = {}
    tier = terms.service_tier.lower() if terms.service_tier is not None else None
    if tier is not None:
        made["processing" if tier == "batch" else "service_tier"] = tier
    if terms.speed is not None:
        made["speed"] = terms.speed.lower()
    return made


def _since(
    model: Any, context: dict[str, str], standard: Any, listed: list[Any]
) -> tuple[Any, Assumed] | None:
    """The prices of a day before a tier's were looked up: the same multiple of the usual price as then.

    The library lists tiers from the day on which somebody read them, not from the day on which they began.
    """
    start = min(v.constraint.start_date for v in listed)
    day = datetime.fromisoformat(f"{start.isoformat()}T12:00:00+00:00")
    then, usual = model.get_prices(day, context), model.get_prices(day)
    factor = _base(then.input_mtok) / _base(usual.input_mtok)
    # Models of embeddings have no price of output.
    before, after = ((_base(p.output_mtok) if p.output_mtok is not None else 0) for p in (usual, then))
    if after != before * factor:
        return None
    ((_, name),) = context.items()
    return standard, Assumed(
        factor, (f"{name} is listed from {start} on: {factor:f} times the usual price, as then",)
    )


def _base(price: Any) -> Decimal:
    return Decimal(getattr(price, "base", price))

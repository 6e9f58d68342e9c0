"""What a model's tokens cost: the user's own prices, else those in force at the time, else the table's.

`genai-prices` knows prices by date and by a request's size; the packaged table knows more providers.  Both
are read offline.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ctxctl.model.money import Rates
from ctxctl.tokens.catalogue.find import Known, find
from ctxctl.tokens.catalogue.table import Prices

_DAY: Final = 10
"""Characters of a date at the head of a time."""
_WRITES_AS_INPUT: Final = frozenset(("openai", "azure"))
"""Providers that bill what goes into a cache like any other input."""
_HOUR_TIMES_INPUT: Final = 2
"""What Anthropic bills for a token that the cache keeps for an hour, in tokens of plain input; five minutes
cost 1.25, a read 0.1 (platform.claude.com, Prompt caching, Pricing)."""
_DATED: Final = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "cache_write_1h_mtok")
_NAMES: Final = {"amazon-bedrock": "aws", "xai": "x-ai", "fireworks-ai": "fireworks"}
"""Providers that the library calls otherwise."""


class Priced(NamedTuple):
    """Rates and where they are from."""

    rates: Rates
    source: str
    """`settings`, `genai-prices`, `models.dev`; empty: nobody knows."""
    note: str
    """Whose prices they are, and what was assumed; one sentence."""


NOBODY = Priced(Rates(), "", "no price is known")


class RateBook:
    """Rates by model, provider, time and size of a request; each looked up once."""

    def __init__(self, own: dict[str, dict[str, Any]] | None = None, provider: str | None = None) -> None:
        self._own = own or {}
        self._provider = provider
        self._known: dict[tuple[str, str | None], Known] = {}
        self._found: dict[tuple[str, str | None, str], _Book] = {}

    def rates(self, model: str | None, provider: str | None, time: str | None, size: int) -> Priced:
        """The rates of one request.

        Args:
            model: As the trace names it.
            provider: Who billed it, as the trace says.
            time: When, RFC 3339; None: nobody knows, and prices are those of today.
            size: Tokens of the whole request, for models that cost more above some size.
        """
        if model is None:
            return NOBODY
        provider = self._provider or provider
        key = (model, provider, (time or "")[:_DAY])
        book = self._found.get(key)
        if book is None:
            book = self._found[key] = _look_up(self._model(model, provider), key[2])
        return book.of(size)

    def _model(self, model: str, provider: str | None) -> Known:
        known = self._known.get((model, provider))
        if known is None:
            known = self._known[model, provider] = find(model, provider, own=self._own)
        return known


class _Book(NamedTuple):
    """Prices of one model on one day, by size of the request."""

    known: Known
    dated: Any
    """As the library has them; None where it does not know the model."""

    def of(self, size: int) -> Priced:
        known = self.known
        if self.dated is not None:
            rates = Rates(*(_one(getattr(self.dated, name, None), size) for name in _DATED))
            if rates.cache_write is None and known.provider in _WRITES_AS_INPUT:
                rates = rates._replace(cache_write=rates.input)
            return Priced(_with_hour(known, rates), "genai-prices", known.note)
        rates = _rates(known, size)
        if rates == Rates():
            return NOBODY._replace(note=f"no price is known: {known.note}")
        source = "settings" if known.how == "settings" else "models.dev"
        return Priced(_with_hour(known, rates), source, known.note)


def _with_hour(known: Known, rates: Rates) -> Rates:
    """The rates with that of an hour in the cache, where it is documented and no price for it is listed."""
    if rates.cache_write_1h is not None or rates.input is None:
        return rates
    if known.provider != "anthropic" and "claude" not in (known.model or known.asked).lower():
        return rates
    return rates._replace(cache_write_1h=rates.input * _HOUR_TIMES_INPUT)


def _look_up(known: Known, day: str) -> _Book:
    return _Book(known, None if known.how == "settings" else _dated(known, day))


def _rates(known: Known, size: int) -> Rates:
    prices: Prices = known.prices
    for tier in known.tiers:
        if size > tier.above:
            prices = tier.prices
    return Rates(*(None if price is None else Decimal(str(price)) for price in prices))


@lru_cache(maxsize=1)
def _library() -> Any:
    import genai_prices

    return genai_prices


def _dated(known: Known, day: str) -> Any:
    """The library's prices on a day; None where it does not know the model with this provider."""
    if known.provider is None or known.model is None or known.prices == Prices():
        return None
    library = _library()
    try:
        when = datetime.fromisoformat(f"{day}T12:00:00+00:00") if day else None
    except ValueError:
        when = None
    provider = _NAMES.get(known.provider, known.provider)
    usage = library.Usage(input_tokens=1, output_tokens=1)
    try:
        found = library.calc_price(usage, known.model, provider_id=provider, genai_request_timestamp=when)
    except LookupError:
        return None
    return found.model_price if found.model_price.input_mtok is not None else None


def _one(price: Any, size: int) -> Decimal | None:
    """A price, or of prices by size the one for this size."""
    tiers = getattr(price, "tiers", None)
    if tiers is None:
        return price if isinstance(price, Decimal) else None
    base: Decimal = price.base
    for tier in tiers:
        if size > tier.start:
            base = tier.price
    return base

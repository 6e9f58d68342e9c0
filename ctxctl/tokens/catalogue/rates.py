"""What a model's tokens cost: the user's own prices, else those in force at the time, else the table's.

`genai-prices` knows prices by date, by a request's size and by how it was served (batch, flex, priority,
fast); the packaged table knows more providers.  Both are read offline.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NamedTuple

from ctxctl.model.money import Rates
from ctxctl.model.terms import PLAIN, Terms
from ctxctl.tokens.catalogue import variants
from ctxctl.tokens.catalogue.find import KnownModel, find_model
from ctxctl.tokens.catalogue.names import MAKERS, spellings
from ctxctl.tokens.catalogue.packed import packed_library
from ctxctl.tokens.catalogue.table import Prices, load_table

_DAY: Final = 10
"""Characters of a date at the head of a time."""
_WRITES_AS_INPUT: Final = frozenset(("openai", "azure"))
"""Providers that bill what goes into a cache like any other input, where no price for it is listed."""
_HOUR_TIMES_INPUT: Final = 2
"""What Anthropic bills for a token that the cache keeps for an hour, in tokens of plain input; five minutes
cost 1.25, a read 0.1 (platform.claude.com, Prompt caching, Pricing)."""
_DATED: Final = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "audio_input": "input_audio_mtok",
    "audio_cached": "cache_audio_read_mtok",
    "audio_output": "output_audio_mtok",
    "image_input": "input_image_mtok",
    "image_output": "output_image_mtok",
    "reasoning": "output_reasoning_mtok",
}
"""Our rates, as the library calls them."""
_UNITS: Final = {"web_search": "web_searches_kcount", "file_search": "storage_searches_kcount"}
"""Calls of tools, as the library prices a thousand of them."""
_FREE: Final = frozenset((("anthropic", "web_fetch"),))
"""What a provider documents as free beside its tokens (platform.claude.com, Web fetch tool, Usage)."""
_NAMES: Final = {"amazon-bedrock": "aws", "xai": "x-ai", "fireworks-ai": "fireworks"}
"""Providers that the library calls otherwise."""


_GATEWAY: Final = "litellm"
"""Serves models of other providers, whose name stands in front of theirs; the library itself knows how."""


class Priced(NamedTuple):
    """Rates and where they are from."""

    rates: Rates
    source: str
    """`settings`, `genai-prices`, `models.dev`, `litellm`; empty: nobody knows."""
    note: str
    """Whose prices they are, and what was assumed; one sentence."""
    units: Mapping[str, Decimal] = {}
    """US dollars for one call of a tool of the provider, by tool."""
    assumed: tuple[str, ...] = ()
    """What was assumed of how the request was served."""


NOBODY = Priced(Rates(), "", "no price is known")


class RateBook:
    """Rates by model, provider, time, size and terms of a request; each looked up once.

    Args:
        own: The user's table of models; goes before everything else.
        provider: Whose prices, instead of those of the provider that a trace names.
        as_of: YYYY-MM-DD, the day of requests without a time; default: the catalogue's.  Never today.
    """

    def __init__(
        self,
        own: dict[str, dict[str, Any]] | None = None,
        provider: str | None = None,
        as_of: str | None = None,
    ) -> None:
        self._own = own or {}
        self._provider = provider
        self._as_of = as_of
        self._known: dict[tuple[str, str | None], KnownModel] = {}
        self._found: dict[tuple[str, str | None, str], _Book] = {}

    @property
    def as_of(self) -> str:
        """YYYY-MM-DD: whose day's prices a request without a time has."""
        return self._as_of or load_table().date

    @property
    def stated(self) -> bool:
        """Whether somebody asked for that day."""
        return self._as_of is not None

    def rates(
        self, model: str | None, provider: str | None, time: str | None, size: int, terms: Terms = PLAIN
    ) -> Priced:
        """The rates of one request.

        Args:
            model: As the trace names it.
            provider: Who billed it, as the trace says.
            time: When, RFC 3339; None: nobody knows, and prices are those of `as_of`.
            size: Tokens of the whole request, for models that cost more above some size.
            terms: How it was served.
        """
        if model is None:
            return NOBODY
        provider = self._provider or provider
        key = (model, provider, (time or self.as_of)[:_DAY])
        book = self._found.get(key)
        if book is None:
            book = self._found[key] = _look_up(self._model(model, provider), key[2])
        served = (terms.service_tier, terms.speed, terms.inference_geo)
        found = book.found.get(served)
        if found is None:
            found = book.found[served] = (book.borders(terms), {})
        borders, made = found
        at = bisect_left(borders, size)
        if at not in made:
            made[at] = book.of(size, terms)
        return made[at]

    def _model(self, model: str, provider: str | None) -> KnownModel:
        known = self._known.get((model, provider))
        if known is None:
            known = self._known[model, provider] = find_model(model, provider, own=self._own)
        return known


class _Dated(NamedTuple):
    """What the library has of a model."""

    model: Any
    provider: str
    """As the catalogue calls it."""
    day: datetime


class _Book(NamedTuple):
    """Prices of one model on one day, by size and terms of the request."""

    known: KnownModel
    dated: _Dated | None
    """None where the library does not know the model."""
    found: dict[tuple[str | None, ...], tuple[list[int], dict[int, Priced]]]
    """By how requests are served: `borders`, and what was found by how many of them a size lies above."""

    def borders(self, terms: Terms) -> list[int]:
        """The sizes above which something costs another price, in order."""
        found = {tier.above for tier in self.known.tiers}
        dated = self.dated
        priced = variants.prices(dated.model, dated.provider, dated.day, terms) if dated is not None else None
        if priced is not None:
            for name in (*_DATED.values(), *_UNITS.values()):
                found.update(
                    tier.start for tier in getattr(getattr(priced[0], name, None), "tiers", None) or ()
                )
        return sorted(found)

    def of(self, size: int, terms: Terms) -> Priced:
        if self.dated is not None:
            return self._of_library(self.dated, size, terms)
        known = self.known
        rates = _rates(known, size)
        if rates == Rates():
            return NOBODY._replace(note=f"no price is known: {known.note}")
        if known.how == "settings":
            return Priced(_with_hour(known, rates), "settings", known.note)
        if terms.service_tier is not None or terms.speed is not None:
            return NOBODY._replace(note=f"no price is known for {variants.served(terms)}")
        source = known.source.partition(",")[0] or "models.dev"
        rates = variants.placed(_with_hour(known, rates), known.provider, terms)
        return Priced(rates, source, known.note, {})

    def _of_library(self, dated: _Dated, size: int, terms: Terms) -> Priced:
        known = self.known
        found = variants.prices(dated.model, dated.provider, dated.day, terms)
        if found is None:
            return NOBODY._replace(note=f"no price is known for {variants.served(terms)}")
        prices, assumed = found
        rates = Rates(**{ours: _one(getattr(prices, theirs, None), size) for ours, theirs in _DATED.items()})
        rates = rates._replace(**{n: r * assumed.factor for n, r in rates._asdict().items() if r is not None})
        if rates.cache_write is None and dated.provider in _WRITES_AS_INPUT:
            rates = rates._replace(cache_write=rates.input)
        rates = _with_hour(known, rates)
        if terms.service_tier is None and terms.speed is None:
            rates = _with_audio(known, rates)
        rates = variants.placed(rates, dated.provider, terms)
        units = {
            name: price / 1000
            for name, key in _UNITS.items()
            if (price := _one(getattr(prices, key, None), size))
        }
        units |= {name: Decimal(0) for provider, name in _FREE if provider == dated.provider}
        note = known.note if known.prices != Prices() else f"As {dated.provider} serves it, by genai-prices."
        return Priced(rates, "genai-prices", note, units, assumed.notes)


def _with_hour(known: KnownModel, rates: Rates) -> Rates:
    """The rates with that of an hour in the cache, where it is documented and no price for it is listed."""
    if rates.cache_write_1h is not None or rates.input is None:
        return rates
    if known.provider != "anthropic" and "claude" not in (known.model or known.asked).lower():
        return rates
    return rates._replace(cache_write_1h=rates.input * _HOUR_TIMES_INPUT)


def _with_audio(known: KnownModel, rates: Rates) -> Rates:
    """The rates with the table's of audio, where the library has none."""
    listed = {name: getattr(known.prices, name) for name in ("audio_input", "audio_output")}
    listed_prices = {
        n: Decimal(str(p)) for n, p in listed.items() if p is not None and getattr(rates, n) is None
    }
    return rates._replace(**listed_prices)


def _look_up(known: KnownModel, day: str) -> _Book:
    return _Book(known, None if known.how == "settings" else _dated(known, day), {})


def _rates(known: KnownModel, size: int) -> Rates:
    prices: Prices = known.prices
    for tier in known.tiers:
        if size > tier.above:
            prices = tier.prices
    listed_prices = {
        name: None if price is None else Decimal(str(price)) for name, price in prices._asdict().items()
    }
    return Rates(**listed_prices)


@lru_cache(maxsize=1)
def _library() -> Any:
    import genai_prices

    return genai_prices


def _dated(known: KnownModel, day: str) -> _Dated | None:
    """What the library has of the model with this provider; where the table has no price, with its maker."""
    if known.tuned:
        return None
    try:
        when = datetime.fromisoformat(f"{day}T12:00:00+00:00")
    except ValueError:
        when = datetime.fromisoformat(f"{load_table().date}T12:00:00+00:00")
    if known.provider is not None and known.model is not None and known.prices != Prices():
        found = _listed(known.model, known.provider)
        return None if found is None else _Dated(found, known.provider, when)
    if known.provider is not None and known.provider not in MAKERS:
        return None
    for spelling in spellings(known.asked):
        for maker in MAKERS if known.provider is None else (known.provider,):
            found = _listed(spelling.name, maker)
            if found is not None:
                return _Dated(found, maker, when)
    return None


@lru_cache(maxsize=512)
def _listed(model: str, provider: str) -> Any:
    """The library's record of a model with one provider; None where it has none with a price of input."""
    packed = packed_library()
    if packed is not None and provider.lower() != _GATEWAY:
        return packed.listed(model, _NAMES.get(provider, provider))
    library = _library()
    usage = library.Usage(input_tokens=1, output_tokens=1)
    try:
        found = library.calc_price(
            usage,
            model,
            provider_id=_NAMES.get(provider, provider),
            genai_request_timestamp=datetime.fromisoformat(f"{load_table().date}T12:00:00+00:00"),
        )
    except (LookupError, ValueError):
        return None
    return found.model if found.model_price.input_mtok is not None else None


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

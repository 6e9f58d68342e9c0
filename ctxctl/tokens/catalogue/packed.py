"""What `genai-prices` knows, read without importing it: pydantic and an HTTP client come with it.

Packed by ``scripts/build_prices.py`` from one version of the library; with any other version installed the
library itself is asked (`packed_library` is None then).  A test holds the answers of both against each other,
model by model.  Names are the library's, so that what is found here and what it finds are used alike.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from ctxctl.tokens.catalogue.table import DATA as _TABLE
from ctxctl.typed_decoding import from_json

DATA: Final = _TABLE.with_name("genai_prices.json.z")
_COMPACT_DAY: Final = r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)"
"""A day as LiteLLM and OpenRouter write it behind a model's name; the library has it with dashes."""
_Match = dict[str, Any]


class Tier(msgspec.Struct, frozen=True):
    """A price above some size of the whole request."""

    start: int
    price: Decimal


class TieredPrice(msgspec.Struct, frozen=True):
    """A price by the size of the whole request."""

    base: Decimal
    tiers: tuple[Tier, ...]


_Price = Decimal | TieredPrice | None


class LibraryPrices(msgspec.Struct, frozen=True):
    """US dollars for a million tokens, or for a thousand calls; None where nothing is listed."""

    input_mtok: _Price = None
    output_mtok: _Price = None
    cache_read_mtok: _Price = None
    cache_write_mtok: _Price = None
    cache_write_1h_mtok: _Price = None
    input_audio_mtok: _Price = None
    cache_audio_read_mtok: _Price = None
    output_audio_mtok: _Price = None
    input_image_mtok: _Price = None
    output_image_mtok: _Price = None
    output_reasoning_mtok: _Price = None
    web_searches_kcount: _Price = None
    storage_searches_kcount: _Price = None


class Constraint(msgspec.Struct, frozen=True):
    """When a price applies: from a day on, or daily between two times of UTC."""

    start_date: date | None = None
    start_time: time | None = None
    end_time: time | None = None

    def active(self, when: datetime) -> bool:
        """Whether it does at a time, which has a zone."""
        when = when.astimezone(UTC)
        if self.start_date is not None:
            return when.date() >= self.start_date
        start, end = _in_utc(self.start_time), _in_utc(self.end_time)
        if end < start:
            return when.timetz() >= start or when.timetz() < end
        return start <= when.timetz() < end


def _in_utc(at: time | None) -> time:
    assert at is not None
    if at.tzinfo is None:
        return at.replace(tzinfo=UTC)
    return datetime.combine(date(1970, 1, 1), at).astimezone(UTC).timetz()


class DatedPrices(msgspec.Struct, frozen=True):
    """Prices and when they apply; None: always."""

    prices: LibraryPrices
    constraint: Constraint | None = None


class PriceVariant(msgspec.Struct, frozen=True):
    """Prices of requests that were served in a way of its own."""

    when: dict[str, str]
    prices: LibraryPrices
    constraint: Constraint | None = None


class LibraryModel(msgspec.Struct, frozen=True):
    """A model with one provider."""

    match: _Match
    listed: bool
    """Whether a request of text can be priced."""
    prices: tuple[DatedPrices, ...]
    price_variants: tuple[PriceVariant, ...]

    def get_prices(self, when: datetime, context: Mapping[str, str] | None = None) -> LibraryPrices:
        """The prices at a time: the last that apply, else the first; each of the first variant to have it."""
        standard = self.prices[0].prices
        for one in reversed(self.prices):
            if one.constraint is None or one.constraint.active(when):
                standard = one.prices
                break
        if not context:
            return standard
        others: dict[str, Any] = {}
        for variant in self.price_variants:
            if variant.constraint is not None and not variant.constraint.active(when):
                continue
            if all(context.get(key) == value for key, value in variant.when.items()):
                listed = msgspec.structs.asdict(variant.prices)
                others = {name: price for name, price in listed.items() if price is not None} | others
        return msgspec.structs.replace(standard, **others)


class _Provider(msgspec.Struct):
    id: str
    match: _Match | None
    fallbacks: tuple[str, ...]
    models: msgspec.Raw
    """Decoded when it is asked for: one provider of fifty mostly is."""


class Bill(msgspec.Struct, frozen=True):
    """What the numbers of a bill mean, in responses of one flavour of a provider's API."""

    provider: str
    flavour: str
    parts: tuple[tuple[tuple[str, ...], str, bool], ...]
    """The path to a number, what it is a part of, and whether it must be there."""

    def read(self, bill: Mapping[str, Any]) -> dict[str, int] | None:
        """The numbers by what they are of; None where one is missing that must be there, or all are.

        Args:
            bill: Numbers by name, or by name within a name.
        """
        found: dict[str, int] = {}
        for path, whole, needed in self.parts:
            value: Any = bill
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, int):
                found[whole] = found.get(whole, 0) + value
            elif needed:
                return None
        return found or None


class _Packed(msgspec.Struct):
    version: str
    bills: tuple[Bill, ...]
    providers: tuple[_Provider, ...]


class PackedLibrary:
    """The library's providers and models, found by the library's rules."""

    def __init__(self, packed: _Packed) -> None:
        self.version = packed.version
        self.bills = {(bill.provider, bill.flavour): bill for bill in packed.bills}
        self._providers = packed.providers
        self._models: dict[str, tuple[LibraryModel, ...]] = {}

    def listed(self, model: str, provider: str) -> LibraryModel | None:
        """A model of a provider, or of one whose models it serves; None where no request can be priced."""
        found = self._provider(provider.lower().strip())
        if found is None:
            return None
        name = model.lower()
        made = self._found(name, found)
        if made is None and (other := re.sub(_COMPACT_DAY, _dashed, name)) != name:
            made = self._found(other, found)
        return made if made is not None and made.listed else None

    def _provider(self, name: str) -> _Provider | None:
        for provider in self._providers:
            if provider.id == name:
                return provider
        matching = (one for one in self._providers if one.match is not None and matches(one.match, name))
        return next(matching, None)

    def _found(self, name: str, provider: _Provider) -> LibraryModel | None:
        others = (one for its in provider.fallbacks for one in self._providers if one.id == its)
        for one in (provider, *others):
            for model in self._of(one):
                if matches(model.match, name):
                    return model
        return None

    def _of(self, provider: _Provider) -> tuple[LibraryModel, ...]:
        models = self._models.get(provider.id)
        if models is None:
            models = from_json(provider.models, tuple[LibraryModel, ...])
            self._models[provider.id] = models
        return models


def _dashed(found: re.Match[str]) -> str:
    year, month, day = map(int, found.groups())
    try:
        date(year, month, day)
    except ValueError:
        return found[0]
    return f"-{year:04d}-{month:02d}-{day:02d}"


def matches(match: _Match, text: str) -> bool:
    """Whether a text, in lower case, is what one of the library's clauses asks for."""
    ((how, asked),) = match.items()
    if how in ("or", "and"):
        return (any if how == "or" else all)(matches(one, text) for one in asked)
    if how == "regex":
        return re.search(asked, text) is not None
    asked = str(asked).lower()
    if how == "equals":
        return text == asked
    if how == "contains":
        return asked in text
    return text.startswith(asked) if how == "starts_with" else text.endswith(asked)


@lru_cache(maxsize=1)
def packed_library() -> PackedLibrary | None:
    """The packed library; None where the installed one is another version."""
    packed = PackedLibrary(from_json(zlib.decompress(DATA.read_bytes()), _Packed))
    return packed if _is_installed(packed.version) else None


def _is_installed(version: str) -> bool:
    """Whether the library is there in this version, by its metadata's folder: to read it takes longer."""
    found = find_spec("genai_prices")
    if found is None or found.origin is None:
        return False
    return (Path(found.origin).parent.parent / f"genai_prices-{version}.dist-info").is_dir()

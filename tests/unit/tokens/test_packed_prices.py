"""What is packed of genai-prices answers as the library does: every model and bill, on every kind of day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import genai_prices
import pytest
from genai_prices.data import providers
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.terms import Terms
from ctxctl.providers.dialects import base
from ctxctl.tokens.catalogue import packed, rates, variants
from ctxctl.tokens.catalogue.packed import LibraryPrices, packed_library
from ctxctl.tokens.catalogue.rates import RateBook
from ctxctl.tokens.catalogue.table import load_table
from scripts.build_prices import BILLS
from scripts.build_prices import packed as built

NAMES = [provider.id for provider in providers]


def by_its_size(provider: str) -> Any:
    """A parameter; the one that serves everybody's models takes as long as all the others."""
    return pytest.param(provider, marks=pytest.mark.slow) if provider == "openrouter" else provider


@cache
def library() -> packed.PackedLibrary:
    found = packed_library()
    assert found is not None
    return found


def test_the_packed_file_is_of_the_version_that_is_installed() -> None:
    assert packed.DATA.read_bytes() == built(load_table().date), "make prices"


def test_all_that_is_asked_of_a_price_is_packed() -> None:
    assert {*rates._DATED.values(), *rates._UNITS.values()} == set(LibraryPrices.__struct_fields__)
    assert {(provider, flavour) for provider, flavour, _ in base._RULES.values()} == set(BILLS)


def words(clause: Any) -> Iterator[str]:
    """Texts that a clause may fit."""
    for value in vars(clause).values() if clause is not None else ():
        if isinstance(value, str):
            yield from (value, f"{value}-20260102", f"x-{value}", value.upper(), f"{value}-20251399")
        else:
            for one in value:
                yield from words(one)


@cache
def spelled(provider: str) -> list[str]:
    """What models of a provider, and of those whose models it serves, may be called."""
    (found,) = (one for one in providers if one.id == provider)
    makers = [found, *(one for one in providers if one.id in (found.fallback_model_providers or ()))]
    names = ["", "no-such-model", "claude-sonnet-4-5-20250929"]
    for one in makers:
        for model in one.models:
            names += [model.id, *words(model.match)]
    return list(dict.fromkeys(names))


def by_library(model: str, provider: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rates, "packed_library", lambda: None)
        return rates._listed.__wrapped__(model, provider)


@pytest.mark.parametrize("provider", [by_its_size(name) for name in NAMES])
def test_every_name_finds_the_same_model_or_none(provider: str) -> None:
    (found,) = (one for one in providers if one.id == provider)
    makers = [one for one in providers if one.id in {provider, *(found.fallback_model_providers or ())}]
    places = {id(model): (maker.id, at) for maker in makers for at, model in enumerate(maker.models)}
    ours = {
        id(model): (maker.id, at)
        for maker in library()._providers
        for at, model in enumerate(library()._of(maker) if maker.id in {one.id for one in makers} else ())
    }
    for name in spelled(provider):
        theirs, mine = by_library(name, provider), library().listed(name, provider)
        assert (theirs is None) == (mine is None), name
        assert theirs is None or places[id(theirs)] == ours[id(mine)], name


@pytest.mark.parametrize(
    "name",
    [*NAMES, "Anthropic ", "vertex", "together-ai", "huggingface-groq-x", "bedrock", "gemini", "nobody", ""],
)  # fmt: skip
def test_every_provider_is_found_by_the_names_it_goes_by(name: str) -> None:
    from genai_prices.data_snapshot import find_provider_by_id

    theirs, mine = find_provider_by_id(providers, name), library()._provider(name.lower().strip())
    assert (theirs and theirs.id) == (mine and mine.id)


def days(model: Any) -> list[datetime]:
    """The days around those on which a model's prices change, and hours around those of a day."""
    noon = datetime.fromisoformat("2026-07-02T12:00:00+00:00")
    found = {noon}
    dated = model.prices if isinstance(model.prices, list) else []
    for one in (*dated, *(model.price_variants or ())):
        start = getattr(one.constraint, "start_date", None)
        if start is not None:
            then = datetime.fromisoformat(f"{start.isoformat()}T12:00:00+00:00")
            found |= {then - timedelta(days=1), then, then + timedelta(hours=12)}
        elif one.constraint is not None:
            found |= {noon.replace(hour=hour, minute=minute) for hour in range(24) for minute in (0, 29, 30)}
    return sorted(found)


def plain(prices: Any) -> dict[str, Any]:
    """Prices by name, each with its tiers."""
    made = {}
    for name in LibraryPrices.__struct_fields__:
        price = getattr(prices, name)
        tiers = [(tier.start, tier.price) for tier in getattr(price, "tiers", ())]
        made[name] = (getattr(price, "base", price), tiers)
    return made


@pytest.mark.parametrize("provider", NAMES)
def test_every_model_costs_the_same_at_any_time_however_it_was_served(provider: str) -> None:
    (theirs,) = (one for one in providers if one.id == provider)
    (found,) = (one for one in library()._providers if one.id == provider)
    for model, mine in zip(theirs.models, library()._of(found), strict=True):
        contexts: list[Any] = [None, {"service_tier": "none"}, {"processing": "batch", "speed": "fast"}]
        contexts += [variant.when for variant in model.price_variants or ()]
        for day in days(model):
            for context in contexts:
                assert plain(mine.get_prices(day, context)) == plain(model.get_prices(day, context)), model.id
            for terms in (Terms(service_tier="flex"), Terms(service_tier="batch"), Terms(speed="fast")):
                if not mine.listed:
                    continue
                ours, known = (variants.prices(one, provider, day, terms) for one in (mine, model))
                assert (ours is None) == (known is None)
                assert ours is None or known is None or ours[1] == known[1]


@pytest.mark.parametrize("dialect", base._RULES)
def test_every_bill_is_read_alike(dialect: str) -> None:
    provider, flavour, field = base._RULES[dialect]
    paths = [path for path, _, _ in library().bills[provider, flavour].parts]
    outer, inner = sorted({path[0] for path in paths}), sorted({path[-1] for path in paths})
    numbers = st.integers(0, 2**53 - 1) | st.booleans().map(int)
    inside = st.dictionaries(st.sampled_from([*inner, "other"]), numbers, max_size=4)

    @given(st.dictionaries(st.sampled_from([*outer, "other"]), numbers | inside))
    def check(bill: dict[str, Any]) -> None:
        counted = base._counts(dialect, bill)
        with pytest.MonkeyPatch.context() as patch:
            ours = base._extracted(counted, provider, flavour, field)
            patch.setattr(packed, "packed_library", lambda: None)
            assert ours == base._extracted(counted, provider, flavour, field)

    check()


def test_of_another_version_the_library_itself_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    calc = genai_prices.calc_price

    def counting(*given: Any, **named: Any) -> Any:
        asked.append(given[1])
        return calc(*given, **named)

    monkeypatch.setattr(genai_prices, "calc_price", counting)
    monkeypatch.setattr(packed, "_is_installed", lambda version: False)
    rates._listed.cache_clear()
    packed_library.cache_clear()
    try:
        theirs = RateBook().rates("claude-sonnet-4-5", "anthropic", "2026-07-02T00:00:00Z", 1)
    finally:
        monkeypatch.undo()
        rates._listed.cache_clear()
        packed_library.cache_clear()
    assert asked
    assert theirs == RateBook().rates("claude-sonnet-4-5", "anthropic", "2026-07-02T00:00:00Z", 1)


def test_a_version_is_told_by_its_metadata() -> None:
    assert packed._is_installed(library().version)
    assert not packed._is_installed("0.0.1")

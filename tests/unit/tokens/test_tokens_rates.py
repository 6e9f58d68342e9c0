"""What a model's tokens cost, by its provider, the day, the request's size and how it was served."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ctxctl.model.terms import Terms
from ctxctl.tokens.catalogue.rates import RateBook

D = Decimal


def test_a_batch_costs_half_and_a_tier_what_is_listed_for_it() -> None:
    book = RateBook()

    def of(model: str, provider: str, day: str, **terms: str) -> tuple[D | None, D | None]:
        rates = book.rates(model, provider, day, 1000, Terms(**terms)).rates  # type: ignore[arg-type]
        return rates.input, rates.output

    assert of("claude-opus-4-5", "anthropic", "2026-11-01") == (D(5), D(25))
    assert of("claude-opus-4-5", "anthropic", "2026-11-01", service_tier="batch") == (D("2.5"), D("12.5"))
    # Before the day on which somebody read them: the same multiple of the usual price.
    assert of("claude-opus-4-5", "anthropic", "2026-02-01", service_tier="batch") == (D("2.5"), D("12.5"))
    assert of("claude-opus-4-0", "anthropic", "2025-09-01", service_tier="batch") == (D("7.5"), D("37.5"))
    assert of("gpt-5", "openai", "2026-11-01", service_tier="flex") == (D("0.625"), D(5))
    assert of("gpt-5", "openai", "2026-11-01", service_tier="priority") == (D("2.5"), D(20))
    assert of("claude-opus-5-5", "anthropic", "2026-11-01", speed="fast") == (D(8), D(40))
    assert of("claude-opus-5-5", "anthropic", "2026-11-01", inference_geo="us") == (D("4.4"), D(22))
    assert of("claude-opus-5-5", "anthropic", "2026-11-01", inference_geo="global") == (D(4), D(20))
    # Nobody lists these: no price, and not the usual one.
    assert of("claude-opus-5-5", "anthropic", "2026-11-01", service_tier="priority") == (None, None)
    assert of("claude-haiku-4-5", "anthropic", "2026-11-01", speed="fast") == (None, None)
    told = book.rates("gpt-5", "openai", "2026-02-01", 1000, Terms(service_tier="flex"))
    assert told.assumed == ("flex is listed from 2026-10-12 on: 0.5 times the usual price, as then",)


def test_a_batch_of_a_model_without_answers_is_priced_before_the_day_it_was_listed() -> None:
    terms = Terms(service_tier="batch")
    now = RateBook().rates("gemini-embedding-2", "google", "2026-11-01", 1000, terms)
    then = RateBook().rates("gemini-embedding-2", "google", "2025-11-01", 1000, terms)
    assert now.rates.input is not None
    assert (then.rates.input, then.rates.output) == (now.rates.input, None)
    assert then.assumed != now.assumed == ()


def test_audio_costs_what_either_source_lists() -> None:
    book = RateBook()
    of_library = book.rates("gemini-2.5-flash", "google", None, 100).rates
    assert (of_library.audio_input, of_library.input) == (D(1), D("0.3"))
    of_table = book.rates("gpt-4o-audio-preview-2024-12-17", "openai", None, 100).rates
    assert (of_table.audio_input, of_table.audio_output) == (D(40), D(80))


def test_prices_by_date_and_by_size() -> None:
    book = RateBook()
    assert book.rates("gpt-5.6-sol", "openai", "2026-08-20T10:00:00Z", 10).rates.input == 5
    assert book.rates("gpt-5.6-sol", "openai", "2026-08-21T10:00:00Z", 10).rates.input == 4
    assert book.rates("claude-sonnet-4-5", "anthropic", "2026-01-01", 200_001).rates.output == D("22.5")
    assert book.rates("claude-haiku-5-5", "anthropic", "2026-11-01", 100_001).rates.input == D("0.5")


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (Terms(service_tier="flex"), "service tier 'flex'"),
        (Terms(speed="fast"), "speed 'fast'"),
        (Terms(service_tier="priority", speed="slow"), "service tier 'priority' and speed 'slow'"),
    ],
)
@pytest.mark.parametrize(
    ("model", "provider"), [("claude-haiku-4-5", "anthropic"), ("anthropic/claude-sonnet-4-6", "impossibl")]
)
def test_what_is_served_as_nobody_lists_it_has_no_price_and_says_why(
    model: str, provider: str, terms: Terms, words: str
) -> None:
    book = RateBook()
    assert book.rates(model, provider, "2026-11-01", 100).rates.input is not None
    found = book.rates(model, provider, "2026-11-01", 100, terms)
    assert (found.rates.input, found.rates.output, found.source) == (None, None, "")
    assert found.note == f"no price is known for {words}"


def test_only_the_maker_asks_more_for_inference_in_one_country() -> None:
    book, there = RateBook(), Terms(inference_geo="US")
    made = book.rates("claude-sonnet-4-6", "anthropic", "2026-11-01", 100, there)
    assert (made.rates.input, made.rates.output, made.assumed) == (D("3.3"), D("16.5"), ())
    resold = book.rates("anthropic/claude-sonnet-4-6", "impossibl", "2026-11-01", 100, there)
    assert (resold.rates.input, resold.source) == (D(3), "models.dev")


def test_a_batch_that_is_also_fast_is_not_half_of_anything() -> None:
    both = Terms(service_tier="batch", speed="fast")
    assert RateBook().rates("claude-haiku-4-5", "anthropic", "2026-11-01", 100, both).rates.input is None
    batch = Terms(service_tier="batch")
    assert RateBook().rates("claude-haiku-4-5", "anthropic", "2026-11-01", 100, batch).rates.input == D("0.5")


def test_the_users_own_price_holds_however_it_was_served() -> None:
    book = RateBook({"mine": {"input_price": 7}})
    found = book.rates("mine", None, None, 100, Terms(service_tier="batch"))
    assert (found.rates.input, found.source) == (D(7), "settings")


def test_an_hour_in_the_cache_costs_twice_the_input_where_that_is_documented() -> None:
    prices = {"input_price": 10, "output_price": 50, "cache_read_price": 1, "cache_write_price": 12.5}
    book = RateBook({"mine": prices} | {"mine-too": {"like": "claude-opus-4-5", "input_price": 4}})
    rates = book.rates("claude-opus-4-5", "anthropic", "2026-05-04", 1000).rates
    assert (rates.cache_write, rates.cache_write_1h) == (D("6.25"), D(10))
    assert book.rates("mine-too", None, None, 1000).rates.cache_write_1h == 8
    for model, provider in (("gpt-5", "openai"), ("mine", None)):
        assert book.rates(model, provider, None, 1000).rates.cache_write_1h is None
    own = RateBook({"mine": {**prices, "cache_write_1h_price": 17}})
    assert own.rates("mine", None, None, 1000).rates.cache_write_1h == 17


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-sonnet-4-5", "anthropic"),
        ("gemini-2.5-pro", "google"),
        ("gpt-5.4", "openai"),
        ("qwen3-max", None),
    ],
)
def test_a_book_that_was_asked_before_says_what_a_new_one_says(model: str, provider: str | None) -> None:
    served = (Terms(), Terms(service_tier="batch"), Terms(inference_geo="us"), Terms(units={"web_search": 2}))
    sizes = (10, 300_000, 200_000, 200_001, 10, 32_000, 32_001, 128_000, 128_001, 272_000, 272_001, 2_000_000)
    book = RateBook()
    found = {}
    for size in sizes:
        for terms in served:
            asked = (model, provider, "2026-11-01", size, terms)
            found[size] = book.rates(*asked)
            assert found[size] == RateBook().rates(*asked)
    if model == "claude-sonnet-4-5":
        assert found[200_000] != found[200_001] == found[300_000]

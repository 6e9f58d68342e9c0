"""The catalogue of models: how names are read, whose limits are given, and what is not known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.tokens.catalogue.find import find_model, near_names
from ctxctl.tokens.catalogue.names import provider_of, spellings
from ctxctl.tokens.catalogue.table import Prices, Row, Table, Tier, load_table


def row(provider: str, model: str, window: int | None = 100, **more: object) -> Row:
    told = {"family": None, "max_input": None, "max_output": None, "tiers": (), "updated": None}
    told |= {"prices": Prices(1.0, 2.0), "deprecated": False} | more
    return Row(provider=provider, model=model, window=window, **told)  # type: ignore[arg-type]


TABLE = Table(
    "2026-01-01",
    [
        row("openai", "gpt-9", 400, max_input=300),
        row("azure", "gpt-9", 272),
        row("openai", "gpt-9-mini", 400),
        row("azure", "gpt-9-mini", 400),
        row("amazon-bedrock", "anthropic.claude-x-20250101-v1:0", 200),
        row("anthropic", "claude-x-20250101", 200),
        row("anthropic", "claude-y-4-5", 200),
        row("github-copilot", "claude-y-4.5", 128),
        row("openrouter", "anthropic/claude-y-4.5", 1000),
        row("google-vertex-anthropic", "claude-x@20250101", 200),
        row("groq", "llama-z", 64),
        row("cerebras", "llama-z", 32),
        row("groq", "one-host", 64),
        row("openai", "gpt-tiered", 400, tiers=(Tier(200, 2.0, 4.0, None, None),)),
    ],
)


@pytest.mark.parametrize(
    ("name", "provider", "window", "how"),
    [
        ("gpt-9", None, 400, "maker"),
        ("GPT-9", "azure", 272, "listed"),
        ("azure/gpt-9", None, 272, "listed"),
        ("azure_openai/gpt-9", None, 272, "listed"),
        ("gpt-9-mini", None, 400, "agreed"),
        ("gpt-9-2031-02-03", None, 400, "maker"),
        ("ft:gpt-9:acme::x1", None, 400, "listed"),
        ("us.anthropic.claude-x-20250101-v1:0", None, 200, "listed"),
        ("bedrock/anthropic.claude-x-20250101-v1:0", None, 200, "listed"),
        ("arn:aws:bedrock:x:1:inference-profile/eu.anthropic.claude-x-20250101-v1:0", None, 200, "listed"),
        ("claude-x@20250101", "vertex_ai", 200, "listed"),
        ("claude-y-4-5", "copilot", 128, "listed"),
        ("claude-y-4-5[1m]", "anthropic", 1_000_000, "listed"),
        ("anthropic/claude-y-4.5", None, 200, "maker"),
        ("anthropic/claude-y-4.5", "openrouter", 1000, "listed"),
        ("openrouter/anthropic/claude-y-4.5:free", None, 1000, "listed"),
        ("llama-z", None, None, "disputed"),
        ("llama-z", "groq", 64, "listed"),
        ("one-host", None, 64, "reseller"),
        ("gpt-9", "groq", 400, "maker"),
        ("nothing", None, None, "unknown"),
        ("", None, None, "unknown"),
        ("x" * 5000, None, None, "unknown"),
    ],
)  # fmt: skip
def test_a_name_and_what_is_known(name: str, provider: str | None, window: int | None, how: str) -> None:
    known = find_model(name, provider, table=TABLE)
    assert (known.window, known.how) == (window, how)
    assert known.sure == (how in ("listed", "agreed"))


def test_a_provider_that_does_not_list_it_is_said() -> None:
    assert find_model("gpt-9", "groq", table=TABLE).note.startswith(
        "groq does not list it. As openai serves it"
    )


def test_a_disputed_model_lists_who_says_what_and_claims_nothing() -> None:
    known = find_model("llama-z", table=TABLE)
    assert {(other.provider, other.window) for other in known.others} == {("groq", 64), ("cerebras", 32)}
    assert (known.provider, known.max_input, known.prices) == (None, None, Prices())


def test_a_fine_tune_has_no_price() -> None:
    assert find_model("ft:gpt-9:acme::x1", table=TABLE).prices == Prices()
    assert find_model("gpt-9", "openai", table=TABLE).prices == Prices(1.0, 2.0)


def test_the_address_names_the_provider() -> None:
    assert find_model("gpt-9", url="https://acme.openai.azure.com/openai/x", table=TABLE).window == 272
    assert provider_of(None, "https://api.openai.com.evil.example/v1") is None
    assert provider_of(None, "http://[half") is None


def test_the_users_own_goes_first_and_takes_the_rest_from_another() -> None:
    own = {"mine": {"like": "gpt-tiered", "window": 50}, "gpt-9": {"window": 7, "input_price": 0.5}}
    mine = find_model("mine", own=own, table=TABLE)
    assert (mine.window, mine.how, mine.prices.output, len(mine.tiers)) == (50, "settings", 2.0, 1)
    other = find_model("GPT-9", own=own, table=TABLE)
    assert (other.window, other.prices, other.max_input) == (7, Prices(0.5), None)


@given(st.text(max_size=60))
def test_any_name_is_read_in_bounded_steps(name: str) -> None:
    read = list(spellings(name))
    assert len(read) == len({(s.name, s.provider) for s in read}) <= 48
    find_model(name, table=TABLE)


def test_the_packaged_table_is_sound() -> None:
    table = load_table()
    assert len(table.rows) > 4000
    assert len(table.date) == 10
    for entry in table.rows:
        assert table.row(entry.provider, entry.model) is not None
        for count in (entry.window, entry.max_input, entry.max_output):
            assert count is None or 0 < count < 1 << 40
        for price in (*entry.prices, *(p for tier in entry.tiers for p in tier.prices)):
            assert price is None or price >= 0
        assert list(entry.tiers) == sorted(entry.tiers)


def test_known_facts() -> None:
    """Limits that OpenAI and Anthropic publish, as of the table's day."""
    gpt = find_model("gpt-5", "openai")
    assert (gpt.window, gpt.max_input, gpt.max_output) == (400_000, 272_000, 128_000)
    assert find_model("claude-sonnet-4-5-20250929", "anthropic").window == 200_000
    assert "gpt-5" in near_names("gtp-5")


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("openai.chat", "openai"), ("openai.responses", "openai"), ("azure-openai.chat", "azure"),
        ("anthropic.messages", "anthropic"), ("google.generative-ai", "google"), ("xai.chat", "xai"),
        ("google.vertex.chat", "google-vertex"), ("vertex.anthropic.messages", "google-vertex"),
        ("aws.bedrock", "amazon-bedrock"),
    ],
)  # fmt: skip
def test_an_sdk_names_the_interface_behind_the_provider(name: str, provider: str) -> None:
    assert provider_of(name) == provider

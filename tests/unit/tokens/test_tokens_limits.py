"""Limits where a trace records none: said only where the table, the settings or the client are sure."""

from __future__ import annotations

import pytest

from ctxctl.tokens.catalogue import limits
from ctxctl.tokens.catalogue.clients import LARGE, SMALL, client_window, numbers
from ctxctl.tokens.catalogue.find import find_model
from ctxctl.tokens.catalogue.limits import KnownLimit, LimitBook, contradicted, known_limit
from ctxctl.tokens.catalogue.table import Prices, Row, Table, load_table


def row(provider: str, model: str, window: int | None, max_input: int | None = None) -> Row:
    return Row(provider, model, None, window, max_input, 64, Prices(), (), None, False)


TABLE = Table(
    "2026-01-01",
    [
        row("openai", "gpt-9", 400_000, 300_000),
        row("azure", "gpt-9", 272_000),
        row("github-copilot", "gpt-9", 128_000),
        row("openai", "gpt-9-mini", 400_000),
        row("azure", "gpt-9-mini", 400_000),
        row("anthropic", "claude-opus-4-6", 1_000_000),
        row("anthropic", "claude-opus-4-5", 200_000),
        row("groq", "llama-z", 64_000),
        row("cerebras", "llama-z", 32_000),
        row("groq", "qwen-q", 64_000),
        row("cerebras", "qwen-q", 64_000),
        row("groq", "one-host", 64_000),
        row("openai", "windowless", None),
    ],
)


def asked(model: str | None, provider: str | None = None, **more: str) -> KnownLimit:
    return known_limit(model, provider, None, table=TABLE, **more)


@pytest.mark.parametrize(
    ("model", "provider", "window", "cap", "how"),
    [
        ("gpt-9", "openai", 400_000, 300_000, "listed"),
        ("gpt-9", "azure", 272_000, 272_000, "listed"),
        ("gpt-9", None, 400_000, 300_000, "maker"),
        ("gpt-9-mini", None, 400_000, 400_000, "agreed"),
        ("qwen-q", None, 64_000, 64_000, "agreed"),
        ("claude-opus-4-5[1m]", "anthropic", 1_000_000, 1_000_000, "listed"),
        # What follows would be a guess.
        ("llama-z", None, None, None, "disputed"),
        ("one-host", None, None, None, "reseller"),
        ("nobody-s", None, None, None, "unknown"),
        ("windowless", "openai", None, None, "listed"),
        (None, None, None, None, "unknown"),
    ],
)
def test_a_window_is_said_where_the_table_is_sure(
    model: str | None, provider: str | None, window: int | None, cap: int | None, how: str
) -> None:
    found = asked(model, provider)
    assert (found.window, found.cap, found.how) == (window, cap, how)
    assert found.note.endswith(".")
    if window is None:
        assert found[:3] == (None, None, None)


def test_a_provider_that_does_not_list_the_model_makes_it_a_guess_unless_all_agree() -> None:
    assert asked("gpt-9", "somebody").cap is None
    assert "does not list it" in asked("gpt-9", "somebody").note
    assert asked("gpt-9-mini", "somebody").window == 400_000


def test_the_note_has_source_date_and_model() -> None:
    assert asked("gpt-9", "openai").note == (
        "400,000 (input up to 300,000) by models.dev, 2026-01-01, for gpt-9 as openai serves it."
    )
    assert asked("gpt-9").note.endswith("; others may differ.")
    assert asked("qwen-q").note == (
        "64,000 by models.dev, 2026-01-01, for qwen-q, on which all that list it agree."
    )


def test_the_settings_go_first_and_are_not_contradicted() -> None:
    own = {"gpt-9": {"window": 1000}}
    found = known_limit("gpt-9", "openai", own, table=TABLE)
    assert (found.window, found.how, found.note) == (1000, "settings", "1,000 by the settings.")
    assert contradicted(found, 5000) is found


def test_a_bill_over_the_cap_shows_that_the_window_is_another() -> None:
    found = asked("gpt-9", "openai")
    assert contradicted(found, None) is found
    assert contradicted(found, 300_000) is found
    other = contradicted(found, 300_001)
    assert (other.cap, other.how) == (None, "contradicted")
    assert other.note.startswith("Unknown: 300,001 tokens were billed and answered, so it is not 300,000")
    assert contradicted(asked("llama-z"), 10**9) == asked("llama-z")


def test_claude_code_opens_a_smaller_window_than_there_is() -> None:
    early = asked("claude-opus-4-6", runtime="claude-code", version="2.1.39")
    assert (early.window, early.how) == (200_000, "client")
    assert early.note.startswith("200,000 by Claude Code 2.1.39")
    assert asked("claude-opus-4-6").window == 1_000_000
    assert asked("claude-opus-4-6", runtime="opencode", version="2.1.39").window == 1_000_000
    assert asked("claude-opus-4-6[1m]", runtime="claude-code", version="2.1.39").window == 1_000_000
    # Where it opens what the provider has, the provider's row says so.
    assert asked("claude-opus-4-5", runtime="claude-code", version="2.1.39").how == "maker"


def test_copilot_s_models_are_github_s_where_nobody_is_named() -> None:
    assert asked("gpt-9", runtime="copilot-cli").window == 128_000
    assert asked("gpt-9", "openai", runtime="copilot-cli").window == 400_000
    assert asked("claude-opus-4-6", runtime="copilot-cli").cap is None


def test_the_client_says_of_models_that_the_table_does_not_know() -> None:
    found = asked("claude-opus-5-5", runtime="claude-code", version="2.1.330")
    assert (found.window, found.how) == (1_000_000, "client")
    assert asked("claude-opus-5-5", runtime="claude-code", version="2.1.110").window is None


@pytest.mark.parametrize(
    ("version", "model", "window"),
    [
        ("2.0.29", "claude-opus-4-5", None),
        ("2.0.30", "claude-opus-4-5", 200_000),
        ("2.1.74", "claude-opus-9", 200_000),
        ("2.1.80", "claude-opus-9", None),
        ("2.1.200", "claude-opus-4-6-20260101", 200_000),
        ("2.1.329", "claude-opus-4-8", None),
        ("2.1.330", "claude-opus-4-8", 1_000_000),
        ("2.1.330", "gpt-5", None),
        ("two", "claude-opus-4-5", None),
    ],
)
def test_windows_of_claude_code_by_version(version: str, model: str, window: int | None) -> None:
    found = client_window("claude-code", version, model)
    assert (found.window if found is not None else None) == window


def test_no_model_is_both_small_and_large() -> None:
    assert not SMALL & LARGE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2.1.330", (2, 1, 330)),
        ("v1.2.3-rc1", (1, 2, 3)),
        ("1.0.64-1", (1, 0, 64)),
        ("3", None),
        (None, None),
    ],
)
def test_versions(text: str | None, found: tuple[int, int, int] | None) -> None:
    assert numbers(text) == found


def test_the_book_looks_a_model_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    real = find_model

    def counted(model: str, *rest: object, **more: object) -> object:
        calls.append(model)
        return real(model, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(limits, "find_model", counted)
    book = LimitBook()
    assert book.of("gpt-5", "openai") is book.of("gpt-5", "openai")
    book.of("gpt-5", "openai", "codex", "0.1.2")
    assert calls == ["gpt-5", "gpt-5"]


def test_the_packed_table_is_dated_in_the_note() -> None:
    row = load_table().row("anthropic", "claude-opus-4-5")
    assert row is not None
    told = load_table().source_of(row)
    assert told.startswith("litellm, ")
    assert told in known_limit("claude-opus-4-5", "anthropic").note

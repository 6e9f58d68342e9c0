"""Where runtimes compact by themselves: each rule's arithmetic by hand, and nothing where none was read."""

from __future__ import annotations

import pytest

from ctxctl.importers.registry import available
from ctxctl.tokens.catalogue.thresholds import _RULES, threshold


def tokens(
    runtime: str,
    window: int | None,
    version: str | None = None,
    *,
    max_output: int | None = None,
    max_input: int | None = None,
    model: str | None = None,
) -> int | None:
    found = threshold(runtime, window, max_output, version, max_input=max_input, model=model)
    return found.tokens if found is not None else None


@pytest.mark.parametrize(
    ("version", "model", "window", "expected"),
    [
        ("2.1.20", "claude-opus-4-5-20251101", 200_000, 155_000),
        ("2.1.21", "claude-opus-4-5-20251101", 200_000, 167_000),
        ("2.1.37", "claude-opus-4-6", 200_000, 167_000),
        ("2.1.39", "claude-opus-4-6[1m]", 1_000_000, 967_000),
        ("2.0.30", "claude-3-5-sonnet-20241022", 200_000, 178_808),
        ("2.0.30", "claude-3-opus-20240229", 200_000, 182_904),
        ("2.0.30", "claude-3-sonnet-20240229", 200_000, 178_808),
        ("2.0.30", "claude-3-haiku-20240307", 200_000, 182_904),
        ("2.0.30", "claude-3-5-haiku-20241022", 200_000, 178_808),
        ("2.1.330", "claude-opus-5-5", 1_000_000, 967_000),
        ("2.1.330", "claude-sonnet-4-6", 200_000, 167_000),
        # From some version on it waits until such a window is full.
        ("2.1.330", "claude-opus-4-5", 200_000, None),
        ("2.0.29", "claude-opus-4-5", 200_000, None),
        (None, "claude-opus-4-5", 200_000, None),
        ("2.1.37", "claude-opus-4-6", None, None),
    ],
)
def test_claude_code(version: str | None, model: str, window: int | None, expected: int | None) -> None:
    assert tokens("claude-code", window, version, model=model) == expected


def test_claude_code_with_another_maker_s_model_goes_by_its_longest_answer() -> None:
    assert tokens("claude-code", 128_000, "2.1.37", max_output=8_000, model="glm-5") == 107_000
    assert tokens("claude-code", 128_000, "2.1.37", model="glm-5") is None


def test_codex_goes_by_the_whole_window_of_which_it_records_a_part() -> None:
    assert tokens("codex", 258_400, "0.140.0") == 244_800
    assert tokens("codex", 121_600, "0.141.0") == 115_200
    assert tokens("codex", 258_401, "0.140.0") is None
    assert tokens("codex", 258_400, "0.53.0") is None


def test_opencode_keeps_room_for_the_answer() -> None:
    assert tokens("opencode", 200_000, "1.18.33", max_output=64_000) == 168_000
    assert tokens("opencode", 200_000, "1.18.33", max_output=8_000) == 192_000
    assert tokens("opencode", 400_000, "1.18.33", max_output=128_000, max_input=272_000) == 252_000
    assert tokens("opencode", 200_000, "1.14.20", max_output=64_000) is None


def test_shares_and_reserves_of_others() -> None:
    assert tokens("pi", 200_000) == 183_616
    assert tokens("goose", 128_000) == 102_400
    assert tokens("copilot-cli", None, "1.0.102", max_input=128_000) == 102_400
    assert tokens("copilot-cli", 200_000, "0.0.420") is None
    assert tokens("gemini-cli", 1_048_576, "0.61.0") == 524_288
    assert tokens("gemini-cli", 1_048_576, None) is None


def test_a_window_that_is_all_reserve_has_no_line() -> None:
    assert tokens("pi", 10_000) is None


def test_a_runtime_whose_rule_was_not_read_has_none() -> None:
    assert tokens("roo", 200_000, "3.52.1", max_output=8_192) is None


def test_each_rule_is_of_a_format_and_names_its_source() -> None:
    assert set(_RULES) <= {importer.name for importer in available()}
    for runtime in _RULES:
        for version in ("2.1.37", "0.140.0", "1.18.33"):
            for window in (258_400, 1_048_576):
                found = threshold(runtime, window, 64_000, version, max_input=200_000)
                if found is not None:
                    assert found.source.endswith(".")
                    assert "(" in found.source

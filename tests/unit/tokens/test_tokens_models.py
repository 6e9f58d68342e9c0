"""Model names, as runtimes, routers and providers write them, to encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiktoken.model import MODEL_PREFIX_TO_ENCODING, MODEL_TO_ENCODING

from ctxctl.tokens.model_encodings import COMMON, is_known, near_models, resolve_encoding
from ctxctl.tokens.ranks import NAMES

# A prefix that does not end a word gets something after it that does.
PREFIXED = {
    f"{prefix}x" if prefix.endswith("-") else f"{prefix}-x": name
    for prefix, name in MODEL_PREFIX_TO_ENCODING.items()
}


@pytest.mark.parametrize(("model", "encoding"), [*MODEL_TO_ENCODING.items(), *PREFIXED.items()])
def test_agrees_with_tiktoken(model: str, encoding: str) -> None:
    known = resolve_encoding(model)
    if encoding in NAMES:
        assert (known.encoding, known.known, known.assumed) == (encoding, True, "")
    else:
        assert (known.encoding, known.known) == ("o200k_base", False)
        assert "older encoding" in known.assumed


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("openai/gpt-4o", "o200k_base"),
        ("openrouter/openai/gpt-4o-mini:free", "o200k_base"),
        ("azure/gpt-35-turbo", "cl100k_base"),
        ("OpenAI/GPT-4.1-Nano", "o200k_base"),
        (" gpt-4o ", "o200k_base"),
        ("openai:gpt-4o", "o200k_base"),
        ("gpt-4.5-preview-2025-02-27", "o200k_base"),
        ("gpt-5.1-codex-max", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("o1", "o200k_base"),
        ("o3-pro-2025-06-10", "o200k_base"),
        ("o4-mini-deep-research", "o200k_base"),
        ("chatgpt-4o-latest", "o200k_base"),
        ("codex-mini-latest", "o200k_base"),
        ("gpt-4-0613", "cl100k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-3.5-turbo-16k", "cl100k_base"),
        ("text-embedding-3-large", "cl100k_base"),
        ("text-embedding-ada-002", "cl100k_base"),
        ("ft:gpt-4o-2024-08-06:org:name:id", "o200k_base"),
        ("ft:gpt-3.5-turbo-0125:org::id", "cl100k_base"),
        ("openai/gpt-oss-120b", "o200k_harmony"),
        ("groq/openai/gpt-oss-20b", "o200k_harmony"),
        ("openai.gpt-oss-120b-1:0", "o200k_harmony"),
        ("gpt-oss:20b", "o200k_harmony"),
        ("accounts/fireworks/models/gpt-oss-120b", "o200k_harmony"),
    ],
)
def test_families(model: str, encoding: str) -> None:
    assert resolve_encoding(model) == (model, encoding, True, "")


@pytest.mark.parametrize(
    "model",
    ["claude-sonnet-4-5", "gemini-2.5-pro", "meta-llama/Llama-3.3-70B", "qwen3", "gpt-40", "gpt-50", "gpt-6",
     "somebody/gpt-4o", "o2", "o10", "gpt", "text-davinci-003", "code-davinci-002", "gpt2", "ada"],
)  # fmt: skip
def test_others_are_assumed_and_say_so(model: str) -> None:
    found = resolve_encoding(model)
    assert (found.encoding, found.known) == ("o200k_base", False)
    assert found.assumed.startswith(model)
    assert "o200k_base" in found.assumed
    assert found.assumed.endswith(".")


@pytest.mark.parametrize("model", [None, "", "  "])
def test_no_model(model: str | None) -> None:
    assert resolve_encoding(model).encoding == "o200k_base"
    assert not resolve_encoding(model).known
    assert "names no model" in resolve_encoding(model).assumed


@given(st.text(max_size=300))
def test_any_name_resolves(model: str) -> None:
    found = resolve_encoding(model)
    assert found.encoding in NAMES
    assert found.known == (found.assumed == "")
    assert len(found.assumed) < 250


@pytest.mark.parametrize(
    "model",
    ["gpt-4o", "openrouter/openai/gpt-4.1-mini", "claude-sonnet-4-5", "bedrock/anthropic.claude-3", "gpt2"],
)
def test_models_of_which_something_is_known(model: str) -> None:
    assert is_known(model)


@pytest.mark.parametrize("model", ["", "gpt-40", "mistral-large", "no such thing", "x" * 100_000])
def test_models_of_which_nothing_is_known(model: str) -> None:
    assert not is_known(model)


def test_near_names() -> None:
    assert "gpt-4o" in near_models("gpt-40")
    assert near_models("house-modal", ["house-model"]) == ["house-model"]
    assert len(near_models("gpt", ["gpt-a", "gpt-b", "gpt-c", "gpt-d"])) <= 3
    assert near_models("\x1b[31m" * 10_000) == []
    assert all(is_known(name) for name in COMMON)

"""Which encoding a model uses, and what has to be assumed where nobody publishes one.

The families are those of tiktoken's own table (a test holds every name of it against this one), written down
here because importing that table imports all of tiktoken, which a run with cached counts never needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

DEFAULT_ENCODING: Final = "o200k_base"

_FAMILIES: Final = (
    (r"gpt-oss", "o200k_harmony"),
    (r"(?:chatgpt-|gpt-?)4o|gpt-4\.[15]|gpt-5|o[134]|codex", "o200k_base"),
    (r"gpt-4|gpt-3\.?5(?:-turbo)?|text-embedding-(?:3-(?:small|large)|ada-002)", "cl100k_base"),
    (r"davinci-002|babbage-002", "cl100k_base"),
    (r"gpt-?2|(?:text|code)-(?:davinci|cushman|curie|babbage|ada|search|similarity)\b", "an older encoding"),
    (r"(?:cushman|davinci|curie|babbage|ada)(?:-codex)?(?=$)", "an older encoding"),
)
_FAMILY: Final = re.compile(
    "(?:" + "|".join(f"(?P<f{i}>{pattern})" for i, (pattern, _) in enumerate(_FAMILIES)) + r")(?=$|[-.:_@\[])"
)

_PUBLISHERS: Final = (
    ("claude", "Anthropic publishes no tokenizer for it"),
    ("gemini", "Google publishes no encoding for it that is embedded here"),
    ("gemma", "its tokenizer is not embedded here"),
    ("llama", "its tokenizer is not embedded here"),
)

_CARRIERS: Final = frozenset(
    """
    @cf accounts azure azure-openai azure_ai azure_openai azureopenai baseten bedrock bedrock_converse
    cerebras cloudflare copilot custom_openai databricks deepinfra deployments endpoints fireworks
    fireworks_ai github github-copilot github_copilot groq helicone hosted_vllm huggingface litellm
    litellm_proxy lm_studio lmstudio models novita nvidia nvidia_nim ollama ollama_chat openai openai-codex
    openai_chat openai_responses openrouter poe portkey publishers replicate sambanova serverless
    snowflake text-completion-openai together together_ai vercel vercel_ai_gateway vertex_ai vllm
    watsonx workers-ai
    """.split()  # noqa: SIM905
)
"""Path parts that say who carries a model, not which one it is."""


COMMON: Final = (
    "gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-5-codex", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o",
    "gpt-4o-mini", "chatgpt-4o-latest", "gpt-4-turbo", "gpt-4", "gpt-3.5-turbo", "o4-mini", "o3", "o3-mini",
    "o1", "o1-mini", "codex-mini-latest", "gpt-oss-120b", "gpt-oss-20b", "claude", "gemini", "gemma", "llama",
)  # fmt: skip
"""Names of families that `resolve_encoding` knows something of, for suggestions; far from all."""


class Resolution(NamedTuple):
    """What is known of a model's encoding."""

    model: str | None
    """As given."""
    encoding: str
    """A name of `encodings.NAMES`: the model's own if `known`, else the one that estimates are made with."""
    known: bool
    """Whether the model is known to use that encoding: only then may a count be called exact."""
    assumed: str
    """One sentence saying what was assumed; empty if `known`.  Holds the model's name: untrusted text."""


@lru_cache(maxsize=256)
def resolve_encoding(model: str | None) -> Resolution:
    """The encoding for a model name as a runtime, a router or a provider writes it.

    Provider prefixes (``openrouter/openai/``), fine-tunes (``ft:gpt-4o:org::id``), dates and tags after the
    family name are understood.  An unknown model resolves to `DEFAULT_ENCODING` with ``known=False``.
    """
    if model is None or not model.strip():
        return Resolution(
            model, DEFAULT_ENCODING, False, f"The trace names no model: counted with {DEFAULT_ENCODING}."
        )
    base = _base(model)
    match = _FAMILY.match(base) if base is not None else None
    shown = model.strip() if len(model) <= 80 else model.strip()[:79] + "…"
    if match is None or match.lastgroup is None:
        why = next((why for part, why in _PUBLISHERS if part in model.lower()), "its encoding is not known")
        return Resolution(
            model, DEFAULT_ENCODING, False, f"{shown}: {why}; counted with {DEFAULT_ENCODING}, an estimate."
        )
    encoding = _FAMILIES[int(match.lastgroup[1:])][1]
    if encoding == "an older encoding":
        why = "it uses an older encoding that is not embedded here"
        return Resolution(
            model, DEFAULT_ENCODING, False, f"{shown}: {why}; counted with {DEFAULT_ENCODING}, an estimate."
        )
    return Resolution(model, encoding, True, "")


def is_known(model: str) -> bool:
    """Whether anything is known of a model: its encoding, or that there is none to be had."""
    found = resolve_encoding(model)
    return found.known or any(part in model.lower() for part, _ in _PUBLISHERS) or _is_old(model)


def near_models(model: str, others: Iterable[str] = ()) -> list[str]:
    """At most three names like this one, the nearest first, out of `COMMON` and `others`."""
    from difflib import get_close_matches

    names = {name.lower(): name for name in (*COMMON, *others)}
    return [names[name] for name in get_close_matches(model.strip().lower()[:80], names, 3)]


def _is_old(model: str) -> bool:
    base = _base(model)
    return base is not None and _FAMILY.match(base) is not None


def _base(model: str) -> str | None:
    """The name less what carries it; None if a part of its path is some other vendor's."""
    *path, name = model.strip().lower().split("/")
    if any(part and part not in _CARRIERS for part in path):
        return None
    name = re.sub(r"^(?:ft|openai|azure|azure[_-]openai|openrouter|litellm)[:.]", "", name)
    return re.sub(r"^(?:ft:|databricks-|openai[.-])", "", name)

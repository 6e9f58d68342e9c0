"""Tokens by tiktoken itself, with the published ranks of `CTXCTL_CORPUS/vocab`: no network."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any


@cache
def encoding(name: str) -> Any:
    """An encoding; None where its ranks are not at hand."""
    ranks = Path(os.environ.get("CTXCTL_CORPUS", "")) / "vocab" / f"{name}.tiktoken"
    if not ranks.is_file():
        return None
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe
    from tiktoken_ext import openai_public

    def local(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
        return load_tiktoken_bpe(str(ranks), expected_hash)

    loading = openai_public.load_tiktoken_bpe
    openai_public.load_tiktoken_bpe = local
    try:
        return tiktoken.Encoding(**getattr(openai_public, name)())
    finally:
        openai_public.load_tiktoken_bpe = loading


def tokens(text: str, name: str) -> int | None:
    """How many tokens a text is in a public encoding; None where that is not at hand."""
    known = encoding(name)
    return None if known is None else len(known.encode(text, disallowed_special=()))

"""Token counts of the reference: the encoding that ships with ctxctl, used as plainly as possible."""

from __future__ import annotations

from functools import cache

from ctxctl.tokens import ranks


@cache
def count(text: str) -> int:
    """Tokens of a text in o200k_base."""
    return len(ranks.get_encoding("o200k_base").encode_ordinary(text))

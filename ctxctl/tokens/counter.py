"""Counting the tokens of any text: exact wherever that can be shown, bounded always."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctxctl.tokens.cache import CountCache
from ctxctl.tokens.ranks import get_encoding, ranks_of

LONGEST_TOKEN: Final = 128
"""Bytes; no token of the embedded encodings is longer (a test holds them to it)."""


class Counter:
    """Counts tokens under one encoding, asking `cache` first; thread-safe.

    The encoding is loaded by the first text that the cache does not know, so a run whose contents have all
    been counted before never loads it.  The text of special tokens is counted as ordinary text.
    Raises UsageError("unknown-encoding") for a name that is not in `encodings.NAMES`.
    """

    def __init__(self, encoding: str, cache: CountCache | None = None) -> None:
        self.base = ranks_of(encoding)
        """What decides how ordinary text is counted: other encodings may have the same."""
        self.encoding = encoding
        self._cache = cache

    def count(self, text: str) -> tuple[int, bool]:
        """(tokens, exact): what `encode_ordinary` gives for the text, exactly if `exact`.

        Lone surrogates count as U+FFFD, surrogate pairs as what they stand for.  Time is linear in the
        length, memory beside the text bounded (`chunks.LIMIT`).  Raises nothing, whatever the text; only an
        installation that lacks the ranks raises UnavailableError("no-ranks").
        """
        if not text:
            return 0, True
        text, raw = _utf8(text)
        if self._cache is None:
            return self._tokenise(text, raw)
        key = CountCache.key(self.encoding, raw)
        found = self._cache.get(key)
        if found is not None and _possible(found, len(raw)):
            return found
        counted = self._tokenise(text, raw)
        self._cache.put(key, *counted)
        return counted

    def known(self, texts: Sequence[str], least: int = 2) -> list[tuple[int, bool] | None]:
        """What `count` gives for each text that the cache knows; None for the others.

        The cache is asked once for all of them (`CountCache.get_all`), for fewer than `least` one by one.
        """
        raws = [_utf8(text)[1] for text in texts]
        keys = [CountCache.key(self.encoding, raw) for raw in raws]
        if self._cache is None:
            found = {}
        elif len(keys) < least:
            each = ((key, self._cache.get(key)) for key in keys)
            found = {key: count for key, count in each if count is not None}
        else:
            found = self._cache.get_all(keys)
        counts: list[tuple[int, bool] | None] = []
        for key, raw in zip(keys, raws, strict=True):
            count = found.get(key) if raw else (0, True)
            is_known = count is not None and _possible(count, len(raw))
            counts.append(count if is_known else None)
        return counts

    def _tokenise(self, text: str, raw: bytes) -> tuple[int, bool]:
        from ctxctl.tokens.chunks import count_tokens

        base = self.base
        # o200k_harmony counts ordinary text as o200k_base does: a second encoding would cost another 80 MB.
        return count_tokens(get_encoding(base), base, text)


def _utf8(text: str) -> tuple[str, bytes]:
    """A text without lone surrogates, and its bytes."""
    try:
        return text, text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text, text.encode()


def _possible(count: tuple[int, bool], size: int) -> bool:
    """A file that was tampered with or hit by a flipped bit shall not show impossible numbers."""
    return size <= count[0] * LONGEST_TOKEN and count[0] <= size

"""Cutting a text exactly at a token bound."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, Literal

from ctxctl.tokens.counter import Counter
from ctxctl.tokens.ranks import RANKS_OF, get_encoding

MARKER: Final = "[…]"
"""Stands where something was cut off; it counts."""
_LONGEST: Final = 128
_SLICE: Final = 1 << 22
"""Characters looked at: no prompt holds more tokens than that many characters make."""
_REMEMBERED: Final = 1 << 17
"""Characters of a text at most whose tokens are remembered for the next cut."""


def trim(counter: Counter, text: str, tokens: int, side: Literal["head", "tail"] = "head") -> str:
    """The text itself if it has no more than `tokens`, else one end of it with the marker, in no more.

    A bound too small for the marker gives a text without it, a bound of 0 an empty one.  The result counts as
    many tokens as promised or fewer: characters that a bound would part are left out whole, and a cut that
    makes other tokens of the rest is moved.  Linear in the text.
    """
    if tokens <= 0:
        return ""
    if counter.count(text)[0] <= tokens:
        return text
    base = RANKS_OF[counter.encoding]
    mark = len(_pieces(base, MARKER))
    marker = MARKER if mark < tokens else ""
    room = tokens - mark if marker else tokens
    encoding = get_encoding(base)
    near = text[:_SLICE] if side == "head" else text[-_SLICE:]
    pieces = (_pieces if len(near) <= _REMEMBERED else _pieces.__wrapped__)(base, near)
    while room > 0:
        kept = pieces[:room] if side == "head" else pieces[-room:]
        raw = encoding.decode_bytes(kept)
        whole = _whole(raw, side)
        made = whole + marker if side == "head" else marker + whole
        over = counter.count(made)[0] - tokens
        if over <= 0:
            return made
        room -= over
    return marker


@lru_cache(maxsize=8)
def _pieces(base: str, text: str) -> list[int]:
    """The tokens of a text; from step to step of a session the same one is cut at other places."""
    return get_encoding(base).encode_ordinary(text.encode("utf-8", "replace").decode())


def _whole(raw: bytes, side: str) -> str:
    """The characters that are whole; a bound between two tokens may part one."""
    if side == "head":
        return raw.decode("utf-8", "ignore")
    start = 0
    while start < len(raw) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:].decode("utf-8", "ignore")

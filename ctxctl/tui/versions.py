"""Versions of items in words: one that somebody gave as it is, a digest not at all.  Plain Python.

A digest says only that a text is this one or another; the item's record (`x`) has it whole.
"""

from __future__ import annotations

import re
from typing import Final

from ctxctl.text import visible
from ctxctl.tui.thread_names import holds_id

_LONGEST: Final = 12
_DIGEST: Final = r"version [0-9a-fA-F]{8,64}"
_FIRST: Final = re.compile(rf"\({_DIGEST}, ")
_ALONE: Final = re.compile(rf" \({_DIGEST}\)")
_ANOTHER: Final = re.compile(rf"\b(to|by) {_DIGEST}\b")


def named(version: str | None) -> str:
    """A version that somebody gave, a long one by its beginning; empty for a digest and for none."""
    if version is None or holds_id(version):
        return ""
    shown = visible(version)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def change_of(before: str | None, now: str | None) -> str:
    """What became of an item's version between two frames; empty where there is nothing to say."""
    if before is None or now is None or before == now:
        said = named(now if now is not None else before)
        return f"version {said}" if said else ""
    if not named(before) or not named(now):
        return "a different text than before"
    return f"version {named(before)} → {named(now)}"


def without_digests(sentence: str) -> str:
    """A sentence about an item, without the digests of its versions."""
    sentence = _ALONE.sub("", _FIRST.sub("(", sentence))
    return _ANOTHER.sub(r"\1 another version", sentence)

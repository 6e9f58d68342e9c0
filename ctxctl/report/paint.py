"""Colour as an extra: a role name around a piece of text, so that reports know nothing of terminals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

Paint = Callable[[str, str], str]
"""Takes a role (a key of `CODES`) and shown text; gives the text, with or without colour around it."""

CODES: Final = {
    "head": "1",
    "added": "32",
    "updated": "33",
    "removed": "31",
    "skipped": "2",
    "omitted": "35",
    "warn": "33",
    "error": "31",
    "dim": "2",
    "hunk": "36",
}
"""SGR parameters by role: the sixteen colours that every theme defines."""


def plain(role: str, text: str) -> str:
    """The text as it is, without colour."""
    return text


def ansi(role: str, text: str) -> str:
    """The text with the SGR codes of its role around it."""
    return f"\x1b[{CODES[role]}m{text}\x1b[0m" if text else text

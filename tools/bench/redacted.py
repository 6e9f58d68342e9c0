"""Keeps the names of this machine's folders out of pages that are committed."""

from __future__ import annotations

import sys
from pathlib import Path


def without_places(text: str, scratch: Path) -> str:
    """The text with the folders of this run, of the checkout, of Python and of the user left out."""
    places = (scratch, scratch.parent, Path.cwd(), Path(sys.prefix), Path(sys.base_prefix), Path.home())
    names = {str(place) for place in places} | {str(place.resolve()) for place in places}
    for name in sorted(names - {"/", "."}, key=len, reverse=True):
        text = text.replace(name, "…")
    return text

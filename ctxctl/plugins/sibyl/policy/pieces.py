"""A pack's pieces in a window: how they are known, and how an item of a markdown becomes shorter."""

from __future__ import annotations

from typing import Final

from ctxctl.model.fitting import Candidate
from ctxctl.plugins.sibyl.policy.markdown import compact

KIND: Final = "durable_memory"
SECTION: Final = "pack/section/"
HEADER: Final = "pack/header"
TRAILER: Final = "pack/trailer"
_MEMORY: Final = "  - Memory: "


def is_heading(candidate: Candidate) -> bool:
    """Whether it begins a section."""
    return candidate.item.startswith(SECTION)


def shortened(text: str | None, most: int) -> str | None:
    """An item with at most so many characters of content; None where nobody knows its text."""
    if text is None:
        return None
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.startswith(_MEMORY):
            short, cut = compact(line.removeprefix(_MEMORY), most)
            lines[at] = _MEMORY + short if cut else line
    return "\n".join(lines)

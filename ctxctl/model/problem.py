"""What was wrong with an input, told by line and byte, without stopping the rest."""

from __future__ import annotations

from typing import Final

import msgspec

DOUBTS: Final = frozenset({"not-understood", "same-window", "unknown-type"})
"""Slugs of what an import as a whole did not understand: told where a report begins."""
NOTES: Final = frozenset({"newer-version"})
"""Slugs of what is worth telling and is no fault of the input: no finding under ``--strict``."""


class Problem(msgspec.Struct, frozen=True, order=True, gc=False):
    """One finding about a damaged or inconsistent line; its slug is a heading of ``docs/messages.md``."""

    line: int
    """1-based; 0 where the problem is the file's as a whole."""
    byte: int
    """Offset of the fault in the (decompressed) file, or of the line where the fault has no place."""
    slug: str
    message: str
    """One line; may quote the trace, so it goes through `text.visible` before a person sees it."""

    @property
    def is_note(self) -> bool:
        """Whether it is told only, and no finding."""
        return self.slug in NOTES


def may_pass(slug: str) -> bool:
    """Whether what a slug stands for is of this machine at this time, and not of the capture."""
    return slug.startswith(("needs-", "plugin-", "not-readable", "read-failed", "no-space")) or slug.endswith(
        "-not-read"
    )

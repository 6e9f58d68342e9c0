"""Words for cache misses and for cuts without a record."""

from __future__ import annotations

from typing import Final

from ctxctl.model.results import Cut, Miss
from ctxctl.text import visible
from ctxctl.wording import duration, plural

_WORDS: Final = {
    "expired": "expired",
    "model": "another model than before",
    "unrecorded": "what is not recorded changed",
    "unexplained": "not explained",
}
_SAID: Final = 40
"""Characters of what the client said."""


def miss_reason(miss: Miss) -> str:
    """The cause, and the times that it rests on or that at least are known; safe for a terminal."""
    details = []
    if miss.idle is not None and miss.idle >= 1:
        details.append(f"idle {duration(miss.idle)}")
    if miss.cause == "expired" and miss.lifetime is not None:
        details.append(f"kept for {duration(miss.lifetime)}")
    if miss.recorded_cause is not None:
        details.append(f"said to be {visible(miss.recorded_cause[:_SAID])}")
    return _WORDS[miss.cause] + (f": {', '.join(details)}" if details else "")


def unrecorded_cut(cut: Cut, lines: tuple[int, int] | None = None) -> str:
    """A cut without a record as a clause; `lines`: the lines of the capture between which its cause may
    be."""
    parts = []
    if cut.unsent:
        parts.append(f"at least {plural(cut.unsent, 'token')} of what is recorded were not sent")
    if cut.before is not None and cut.billed is not None and cut.billed < cut.before:
        grew = " while the record grew: a compaction that was not read" if cut.is_unread_compaction else ""
        parts.append(f"the bill fell from {cut.before:,} to {cut.billed:,}{grew}")
    if lines is not None:
        parts.append(f"look at lines {lines[0]:,} to {lines[1]:,}")
    return "cut without a record: " + "; ".join(parts)

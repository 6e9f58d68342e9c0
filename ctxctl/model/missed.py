"""Why a cache was not read, in words."""

from __future__ import annotations

from typing import Final

from ctxctl.model.results import Miss
from ctxctl.text import visible
from ctxctl.wording import duration

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

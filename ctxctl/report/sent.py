"""How a window's size is said: what was sent, how that is known, of how much, and what of it is recorded.

Every view that shows a size in words takes them from here.
"""

from __future__ import annotations

from ctxctl.labels import KNOWN_BY, LIMIT_SOURCES, share
from ctxctl.model.results import Window
from ctxctl.text import visible


def size(window: Window) -> str:
    """``60,919``, ``about 60,919 ±1,200`` or ``16,117 recorded``: the number in front.

    An expected size keeps its digits here, where it stands beside figures that add up with it (recorded,
    free, unrecorded); a sentence that says it alone rounds it (`model.sizes.sent_words`).
    """
    if window.used_method == "reported":
        return f"{window.used:,}"
    if window.used_method == "expected":
        error = "" if window.used_error is None else f" ±{window.used_error:,}"
        return f"about {window.used:,}{error}"
    return f"{window.used:,} recorded"


def known_by(window: Window, *, billed: bool = False) -> str:
    """How the size is known, in a few words; `billed`: the step has a bill that can be true."""
    if window.used_method == "reported":
        return KNOWN_BY["reported"]
    if window.used_method == "expected" and billed:
        return "expected from its bill, which is of another model or frame"
    if window.used_method == "expected":
        return KNOWN_BY["expected"]
    return KNOWN_BY["recorded"]


def against(window: Window) -> str:
    """``60,919 of 200,000 (30%), 139,081 free``; without a known cap the size alone."""
    if window.cap is None:
        return f"{size(window)}; limit unknown"
    part = f" ({share(window.used, window.cap)})" if window.cap else ""
    room = f"OVER BY {window.over:,}" if window.over else f"{window.free or 0:,} free"
    return f"{size(window)} of {window.cap:,}{part}, {room}"


def limit(window: Window) -> str | None:
    """The limits and who says so; None where there are none."""
    parts = []
    if window.limit is not None:
        parts.append(f"window {window.limit:,}")
        if window.reserved:
            parts.append(f"{window.reserved:,} reserved")
    if window.cap is not None and (
        window.limit is None or window.cap != window.limit - (window.reserved or 0)
    ):
        parts.append("limit on input")
    if not parts:
        return None
    if window.limit_source is not None:
        parts.append(LIMIT_SOURCES[window.limit_source])
    return ", ".join(parts)


def compacts(window: Window) -> str | None:
    """The line at which the runtime compacts by itself; None where its rule is not known."""
    return None if window.threshold is None else f"compacts at {window.threshold:,}"


def sources(window: Window) -> list[str]:
    """Sentences of where the limit and the runtime's line are from, for those that are not recorded."""
    found = []
    if window.limit_note is not None:
        found.append(visible(window.limit_note))
    if window.threshold is not None and window.threshold_source:
        found.append(f"Compacts at {window.threshold:,}: {visible(window.threshold_source)}")
    return found


def beside(window: Window, lacking: str = "") -> str | None:
    """What was sent and is not recorded; None where nothing was billed from which it could be known."""
    if window.unrecorded is None:
        return None
    if window.unrecorded < 0:
        return f"recorded content weighs {-window.unrecorded:,} more than was sent"
    named = f": {lacking}" if lacking and window.unrecorded else ""
    return f"{window.unrecorded:,} not recorded{named}"

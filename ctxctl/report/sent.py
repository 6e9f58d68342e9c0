"""How a window's size is said: what was sent, how that is known, of how much, and what of it is recorded.

Every view that shows a size in words takes them from here.  What of a request is not in a capture is named by
what was measured of its format, or declared by the format where nothing was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ctxctl.model.records import Fidelity
from ctxctl.model.results import Window
from ctxctl.model.sizes import is_unsized
from ctxctl.model.vocab import Level
from ctxctl.text import visible
from ctxctl.wording import KNOWN_BY, LIMIT_SOURCES, plural, share

if TYPE_CHECKING:
    from ctxctl.ingest.about import About


def size_text(window: Window) -> str:
    """``60,919``, ``about 60,919 ±1,200`` or ``16,117 recorded``: the number first.

    Where nothing tells the size, how many items there are.

    An expected size keeps its digits here, where it stands beside figures that add up with it (recorded,
    free, unrecorded); a sentence that says it alone rounds it (`model.sizes.sent_words`).
    """
    if is_unsized(window):
        return f"{plural(window.uncounted, 'item')} of unknown size"
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
        return "expected, from a bill for another model or frame"
    if window.used_method == "expected":
        return KNOWN_BY["expected"]
    return KNOWN_BY["recorded"]


def size_of_limit(window: Window) -> str:
    """``60,919 of 200,000 (30%), 139,081 free``; without a known cap the size alone."""
    if window.cap is None:
        return f"{size_text(window)}; limit unknown"
    if is_unsized(window):
        return f"{size_text(window)}, of {window.cap:,}"
    part = f" ({share(window.used, window.cap)})" if window.cap else ""
    room = f"OVER BY {window.over:,}" if window.over else f"{window.free or 0:,} free"
    return f"{size_text(window)} of {window.cap:,}{part}, {room}"


def limit_text(window: Window) -> str | None:
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


def threshold_text(window: Window) -> str | None:
    """The line at which the runtime compacts by itself; None where its rule is not known."""
    return None if window.threshold is None else f"compacts at {window.threshold:,}"


def limit_sources(window: Window) -> list[str]:
    """Sentences of where the limit and the runtime's line are from, for those that are not recorded."""
    found = []
    if window.limit_note is not None:
        found.append(visible(window.limit_note))
    if window.threshold is not None and window.threshold_source:
        found.append(f"Compacts at {window.threshold:,}: {visible(window.threshold_source)}")
    return found


def unrecorded_text(window: Window, lacking: str = "") -> str | None:
    """What was sent and is not recorded; None where nothing was billed from which it could be known."""
    if window.unrecorded is None:
        return None
    if window.unrecorded < 0:
        return f"recorded content is counted at {-window.unrecorded:,} more than was sent"
    named = f": {lacking}" if lacking and window.unrecorded else ""
    return f"{window.unrecorded:,} not recorded{named}"


NOT_RECORDED: Final = Level.NOT_RECORDED.value
"""The name of the segment where nothing says what it is."""
NOT_UNDERSTOOD: Final = Level.NOT_UNDERSTOOD.value
"""What the capture seems to hold, and its importer did not take."""

_WORDS: Final = {
    "system_prompt": "system prompt",
    "tool_definitions": "tools",
    "messages": "messages",
    "reminders": "reminders",
    "reasoning": "reasoning",
}
"""Facts that are content of a request, in the order in which they are named."""
_AROUND: Final = "wrapper"
"""Some tokens around each item: named where nothing else is."""
_DECLARED: Final = ("system_prompt", "tool_definitions", _AROUND)
"""What every request has: that a format claims nothing else may mean that there is nothing else."""


def lacking_text(found: Sequence[Fidelity], about: About | None = None) -> str:
    """What is sent with a request and not in the trace, such as `system prompt, tools`; empty if unknown.

    A fact is named if every import of the trace counted it and met it nowhere.  What was not counted at all
    is no evidence, but for the wrapper, of which a format tells at every request or never.

    Args:
        found: What each import measured; empty before a trace is read whole, and of one recorded as it is.
        about: The format's declaration, for as long as nothing was measured.
    """
    plain, unread = _names(found, about)
    return ", ".join([*plain, *(f"{name} ({NOT_UNDERSTOOD})" for name in unread)])


def _names(found: Sequence[Fidelity], about: About | None) -> tuple[list[str], list[str]]:
    """What is lacking by name: what is not recorded, and what is not understood."""
    facts: list[str] = []
    if found:
        facts = [fact for fact in (*_WORDS, _AROUND) if all(_lacks(one, fact) for one in found)]
    elif about is not None:
        facts = [fact for fact in _DECLARED if about.claim(fact).level is Level.NOT_RECORDED]
    unread = [fact for fact in facts if any(NOT_UNDERSTOOD in one.facts.get(fact, {}) for one in found)]
    plain = [fact for fact in facts if fact not in unread]
    names = [_WORDS[fact] for fact in plain if fact in _WORDS]
    around = ["wrappers"] * bool(plain and not names and not unread)
    return names or around, [_WORDS[fact] for fact in unread if fact in _WORDS]


def _lacks(measured: Fidelity, fact: str) -> bool:
    met = {level for level, count in measured.facts.get(fact, {}).items() if count}
    return (bool(met) and met <= {NOT_RECORDED, NOT_UNDERSTOOD}) or (fact == _AROUND and not met)

"""What of a request is not in a capture, in words: by what was measured of its format, else declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctxctl.ingest.about import About, Level
from ctxctl.model.records import Fidelity

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


def lacking(found: Sequence[Fidelity], about: About | None = None) -> str:
    """What is sent with a request and not in the trace, such as `system prompt, tools`; empty if unknown.

    A fact is named if every import of the trace counted it and met it nowhere.  What was not counted at all
    is no evidence, but for the wrapper, of which a format tells at every request or never.

    Args:
        found: What each import measured; empty before a trace is read whole, and of one recorded as it is.
        about: The format's declaration, for as long as nothing was measured.
    """
    plain, unread = _names(found, about)
    return ", ".join([*plain, *(f"{name} ({NOT_UNDERSTOOD})" for name in unread)])


def unrecorded_label(found: Sequence[Fidelity], about: About | None = None) -> str:
    """The name of the segment `unrecorded`: what is `lacking`, by whether it was recorded."""
    plain, unread = _names(found, about)
    told = ((plain, NOT_RECORDED), (unread, NOT_UNDERSTOOD))
    return ", ".join(f"{', '.join(names)} ({how})" for names, how in told if names) or NOT_RECORDED


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

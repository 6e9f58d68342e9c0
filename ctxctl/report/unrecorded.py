"""What of a request is not in a capture, in words: by what was measured of its format, else declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ctxctl.formats.fidelity import About, Level
from ctxctl.model.records import Fidelity

NOT_RECORDED: Final = "not recorded"
"""The name of the segment where nothing says what it is."""

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
    facts: list[str] = []
    if found:
        facts = [fact for fact in (*_WORDS, _AROUND) if all(_lacks(one, fact) for one in found)]
    elif about is not None:
        facts = [fact for fact in _DECLARED if about.claim(fact).level is Level.NOT_RECORDED]
    names = [_WORDS[fact] for fact in facts if fact in _WORDS] or ["wrappers"] * bool(facts)
    return ", ".join(names)


def unrecorded_label(found: Sequence[Fidelity], about: About | None = None) -> str:
    """The name of the segment `unrecorded`: what is `lacking` and the words that it is not recorded."""
    named = lacking(found, about)
    return f"{named} ({NOT_RECORDED})" if named else NOT_RECORDED


def _lacks(measured: Fidelity, fact: str) -> bool:
    met = {level for level, count in measured.facts.get(fact, {}).items() if count}
    return met == {Level.NOT_RECORDED.value} or (fact == _AROUND and not met)

"""What of a request is not in a capture, in words: by what was measured of its format, else declared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from ctxctl.formats.capture import NATIVE
from ctxctl.formats.fidelity import About, Level
from ctxctl.model.records import Fidelity
from ctxctl.model.results import Window

if TYPE_CHECKING:
    from ctxctl.inspector import Inspector

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


def unrecorded_label(found: Sequence[Fidelity], about: About | None = None) -> str:
    """The name of the segment `unrecorded`, such as `system prompt, tools (not recorded)`.

    A fact is named if every import of the trace counted it and met it nowhere.  What was not counted at all
    is no evidence, but for the wrapper, of which a format tells at every request or never.

    Args:
        found: What each import measured; empty before a trace is read whole, and of one recorded as it is.
        about: The format's declaration, for as long as nothing was measured.
    """
    if found:
        return _named(fact for fact in (*_WORDS, _AROUND) if all(_lacks(one, fact) for one in found))
    if about is None:
        return NOT_RECORDED
    declared = ("system_prompt", "tool_definitions", _AROUND)
    return _named(fact for fact in declared if about.claim(fact).level is Level.NOT_RECORDED)


def label_of(inspector: Inspector) -> str:
    """The same of an open trace, as far as it has been read."""
    summary = inspector.summary
    found, about = () if summary is None else summary.fidelity, None
    if not found and inspector.format != NATIVE:
        from ctxctl.formats.registry import available

        about = next((one.about for one in available() if one.name == inspector.format), None)
    return unrecorded_label(found, about)


def excess(window: Window) -> str:
    """One phrase where what is recorded weighs more than what was sent; else empty."""
    if window.unrecorded is None or window.unrecorded >= 0:
        return ""
    than = "was billed" if window.used_method == "reported" else "is expected"
    return f"recorded content weighs {-window.unrecorded:,} more than {than}"


def _lacks(measured: Fidelity, fact: str) -> bool:
    met = {level for level, count in measured.facts.get(fact, {}).items() if count}
    return met == {Level.NOT_RECORDED.value} or (fact == _AROUND and not met)


def _named(facts: Iterable[str]) -> str:
    names = list(facts)
    said = [_WORDS[name] for name in names if name in _WORDS] or ["wrappers"] * bool(names)
    return f"{', '.join(said)} ({NOT_RECORDED})" if said else NOT_RECORDED

"""What a session's history held and no request carried: answers that left, and results that were cut, unsent.

context-simple makes a view for each request, and what came since the last one may be left out of the first
view that it could have been in.  The request's body does not tell of it then; the events do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ctxctl.formats.amplifier.parts import CUT
from ctxctl.formats.kit.parts import Part
from ctxctl.model.vocab import ANSWERS

_MARKER: Final = re.compile(r"\[truncated: ~([\d,]+) tokens - call tool again if needed\] ")
_ENDS: Final = "..."
Texts = Mapping[str, tuple[str, ...]]
"""By result, the texts that the history may hold of it: one for each spelling of a loop's."""


class Passed(NamedTuple):
    """What a request did not carry, in the order of the history."""

    gone: list[Part]
    """Left out whole."""
    cut: list[Part]
    """Results as they were before they were cut; the request has what is left of them."""


class Unsent:
    """Compares what entered between two requests with what the second one carried.  Holds ids, no texts."""

    def __init__(self) -> None:
        self._carried: set[str] = set()
        """Results that a request had, whole or cut."""
        self._spelling = 0
        """Which of the spellings of a result the loop stores, as far as seen."""

    def of(self, entered: Sequence[Part], stored: Texts, made: Sequence[Part]) -> Passed:
        """What of `entered` the request `made` does not carry.

        Args:
            entered: What came since the last request: an answer, its results, prompts.
            stored: By result, the texts that the history may hold of it.
            made: The request's parts; those that no request had before have no name yet.
        """
        held = {part.item for part in made}
        gone = self._gone(entered, stored, made, held)
        cut: list[Part] = []
        for part in made:
            if part.kind == "tool_result" and part.truncated and part.item not in self._carried:
                shown = part.text or ""
                found = [text for text in stored.get(part.item, ()) if abbreviates(shown, text)]
                if found:
                    cut.append(_result(part, found[0]))
        return Passed(gone, cut)

    def carried(self, made: Sequence[Part], stored: Texts) -> None:
        """A request had these."""
        for part in made:
            if part.kind != "tool_result":
                continue
            self._carried.add(part.item)
            texts = stored.get(part.item, ())
            if part.text in texts:
                self._spelling = texts.index(part.text)

    def _gone(
        self, entered: Sequence[Part], stored: Texts, made: Sequence[Part], held: set[str]
    ) -> list[Part]:
        answer = [part for part in entered if part.role == "assistant" and part.kind in ANSWERS]
        calls = {part.item for part in answer if part.kind == "tool_call"}
        if not answer or not calls.isdisjoint(held):
            return []
        if not calls and any(not part.item and part.kind in ANSWERS for part in made):
            # An answer that nobody knew yet: it is this one, though its text may be told otherwise.
            return []
        gone = []
        for part in entered:
            if part in answer:
                gone.append(part)
            elif part.kind == "tool_result" and part.item.removesuffix("/result") in calls:
                texts = stored.get(part.item) or (part.text or "",)
                gone.append(_result(part, texts[min(self._spelling, len(texts) - 1)]))
        return gone


def abbreviates(shown: str, text: str) -> bool:
    """Whether `shown` is what context-simple leaves of a result of this text."""
    match = _MARKER.match(shown) if shown.startswith(CUT) else None
    if match is None or not shown.endswith(_ENDS):
        return False
    head = shown[match.end() : -len(_ENDS)]
    return f"{len(text) // 4:,}" == match.group(1) and text.startswith(head)


def _result(part: Part, text: str) -> Part:
    """The result with the text that the history holds."""
    made = Part("tool_result", text, "tool", key=part.item, title=part.title, line=part.line, derived=True)
    made.time = part.time
    return made

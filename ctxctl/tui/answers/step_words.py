"""What was done in a step: the call that came with it, or the first words of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.item_names import told
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.screens.turns.requests import Said, WordsRequest
from ctxctl.tui.step_words import StepWords

if TYPE_CHECKING:
    from ctxctl.model.results import Change
    from ctxctl.session import Inspector
    from ctxctl.session.item_words import ItemWords
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request

_TELLING: Final = (
    "thread_summary", "tool_call", "assistant_message", "user_message", "tool_result", "reasoning",
)  # fmt: skip
"""Kinds of items that tell what a step was about, the most telling first; of others the largest does."""


def _said(context: AnswerContext, request: WordsRequest) -> Said:
    found: dict[int, StepWords | None] = {}
    for ordinal in request.ordinals:
        context.check()
        found[ordinal] = words_of(context.inspector, ordinal)
    return Said(request.epoch, found)


def words_of(inspector: Inspector, ordinal: int) -> StepWords | None:
    """What came with a step; None where nothing did that has a name."""
    from ctxctl.session.item_words import ItemWords

    frame = inspector.frame(ordinal)
    came = [change for change in frame.step.changes if change.status == "added"]
    if not came:
        return None
    largest = max(came, key=lambda change: change.in_window).kind
    kind = next((kind for kind in _TELLING if any(change.kind == kind for change in came)), largest)
    words = ItemWords(inspector)
    words.see_frame(frame.step, frame.placements)
    names = words.names()
    alike = [change for change in came if change.kind == kind]
    first = _worded(alike, words)
    name = told(first.title, "" if first.title else words.of(first.item), first.item, names.directory)
    return StepWords(name, len(alike) - 1 if kind == "tool_call" else 0)


def _worded(changes: list[Change], words: ItemWords) -> Change:
    """The first of them with a title or with words other than blanks, else the first."""
    return next((one for one in changes if one.title or words.of(one.item).strip()), changes[0])


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {WordsRequest: _said}

"""What the list tells of steps: what was done in each, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ctxctl.item_names import told
from ctxctl.tui import scheduling
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.cost_column import Paids
from ctxctl.tui.screens.turns.requests import CostRequest, Costs, Said, WordsRequest
from ctxctl.tui.step_words import StepWords

if TYPE_CHECKING:
    from ctxctl.model.cost_sums import Paid
    from ctxctl.model.results import Change, Step
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


_FEW: Final = 50
"""Steps up to which each is looked up by itself: of a trace that grows, those that came since."""
_OFTEN: Final = 0.25
"""Seconds between two parts of an answer."""


def _costs(context: AnswerContext, request: CostRequest) -> Costs:
    from ctxctl import config
    from ctxctl.analysis.request_cost import cost_of
    from ctxctl.analysis.turn_sums import paid_for
    from ctxctl.tokens.catalogue.rates import RateBook

    book = context.kept("rates", lambda: RateBook(config.load().models))
    start, told = request.start, monotonic()
    found: list[Paid] = []
    with scheduling.short_waits():
        for step in _steps(context, request):
            context.check()
            found.append(paid_for(cost_of(step, book)))
            if monotonic() - told > _OFTEN:
                context.tell(Costs(request.epoch, Paids.of(start, found)))
                start, found, told = start + len(found), [], monotonic()
    return Costs(request.epoch, Paids.of(start, found), done=True)


def _steps(context: AnswerContext, request: CostRequest) -> Iterator[Step]:
    from ctxctl.session.walked import walked

    def check(_part: float) -> None:
        context.check()

    inspector = context.inspector
    if request.start and request.stop - request.start <= _FEW:
        return (inspector.step(ordinal) for ordinal in range(request.start, request.stop))
    return (one.at.step for one in islice(walked(inspector, check), request.start, request.stop))


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {CostRequest: _costs, WordsRequest: _said}

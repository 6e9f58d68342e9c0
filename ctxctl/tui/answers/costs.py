"""What the steps of a trace cost, worked out in one pass and told as it goes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ctxctl.tui import scheduling
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.cost_column import Paids
from ctxctl.tui.screens.turns.requests import CostRequest, Costs

if TYPE_CHECKING:
    from ctxctl.model.cost_sums import Paid
    from ctxctl.model.results import Step
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request

_FEW: Final = 50
"""Steps up to which each is looked up by itself: of a trace that grows, those that came since."""
_OFTEN: Final = 0.25
"""Seconds between two parts of an answer."""


def _costs(context: AnswerContext, request: CostRequest) -> Costs:
    from ctxctl import config
    from ctxctl.analysis.costs import cost_of
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


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {CostRequest: _costs}

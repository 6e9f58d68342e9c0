"""Answers for the what-if screen."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from ctxctl.tui import scheduling
from ctxctl.tui.answers.context import AnswerContext
from ctxctl.tui.screens.whatif import requests
from ctxctl.tui.screens.whatif.state import Gathering
from ctxctl.wording import number, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxctl.analysis.whatif import Comparison, WhatIfs
    from ctxctl.session import Inspector
    from ctxctl.tokens.catalogue.rates import RateBook
    from ctxctl.tui.answers.context import Answer
    from ctxctl.tui.requests import Request

_UPDATE: Final = 0.15
"""Seconds between two parts of an answer."""
_STEPS: Final = 32
"""Steps between two looks at the clock."""


def _recorded(context: AnswerContext, request: requests.RecordedRequest) -> requests.RecordedFields:
    from ctxctl.policies.registry import policy_names
    from ctxctl.tokens.ranks import NAMES

    params = context.inspector.params
    values = {"policy": params.policy, "encoding": params.encoding, "model": params.first_model or ""}
    if request.ordinal is not None:
        from ctxctl.analysis.whatif import recorded_limits

        step = context.inspector.step(request.ordinal)
        limits = recorded_limits(step)
        named = (("window", limits.window), ("reserve", limits.reserve), ("max_input", limits.max_input))
        values |= {name: number(tokens) for name, tokens in named if tokens is not None}
        values["model"] = step.model or values["model"]
    policies = tuple(name for name in policy_names() if name != params.policy)
    return requests.RecordedFields(values, {"policy": policies, "encoding": NAMES}, params.policy)


def _compared(context: AnswerContext, request: requests.SimulationRequest) -> object | None:
    from ctxctl.analysis.whatif import FieldError

    if request.supposition is None:
        return None
    whatifs = _whatifs(context)
    try:
        supposed = whatifs.resolve(request.supposition)
    except FieldError as error:
        hint = f"; {error.hint}" if error.hint else ""
        return requests.FieldRefused(request.run, error.field, f"{error.message}{hint}")
    comparison = whatifs.compare(supposed, book=_prices(context))
    context.tell(_noted(context, request.run, comparison))
    try:
        with scheduling.short_waits():
            return _run(context, request.run, comparison)
    finally:
        whatifs.close()


def _run(context: AnswerContext, run: int, comparison: Comparison) -> requests.TurnsCompared:
    gathering = Gathering(lambda ordinal: _title(context.inspector, ordinal))
    sent_at = monotonic()
    part = 0.0

    def progress(share: float) -> None:
        nonlocal part
        part = share

    for pair in comparison.pairs(context.check, progress):
        gathering.add(pair)
        if pair.ordinal % _STEPS == 0 and monotonic() - sent_at > _UPDATE:
            news = gathering.take(comparison.recorded, comparison.simulated, part)
            context.tell(requests.TurnsCompared(run, news, done=False))
            sent_at = monotonic()
    context.tell(_noted(context, run, comparison))
    return requests.TurnsCompared(
        run, gathering.take(comparison.recorded, comparison.simulated, 1.0), done=True
    )


def _prices(context: AnswerContext) -> RateBook:
    """Prices, looked up once for all what-ifs."""
    from ctxctl.config import load
    from ctxctl.tokens.catalogue.rates import RateBook

    found: RateBook = context.kept("prices", lambda: RateBook(load().models))
    return found


def _whatifs(context: AnswerContext) -> WhatIfs:
    """The what-ifs of the trace: a second one with the same encoding finds its contents counted."""
    from ctxctl.analysis.whatif import WhatIfs

    found: WhatIfs = context.kept("whatif", lambda: WhatIfs(context.inspector))
    if found.inspector is not context.inspector:
        context.forget()
        found = context.kept("whatif", lambda: WhatIfs(context.inspector))
    return found


def _noted(context: AnswerContext, run: int, comparison: Comparison) -> requests.Notes:
    return requests.Notes(run, tuple(_notes(comparison)), context.inspector.summary is None)


def _notes(comparison: Comparison) -> Iterator[str]:
    from ctxctl.session.edits import edit_notes

    notes = comparison.supposed.notes
    yield from edit_notes(comparison.supposed.params.edited)
    yield from notes[:1]
    if comparison.appended:
        yield (
            "The policy only appends; the recorded requests carry the whole window each, and what they carry"
            " again is counted again."
        )
    if comparison.held:
        yield f"The recorded limit on input still decides at {plural(comparison.held, 'step')}."
    yield from notes[1:]


def _title(inspector: Inspector, ordinal: int) -> str | None:
    """A turn's title, where the main list has it by now."""
    rows = inspector.known
    return rows[ordinal].title if ordinal < len(rows) else None


ANSWERS: Final[dict[type[Request], Answer[Any]]] = {
    requests.RecordedRequest: _recorded,
    requests.SimulationRequest: _compared,
}

"""The next request's size, from the last billed one and what came since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from ctxctl.model.results import StageView, Step
from ctxctl.tokens.calibrate.book import Calibration
from ctxctl.tokens.calibrate.features import CLASSES, NOTHING, Vector, movement, plus, weighed
from ctxctl.tokens.calibrate.points import family, is_break, plausible
from ctxctl.tokens.encodings import RANKS_OF
from ctxctl.tokens.models import resolve
from ctxctl.tokens.overhead import CALL, MESSAGE, ROLE

_ITEM: Final = {"tool_call": CALL, "reasoning": 0, "tool_definition": 0}
EXACT: Final = (1.0,) * len(CLASSES) + tuple(float(_ITEM.get(name, MESSAGE + ROLE)) for name in CLASSES)
"""Weights of a model whose own tokenizer counts: nothing of them is fitted to its bills."""


class Billed(NamedTuple):
    """A bill that the next one is reckoned from."""

    model: str
    reported: int
    sizes: Vector


class Running(NamedTuple):
    """What is remembered of a thread between its steps; a value, so a copy of a replay may share it."""

    sizes: Vector = NOTHING
    uncounted: int = 0
    billed: Billed | None = None
    broken: bool = False
    """A new segment began since."""


class Weighing(NamedTuple):
    """How a model's tokens are reckoned from counted ones."""

    method: str
    """`exact:ENCODING` or `calibrated:ENCODING`."""
    weights: tuple[float, ...]
    p50: float | None
    """Error of the next size on steps that were not fitted, as a share; None where there is none by rule."""
    p95: float | None


class Expected(NamedTuple):
    """What a step's size should be, as far as a calibration tells."""

    method: str
    content: int
    """The recorded content in the model's tokens."""
    beyond: int | None
    """Billed beyond it: whatever the trace does not hold.  None: no bill."""
    predicted: int | None
    """The size from the last bill of the same model; None: there is none before this step."""
    off: int | None
    """Predicted less reported."""
    doubt: str | None
    """Why the prediction may be wide: `new_segment` or `uncounted_content` since the last bill."""
    p50: float | None
    p95: float | None


def weighing(calibration: Calibration, model: str | None, encoding: str) -> Weighing | None:
    """How to reckon a model's tokens from counts made with an encoding; None where nobody knows."""
    found = resolve(model)
    if found.known:
        if RANKS_OF[found.encoding] != RANKS_OF[encoding]:
            return None
        return Weighing(f"exact:{encoding}", EXACT, None, None)
    fit = calibration.of(model, encoding)
    if fit is None:
        return None
    return Weighing(f"calibrated:{encoding}", fit.weights, fit.next_size.p50, fit.next_size.p95)


def next_size(billed: int, moved: Vector, how: Weighing) -> int:
    """The size of a request in tokens of its model.

    Args:
        billed: What the one before was billed.
        moved: What came (and, below zero, left) since, as `features.movement` counts it.
    """
    return max(0, billed + round(weighed(how.weights, moved)))


def reckon(
    running: Running | None, step: Step, weigh: Callable[[str | None], Weighing | None]
) -> tuple[Running, Expected | None]:
    """Take one step of a thread in: what is remembered from here on, and what its size should be.

    `weigh` gives the `weighing` of a model.
    """
    was = running or Running()
    sizes = plus(was.sizes, movement(step))
    broken = was.broken or is_break(step)
    usage = step.usage
    reported = usage.reported_input if usage is not None else None
    how = weigh(step.model)
    simulated = "simulated" in step.flags
    expected = None
    if how is not None and not simulated:
        expected = _expected(was, step, sizes, reported, how, broken=broken)
    counted = sum(sizes[: len(CLASSES)])
    if simulated or step.model is None or reported is None or not plausible(reported, counted):
        return Running(sizes, was.uncounted, was.billed, broken), expected
    return Running(sizes, step.window.uncounted, Billed(family(step.model), reported, sizes)), expected


def _expected(
    was: Running, step: Step, sizes: Vector, reported: int | None, how: Weighing, *, broken: bool
) -> Expected:
    content = round(weighed(how.weights, sizes))
    predicted, doubt = None, None
    billed = was.billed
    if billed is not None and step.model is not None and billed.model == family(step.model):
        moved = tuple(now - then for now, then in zip(sizes, billed.sizes, strict=True))
        predicted = next_size(billed.reported, moved, how)
        if broken:
            doubt = "new_segment"
        elif step.window.uncounted != was.uncounted:
            doubt = "uncounted_content"
    return Expected(
        how.method,
        content,
        None if reported is None else reported - content,
        predicted,
        None if predicted is None or reported is None else predicted - reported,
        doubt,
        how.p50,
        how.p95,
    )


def annotated(step: Step, expected: Expected | None, digest: str) -> Step:
    """The step with the figures in its evidence stage, beside the counted and reported ones."""
    if expected is None:
        return step
    evidence = step.stages.get("evidence", StageView("not_recorded"))
    facts = {**evidence.facts, "calibration": told(expected, digest)}
    stages = {**step.stages, "evidence": StageView(evidence.verdict, facts)}
    return msgspec.structs.replace(step, stages=stages)


def told(expected: Expected, digest: str) -> dict[str, Any]:
    """The figures as JSON; errors in per cent, as they came out on steps that were not fitted."""
    fitted = expected.p50 is not None
    figures = {
        "method": expected.method,
        "digest": digest if fitted else None,
        "content": expected.content,
        "beyond": expected.beyond,
        "predicted": expected.predicted,
        "off": expected.off,
        "doubt": expected.doubt,
        "error_p50": None if expected.p50 is None else round(100 * expected.p50, 2),
        "error_p95": None if expected.p95 is None else round(100 * expected.p95, 2),
    }
    return {name: value for name, value in figures.items() if value is not None}

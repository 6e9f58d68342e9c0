"""What the engine is given to weigh texts and to expect sizes with: a calibration, or none."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ctxctl.engine.scales import RAW, Expectation, Plain, Scale, Scales
from ctxctl.model.vocab import MODEL

if TYPE_CHECKING:
    from ctxctl.inspector.calibrating import Chosen
    from ctxctl.tokens.calibrate.book import Calibration
    from ctxctl.tokens.calibrate.features import Vector
    from ctxctl.tokens.calibrate.reckon import Weighing

_KINDS = ("assistant_message", "tool_result", "tool_call", "reasoning", "tool_definition")


def scales_of(found: Chosen, encoding: str, target: str) -> Scales:
    """What a replay is weighed with."""
    if found.calibration is None or target != MODEL:
        return Plain()
    return Calibrated(found.calibration, encoding)


class Calibrated:
    """A calibration at work on the threads of one replay."""

    def __init__(self, calibration: Calibration, encoding: str) -> None:
        from ctxctl.tokens.calibrate.reckon import weighing

        @lru_cache(maxsize=256)
        def weigh(model: str | None) -> Weighing | None:
            return weighing(calibration, model, encoding)

        self._weigh = weigh

    def scale(self, model: str | None, learned: object) -> Scale:
        """By the fit of the model's family."""
        how = self._weigh(model)
        if how is None or how.p50 is None:
            return RAW
        slopes = how.weights
        return Scale(dict(zip(_KINDS, slopes[1:6], strict=True)), slopes[0], "calibrated")

    def expect(
        self, model: str | None, learned: object, last: int, moved: Vector, *, since: int, broken: bool
    ) -> Expectation | None:
        """The last bill, what moved, and what items cost beside their texts."""
        how = self._weigh(model)
        if how is None:
            return None
        half = len(moved) // 2
        beside = sum(w * n for w, n in zip(how.weights[half:], moved[half:], strict=True))
        size = max(0, last + sum(moved[:half]) + round(beside))
        return Expectation(size, None if how.p95 is None else round(how.p95 * size))

    def refine(
        self, model: str | None, learned: object, last: int, moved: Vector, bill: int, *, broken: bool
    ) -> object:
        """Nothing yet."""
        return None

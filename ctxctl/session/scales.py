"""The engine's scales: sizes of texts and expected sizes by a calibration, or without one."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Protocol

from ctxctl.engine.sizes.scales import RAW, EnteredSize, Expectation, Scale, Scales, Uncalibrated
from ctxctl.model.content import Content
from ctxctl.model.vocab import MODEL, OPENAI_CHAT

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.model.content import Content
    from ctxctl.session.params import Params
    from ctxctl.tokens.calibrate.calibration import Calibration
    from ctxctl.tokens.calibrate.expect import ModelWeights
    from ctxctl.tokens.calibrate.following import ThreadExpectation


class WrittenTools(Protocol):
    """Counts tools in the form that OpenAI gives to models of an encoding."""

    def __call__(self, content: Content, encoding: str) -> int | None:
        """Return the tokens of a tool's definition; None if it is no definition of a function."""


_KINDS: Final = ("assistant_message", "tool_result", "tool_call", "reasoning", "tool_definition")
"""Kinds with a class of their own, in the order of `features.CLASSES`. All other text is the first class."""


def scales_of(params: Params, written: WrittenTools) -> Scales:
    """Return the scales of a replay; `written` counts tools in the provider's form."""
    calibration = params.calibration.calibration
    if calibration is None or params.target != MODEL:
        return Uncalibrated()
    return CalibratedScale(calibration, params.encoding_of, written)


class CalibratedScale:
    """Applies a calibration to the threads of one replay."""

    def __init__(
        self, calibration: Calibration, encoding_of: Callable[[str | None], str], written: WrittenTools
    ) -> None:
        self._calibration = calibration
        self._encoding_of = encoding_of
        self.written = written
        self._exact = lru_cache(maxsize=8)(partial(_exact, written))
        self._weigh = lru_cache(maxsize=256)(self._weighing)
        self._scale = lru_cache(maxsize=1024)(_scale)
        # Import once here: a step needs these a dozen times.
        from ctxctl.tokens.calibrate import expect, following, points

        self._expect, self._expected, self._name = expect, following.expected_request, points.family
        self._thread, self._nothing = following.ThreadExpectation, following.ThreadExpectation()

    def _following(self, thread: object) -> ThreadExpectation:
        return thread if isinstance(thread, self._thread) else self._nothing

    def _family(self, model: str | None) -> str:
        return self._name(model) if model else ""

    def _weighing(self, model: str | None) -> ModelWeights:
        return self._expect.model_weights(self._calibration, model, self._encoding_of(model))

    def scale(self, model: str | None, thread: object) -> Scale:
        """Return the scale by the fit of the model's family, and by what the thread's bills say of it."""
        expect, how = self._expect, self._weigh(model)
        if how.basis == expect.EXACT:
            return self._exact(self._encoding_of(model))
        learned = self._following(thread).of(self._family(model)) if thread is not None else None
        return self._scale(expect.slopes(how, learned), expect.method(how, learned).partition(":")[0])

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """Add what entered to what has moved since the last bill."""
        half = len(entered.moved) // 2
        moved, items = entered.moved[:half], entered.moved[half:]
        return self._following(thread).entered(
            moved, items, blind=entered.blind, broken=entered.broken, whole=entered.whole == OPENAI_CHAT
        )

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """Return the size expected from the last bill and later changes, or else by OpenAI's rules."""
        found = self._expected(self._following(thread), self._family(model), self._weigh(model), recorded)
        return None if found is None else Expectation(found.size, found.half)

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """Update the scale and its expected error by a bill."""
        return self._following(thread).billed(self._family(model), self._weigh(model), size, recorded)

    def translated(self, size: int, billed: str | None, model: str | None) -> Expectation | None:
        """Return a size billed for one model in tokens of another, by both models' tool-result weights."""
        from ctxctl.tokens.calibrate.features import CLASSES
        from ctxctl.tokens.calibrate.following import SWITCHED

        if self._family(billed) == self._family(model):
            return Expectation(size, None)
        usual = CLASSES.index("tool_result")
        theirs, ours = (self._weigh(name).slopes[usual] for name in (billed, model))
        other = round(size * ours / theirs)
        return Expectation(other, round(SWITCHED * other))


def _exact(written: WrittenTools, encoding: str) -> Scale:
    """Return the scale of a public encoding: texts as counted, tools in the provider's form."""
    return RAW._replace(tool=partial(written, encoding=encoding))


def _scale(slopes: tuple[float, ...], method: str) -> Scale:
    """`method`: `exact`, `calibrated` or `estimate`."""
    if method != "calibrated" and all(slope == 1.0 for slope in slopes):
        return RAW
    by_kind = dict(zip(_KINDS, slopes[1:], strict=True))
    return Scale(by_kind, slopes[0], "calibrated" if method == "calibrated" else "estimated")

"""What the engine is given to weigh texts and to expect sizes with: a calibration, or none.

Counts of a trace's contents under another encoding than the replay's.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Protocol

from ctxctl.engine.sizes.scales import RAW, EnteredSize, Expectation, Scale, Scales, Uncalibrated
from ctxctl.model.content import Content
from ctxctl.model.vocab import MODEL, OPENAI_CHAT
from ctxctl.session.params import counting_room
from ctxctl.tokens.overhead import written_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxctl.model.content import Content, ContentStore
    from ctxctl.session.params import Params
    from ctxctl.tokens.calibrate.calibration import Calibration
    from ctxctl.tokens.calibrate.expect import ModelWeights
    from ctxctl.tokens.calibrate.following import ThreadExpectation


class WrittenTools(Protocol):
    """What counts tools as OpenAI writes them out for models of an encoding."""

    def __call__(self, content: Content, encoding: str) -> int | None:
        """Tokens of a tool's definition; None: it is no definition of a function."""


_KINDS: Final = ("assistant_message", "tool_result", "tool_call", "reasoning", "tool_definition")
"""Kinds that are a class of their own, in the order of `features.CLASSES`; all other text is the first."""


def scales_of(params: Params, written: WrittenTools) -> Scales:
    """What a replay is weighed with; `written` counts tools as a provider writes them out."""
    calibration = params.calibration.calibration
    if calibration is None or params.target != MODEL:
        return Uncalibrated()
    return CalibratedScale(calibration, params.encoding_of, written)


class CalibratedScale:
    """A calibration at work on the threads of one replay."""

    def __init__(
        self, calibration: Calibration, encoding_of: Callable[[str | None], str], written: WrittenTools
    ) -> None:
        self._calibration = calibration
        self._encoding_of = encoding_of
        self._exact = lru_cache(maxsize=8)(partial(_exact, written))
        self._weigh = lru_cache(maxsize=256)(self._weighing)
        self._scale = lru_cache(maxsize=1024)(_scale)

    def _weighing(self, model: str | None) -> ModelWeights:
        from ctxctl.tokens.calibrate.expect import model_weights

        return model_weights(self._calibration, model, self._encoding_of(model))

    def scale(self, model: str | None, thread: object) -> Scale:
        """By the fit of the model's family, and what the thread's bills say of it."""
        from ctxctl.tokens.calibrate import expect

        how = self._weigh(model)
        if how.basis == expect.EXACT:
            return self._exact(self._encoding_of(model))
        learned = _following(thread).of(_family(model)) if thread is not None else None
        return self._scale(expect.slopes(how, learned), expect.method(how, learned).partition(":")[0])

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """What moved since the last bill grows."""
        half = len(entered.moved) // 2
        moved, items = entered.moved[:half], entered.moved[half:]
        return _following(thread).entered(
            moved, items, blind=entered.blind, broken=entered.broken, whole=entered.whole == OPENAI_CHAT
        )

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """From the last bill and what moved since; before any by the rules of OpenAI's API."""
        from ctxctl.tokens.calibrate.following import expected_request

        found = expected_request(_following(thread), _family(model), self._weigh(model), recorded)
        return None if found is None else Expectation(found.size, found.half)

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """What the bill says of the scale, and of how far off expectations are."""
        return _following(thread).billed(_family(model), self._weigh(model), size, recorded)

    def translated(self, size: int, billed: str | None, model: str | None) -> Expectation | None:
        """By how many tokens the two make of one counted, of tool results."""
        from ctxctl.tokens.calibrate.features import CLASSES
        from ctxctl.tokens.calibrate.following import SWITCHED

        if _family(billed) == _family(model):
            return Expectation(size, None)
        usual = CLASSES.index("tool_result")
        theirs, ours = (self._weigh(name).slopes[usual] for name in (billed, model))
        other = round(size * ours / theirs)
        return Expectation(other, round(SWITCHED * other))


def _following(thread: object) -> ThreadExpectation:
    from ctxctl.tokens.calibrate.following import ThreadExpectation

    return thread if isinstance(thread, ThreadExpectation) else ThreadExpectation()


def _family(model: str | None) -> str:
    from ctxctl.tokens.calibrate.points import family

    return family(model) if model else ""


def _exact(written: WrittenTools, encoding: str) -> Scale:
    """Of a model whose encoding is public: texts as counted, tools as they are written out for it."""
    return RAW._replace(tool=partial(written, encoding=encoding))


def _scale(slopes: tuple[float, ...], method: str) -> Scale:
    """`method`: `exact`, `calibrated` or `estimate`."""
    if method != "calibrated" and all(slope == 1.0 for slope in slopes):
        return RAW
    by_kind = dict(zip(_KINDS, slopes[1:], strict=True))
    return Scale(by_kind, slopes[0], "calibrated" if method == "calibrated" else "estimated")


class Recount:
    """Counts each content once; texts that were ever counted are not counted again."""

    def __init__(self, contents: ContentStore, encoding: str) -> None:
        self._contents = contents
        self._room = counting_room(encoding)
        self._encoding = encoding
        self._counted: dict[str, tuple[int, bool]] = {}

    def count(self, content: Content) -> tuple[int, bool]:
        """Tokens of a content, and whether that is exact for the encoding."""
        counted = self._counted.get(content.digest)
        if counted is None:
            counted = self._counted[content.digest] = self._room.count(self._contents.text(content))
        return counted

    def written(self, content: Content) -> int | None:
        """As `Inspector.written`, under this encoding."""
        return written_size(self._contents.text(content), self._room, self._encoding)

    def trim(self, text: str, tokens: int, side: str) -> str:
        """A text cut exactly at a token bound of this encoding."""
        return self._room.trim(text, tokens, side)

    def flush(self) -> None:
        """Write new counts to disk."""
        self._room.flush()

    def close(self) -> None:
        """Write new counts to disk and let the file go."""
        self._room.close()

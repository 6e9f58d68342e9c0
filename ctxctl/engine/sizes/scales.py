"""The engine's interface to a calibration: how a thread's real tokens follow from counted ones.

A placement gets its size when its text first enters a thread, by what is known then, and keeps it. So the
ledger adds up, whatever later bills teach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from ctxctl.model.content import Content
from ctxctl.tokens.calibrate.features import Vector

TOOL: Final = "tool_definition"


class Scale(NamedTuple):
    """Converts counted tokens to the model's own."""

    slopes: Mapping[str, float]
    """Slopes by context kind. Other kinds use `slope`."""
    slope: float
    method: str
    """The method of counts made with it: `calibrated`, or `counted` if they do not change."""
    tool: Callable[[Content], int | None] | None = None
    """Tokens of a tool's definition in the provider's own form; None, of a definition or of all, if
    unknown."""

    def weigh(self, kind: str, content: Content, counted: int, exact: bool) -> tuple[int, str]:
        """Return a content's tokens and their method.

        The provider rewrites a tool's definition in a form of its own for the model. So a count of its JSON
        is never exact.
        """
        written = self.tool(content) if kind == TOOL and self.tool is not None else None
        if written is not None:
            return written, "calibrated"
        return self.of(kind, counted, exact and (kind != TOOL or self.method != "counted"))

    def of(self, kind: str, counted: int, exact: bool) -> tuple[int, str]:
        """Return a text's tokens and their method; `exact` if all of it was counted."""
        if self.method == "counted":
            return counted, "counted" if exact else "estimated"
        tokens = round(counted * self.slopes.get(kind, self.slope))
        return tokens, self.method if exact else "estimated"

    def counted(self, kind: str, tokens: int) -> int:
        """Return the most counted tokens that are surely at most `tokens` of the model's."""
        return (
            tokens if self.method == "counted" else int(tokens / max(self.slopes.get(kind, self.slope), 0.01))
        )


RAW = Scale({}, 1.0, "counted")
"""Leaves counts as they are."""


class Expectation(NamedTuple):
    """An expected size, without a bill."""

    tokens: int
    error: int | None
    """Nine of ten errors are at most this large, in tokens; None if unknown."""


class EnteredSize(NamedTuple):
    """The difference of one step's request from the previous one."""

    moved: Vector
    """Tokens and items by class; negative for what left."""
    blind: int
    """Items without text or count: those that entered less those that left."""
    broken: bool
    """Whether a new segment begins: from here on, requests may send another unrecorded part."""
    whole: str | None = None
    """The API by whose rules this fully recorded request can be sized."""


class Scales(Protocol):
    """Estimates the sizes of a thread's texts and requests.

    Its memory of a thread is an immutable value, so copies of a replay share it. None is a thread without a
    request.
    """

    def scale(self, model: str | None, thread: object) -> Scale:
        """Return the scale for texts that enter now."""

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """Return the thread with one more request."""

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """Return the size of the last request, from the thread's last bill, or before any bill from the rules
        of its API; None if unknown.

        `recorded` is its recorded size in tokens.
        """

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """Return the thread with the bill of the last request."""

    def translated(self, size: int, billed: str | None, model: str | None) -> Expectation | None:
        """Return a bill of one model in another one's tokens; None if unknown."""


class Uncalibrated:
    """No calibration: counts stay as they are, and nothing is expected."""

    def scale(self, model: str | None, thread: object) -> Scale:
        """Return `RAW`."""
        return RAW

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """Return None: nothing is remembered."""
        return None

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """Return None: nothing is expected."""
        return None

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """Return None: nothing is remembered."""
        return None

    def translated(self, size: int, billed: str | None, model: str | None) -> Expectation | None:
        """Return the size for the same model; None for another."""
        return Expectation(size, None) if billed == model else None

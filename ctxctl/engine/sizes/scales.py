"""How a thread's tokens are had from counted ones: what the engine asks of a calibration, and no calibration.

A placement gets its size when its text first enters a thread, by what is known then, and keeps it: so what
enters, what leaves and what is there add up, however much the thread's bills teach later on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol

from ctxctl.model.content import Content
from ctxctl.tokens.calibrate.features import Vector

TOOL: Final = "tool_definition"


class Scale(NamedTuple):
    """What counted tokens come to in the model's own."""

    slopes: Mapping[str, float]
    """By context kind; kinds that are not in it have `slope`."""
    slope: float
    method: str
    """What counts made with it are called: `calibrated`, or `counted` where they stay as they are."""
    tool: Callable[[Content], int | None] | None = None
    """Tokens of a tool's definition as the provider writes it out for the model; None, of a definition or of
    all: nobody knows how it does."""

    def weigh(self, kind: str, content: Content, counted: int, exact: bool) -> tuple[int, str]:
        """A content's tokens and how they were had.

        The model does not get a tool's definition as the JSON that was recorded: the provider writes it out
        in a form of its own.  So the count of that JSON is never exact.
        """
        written = self.tool(content) if kind == TOOL and self.tool is not None else None
        if written is not None:
            return written, "calibrated"
        return self.of(kind, counted, exact and (kind != TOOL or self.method != "counted"))

    def of(self, kind: str, counted: int, exact: bool) -> tuple[int, str]:
        """A text's tokens and how they were had; `exact`: it was counted whole."""
        if self.method == "counted":
            return counted, "counted" if exact else "estimated"
        tokens = round(counted * self.slopes.get(kind, self.slope))
        return tokens, self.method if exact else "estimated"

    def counted(self, kind: str, tokens: int) -> int:
        """How many counted tokens surely come to no more than so many of the model's."""
        return (
            tokens if self.method == "counted" else int(tokens / max(self.slopes.get(kind, self.slope), 0.01))
        )


RAW = Scale({}, 1.0, "counted")
"""Counts as they are."""


class Expectation(NamedTuple):
    """A size that was not billed."""

    tokens: int
    error: int | None
    """Nine of ten are off by no more than this; None: not known."""


class EnteredSize(NamedTuple):
    """What one step's request has more than the one before."""

    moved: Vector
    """Tokens of its placements and items, by class; below zero what left."""
    blind: int
    """Items without text or count that came less those that went."""
    broken: bool
    """A new segment begins: what is sent beside the content may be another from here on."""
    whole: str | None = None
    """The API by whose rules the size of this request follows from its record, which holds all of it."""


class Scales(Protocol):
    """What says how large a thread's texts and its requests are.

    What it remembers of a thread is a value that is never changed, so copies of a replay share it; None is a
    thread that had no request yet.
    """

    def scale(self, model: str | None, thread: object) -> Scale:
        """What texts that enter now are counted at."""

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """The thread with one more request."""

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """The size of the request that entered last, from the thread's last bill or, before any, from the
        rules of its API; None: nobody can say.

        `recorded` is what is recorded of it, in tokens.
        """

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """The thread with the bill of the request that entered last."""

    def translated(self, size: int, billed: str | None, model: str | None) -> Expectation | None:
        """What one model was billed, in another one's tokens; None: nobody can say."""


class Uncalibrated:
    """No calibration: counts as they are, and nothing is expected."""

    def scale(self, model: str | None, thread: object) -> Scale:
        """As counted."""
        return RAW

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """Nothing is remembered."""
        return None

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """Nobody says."""
        return None

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """Nothing is remembered."""
        return None

    def translated(self, size: int, billed: str | None, model: str | None) -> Expectation | None:
        """Nobody says, unless it is the same one."""
        return Expectation(size, None) if billed == model else None

"""A calibration for tests: nothing like a tokenizer, so that whatever is weighed at another time shows.

Its slope is another one after every bill, and the first one is none at all; what it expects is the last bill
and what moved since, to the token, so that every law about sizes can be held exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxctl.engine.cursor import Snapshots
from ctxctl.engine.scales import RAW, Expectation, Scale
from ctxctl.inspector import Inspector, facade
from ctxctl.tokens.calibrate.features import Vector
from tests.oracle import real
from tests.oracle.build import Event


class Restless:
    """Learns the number of a thread's bills, and weighs by it."""

    def __init__(self, *, raw_first: bool = True) -> None:
        self._raw_first = raw_first

    def scale(self, model: str | None, learned: object) -> Scale:
        """Another slope after each bill; before the first, counts stay as they are or are doubled."""
        bills = learned if isinstance(learned, int) else 0
        if not bills and self._raw_first:
            return RAW
        return Scale({"tool_definition": 3.0 + bills, "user_message": 5.0}, 2.0 + bills, "calibrated")

    def expect(
        self, model: str | None, learned: object, last: int, moved: Vector, *, since: int, broken: bool
    ) -> Expectation | None:
        """What moved has moved; one in a hundred a step, and nobody knows after a break."""
        size = max(0, last + sum(moved[: len(moved) // 2]))
        return Expectation(size, None if broken else since * size // 100)

    def refine(
        self, model: str | None, learned: object, last: int, moved: Vector, bill: int, *, broken: bool
    ) -> object:
        """One bill more."""
        return (learned if isinstance(learned, int) else 0) + 1


@contextmanager
def calibrated(scales: Any) -> Iterator[None]:
    """Every inspector that is used meanwhile weighs with these, and keeps a snapshot of every step."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(facade, "scales_of", lambda *_given: scales)
        patched.setattr(Snapshots, "due", lambda self, done: done > self._all[-1].done)
        yield


@contextmanager
def opened(where: Path, events: list[Event], scales: Any = None, **how: Any) -> Iterator[Inspector]:
    """The trace of these events under such a calibration."""
    with calibrated(scales or Restless()), real.opened(where, events, **how) as inspector:
        yield inspector

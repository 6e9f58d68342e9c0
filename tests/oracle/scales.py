"""A calibration for tests: nothing like a tokenizer, so that whatever is weighed at another time shows.

Its slope is another one after every bill, and the first one is none at all; what it expects is the last bill
and what moved since, to the token, so that every law about sizes can be held exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxctl.engine.replay.cursor import Snapshots
from ctxctl.engine.sizes.scales import RAW, EnteredSize, Expectation, Scale
from ctxctl.session import Inspector, facade
from tests.oracle import real
from tests.oracle.build import Event


class Known(NamedTuple):
    """What is remembered of a thread."""

    bills: int = 0
    """Of the model that answered last, in a row."""
    last: int = 0
    model: str | None = None
    moved: int = 0
    since: int = 0
    broken: bool = False
    blind: int = 0


class Restless:
    """Learns the number of a thread's bills, and weighs by it."""

    def __init__(self, *, raw_first: bool = True) -> None:
        self._raw_first = raw_first

    def scale(self, model: str | None, thread: object) -> Scale:
        """Another slope after each bill; before the first, counts stay as they are or are doubled."""
        bills = thread.bills if isinstance(thread, Known) else 0
        if not bills and self._raw_first:
            return RAW
        return Scale({"tool_definition": 3.0 + bills, "user_message": 5.0}, 2.0 + bills, "calibrated")

    def enter(self, thread: object, entered: EnteredSize) -> object:
        """What moved adds up."""
        known = thread if isinstance(thread, Known) else Known()
        return known._replace(
            moved=known.moved + sum(entered.moved[: len(entered.moved) // 2]),
            since=known.since + 1,
            broken=known.broken or entered.broken,
            blind=known.blind + entered.blind,
        )

    def expect(self, thread: object, model: str | None, recorded: int) -> Expectation | None:
        """What moved has moved; one in a hundred a step, and nobody knows after a break or before a bill."""
        assert isinstance(thread, Known)
        if not thread.last:
            return None  # it knows no API's rules
        size = max(0, thread.last + thread.moved)
        doubtful = thread.broken or thread.blind or model != thread.model
        return Expectation(size, None if doubtful else thread.since * size // 100)

    def billed(self, thread: object, model: str | None, size: int, recorded: int) -> object:
        """One bill more; the first of a model begins anew."""
        assert isinstance(thread, Known)
        bills = thread.bills + 1 if model == thread.model and thread.last else 0
        return Known(bills, size, model)

    def translated(self, size: int, billed: str | None, model: str | None) -> Expectation | None:
        """The same size."""
        return Expectation(size, None)


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

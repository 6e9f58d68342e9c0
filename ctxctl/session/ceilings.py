"""Which limits the steps that were asked of were held against, and who says these."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.model.results import Window
from ctxctl.model.vocab import LimitSource


class Ceiling(NamedTuple):
    """One limit, over the steps that had it."""

    cap: int | None
    """What a prompt may hold, in tokens; None: nobody knows."""
    source: LimitSource | None
    note: str | None
    """How it was found, or why there is none; of several steps the last one's."""
    steps: int


class Ceilings:
    """Limits of steps, in the order in which they come first; some few, however many steps."""

    def __init__(self) -> None:
        self._found: dict[tuple[int | None, LimitSource | None, str | None], Ceiling] = {}

    def add(self, window: Window) -> None:
        """Take in one step's window."""
        # Why there is none is told with a figure of the step, so that would be another at each.
        key = (window.cap, window.limit_source, None if window.cap is None else window.limit_note)
        known = self._found.get(key)
        steps = 1 if known is None else known.steps + 1
        self._found[key] = Ceiling(window.cap, window.limit_source, window.limit_note, steps)

    @property
    def rows(self) -> tuple[Ceiling, ...]:
        """All of them so far."""
        return tuple(self._found.values())

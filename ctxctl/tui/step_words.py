"""What was done in steps, in the words of their items, as far as it was looked up.  Plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ctxctl.item_names import fitted_call
from ctxctl.text import cells
from ctxctl.wording import SIGNS, short

_KEPT: Final = 20_000


class StepWords(NamedTuple):
    """What came with one step: a call or an answer, by its whole name, and how many more calls."""

    name: str
    more: int = 0

    def at(self, width: int) -> str:
        """In at most so many cells."""
        rest = f" {SIGNS['added']}{short(self.more)}" if self.more else ""
        return fitted_call(self.name, max(width - cells(rest), 0)) + rest


class KnownWords:
    """Grows in place; belongs to the event loop."""

    def __init__(self) -> None:
        self._known: dict[int, StepWords | None] = {}

    def take(self, told: Mapping[int, StepWords | None]) -> None:
        """Take in what some steps said; None: nothing that could be named."""
        if len(self._known) + len(told) > _KEPT:
            self._known.clear()
        self._known.update(told)

    def cut(self, ordinal: int) -> None:
        """Forget the steps from an ordinal on."""
        for known in [one for one in self._known if one >= ordinal]:
            del self._known[known]

    def of(self, ordinal: int) -> StepWords | None:
        """What a step said, as far as that is known."""
        return self._known.get(ordinal)

    def missing(self, ordinals: Iterable[int]) -> tuple[int, ...]:
        """Those of some steps of which it has not been asked."""
        return tuple(ordinal for ordinal in ordinals if ordinal not in self._known)

"""What something costs for as long as it is in the window, without a look at it at each step."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ctxctl.lint.context import StepContext, ThreadSums
    from ctxctl.lint.rule import Hit

_MOST: Final = 1 << 16
"""Loads open at one time; what comes beyond them is told with its first step only."""


class _Load(NamedTuple):
    hit: Hit
    tokens: int
    running: ThreadSums
    steps: int
    rates: Decimal
    unpriced: int


class CarriedCost:
    """Loads that begin at one step and end at another; each is told once, with the sum of its steps."""

    def __init__(self) -> None:
        self._open: dict[Hashable, _Load] = {}

    def begin(self, name: Hashable, hit: Hit, tokens: int, look: StepContext) -> Hit | None:
        """From this step on, `tokens` more than needed are in each request; a hit where no more fit in."""
        if name in self._open:
            return None
        if len(self._open) >= _MOST:
            return hit._replace(tokens=tokens, money=look.money(tokens))
        now = look.running
        self._open[name] = _Load(hit, tokens, now, now.steps, now.rates, now.unpriced)
        return None

    def holds(self, name: Hashable) -> bool:
        """Whether a load of this name is open."""
        return name in self._open

    def over(self, name: Hashable) -> Iterator[Hit]:
        """It has left the window; nothing where it was not in there."""
        load = self._open.pop(name, None)
        if load is not None:
            yield _sum(load)

    def rest(self) -> Iterator[Hit]:
        """What is still in a window where the trace ends."""
        loads, self._open = self._open, {}
        yield from (_sum(load) for load in loads.values())


def _sum(load: _Load) -> Hit:
    steps = load.running.steps - load.steps
    unknown = load.running.unpriced != load.unpriced
    money = None if unknown else (load.running.rates - load.rates) * load.tokens
    return load.hit._replace(tokens=load.tokens * steps, money=money, steps=max(steps, 1))

"""A turn as recorded and as simulated: sums over its steps, side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple

from ctxctl.model.money import ZERO
from ctxctl.model.vocab import UsedMethod
from ctxctl.model.whatif import Pair, Side


class TurnSide(NamedTuple):
    """One turn on one side: its last step's window, and what happened at all its steps."""

    used: int = 0
    """What the last step sent."""
    cap: int | None = None
    free: int | None = None
    prefix: int | None = None
    uncounted: int = 0
    over: int | None = None
    """How far its worst step is over; None if no step's cap is known."""
    omitted: int = 0
    truncated: int = 0
    compactions: int = 0
    sent: int = 0
    """Tokens of all its requests together."""
    breaks: int = 0
    """Steps whose possible prefix broke."""
    lost: int = 0
    """Tokens of the requests before them that came behind the break."""
    cost: Decimal = ZERO
    """US dollars for the contexts of its steps, where they are known."""
    unpriced: int = 0
    """Steps for whose context no price is known."""
    method: UsedMethod = "recorded"
    """How it is known what the last step sent."""
    recorded: int = 0
    """Of that, the frame's content."""

    @property
    def is_known(self) -> bool:
        """Whether `used` says anything: not where nobody billed the step, nor counted any of its items."""
        return bool(self.used or not self.uncounted)

    def then(self, side: Side) -> TurnSide:
        """With one more step."""
        over = self.over if side.over is None else max(self.over or 0, side.over)
        return TurnSide(
            side.used, side.cap, side.free, side.prefix, side.uncounted, over,
            self.omitted + side.omitted, self.truncated + side.truncated, self.compactions + side.compactions,
            self.sent + side.used, self.breaks + side.broke, self.lost + side.lost,
            self.cost + (side.cost or ZERO), self.unpriced + (side.cost is None), side.method, side.recorded,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TurnPair:
    """One turn of one thread on both sides."""

    session: str | None
    thread: str
    turn: int
    ordinal: int
    """Where to go for it: its first step that does not fit in the simulation, else its last."""
    steps: int
    title: str | None
    recorded: TurnSide
    simulated: TurnSide

    def then(self, pair: Pair) -> TurnPair:
        """With one more step."""
        return replace(
            self,
            ordinal=self.ordinal if self.simulated.over else pair.ordinal,
            steps=self.steps + 1,
            recorded=self.recorded.then(pair.recorded),
            simulated=self.simulated.then(pair.simulated),
        )


def turn_begun(pair: Pair, title: str | None) -> TurnPair:
    """The turn of a step, without any step so far."""
    return TurnPair(pair.session, pair.thread, pair.turn, pair.ordinal, 0, title, TurnSide(), TurnSide())

"""Two sessions of one task side by side: their turns aligned, and what one window had that the other lacked.

Names and texts are those of the traces, raw.  ``a`` and ``b`` are the two sides; tokens are as each side's
replay counts them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from ctxctl.model.money import ZERO
from ctxctl.model.vocab import UsedMethod

By = Literal["prompt", "order"]
"""Why two turns are held to be the same: they have the same prompt, or the same place between such."""

What = Literal["only_a", "only_b", "differs"]


class TurnSide(msgspec.Struct, frozen=True, gc=False):
    """One turn on one side: its last step's window, and sums over its steps."""

    ordinal: int
    """Of its last step."""
    session: str | None
    thread: str
    turn: int
    step: int
    """Its last one."""
    steps: int
    title: str | None
    """First words of the prompt."""
    used: int
    """What its last step sent."""
    new: int
    freed: int
    billed: int | None
    """Input tokens that the provider reported, of the steps that have a bill; None: of no step."""
    cost: Decimal
    """US dollars, of the steps whose price and size are known: partial outputs as counted, and what nobody
    billed at its expected size."""
    unpriced: int
    """Steps for which they are not."""
    partial_outputs: int = 0
    """Steps whose output the client logged before the answer's end; they are priced as counted."""
    expected: int = 0
    """Steps without a bill that are priced at their expected size."""
    least: int = 0
    """Steps whose price leaves something out."""
    recorded: int = 0
    """The content of its last step's window; what two sides have in common is of it."""
    method: UsedMethod = "recorded"
    """How `used` is known."""


class ItemDiff(msgspec.Struct, frozen=True, gc=False):
    """One content that only one of two aligned windows holds, or an item that says something else in each."""

    what: What
    item: str
    kind: str
    title: str | None
    source: str | None
    tokens_a: int
    """0 where only `b` has it."""
    tokens_b: int
    copies: int = 1


class TurnPair(msgspec.Struct, frozen=True, gc=False):
    """Two aligned turns, or a turn that only one side has."""

    a: TurnSide | None
    b: TurnSide | None
    by: By | None
    """None: it has no partner."""
    same: int
    """Copies that both windows hold, by content, at the end of the turn."""
    items: tuple[ItemDiff, ...]
    """What differs here and did not at the pair before: in the order of `a`, then of `b`."""
    standing: int
    """Differences that were there at the pair before."""
    only_a: int
    """Tokens that only `a` holds at the end of the turn."""
    only_b: int

    @property
    def differs(self) -> bool:
        """Whether the two windows hold other things, or one is missing."""
        return self.by is None or bool(self.items or self.standing)


class ThreadPair(msgspec.Struct, frozen=True, gc=False):
    """A conversation of each side; None: the other side has none for it."""

    a: tuple[str | None, str] | None
    """Its session and thread."""
    b: tuple[str | None, str] | None
    turns: tuple[TurnPair, ...]


class SideTotal(msgspec.Struct, frozen=True, gc=False):
    """All turns of one side together."""

    turns: int = 0
    steps: int = 0
    new: int = 0
    freed: int = 0
    billed: int | None = None
    cost: Decimal = ZERO
    unpriced: int = 0
    partial_outputs: int = 0
    expected: int = 0
    least: int = 0


class SessionDiff(msgspec.Struct, frozen=True, gc=False):
    """The whole comparison."""

    threads: tuple[ThreadPair, ...]
    total_a: SideTotal
    total_b: SideTotal
    by_prompt: int
    """Pairs of turns with the same prompt."""
    by_order: int
    alone_a: int
    """Turns that only `a` has."""
    alone_b: int
    minimal: bool
    """False: the sessions are so long and so different that a better alignment may exist."""

    @property
    def differs(self) -> bool:
        """Whether anything but the costs is different."""
        return any(pair.differs for thread in self.threads for pair in thread.turns)

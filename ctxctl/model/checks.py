"""What `ctxctl check` holds a recorded session to, and what came of it: values that every view reads.

Texts hold words of the trace as they are; a view makes them visible.  Tokens are integers, money is exact.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

from ctxctl.model.findings import Place

Outcome = Literal["holds", "fails", "unknown"]
"""`unknown`: it fails nowhere, and at some request the trace does not tell whether it holds."""


class CheckRules(msgspec.Struct, frozen=True, array_like=True):
    """The conditions that are asked for."""

    max: str | None = None
    """What may be sent: tokens, or a share of the limit in force, as `80%`."""
    max_growth: int | None = None
    """Tokens by which a request may be larger than the one before in its thread."""
    max_tool_result: int | None = None
    """Tokens of one tool result."""
    max_cost: str | None = None
    """US dollars for all requests of a trace, a decimal number."""
    stable_prefix: bool = False
    no_misses: bool = False
    no_compaction: bool = False
    never: tuple[str, ...] = ()
    """Queries that hold at no request."""
    always: tuple[str, ...] = ()
    """Queries that hold at every request."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self != CheckRules()


class ConditionResult(msgspec.Struct, frozen=True):
    """What came of one condition in one trace."""

    condition: str
    """The option's name without its dashes."""
    bound: str | None
    """What was given for it; None where it takes nothing."""
    outcome: Outcome
    message: str
    """One sentence without a full stop: the number found and how it is known."""
    steps: int
    """Requests that were looked at."""
    failed: int = 0
    """Of these, requests at which it does not hold."""
    unknown: int = 0
    """Of these, requests at which the trace does not tell."""
    place: Place | None = None
    """The worst request where it fails, the first that is not known, else the one that came nearest."""
    tokens: int | None = None
    """The figure of that request, where it is one of tokens."""
    usd: Decimal | None = None
    """Of a cost: the sum over all requests, as far as it is known."""
    trace: str = ""
    """The trace's name as the user typed it."""

    @property
    def label(self) -> str:
        """The condition with its bound: `max 80%`."""
        return self.condition if self.bound is None else f"{self.condition} {self.bound}"

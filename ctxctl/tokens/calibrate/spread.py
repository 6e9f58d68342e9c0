"""How far an expected size may be off: nine of ten are no further, on sessions that were not fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

SHARE: Final = 0.92
"""Of the steps that were not fitted, those that a spread holds: a little more than the nine of ten it is to
hold, as sessions differ from one another by more than their steps do."""
_STEEPEST: Final = 1.0
_STEPS: Final = 50
_LEAST: Final = 2.0
"""Tokens; nothing is known better."""


class ErrorSpread(msgspec.Struct, frozen=True):
    """The error of an expected size, in tokens: so much for each `request` since the last bill, for each
    token that came or went (`moved`), and for each item of which nobody knows the size (`blind`)."""

    request: float
    moved: float
    blind: float = 0.0

    def of(self, requests: int, moved: float, blind: int) -> float:
        """In tokens.

        Args:
            requests: Since the last bill, the expected one included.
            moved: Tokens that came or went, all as positive.
            blind: Items without text or count that came or went.
        """
        return self.request * max(1, requests) + self.moved * moved + self.blind * abs(blind)


class Common(msgspec.Struct, frozen=True):
    """What is measured on all captures together, for models that have no fit of their own."""

    exact: ErrorSpread
    """Where the tokenizer is public."""
    exact_blind: float
    """Tokens of an item without text or count there: encrypted reasoning, most of it."""
    estimate: ErrorSpread
    """Where counts of another tokenizer are taken as they are."""
    item: float
    """Tokens beside its text that an item costs there."""
    kin: float
    """Times wider than its own a fit's error is for a relative of its model."""
    broken: float
    """After a compaction: as a share of what is expected."""


COMMON: Final = Common(
    exact=ErrorSpread(50.0, 0.05, 500.0), exact_blind=80.0, estimate=ErrorSpread(100.0, 0.6, 1500.0),
    item=8.0, kin=3.0, broken=0.75,
)  # fmt: skip
"""For a calibration that does not say; on the wide side of what was measured (docs/calibration.md)."""


class SizeError(NamedTuple):
    """How far one size was off."""

    error: float
    """Tokens, signed: the truth less what was expected."""
    moved: float
    """Tokens that came or went."""
    blind: int = 0
    """Items without text or count that came, less those that went."""


def spread_of(offs: Sequence[SizeError], blind: Sequence[SizeError] = ()) -> ErrorSpread:
    """The spread that holds nine of ten of these, and is least in sum (a quantile regression).

    `blind` are those with items of unknown size.  Rounded, the same for any order.
    """
    if not offs:
        return ErrorSpread(0.0, 0.0)
    ordered = sorted((abs(off.error), off.moved) for off in offs)
    best: tuple[float, float, float] | None = None
    for step in range(_STEPS + 1):
        steep = _STEEPEST * (step / _STEPS) ** 2
        left = sorted(error - steep * moved for error, moved in ordered)
        level = max(_LEAST, left[min(len(left) - 1, int(SHARE * len(left)))])
        loss = sum((x - level) * SHARE if x > level else (level - x) * (1 - SHARE) for x in left)
        if best is None or loss < best[0]:
            best = (loss, level, steep)
    assert best is not None
    _, request, moved = best
    rest = sorted((abs(o.error) - request - moved * o.moved) / abs(o.blind) for o in blind if o.blind)
    more = max(0.0, rest[min(len(rest) - 1, int(SHARE * len(rest)))]) if rest else 0.0
    return ErrorSpread(round(request, 1), round(moved, 4), round(more, 1))

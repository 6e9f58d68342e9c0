"""Money as exact values: what tokens cost, by what kind of billing they fall under."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from operator import add, attrgetter
from typing import Final, NamedTuple

ZERO: Final = Decimal(0)
MILLION: Final = 1_000_000


class Rates(NamedTuple):
    """US dollars for a million tokens; None: not known (and not: free)."""

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    """Of what is kept for an hour."""
    audio_input: Decimal | None = None
    audio_cached: Decimal | None = None
    audio_output: Decimal | None = None
    image_input: Decimal | None = None
    image_output: Decimal | None = None
    reasoning: Decimal | None = None
    """Of an answer's reasoning.  This and those of audio and images: None where they have no price apart."""


class Tokens(NamedTuple):
    """Tokens of one request by how they are billed, each in one field; all but outputs are its context.

    What has no price apart (most models' reasoning, images) stays in the `input` or `output` that it is of.
    """

    input: int = 0
    """Neither read from a cache nor written to one."""
    cached: int = 0
    written: int = 0
    """To a cache, but for those that are kept for an hour: for five minutes, or for nobody knows how long."""
    output: int = 0
    written_1h: int = 0
    """To a cache that keeps them for an hour."""
    audio_input: int = 0
    audio_cached: int = 0
    image_input: int = 0
    audio_output: int = 0
    image_output: int = 0
    reasoning: int = 0

    @property
    def context(self) -> int:
        """All but the answer."""
        return sum(_SENT(self))

    @property
    def answer(self) -> int:
        """All of the answer."""
        return sum(self) - self.context

    def plus(self, other: Tokens) -> Tokens:
        """The sum."""
        return Tokens._make(map(add, self, other))


class Money(NamedTuple):
    """US dollars, exact; by how the tokens are billed, then what is billed beside them."""

    input: Decimal = ZERO
    cached: Decimal = ZERO
    written: Decimal = ZERO
    output: Decimal = ZERO
    written_1h: Decimal = ZERO
    audio_input: Decimal = ZERO
    audio_cached: Decimal = ZERO
    image_input: Decimal = ZERO
    audio_output: Decimal = ZERO
    image_output: Decimal = ZERO
    reasoning: Decimal = ZERO
    units: Decimal = ZERO
    """Calls of the provider's own tools (web searches)."""
    further: Decimal = ZERO
    """Samplings that a bill's totals leave out (a compaction inside of the request)."""
    summaries: Decimal = ZERO
    """The cost of requests that wrote a summary and are no steps; the least of it where no log has their
    bill."""

    @property
    def total(self) -> Decimal:
        """All of it."""
        return sum(self, ZERO)

    @property
    def context(self) -> Decimal:
        """Of the tokens that were sent."""
        return sum(_SENT(self), ZERO)

    def plus(self, other: Money) -> Money:
        """The sum.  What is nothing stays the one zero: sums of many sessions are kept beside one another."""
        return Money._make([a + b if a and b else a or b for a, b in zip(self, other, strict=True)])


CONTEXT: Final = ("input", "cached", "written", "written_1h", "audio_input", "audio_cached", "image_input")
"""Fields of what was sent."""
_SENT: Final = attrgetter(*CONTEXT)
_RATE_OF: Final = {
    **{name: name for name in Tokens._fields},
    "cached": "cache_read",
    "written": "cache_write",
    "written_1h": "cache_write_1h",
}
_RATES: Final = attrgetter(*_RATE_OF.values())
"""The rates of the fields of `Tokens`, in their order."""
_WITHIN: Final = {
    "audio_input": "input",
    "audio_cached": "cached",
    "image_input": "input",
    "audio_output": "output",
    "image_output": "output",
    "reasoning": "output",
}
"""What providers count among what."""


def without_separate_parts(
    tokens: Tokens, parts: Mapping[str, int], rates: Rates
) -> tuple[Tokens, dict[str, int]]:
    """A bill with what has a price apart taken out of what it is counted among; and audio that has none.

    Args:
        tokens: Input, cache and output alone.
        parts: Tokens by modality and of reasoning (`model.terms.PARTS`; `audio_input` with the cached ones).
        rates: Those of the request.
    """
    if not any(parts.values()):
        return tokens, {}
    made, unpriced = tokens._asdict(), {}
    parts = dict(parts)
    parts["audio_input"] = max(0, parts.get("audio_input", 0) - parts.get("audio_cached", 0))
    for name, within in _WITHIN.items():
        count = min(parts.get(name, 0), made[within])
        if not count:
            continue
        if getattr(rates, _RATE_OF[name]) is not None:
            made[name] = count
            made[within] -= count
        elif name.startswith("audio"):
            unpriced[name] = count
    return Tokens(**made), unpriced


def priced(tokens: Tokens, rates: Rates) -> Money | None:
    """What a request's tokens cost; None where a rate that it needs is not known."""
    parts = [ZERO] * len(Money._fields)  # which begin with those of `Tokens`
    for at, (count, rate) in enumerate(zip(tokens, _RATES(rates), strict=True)):
        if count:
            if rate is None:
                return None
            parts[at] = rate * count / MILLION
    return Money._make(parts)

"""What a cache could have given and did not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.missed import miss_reason

if TYPE_CHECKING:
    from ctxctl.lint.context import StepContext


class CacheMissed(Rule):
    """The provider read back less than it could, and no recorded change explains it.

    What it had is billed again, at ten times the price of a read and more: after a pause that is longer than
    the cache is kept, with another model, behind instructions or tools that changed without a record, or for
    no reason that anybody can see.
    """

    code = "CTX028"
    name = "cache-missed"
    severity = "info"
    needs = "usage with cache figures"
    fix = (
        "Ask for a longer lifetime where pauses are usual, and keep model, instructions and tools the same "
        "within a thread."
    )
    parameters = {"tokens": "tokens of one miss from which it counts"}  # noqa: RUF012
    tokens = 20_000

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step that the engine finds a miss in; misses of one cause are one finding."""
        miss = look.step.cache.miss
        if miss is None or miss.tokens < self.tokens:
            return
        message = (
            f"{miss.tokens:,} tokens that the cache could have given were billed again ({miss_reason(miss)})"
        )
        yield Hit(miss.cause, message, look.place(), None, miss.tokens, look.cost.missed)

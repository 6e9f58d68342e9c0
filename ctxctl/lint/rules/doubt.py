"""Bills that cannot be true."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING

from ctxctl.engine.sizes.doubts import doubt_of
from ctxctl.lint.rule import Hit, Rule

if TYPE_CHECKING:
    from ctxctl.lint.context import StepContext
    from ctxctl.model.results import Doubt

_WHY = {
    "zero": "no {part} is billed where the trace holds {counted:,} tokens of it",
    "below_content": "{reported:,} tokens are billed for {part} of which the trace holds {counted:,}",
    "repeated": "{reported:,} tokens of {part} are billed as for the request before; the window changed",
}


class ImpossibleBill(Rule):
    """A bill says what cannot be: nothing, far less than the trace itself holds, or the last bill once more.

    A log that keeps the count with which an answer's stream began has 1 to 10 tokens of output however long
    the answer is, as more than half of the calls in public Claude Code sessions have; placeholders and bills
    that are written twice do the same to the input. Sums of money and tokens that trust them are too small.
    """

    code = "CTX029"
    name = "impossible-bill"
    severity = "info"
    needs = "usage, and the answer behind it"
    fix = "Record the usage that comes with the end of an answer; until then, take what `ctxctl cost` counts."
    parameters = {  # noqa: RUF012
        "tokens": "tokens by which a bill has to be off, from which it counts",
    }
    tokens = 5

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step with its bill."""
        usage = look.step.usage
        for doubt in usage.doubts if usage is not None else ():
            off = abs(doubt.counted - doubt.reported)
            # Of a zero anything is too much; whether a bill is another's does not hang on how far it is off.
            if doubt.why == "below_content" and off < self.tokens:
                continue
            message = _WHY[doubt.why].format(part=doubt.part, reported=doubt.reported, counted=doubt.counted)
            yield Hit(
                f"{doubt.part} {doubt.why}", message, look.place(), None, off, self._money(look, doubt),
                note="tokens between what is billed and what is counted",
            )  # fmt: skip

    @staticmethod
    def _money(look: StepContext, doubt: Doubt) -> Decimal | None:
        """What the part costs more as counted; None: nothing is replaced, or a rate is unknown."""
        billed, believed, usage = look.cost.billed, look.cost.believed, look.step.usage
        if usage is None or billed is None or believed is None or doubt_of(usage.doubts, doubt.part) is None:
            return None
        if doubt.part == "output":
            more = believed.output - billed.output
        else:
            more = believed.context - billed.context
        return more if more > 0 else None

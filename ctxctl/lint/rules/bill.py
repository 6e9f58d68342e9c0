"""What the provider billed, against what the trace says; and figures of a bill that cannot be true."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from ctxctl.engine.sizes.bill_doubts import doubt_of
from ctxctl.lint.rule import Hit, Rule
from ctxctl.wording import plural, share

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import StepContext
    from ctxctl.model.results import Doubt

_TOLD: Final = 0.2
"""Share of a bill that the frame has to hold."""
_KEPT: Final = 512
"""Steps of a thread whose ratio is kept; of longer ones, those that come at even distances."""


class _Ratios:
    """Estimated to billed, over the steps of a thread."""

    def __init__(self, hit: Hit) -> None:
        self.hit = hit
        self.steps = 0
        self.off = 0
        self.values: list[float] = []
        self._every = 1

    def add(self, ratio: float, off: int) -> None:
        """One more step."""
        self.off += off
        if self.steps % self._every == 0:
            self.values.append(ratio)
            if len(self.values) >= _KEPT:
                self.values = self.values[::2]
                self._every *= 2
        self.steps += 1

    @property
    def median(self) -> float:
        """The middle one."""
        return sorted(self.values)[len(self.values) // 2]


class EstimateOffBill(Rule):
    """The runtime's own count of its window is far from what the provider billed.

    It compacts too early or overflows without knowing: characters divided by four halve tool schemas and miss
    Chinese by a factor of four, and a count without tools or system prompt misses all of them.
    """

    code = "CTX026"
    name = "estimate-off-bill"
    needs = "budget records with actual_tokens, and usage"
    fix = "Count with the model's tokenizer and count everything that is sent, or correct by the last bill."
    parameters = {  # noqa: RUF012
        "share": "how far off a session's median may be",
        "tokens": "steps with fewer billed tokens are ignored",
    }
    share = 0.3
    tokens = 2000

    def __init__(self) -> None:
        self._threads: dict[ThreadKey, _Ratios] = {}

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step with both figures."""
        usage, facts = look.step.usage, look.step.stages["budget"].facts
        actual = facts.get("actual_tokens")
        billed = usage.sent if usage is not None and usage.provenance == "native" else None
        if actual is not None and billed is not None and billed >= self.tokens:
            ratios = self._threads.get(look.key)
            if ratios is None:
                ratios = self._threads[look.key] = _Ratios(Hit("", "", look.place()))
            ratios.add(actual / billed, abs(actual - billed))
        return iter(())

    def end(self) -> Iterator[Hit]:
        """Threads whose middle step is far off."""
        for ratios in self._threads.values():
            middle = ratios.median
            if abs(middle - 1) <= self.share:
                continue
            requests = plural(ratios.steps, "request")
            message = f"the runtime counts {share(middle)} of what is billed (median of {requests})"
            yield ratios.hit._replace(
                message=message, tokens=ratios.off, steps=ratios.steps,
                note="tokens by which the count was off, over all requests", money=None,
            )  # fmt: skip


class UnrecordedCut(Rule):
    """The bill fell, and nothing in the trace says that anything left the window.

    Somebody cut the context without a record of it: a provider's own truncation, a proxy, or a runtime that
    drops silently.
    """

    code = "CTX027"
    name = "unrecorded-cut"
    needs = "usage"
    fix = "Record the compaction or truncation where it is done; look for context editing by the provider."
    parameters = {  # noqa: RUF012
        "tokens": "smallest drop of the bill that counts, in tokens",
        "share": "smallest drop that counts, as a share of the bill",
    }
    tokens = 5000
    share = 0.2

    def __init__(self) -> None:
        self._billed: dict[ThreadKey, int] = {}

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step that the engine flags."""
        usage = look.step.usage
        if usage is not None and usage.provenance != "native":
            return
        billed = usage.sent if usage is not None else None
        before = self._billed.get(look.key)
        if billed is not None:
            self._billed[look.key] = billed
        if "unrecorded_cut" not in look.step.flags or billed is None or before is None:
            return
        if look.step.window.recorded < _TOLD * billed:
            return  # the trace holds too little of the request to say what nothing in it says
        if before - billed >= max(self.tokens, self.share * before):
            message = (
                f"the bill fell from {before:,} to {billed:,} tokens and no record says what left the window"
            )
            yield Hit("", message, look.place(), None, before - billed)


_WHY = {
    "zero": "no {part} is billed where the trace holds {counted:,} tokens of it",
    "below_content": "{billed} billed for {part}, but the trace holds {counted:,} of it",
    "repeated": "{reported:,} tokens of {part} are billed, the same as before, though the window changed",
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
    fix = "Record the usage that comes with the end of an answer; until then, use what `ctxctl cost` counts."
    parameters = {  # noqa: RUF012
        "tokens": "smallest difference that counts, in tokens",
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
            message = _WHY[doubt.why].format(
                part=doubt.part, reported=doubt.reported, counted=doubt.counted,
                billed=f"{plural(doubt.reported, 'token')} {'is' if doubt.reported == 1 else 'are'}",
            )  # fmt: skip
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

"""Rules that compare the provider's bill with the trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.missed import unrecorded_cut
from ctxctl.wording import plural, share

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import StepContext

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
    """The bill shows that content left the window, and nothing in the trace says so.

    The provider's bill is right.  Where it fell, or is smaller than the recorded content, something cut the
    context without a record of it: a provider's truncation or context editing, a proxy, a runtime that drops
    silently, or a compaction that ctxctl did not read.
    """

    code = "CTX027"
    name = "unrecorded-cut"
    needs = "usage"
    fix = "Look at the named lines; record the compaction or truncation where it is done."
    parameters = {  # noqa: RUF012
        "tokens": "smallest cut that counts, in tokens",
        "share": "smallest cut that counts, as a share of the bill before",
    }
    tokens = 5000
    share = 0.2

    def __init__(self) -> None:
        self._message: dict[ThreadKey, str] = {}
        """Of each thread's first hit, which is that of its finding."""

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step that the engine found cut."""
        cut, usage = look.step.cut, look.step.usage
        if cut is None or usage is None or usage.provenance != "native":
            return
        billed = cut.billed or 0
        fell = 0 if cut.before is None else max(0, cut.before - billed)
        told = look.step.window.recorded >= _TOLD * billed and fell >= self.share * (cut.before or 0)
        # Where hardly anything of a request is recorded, a fall of its bill says little.
        left = max(cut.unsent, fell if told or cut.is_unread_compaction else 0)
        if left >= self.tokens:
            if look.key not in self._message:
                lines = look.around.inspector.capture_lines(cut)
                self._message[look.key] = unrecorded_cut(cut, lines)
            yield Hit("", self._message[look.key], look.place(), None, left)


class PartialOutput(Rule):
    """The client logged an answer's output tokens before the answer ended.

    Claude Code writes each block of a streamed answer with the usage that came at the stream's start: 1 to 10
    tokens of output however long the answer is.  Sums that trust them are too small.
    """

    code = "CTX029"
    name = "partial-output"
    severity = "info"
    needs = "a capture that says its answers were not over, and the answer after the bill"
    fix = (
        "Record the usage that comes with the end of an answer; until then, use what `ctxctl cost` estimates."
    )
    parameters = {  # noqa: RUF012
        "tokens": "smallest difference that counts, in tokens",
    }
    tokens = 5

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step with its bill."""
        usage = look.step.usage
        if usage is None or usage.believed_output is None or usage.reported_output is None:
            return
        off = usage.believed_output - usage.reported_output
        if off >= self.tokens:
            billed, believed = look.cost.billed, look.cost.believed
            more = None if billed is None or believed is None else believed.output - billed.output
            message = f"{usage.reported_output:,} output tokens logged, {usage.believed_output:,} counted"
            yield Hit(
                "", message, look.place(), None, off, more, note="tokens that are counted and not logged",
            )  # fmt: skip

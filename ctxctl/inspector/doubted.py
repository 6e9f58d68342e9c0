"""Bills with what cannot be true of them replaced by what was counted, and the sums of that.

What is replaced is never mixed in unseen: whoever shows one of these figures marks it with
`model.money.MARK`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ctxctl.engine.doubts import doubted
from ctxctl.model.money import BILL_PARTS, Money, Tokens

if TYPE_CHECKING:
    from ctxctl.inspector.costs import StepCost
    from ctxctl.model.results import Step, UsageView


class PartSum(NamedTuple):
    """The bills of which one part cannot be true."""

    requests: int = 0
    reported: int = 0
    counted: int = 0
    """What it is priced as."""


class DoubtedSums:
    """Sums of what was billed with the doubted parts as counted; feed it with `add`."""

    def __init__(self) -> None:
        self.requests = 0
        """Whose bill has a part that was replaced."""
        self.parts: dict[str, PartSum] = {}
        """What was replaced, by part."""
        self.repeated = 0
        """Requests whose input is the last one's to the token though the window changed; priced as billed."""
        self.tokens = Tokens()
        self.money = Money()
        """All that was billed, the doubted parts as counted."""

    def add(self, cost: StepCost) -> None:
        """Take in one request."""
        if cost.billed_tokens is None or cost.believed_tokens is None:
            return
        self.tokens = Tokens(*(a + b for a, b in zip(self.tokens, cost.believed_tokens, strict=True)))
        if cost.believed is not None:
            self.money = self.money.plus(cost.believed)
        usage = cost.step.usage
        assert usage is not None
        replaced = replaced_parts(usage)
        self.requests += bool(replaced)
        self.repeated += any(doubt.part == "input" for doubt in usage.doubts) and "input" not in replaced
        for part in replaced:
            was = self.parts.get(part, PartSum())
            reported, counted = (_of(tokens, part) for tokens in (cost.billed_tokens, cost.believed_tokens))
            self.parts[part] = PartSum(was.requests + 1, was.reported + reported, was.counted + counted)


def replaced_parts(usage: UsageView | None) -> tuple[str, ...]:
    """Parts of a bill, of `BILL_PARTS`, that are taken as counted."""
    if usage is None or not usage.doubts:
        return ()
    return tuple(part for part in BILL_PARTS if doubted(usage.doubts, part) is not None)


def believed_tokens(step: Step, billed: Tokens | None) -> Tokens | None:
    """A bill with its doubted parts as counted; the bill itself where nothing of it is doubted.

    An input that cannot be true says nothing of a cache either: what was counted is priced as plain input.
    """
    if billed is None or step.usage is None or not step.usage.doubts:
        return billed
    output, context = doubted(step.usage.doubts, "output"), doubted(step.usage.doubts, "input")
    if context is not None:
        billed = Tokens(input=step.window.used, output=billed.output)
    return billed if output is None else billed._replace(output=output.counted)


def _of(tokens: Tokens, part: str) -> int:
    return tokens.output if part == "output" else sum(tokens[:3])

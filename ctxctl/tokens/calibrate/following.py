"""What is remembered of a thread between its requests, so that each bill can be expected before it is known.

Values: a replay may keep one beside any step and go on from there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import add
from typing import Final, NamedTuple

from ctxctl.tokens.calibrate import expect
from ctxctl.tokens.calibrate.expect import BillsLearned, ModelWeights
from ctxctl.tokens.calibrate.features import CLASSES
from ctxctl.tokens.overhead import ANSWER, TOOLS, TOOLS_OLDER
from ctxctl.tokens.ranks import RANKS_OF

NOTHING: Final = (0,) * len(CLASSES)
SWITCHED: Final = 0.35
"""Error where the last bill is of another model, as a share of what is expected: the worst of ten of the
corpus's switches (docs/calibration.md)."""
BY_RULE, OF_TOOLS, OF_REASONING = 10, 60, 130
"""Tokens that a size by OpenAI's rules is off, nine times of ten: of any request, more for tools as GPT-4o
and later get them, and more for what reasoning models are told unseen (docs/calibration.md, *What messages
and tools cost*)."""
_REASONS: Final = re.compile(r"gpt-5|o[134]\b|codex")
_MODELS: Final = 8
"""Models of one thread that something is remembered of; the ones that answered last."""
_USUAL: Final = CLASSES.index("tool_result")


class Bill(NamedTuple):
    """The last bill of a thread."""

    model: str
    """`points.family` of the name."""
    size: int
    slope: float
    """Tokens of that model for one counted, of tool results: what sizes of two models are compared by."""


class ThreadExpectation(NamedTuple):
    """A thread after some of its requests."""

    last: Bill | None = None
    moved: tuple[int, ...] = NOTHING
    """What came less what went since the last bill, by class, in the tokens of their placements."""
    items: tuple[int, ...] = NOTHING
    blind: int = 0
    requests: int = 0
    """Since the last bill."""
    broken: bool = False
    whole: bool = False
    """The last request is recorded whole."""
    learned: tuple[tuple[str, BillsLearned], ...] = ()
    """By model, the one that was billed last at the end."""

    def of(self, model: str) -> BillsLearned | None:
        """What the thread's bills of a model say."""
        return next((learned for name, learned in self.learned if name == model), None)

    def entered(
        self, moved: Sequence[int], items: Sequence[int], *, blind: int = 0, broken: bool = False,
        whole: bool = False,
    ) -> ThreadExpectation:  # fmt: skip
        """With one more request.

        Args:
            moved: What it has more than the one before, by class, in the tokens of its placements.
            items: Items that came less those that went, by class.
            blind: Items without text or count that came less those that went.
            broken: The history was compacted, cleared, or left by more than half.
            whole: All of it is recorded as OpenAI's Chat Completions API takes it.
        """
        return ThreadExpectation(
            self.last,
            tuple(map(add, self.moved, moved)),
            tuple(map(add, self.items, items)),
            self.blind + blind,
            self.requests + 1,
            self.broken or broken,
            whole,
            self.learned,
        )

    def billed(self, model: str, how: ModelWeights, size: int, recorded: int) -> ThreadExpectation:
        """With the bill of the request that entered last.

        Args:
            model: `points.family` of the one that answered.
            how: Of that model.
            size: The bill, one that can be true.
            recorded: The content of the frame, in its placements' tokens.
        """
        other = self.last is None or self.last.model != model
        change = 0 if self.last is None else size - self.last.size
        learned = expect.refine(
            self.of(model), how, self.moved, self.items, change, size,
            requests=self.requests, blind=self.blind, broken=self.broken or other, recorded=recorded,
        )  # fmt: skip
        kept = [one for one in self.learned if one[0] != model][1 - _MODELS :]
        slope = expect.slope(how, learned, _USUAL)
        return ThreadExpectation(Bill(model, size, slope), learned=(*kept, (model, learned)))


class ExpectedBill(NamedTuple):
    """The size that a bill should say."""

    size: int
    half: int
    """Nine of ten are no further off, in tokens."""


def expected_request(
    thread: ThreadExpectation, model: str, how: ModelWeights, recorded: int
) -> ExpectedBill | None:
    """The size of the request that entered last; None where the thread has no bill yet and no rule says it.

    After another model's bill that is taken as large as this model's tokens would make it.  For the arguments
    see `ThreadExpectation.billed`.
    """
    last = thread.last
    if last is None:
        return _by_rule(thread, model, how, recorded)
    learned = thread.of(model)
    switched = last.model != model
    before = last.size
    if switched:
        before = round(before * expect.slope(how, learned, _USUAL) / last.slope)
    size = expect.expected(
        how, learned, before, thread.moved, thread.items,
        blind=thread.blind, broken=thread.broken, recorded=recorded,
    )  # fmt: skip
    half = expect.half_width(
        how, learned, thread.moved, thread.items, size,
        requests=thread.requests, blind=thread.blind, broken=thread.broken,
    )  # fmt: skip
    return ExpectedBill(size, max(half, round(SWITCHED * size)) if switched else half)


def _by_rule(thread: ThreadExpectation, model: str, how: ModelWeights, recorded: int) -> ExpectedBill | None:
    """The size of a whole request by the rules of OpenAI's API, where the model's encoding is public.

    An item that nobody can count may be of any size, so then no rule says it.
    """
    if how.basis != expect.EXACT or not thread.whole or thread.blind > 0:
        return None
    tools = thread.items[CLASSES.index("tool_definition")]
    wrapping = sum(w * n for w, n in zip(how.per_item, thread.items, strict=True)) + ANSWER
    older = RANKS_OF.get(how.method.partition(":")[2]) == "cl100k_base"
    size = round(recorded + wrapping) + ((TOOLS_OLDER if older else TOOLS) if tools > 0 else 0)
    half = BY_RULE + (OF_TOOLS if tools > 0 and not older else 0)
    return ExpectedBill(size, half + (OF_REASONING if _REASONS.match(model) else 0))

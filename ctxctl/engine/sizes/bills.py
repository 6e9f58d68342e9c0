"""Compare a bill with the recorded content.

The provider's input is right (DESIGN section 3, the bill is right): recorded content above it was not sent.
Only an output may be replaced by a count, if the client logged it before the answer's end
(`Usage.output_is_partial`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ctxctl.model.records import Usage
from ctxctl.model.results import Cut, Placement, UsageView

PLACEHOLDER_SHARE: Final = 0.5
"""A partial output below this share of the visible answer is a placeholder.

Of 2,375 such bills of Claude Code most report 1 to 10 tokens.  Of the 3,204 answers of other formats the
smallest share is 0.836.  Reasoning is not in the share: providers drop or sum up what they billed of it."""
LEAST_DIFFERENCE: Final = 5
"""The smallest difference in tokens that counts: a share of a few tokens says nothing."""
_COUNT_ERRORS: Final = {"exact": 0.02, "calibrated": 0.3}
"""The share by which our count may exceed the provider's, by method. The fit of another model errs by up to
30 %."""
_FOREIGN_ERROR: Final = 0.5
"""The same for estimates and declared sizes: no tokenizer of the corpus gives less than half of our count."""
_CUT_SHARE: Final = 0.02
"""Smallest drop that counts, as a share of the last bill: providers sometimes leave out a little."""
_MAX_RATIO: Final = 2.0
"""Providers' tokenizers give at most this many times our count, so a counted drop explains that much."""


class Answer(NamedTuple):
    """Tokens of an answer, as far as the trace holds it."""

    said: int
    """Tokens of the answer's texts and tool calls."""
    thought: int = 0
    """Tokens of the answer's reasoning, which most captures hold as a summary."""

    @property
    def tokens(self) -> int:
        """Tokens of the whole answer."""
        return self.said + self.thought


class BilledStep(NamedTuple):
    """A request's billed size, and the size of its recorded content."""

    reported: int
    counted: int
    model: str | None
    line: int = 0
    """The first line of its step in the trace."""
    offset: int = 0
    """The byte at which that line begins."""


def billed_size(usage: Usage | UsageView | None) -> int | None:
    """Return the request's size by its bill, the input of its last pass; None if the bill has none.

    An input of 0 tokens means none: clients write it where the provider gave no count.
    """
    if usage is None:
        return None
    size = usage.terms.sent(usage.input_tokens) if isinstance(usage, Usage) else usage.sent
    return size or None


def counted_output(usage: Usage, answer: Answer | None) -> int | None:
    """Return the answer's tokens if the logged output is a placeholder; None if the log is right."""
    if not usage.output_is_partial or usage.output_tokens is None or answer is None:
        return None
    is_low = (
        usage.output_tokens < PLACEHOLDER_SHARE * answer.said
        and answer.said - usage.output_tokens >= LEAST_DIFFERENCE
    )
    return answer.tokens if is_low else None


def believed_output(usage: UsageView | None) -> int | None:
    """Return the answer's tokens: as reported, or as counted if the client logged a placeholder."""
    if usage is None:
        return None
    return usage.reported_output if usage.believed_output is None else usage.believed_output


def least_tokens(tokens: int, method: str) -> int:
    """Return the fewest tokens that the provider may have counted where we count `tokens`.

    `method` is a name of `Window.by_method`.
    """
    return int(tokens * (1 - _COUNT_ERRORS.get(method.partition(":")[0], _FOREIGN_ERROR)))


def cut_of(
    before: BilledStep | None, now: BilledStep, by_method: Mapping[str, int], *, explained: bool
) -> Cut | None:
    """Return the cut without a record that a request's bill shows; None if it shows none.

    Args:
        before: The thread's last billed request.
        now: This one.
        by_method: Its recorded content by counting method.
        explained: Whether the step records that something left (a compaction, a rewind).
    """
    unsent = max(0, sum(least_tokens(tokens, name) for name, tokens in by_method.items()) - now.reported)
    fell = before is not None and not explained and _fell(before, now)
    if unsent < LEAST_DIFFERENCE and not fell:
        return None
    last = before.reported if before is not None else None
    halved = fell and before is not None and now.reported * 2 < before.reported
    grew = before is not None and now.counted >= before.counted
    first = before or now
    lines, offsets = (first.line, now.line), (first.offset, now.offset)
    return Cut(
        unsent if unsent >= LEAST_DIFFERENCE else 0, now.reported, last, halved and grew, lines, offsets
    )


def _fell(before: BilledStep, now: BilledStep) -> bool:
    drop = before.reported - now.reported
    if before.model != now.model or drop <= _CUT_SHARE * before.reported:
        return False
    return drop > _MAX_RATIO * max(0, before.counted - now.counted)


def known_sent(frame: Iterable[Placement], entered: Iterable[Placement], billed: int) -> set[Placement]:
    """Return the placements that a cut request is known to have sent.

    These are what entered with it, the tools and the system prompt, the newest first, while the bill has
    room. Answers may have been cut, so they are left out. If contents larger than the whole bill explain the
    cut, all others were sent.
    """
    frame = list(frame)
    small = [p for p in frame if least_tokens(p.tokens, p.method) <= billed]
    if len(small) < len(frame) and sum(least_tokens(p.tokens, p.method) for p in small) <= billed:
        return set(small)
    entered = [p for p in entered if p.kind not in ("assistant_message", "reasoning")]
    known: set[Placement] = set()
    room = billed
    for placement in (*reversed(entered), *(p for p in frame if p.rank < 2)):
        if placement.tokens <= room and placement not in known:
            known.add(placement)
            room -= placement.tokens
    return known

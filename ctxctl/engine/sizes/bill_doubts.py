"""Bills that cannot be true, recognised by what the trace itself holds of a request and of its answer.

The limits below were chosen on 9,472 billed steps of public captures (Claude Code 4,630, Codex 2,111, pi
1,779, claude-stream-json 656, Gemini CLI 127, Copilot CLI 70, opencode 34, recorded wires 65), counted with
`o200k_base`.  A figure is doubted only where no tokenizer and no hidden part of a request can explain it;
what is merely odd is left alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ctxctl.model.results import Doubt, UsageView

LEAST_OUTPUT: Final = 0.5
"""An output bill below this share of what is visible of the answer cannot be true.

Reasoning is not in the share: providers drop or sum up what they billed of it.  Of the 3,204 answers that
were billed something by all formats but Claude Code, whose counts come with the answer's end, the smallest
share is 0.836: nowhere near.  Of Claude Code's 4,622 answers 2,375 are below 0.4 and only some 55 in every
further tenth up to 0.8: its log keeps the count with which a stream began (1 to 10).  A count that was
calibrated for Claude is up to 1.5 times the raw one, and 0.836 / 1.5 is still above the limit."""
LEAST_INPUT: Final = 0.4
"""The same for an input bill against the recorded content, as in `tokens.calibrate.points.plausible`.

With more than 1,000 tokens counted the smallest share is 0.98 in 7,746 bills; those below 0.4 are 24, all of
them hand-made (0, 5 or 10 billed whatever is in the window)."""
GAP: Final = 5
"""Tokens by which it has to be below: a share of a handful of tokens says nothing."""
CHANGED: Final = 100
"""Counted tokens by which a window has to have changed for the same bill, to the token, to be another's.

One real pair in 9,405 bills has the same input twice with another window, and that one grew by 16 tokens."""


class Billed(NamedTuple):
    """What a provider reported of one request; None: that part is not reported."""

    input: int | None = None
    """The whole context, cache reads and writes included."""
    cached: int | None = None
    written: int | None = None
    output: int | None = None


class Answer(NamedTuple):
    """Tokens of an answer, as far as the trace holds it."""

    said: int
    """Of its texts and tool calls."""
    thought: int = 0
    """Of its reasoning: a summary of it in most captures."""

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.said + self.thought


class BillBefore(NamedTuple):
    """The thread's last billed request."""

    bill: Billed
    counted: int
    """Tokens of its recorded content."""


def doubts(
    bill: Billed, counted_input: int | None, answer: Answer | None, before: BillBefore | None
) -> tuple[Doubt, ...]:
    """What of a bill cannot be true, input before output; at most one doubt for each.

    Args:
        bill: What is reported.
        counted_input: The recorded content of the request; None: the bill is not of that content.
        answer: What the trace holds of the answer; None: not known.
        before: The last billed request of the same thread; None for its first.
    """
    found = []
    again = before is not None and counted_input is not None and _again(bill, counted_input, before)
    if bill.input is not None and counted_input is not None:
        why = _below(bill.input, counted_input, LEAST_INPUT) or ("repeated" if again else None)
        if why is not None:
            found.append(Doubt("input", why, bill.input, counted_input))
    if bill.output is not None and answer is not None:
        whole = again and before is not None and bill == before.bill
        why = _below(bill.output, answer.said, LEAST_OUTPUT) or ("repeated" if whole else None)
        if why is not None:
            found.append(Doubt("output", why, bill.output, answer.tokens))
    return tuple(found)


def input_is_sound(found: tuple[Doubt, ...]) -> bool:
    """Whether an input bill may be shown as what was sent.

    Not where it is nothing, or less than what is recorded; nor where it certainly is another request's: where
    the whole bill was repeated, input, cache figures and output, though the window changed (then the output
    is doubted as `repeated`, too).  An input that alone is the same again stays what is reported.
    """
    if not found:
        return True
    parts = {doubt.part: doubt.why for doubt in found}
    return parts.get("input") in (None, "repeated") and parts.get("output") != "repeated"


def doubt_of(found: tuple[Doubt, ...], part: str) -> Doubt | None:
    """The doubt of a bill's part, if there is one that replaces its figure."""
    if part == "input" and input_is_sound(found):
        return None
    return next((doubt for doubt in found if doubt.part == part), None)


def believed_output(usage: UsageView | None) -> int | None:
    """Tokens of the answer: as reported, or as counted where the report cannot be true."""
    if usage is None:
        return None
    doubt = doubt_of(usage.doubts, "output")
    return usage.reported_output if doubt is None else doubt.counted


def is_below_content(reported: int, counted: int, least: float = LEAST_INPUT) -> bool:
    """Whether so little cannot have been billed for so much."""
    return reported < least * counted and counted - reported >= GAP


def _below(reported: int, counted: int, least: float) -> str | None:
    if reported == 0:
        return "zero" if counted > 0 else None
    return "below_content" if is_below_content(reported, counted, least) else None


def _again(bill: Billed, counted: int, before: BillBefore) -> bool:
    return bool(bill.input) and bill.input == before.bill.input and abs(counted - before.counted) >= CHANGED

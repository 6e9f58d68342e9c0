"""Bills with what cannot be true of them replaced by what was counted.

What is replaced is never mixed in unseen: whoever shows one of these figures marks it with
`model.money.MARK`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.engine.sizes.bill_doubts import doubt_of
from ctxctl.model.money import BILL_PARTS, Tokens

if TYPE_CHECKING:
    from ctxctl.model.results import Step, UsageView


def replaced_parts(usage: UsageView | None) -> tuple[str, ...]:
    """Parts of a bill, of `BILL_PARTS`, that are taken as counted."""
    if usage is None or not usage.doubts:
        return ()
    return tuple(part for part in BILL_PARTS if doubt_of(usage.doubts, part) is not None)


def believed_tokens(step: Step, billed: Tokens | None) -> Tokens | None:
    """A bill with its doubted parts as counted; the bill itself where nothing of it is doubted.

    An input that cannot be true says nothing of a cache either: what was counted is priced as plain input.
    """
    if billed is None or step.usage is None or not step.usage.doubts:
        return billed
    output, context = doubt_of(step.usage.doubts, "output"), doubt_of(step.usage.doubts, "input")
    if context is not None:
        billed = Tokens(input=step.window.used, output=billed.output)
    return billed if output is None else billed._replace(output=output.counted)

"""What the window holds: old copies, and single items that fill it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxctl.labels import share
from ctxctl.lint.carried_cost import CarriedCost
from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.sizes import limit_words, sent_of

if TYPE_CHECKING:
    from ctxctl.lint.context import StepContext

_MANY = frozenset({"session_history", "thread_summary"})
"""Kinds that stand for more than one thing."""


class StaleCopies(Rule):
    """Older copies of items that have a newer one take up a good part of what is sent.

    In a history that only grows, an updated item is sent anew and its older copies stay: billed again in each
    request, and read by the model as if they were true.
    """

    code = "CTX004"
    name = "stale-copies"
    needs = "a history that grows by what is injected (append mode)"
    fix = "Cut the older copies out of the history, or send only what changed in the item."
    parameters = {  # noqa: RUF012
        "tokens": "tokens of stale copies from which they count",
        "share": "share of what was sent from which they count",
    }
    tokens = 500
    share = 0.1

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step with too many stale tokens."""
        stale, window = look.step.ledger.stale, look.step.window
        if stale >= self.tokens and stale >= self.share * window.used:
            message = f"{stale:,} tokens of {sent_of(window)} are older copies of items that were updated"
            yield Hit("", message, look.place(), None, stale, look.money(stale))


class LargeItem(Rule):
    """One item takes a large share of what the prompt may hold.

    It leaves no room for the rest, and where a runtime compacts or drops by age it goes first or pushes out
    what is smaller and more useful.  Most often it is one tool's unabridged output.
    """

    code = "CTX009"
    name = "large-item"
    needs = "a limit on the window"
    fix = "Cut it where it is made (head, tail, filter, pages), or hand over a reference to it."
    parameters = {  # noqa: RUF012
        "share": "share of the cap from which an item counts",
        "tokens": "size below which none counts",
    }
    share = 0.25
    tokens = 2000

    def __init__(self) -> None:
        self._carried = CarriedCost()

    def step(self, look: StepContext) -> Iterator[Hit]:
        """What came into the frame and is too large for it."""
        for gone in look.left:
            yield from self._carried.over((look.key, gone.key))
        cap = look.step.window.cap
        if not cap:
            return
        of = limit_words(cap, look.step.window.limit_source)
        for came in look.came:
            if came.tokens < self.tokens or came.tokens <= self.share * cap:
                continue
            if came.segment in ("system", "tools") or came.kind in _MANY:
                continue
            message = (
                f"{came.title or came.item} takes {came.tokens:,} tokens, "
                f"{share(came.tokens, cap)} of the {of} that the prompt may hold"
            )
            hit = Hit(
                came.item, message, look.place(came.line), came.item, note="in every request that holds it"
            )
            beyond = self._carried.begin((look.key, came.key), hit, came.tokens, look)
            if beyond is not None:
                yield beyond

    def end(self) -> Iterator[Hit]:
        """What is still in a window."""
        return self._carried.rest()

"""Requests that are larger than what they may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.sizes import limit_words, sent_of

if TYPE_CHECKING:
    from ctxctl.lint.context import StepContext
    from ctxctl.model.results import Window


class OverCap(Rule):
    """More was sent than the budget in force allows.

    The bill has the last word: it has the system prompt, the tool definitions and the wrappers that a
    runtime's own count leaves out, so a window that fits by its record may be far over its cap.  Nothing was
    refused where it was billed, but what is kept free for the answer is gone, and the next request may be
    refused.  Where the budget had cut and it was over all the same, that is CTX016.
    """

    code = "CTX030"
    name = "over-cap"
    needs = "a limit on the window"
    fix = (
        "Budget in the provider's tokens: count what is sent beside the content, or correct by the last bill."
    )
    parameters = {"tokens": "tokens over the cap from which it counts"}  # noqa: RUF012
    tokens = 1

    def step(self, look: StepContext) -> Iterator[Hit]:
        """A step that is surely over its cap."""
        if "still_over_budget" in look.step.flags:
            return
        window = look.step.window
        over = _surely_over(window)
        if over < self.tokens or window.cap is None:
            return
        message = f"sent {sent_of(window)}, and {limit_words(window.cap, window.limit_source)} fit"
        yield Hit("", message, look.place(), None, over, note="tokens over the cap, over all these requests")


def _surely_over(window: Window) -> int:
    """Tokens over the cap; less the error of a size that is expected, and 0 where that is not known."""
    if not window.over:
        return 0
    if window.used_method != "expected":
        return window.over
    return 0 if window.used_error is None else window.over - window.used_error

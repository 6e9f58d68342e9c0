"""Content that the model has already, sent once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxctl.lint.rule import Hit, Rule

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import StepContext

_CONVERSATION = frozenset(
    {"user_message", "assistant_message", "tool_call", "tool_result", "marker", "reasoning", "image"}
)


class InjectedAgain(Rule):
    """The same version of an item is put into the window a second time while the first copy is still there.

    The model reads it twice and it is billed twice, in this request and in every later one that repeats the
    history.  It is the commonest complaint about runtimes that attach context to each message, and what
    sanqian's three-way version diff is for: equal version, nothing is sent.
    """

    code = "CTX001"
    name = "injected-again"
    needs = "items with ids"
    fix = "Compare the item's version with the one injected last, and send nothing where they are equal."
    parameters = {"tokens": "size from which a repeated item counts"}  # noqa: RUF012
    tokens = 32

    def __init__(self) -> None:
        self._held: dict[ThreadKey, Counter[int]] = {}

    def step(self, look: StepContext) -> Iterator[Hit]:
        """What came into the frame while an equal copy is in it."""
        held = self._held.setdefault(look.key, Counter())
        for gone in look.left:
            held[gone.key] -= 1
            if held[gone.key] <= 0:
                del held[gone.key]
        for came in look.came:
            held[came.key] += 1
            if held[came.key] > 1 and came.tokens >= self.tokens and came.kind not in _CONVERSATION:
                yield Hit(
                    came.item,
                    f"{came.title or came.item} is injected again, unchanged (version {came.version})",
                    look.place(came.line),
                    came.item,
                    came.tokens,
                    look.money(came.tokens),
                    note="counted once for each time it is sent again; the copies stay in later requests",
                )

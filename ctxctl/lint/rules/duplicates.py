"""The same text under two names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ctxctl import labels
from ctxctl.lint.carried_cost import CarriedCost
from ctxctl.lint.rule import Hit, Rule

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import StepContext
    from ctxctl.model.results import Placement

OWN_WORDS = frozenset({"assistant_message", "tool_call", "reasoning"})
"""Kinds that the model wrote itself: nobody can leave them out."""


class Duplicate(Rule):
    """Two different items in one window have the very same text.

    A file read twice, a rule that comes from two sources, a memory that is found by two queries: billed twice
    in every request that holds both.
    """

    code = "CTX010"
    name = "duplicate"
    needs = "texts of the items, or their digests"
    fix = "Leave the second one out, or replace its text by a reference to the first."
    parameters = {"tokens": "size from which two equal texts count"}  # noqa: RUF012
    tokens = 200

    def __init__(self) -> None:
        self._held: dict[ThreadKey, dict[str, dict[str, Placement]]] = {}
        """By thread and digest, one placement of each item."""
        self._carried = CarriedCost()

    def step(self, look: StepContext) -> Iterator[Hit]:
        """What came into the frame with the text of another item there."""
        held = self._held.setdefault(look.key, {})
        for gone in look.left:
            same = held.get(gone.digest) if gone.digest is not None else None
            if same is not None and same.pop(gone.item, None) is not None:
                if not same:
                    del held[gone.digest]  # type: ignore[arg-type]
                yield from self._carried.over((look.key, gone.digest, gone.item))
                if len(same) == 1:
                    yield from self._carried.over((look.key, gone.digest, next(iter(same))))
        for came in look.came:
            if came.digest is None or came.tokens < self.tokens or came.stale or came.kind in OWN_WORDS:
                continue
            same = held.setdefault(came.digest, {})
            first = next((p for p in same.values() if p.item != came.item), None)
            same.setdefault(came.item, came)
            if first is not None:
                message = alike_sentence(came, first)
                hit = Hit(came.item, message, look.place(came.line), came.item, note=_NOTE)
                beyond = self._carried.begin((look.key, came.digest, came.item), hit, came.tokens, look)
                if beyond is not None:
                    yield beyond

    def end(self) -> Iterator[Hit]:
        """What is still in a window."""
        return self._carried.rest()


_NOTE = "the second copy, in every request that holds it"


def alike_sentence(one: Placement, other: Placement, share: float | None = None) -> str:
    """A sentence on two placements that say the same, or to some share the same."""
    name, second = (p.title or p.item for p in (one, other))
    how = "with the same text" if share is None else f"{labels.share(min(share, 0.99))} the same"
    if name == second:
        return f"{name} is in the window twice, {how}, {one.tokens:,} tokens"
    what = "has the same text as" if share is None else f"is {labels.share(min(share, 0.99))} the same as"
    return f"{name} {what} {second}, {one.tokens:,} tokens"

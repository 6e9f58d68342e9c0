"""The policy `amplifier` with the parameters of a recorded compaction, and what its log leaves open.

No log holds a message as context-simple does: sizes are rebuilt, and a size decides what goes.  A record says
what all messages came to.  Where the rebuilt ones come to the same, to the token, they are right.  Else the
rest is spread over the messages in several ways: what comes of all of them is told, and where they disagree
nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ctxctl.model.fitting import Candidate, Fit, Room
from ctxctl.policies.amplifier.memory import Memory
from ctxctl.policies.amplifier.messages import (
    SHAPES,
    UNRECORDED,
    Message,
    is_remnant,
    of_candidates,
    texts,
    total,
)
from ctxctl.policies.amplifier.policy import COUNTS, Amplifier

_SPREADS: Final[tuple[Callable[[int, int, Message], float], ...]] = (
    lambda at, all_of, message: 1.0,
    lambda at, all_of, message: message.role == "assistant",
    lambda at, all_of, message: message.role == "tool",
    lambda at, all_of, message: message.role == "user",
    lambda at, all_of, message: message.role == "system",
    lambda at, all_of, message: 2 * at < all_of,
    lambda at, all_of, message: 2 * at >= all_of,
)
"""Weights of the messages over which what is missing is spread."""


class Told(Amplifier, frozen=True, kw_only=True):
    """As a runtime's record has it: that it acted, and the sizes that its notice states."""

    native: dict[str, Any]

    def exceeds(self, tokens: int, budget: int) -> bool:
        """It acted, by its own count."""
        return True

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """What the record ought to say, and why nobody can tell where that is so."""
        memory: Memory = state if state is not None else Memory(sizes={})
        budget = self.budget(room)
        before = self.native.get("before_tokens")
        shape = SHAPES[0]
        if isinstance(before, int):
            shape = min(SHAPES, key=lambda s: abs(total(of_candidates(candidates, memory.sizes, s)) - before))
        fresh = lambda: of_candidates(candidates, memory.sizes, shape)  # noqa: E731
        messages = fresh()
        size = total(messages)
        missing = before - size if isinstance(before, int) else 0
        held = len(messages)
        fit = self._compacted(candidates, messages, budget, memory)
        doubt = self._lacking(candidates, held) or memory.doubt
        if missing > UNRECORDED * held:
            doubt = doubt or (
                f"the runtime counted {missing:,} tokens more than are in the messages of the log, which lacks"
                " their metadata"
            )
        elif missing and size + missing >= sum(len(text) // 4 for text in texts(candidates)):
            fit, agreed = self._nearest(
                [fit, *(self._compacted(candidates, spread(fresh(), missing, weight), budget, memory)
                        for weight in _SPREADS)]
            )  # fmt: skip
            if not agreed:
                doubt = doubt or (
                    f"the sizes of the messages are known but for {abs(missing):,} of {size + missing:,} tokens,"
                    " and what is done depends on them"
                )
        if doubt is not None and self.sticky and fit.state is not None:
            fit = fit._replace(state=fit.state._replace(doubt="an earlier compaction could not be told"))
        return fit._replace(doubt=doubt)

    def _lacking(self, candidates: Sequence[Candidate], held: int) -> str | None:
        """What of the history the log does not hold."""
        recorded = self.native.get("before_messages")
        if isinstance(recorded, int) and recorded != held:
            return f"the log has {held:,} messages where the runtime compacted {recorded:,}"
        cut = sum(map(is_remnant, candidates))
        return f"what {cut:,} messages were before they were cut is not in the log" if cut else None

    def _nearest(self, fits: Sequence[Fit]) -> tuple[Fit, bool]:
        """The one that says what the record does, else the first; and whether all did the same."""
        done = {(fit.drops, tuple(swap.at for swap in fit.swaps), fit.level) for fit in fits}
        agreeing = [fit for fit in fits if self._counts_are(fit.told or {})]
        return min(agreeing, key=self._off) if agreeing else fits[0], len(done) == 1

    def _counts_are(self, told: Mapping[str, int]) -> bool:
        return all(self.native[name] == told.get(name) for name in COUNTS if name in self.native)

    def _off(self, fit: Fit) -> int:
        after = self.native.get("after_tokens")
        return abs((fit.told or {}).get("after_tokens", 0) - after) if isinstance(after, int) else 0

    def _stated(self, told: Mapping[str, int]) -> Mapping[str, int]:
        sizes = ("before_tokens", "after_tokens")
        return {**told, **{name: self.native[name] for name in sizes if isinstance(self.native.get(name), int)}}


def spread(
    messages: list[Message], missing: int, weight: Callable[[int, int, Message], float]
) -> list[Message]:
    """Make the messages `missing` tokens larger (or smaller) altogether; changes them."""
    weights = [float(weight(at, len(messages), message)) for at, message in enumerate(messages)]
    whole = sum(weights)
    done = used = 0.0
    for message, share in zip(messages, weights, strict=True):
        used += share
        now = round(missing * used / whole) if whole else 0
        message.chars = max(0, message.chars + 4 * int(now - done))
        done = now
    return messages

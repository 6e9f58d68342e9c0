"""The policy `amplifier` with the parameters of a recorded compaction, and what its log leaves open.

No log holds a message as context-simple does: sizes are rebuilt, and a size decides what goes.  A record says
what all messages came to.  Where the rebuilt ones come to the same, to the token, they are right.  Else the
rest is spread over the messages in several ways: what comes of all of them is told, and where they disagree
nobody can tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ctxctl.model.fitting import Candidate, Fit, Room
from ctxctl.policies.amplifier.memory import Memory
from ctxctl.policies.amplifier.messages import (
    NOTICE,
    SHAPES,
    UNRECORDED,
    Message,
    equal,
    is_remnant,
    of_candidates,
    texts,
    total,
)
from ctxctl.policies.amplifier.policy import COUNTS, Amplifier

Weight = Callable[[int, int, Message], float]
"""How much of what is missing a message gets: of its place, the number of all, and itself."""

SPREADS: Final[tuple[Weight, ...]] = (
    lambda at, all_of, message: 1.0,
    lambda at, all_of, message: message.role == "assistant",
    lambda at, all_of, message: message.role == "tool",
    lambda at, all_of, message: message.role == "user",
    lambda at, all_of, message: message.role == "system",
    lambda at, all_of, message: 2 * at < all_of,
    lambda at, all_of, message: 2 * at >= all_of,
)
"""Over which messages what is missing is spread."""
_MORE: Final = "the runtime counted {:,} tokens more than the log's messages have, whose metadata it lacks"
_SIZES: Final = "{:,} of the {:,} tokens that the runtime counted are not in the log, and they decide"
_SETTINGS: Final = "the version and the settings of context-simple are not in the log, and they decide"
_EQUAL: Final = "some messages are equal to the letter, and which of them a request had is not in the log"
_EARLIER: Final = "what an earlier compaction decided cannot be told"


_MARKER: Final = re.compile(r"\[truncated: ~[\d,]+ tokens - call tool again if needed\] ")
_CHARS: Final = (0, 100, 250, 500, 1000, 2000)
"""What may be left of a result, where no view has shown it."""


def seen_in(view: Sequence[Candidate]) -> dict[str, Any]:
    """Parameters that no record names, as far as what was sent shows them."""
    own = next((candidate for candidate in view if candidate.item == NOTICE), None)
    found: dict[str, Any] = {"notice": own is not None}
    if own is not None and own.role in ("system", "user"):
        found["sticky"] = own.role == "user"
    for candidate in view:
        text = (candidate.read() or "") if candidate.kind == "tool_result" else ""
        match = _MARKER.match(text)
        if match is not None and text.endswith("..."):
            found["truncate_chars"] = len(text) - match.end() - len("...")
    return found


class Followed(Amplifier, frozen=True, kw_only=True):
    """With parameters of the session that it is held against, between two of its records."""

    known: frozenset[str] = frozenset()
    """Of those that no record names, the ones that a view has shown."""


class Told(Followed, frozen=True, kw_only=True):
    """As a runtime's record has it: that it acted, and the sizes that its notice states."""

    native: dict[str, Any]

    def budget(self, room: Room) -> int:
        """What it says it kept to."""
        told = self.native.get("budget")
        return told if isinstance(told, int) and told > 0 else super().budget(room)

    def exceeds(self, tokens: int, budget: int) -> bool:
        """It acted, by its own count."""
        return True

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """What the record ought to say, and why nobody can tell where that is so."""
        memory: Memory = state if state is not None else Memory(sizes={})
        before = self.native.get("before_tokens")
        sizes = {shape: total(of_candidates(candidates, memory.sizes, shape)) for shape in SHAPES}
        shape, missing = SHAPES[0], 0
        if isinstance(before, int):
            shape = min(SHAPES, key=lambda one: abs(sizes[one] - before))
            missing = before - sizes[shape]
        held = len(of_candidates(candidates, memory.sizes))
        sure = sum(len(text) // 4 for text in texts(candidates))
        doubt = self._lacking(candidates, held) or memory.doubt
        spreads: tuple[Weight | None, ...] = (None,)
        if missing > UNRECORDED * held:
            doubt = doubt or _MORE.format(missing)
        elif missing and sizes[shape] + missing >= sure:
            spreads = (None, *SPREADS)
        fits: list[Fit] = []
        for policy in self._alike():
            for weight in spreads:
                messages = of_candidates(candidates, memory.sizes, shape)
                if weight is not None:
                    spread(messages, missing, weight)
                made = policy._compacted(candidates, messages, policy.budget(room), memory)
                fits.append(made._replace(told={**(made.told or {}), "before_tokens": sizes[shape]}))
        fit = self._nearest(fits)
        if len({_done(one) for one in fits}) > 1:
            doubt = doubt or (_SIZES.format(abs(missing), before) if len(spreads) > 1 else _SETTINGS)
        if doubt is not None and self.sticky and fit.state is not None:
            fit = fit._replace(state=fit.state._replace(doubt=_EARLIER))
        return fit._replace(doubt=doubt)

    def _alike(self) -> Iterator[Told]:
        """This policy, and the same with other values of what nobody knows."""
        versions = (self.sticky,) if "sticky" in self.known else (self.sticky, not self.sticky)
        chars = (self.truncate_chars,) if "truncate_chars" in self.known else (self.truncate_chars, *_CHARS)
        for sticky in versions:
            for most in dict.fromkeys(chars):
                yield msgspec.structs.replace(self, sticky=sticky, truncate_chars=most)

    def _lacking(self, candidates: Sequence[Candidate], held: int) -> str | None:
        """What of the history the log does not hold."""
        recorded = self.native.get("before_messages")
        if isinstance(recorded, int) and recorded != held:
            return f"the log has {held:,} messages where the runtime compacted {recorded:,}"
        cut = sum(map(is_remnant, candidates))
        if not cut:
            return _EQUAL if equal(candidates) else None
        were = "1 message was before it was" if cut == 1 else f"{cut:,} messages were before they were"
        return f"what {were} cut is not in the log"

    def _nearest(self, fits: Sequence[Fit]) -> Fit:
        """The one that says what the record does, else the first."""
        agreeing = [fit for fit in fits if self._counts_are(fit.told or {})]
        return min(agreeing, key=self._off) if agreeing else fits[0]

    def _counts_are(self, told: Mapping[str, int]) -> bool:
        return all(self.native[name] == told.get(name) for name in COUNTS if name in self.native)

    def _off(self, fit: Fit) -> int:
        after = self.native.get("after_tokens")
        return abs((fit.told or {}).get("after_tokens", 0) - after) if isinstance(after, int) else 0

    def _stated(self, told: Mapping[str, int]) -> Mapping[str, int]:
        sizes = ("before_tokens", "after_tokens")
        return {
            **told,
            **{name: self.native[name] for name in sizes if isinstance(self.native.get(name), int)},
        }


def _done(fit: Fit) -> tuple[Any, ...]:
    """What comes of a fit, sizes aside."""
    told = fit.told or {}
    counts = tuple(told.get(name) for name in COUNTS)
    return counts, tuple(d.at for d in fit.drops), tuple((s.at, s.text) for s in fit.swaps)


def spread(messages: list[Message], missing: int, weight: Weight) -> None:
    """Make the messages `missing` tokens larger (or smaller) altogether; changes them."""
    weights = [float(weight(at, len(messages), message)) for at, message in enumerate(messages)]
    whole = sum(weights)
    done = used = 0.0
    for message, share in zip(messages, weights, strict=True):
        used += share
        now = round(missing * used / whole) if whole else 0
        message.chars = max(0, message.chars + 4 * int(now - done))
        done = now

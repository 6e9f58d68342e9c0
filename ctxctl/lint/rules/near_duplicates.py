"""Texts that are nearly the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import xxhash

from ctxctl.lint.carried_cost import CarriedCost
from ctxctl.lint.rule import Hit, Rule
from ctxctl.lint.rules.duplicates import OWN_WORDS, alike_sentence

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import StepContext
    from ctxctl.model.content import Content
    from ctxctl.model.results import Placement

_SIZE: Final = 128
"""Hashes in a sketch: the share of equal ones is within about 0.03 of the true one at 0.9."""
_KEYS: Final = 8
"""The smallest of them, by which texts are found; two that share 0.9 share one of these nearly always."""
_NOT: Final = OWN_WORDS | {"tool_definition"}
_COMPARED: Final = 16
"""Texts that one is compared with: those that share most of its smallest hashes."""
_SHORTEST: Final = 12
"""Characters of a line below which it says nothing."""
_WORDS: Final = 6
_FEATURES: Final = 20
"""Features below which a text is too short to be compared."""
_KNOWN: Final = 4096
_LONGEST: Final = 1 << 18


class Sketch(NamedTuple):
    """The smallest hashes of a text's features."""

    least: tuple[int, ...]
    """In ascending order."""
    all: frozenset[int]


def sketch(text: str) -> Sketch | None:
    """The smallest hashes of a text's lines, or of runs of words where it has few; None: too short."""
    lines = {stripped for line in text.split("\n") if len(stripped := line.strip()) >= _SHORTEST}
    if len(lines) < _FEATURES:
        words = text.split()
        lines = {" ".join(words[n : n + _WORDS]) for n in range(len(words) - _WORDS + 1)}
    if len(lines) < _FEATURES:
        return None
    least = tuple(sorted(xxhash.xxh3_64_intdigest(line.encode("utf-8", "replace")) for line in lines)[:_SIZE])
    return Sketch(least, frozenset(least))


def likeness(a: Sketch, b: Sketch) -> float:
    """Share of the features of either text that both have, estimated: the smallest hashes of the union."""
    both = a.all & b.all
    union = sorted(a.all | b.all)[: min(max(len(a.least), len(b.least)), _SIZE)]
    return len(both.intersection(union)) / len(union)


class NearDuplicate(Rule):
    """Two items in one window have nearly the same text: most lines of one are lines of the other.

    A file read again after a small edit, two versions of a tool's report.  The older one misleads as
    much as it costs.
    """

    code = "CTX011"
    name = "near-duplicate"
    severity = "info"
    needs = "texts of the items"
    fix = "Send what changed, or drop the older one once the newer one is there."
    parameters = {  # noqa: RUF012
        "share": "share of equal lines from which two texts count",
        "tokens": "size from which texts are compared",
    }
    share = 0.85
    tokens = 500

    def __init__(self) -> None:
        self._sketches: dict[Content, Sketch | None] = {}
        self._held: dict[ThreadKey, dict[int, dict[int, Placement]]] = {}
        """By thread and hash, the placements whose sketches begin with it, by key."""
        self._carried = CarriedCost()

    def step(self, look: StepContext) -> Iterator[Hit]:
        """What came into the frame and is like something there."""
        held = self._held.setdefault(look.key, {})
        for gone in look.left:
            if gone.tokens >= self.tokens and (found := self._sketch(look, gone)) is not None:
                for key in found.least[:_KEYS]:
                    held.get(key, {}).pop(gone.key, None)
                yield from self._carried.over((look.key, gone.key))
        for came in look.came:
            if came.tokens < self.tokens or came.kind in _NOT:
                continue
            found = self._sketch(look, came)
            if found is None:
                continue
            like = self._like(look, held, came, found)
            for key in found.least[:_KEYS]:
                held.setdefault(key, {}).setdefault(came.key, came)
            if like is None:
                continue
            other, share = like
            message = alike_sentence(came, other, share)
            hit = Hit(came.item, message, look.place(came.line), came.item, note=_NOTE)
            beyond = self._carried.begin((look.key, came.key), hit, min(came.tokens, other.tokens), look)
            if beyond is not None:
                yield beyond

    def end(self) -> Iterator[Hit]:
        """What is still in a window."""
        return self._carried.rest()

    def _sketch(self, look: StepContext, placement: Placement) -> Sketch | None:
        content = placement.content
        if content is None or content.size > _LONGEST:
            return None
        if content not in self._sketches:
            if len(self._sketches) >= _KNOWN:
                self._sketches.clear()
            self._sketches[content] = sketch(look.around.text(content))
        return self._sketches[content]

    def _like(
        self, look: StepContext, held: dict[int, dict[int, Placement]], came: Placement, found: Sketch
    ) -> tuple[Placement, float] | None:
        """The most like one of another item with another text, and how like it is."""
        shared: Counter[int] = Counter()
        others: dict[int, Placement] = {}
        for key in found.least[:_KEYS]:
            there = held.get(key)
            if there:
                shared.update(there.keys())
                others.update(there)
        best: tuple[Placement, float] | None = None
        for name, times in shared.most_common(_COMPARED):
            other = others[name]
            if times < 2 or other.item == came.item or other.digest == came.digest:
                continue
            theirs = self._sketch(look, other)
            share = likeness(found, theirs) if theirs is not None else 0.0
            if share >= self.share and (best is None or share > best[1]):
                best = (other, share)
        return best


_NOTE = "the smaller of the two, in every request that holds both"

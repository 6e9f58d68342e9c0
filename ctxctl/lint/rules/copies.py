"""Content that the window holds twice, keeps after it was replaced, or carries although it is very large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import xxhash

from ctxctl import wording
from ctxctl.lint.rule import Hit, Rule
from ctxctl.model.sizes import limit_words, sent_of
from ctxctl.wording import share

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import StepContext, ThreadSums
    from ctxctl.lint.rule import Hit
    from ctxctl.model.content import Content
    from ctxctl.model.results import Placement

_MOST: Final = 1 << 16
"""Loads open at one time; what comes beyond them is told with its first step only."""


class _Load(NamedTuple):
    hit: Hit
    tokens: int
    running: ThreadSums
    steps: int
    rates: Decimal
    unpriced: int


class CarriedCost:
    """Loads that begin at one step and end at another; each is told once, with the sum of its steps."""

    def __init__(self) -> None:
        self._open: dict[Hashable, _Load] = {}

    def begin(self, name: Hashable, hit: Hit, tokens: int, look: StepContext) -> Hit | None:
        """From this step on, `tokens` more than needed are in each request; a hit where no more fit in."""
        if name in self._open:
            return None
        if len(self._open) >= _MOST:
            return hit._replace(tokens=tokens, money=look.money(tokens))
        now = look.running
        self._open[name] = _Load(hit, tokens, now, now.steps, now.rates, now.unpriced)
        return None

    def holds(self, name: Hashable) -> bool:
        """Whether a load of this name is open."""
        return name in self._open

    def over(self, name: Hashable) -> Iterator[Hit]:
        """It has left the window; nothing where it was not in there."""
        load = self._open.pop(name, None)
        if load is not None:
            yield _sum(load)

    def rest(self) -> Iterator[Hit]:
        """What is still in a window where the trace ends."""
        loads, self._open = self._open, {}
        yield from (_sum(load) for load in loads.values())


def _sum(load: _Load) -> Hit:
    steps = load.running.steps - load.steps
    unknown = load.running.unpriced != load.unpriced
    money = None if unknown else (load.running.rates - load.rates) * load.tokens
    return load.hit._replace(tokens=load.tokens * steps, money=money, steps=max(steps, 1))


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
    fix = "Compare the item's version with the one injected last, and send nothing if they are equal."
    parameters = {"tokens": "smallest repeated item that counts"}  # noqa: RUF012
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
                    f"{look.called(came)} is injected again, unchanged (version {came.version})",
                    look.place(came.line),
                    came.item,
                    came.tokens,
                    look.money(came.tokens),
                    note="counted once for each time it is sent again; the copies stay in later requests",
                )


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
    fix = "Leave the second one out, or replace its text with a reference to the first."
    parameters = {"tokens": "smallest text that counts"}  # noqa: RUF012
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
                message = alike_sentence(look, came, first)
                hit = Hit(came.item, message, look.place(came.line), came.item, note=_NOTE)
                beyond = self._carried.begin((look.key, came.digest, came.item), hit, came.tokens, look)
                if beyond is not None:
                    yield beyond

    def end(self) -> Iterator[Hit]:
        """What is still in a window."""
        return self._carried.rest()


_NOTE = "the second copy, in every request that holds it"


def alike_sentence(look: StepContext, one: Placement, other: Placement, share: float | None = None) -> str:
    """A sentence on two placements that say the same, or to some share the same."""
    name, second = look.called(one), look.called(other)
    how = "with the same text" if share is None else f"{wording.share(min(share, 0.99))} the same"
    if name == second:
        return f"{name} is in the window twice, {how}, {one.tokens:,} tokens"
    what = "has the same text as" if share is None else f"is {wording.share(min(share, 0.99))} the same as"
    return f"{name} {what} {second}, {one.tokens:,} tokens"


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
        "tokens": "fewest tokens of stale copies that count",
        "share": "smallest share of what was sent that counts",
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
    fix = "Cut it at the source (head, tail, filter, pages), or pass a reference to it."
    parameters = {  # noqa: RUF012
        "share": "smallest share of the cap that counts",
        "tokens": "smallest item that counts",
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
                f"{look.called(came)} takes {came.tokens:,} tokens, "
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
        "share": "smallest share of equal lines that counts",
        "tokens": "smallest text that is compared",
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
            message = alike_sentence(look, came, other, share)
            hit = Hit(came.item, message, look.place(came.line), came.item, note=_NEAR_NOTE)
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


_NEAR_NOTE = "the smaller of the two, in every request that holds both"

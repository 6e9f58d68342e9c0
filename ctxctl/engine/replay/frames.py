"""The frame of one thread and target, updated by edits (DESIGN section 3, frame and ledger).

A frame is a plain list of placements in order. `FrameState` adds a step's totals. It updates each total by
what an edit removed and inserted, so the cost of a step is proportional to its changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ctxctl.listdiff import same_end, same_start
from ctxctl.model.results import Placement

_Name = TypeVar("_Name", int, str)
_CITED = '"citations":{"enabled":true'
"""Citations are enabled in this document (Anthropic). In an answer, `citations` is a list."""


class FrameDelta(NamedTuple):
    """The difference of two frames: their common head and tail, and what was removed and inserted."""

    prefix: int
    """Number of placements in the common head."""
    suffix: int
    """Number of placements in the common tail."""
    removed: list[Placement]
    """Placements only in the previous frame, in its order."""
    inserted: list[Placement]
    """Placements only in this frame, in its order."""
    reordered: bool
    """Whether placements in both middles have another order."""
    before: list[Placement]
    after: list[Placement]

    def middles(self) -> tuple[list[Placement], list[Placement]]:
        """Return the parts of both frames between the common head and tail."""
        return (
            self.before[self.prefix : len(self.before) - self.suffix],
            self.after[self.prefix : len(self.after) - self.suffix],
        )


class Flow(NamedTuple):
    """Tokens that entered and left, as a multiset difference of placements."""

    new: int
    freed: int
    new_by_item: dict[str, int]
    freed_by_item: dict[str, int]


def delta_of(before: list[Placement], after: list[Placement], head: int = 0, tail: int = 0) -> FrameDelta:
    """Compare two frames by the identity of their placements.

    `head` and `tail` are numbers of placements known to be the same at either end. With them, the cost is
    proportional to the difference.
    """
    limit = min(len(before), len(after))
    prefix = same_start(before, after, min(head, limit))
    suffix = same_end(before, after, limit - prefix, tail)
    old, new = before[prefix : len(before) - suffix], after[prefix : len(after) - suffix]
    if not old or not new:
        return FrameDelta(prefix, suffix, old, new, False, before, after)
    old_set, new_set = set(old), set(new)
    if len(old_set) != len(old) or len(new_set) != len(new):
        return _with_repeats(FrameDelta(prefix, suffix, old, new, False, before, after))
    both = old_set & new_set
    if not both:
        return FrameDelta(prefix, suffix, old, new, False, before, after)
    removed = [p for p in old if p not in both]
    inserted = [p for p in new if p not in both]
    reordered = [p for p in old if p in both] != [p for p in new if p in both]
    return FrameDelta(prefix, suffix, removed, inserted, reordered, before, after)


def entered_between(before: list[Placement], after: list[Placement]) -> list[Placement]:
    """Return the middle of `after`: all placements that entered, and maybe others."""
    head = same_start(before, after)
    tail = same_end(before, after, min(len(before), len(after)) - head)
    return after[head : len(after) - tail]


def _with_repeats(middle: FrameDelta) -> FrameDelta:
    """Return the delta of middles in which a placement occurs more than once."""
    old, new = middle.removed, middle.inserted
    spare = Counter(old)
    kept: list[Placement] = []
    inserted: list[Placement] = []
    for placement in new:
        if spare[placement] > 0:
            spare[placement] -= 1
            kept.append(placement)
        else:
            inserted.append(placement)
    spare = Counter(new)
    removed: list[Placement] = []
    stayed: list[Placement] = []
    for placement in old:
        if spare[placement] > 0:
            spare[placement] -= 1
            stayed.append(placement)
        else:
            removed.append(placement)
    return middle._replace(removed=removed, inserted=inserted, reordered=stayed != kept)


def flow_of(delta: FrameDelta) -> Flow:
    """Return the tokens that a delta adds and frees, by (item, version, rendering)."""
    # Use plain dicts: a `Counter` is slow for the few placements of most deltas.
    balance: dict[int, int] = {}
    by_key = {p.key: p for p in delta.removed}
    for p in delta.inserted:
        balance[p.key] = balance.get(p.key, 0) + 1
        by_key[p.key] = p
    for p in delta.removed:
        balance[p.key] = balance.get(p.key, 0) - 1
    new = freed = 0
    new_by: dict[str, int] = {}
    freed_by: dict[str, int] = {}
    for key, copies in balance.items():
        placement = by_key[key]
        tokens = placement.tokens * copies
        if copies > 0:
            new += tokens
            new_by[placement.item] = new_by.get(placement.item, 0) + tokens
        elif copies < 0:
            freed -= tokens
            freed_by[placement.item] = freed_by.get(placement.item, 0) - tokens
    return Flow(new, freed, new_by, freed_by)


def recorded_sum(placements: Iterable[Placement]) -> int:
    """Return the tokens of placements as recorded, even if a what-if replaced their texts."""
    return sum(p.tokens if p.instead_of is None else p.instead_of for p in placements)


class FrameState:
    """The current frame of a thread, and its totals in tokens."""

    __slots__ = (
        "by_method",
        "carried",
        "cites",
        "counted",
        "current",
        "head",
        "heads",
        "held",
        "images",
        "keyed",
        "placements",
        "recorded",
        "segments",
        "stale",
        "stale_copies",
        "uncounted",
        "used",
    )

    def __init__(self) -> None:
        self.placements: list[Placement] = []
        self.used = 0
        self.counted = 0
        """Counted tokens, before any calibration."""
        self.recorded = 0
        """Recorded tokens: items whose text a what-if replaced count with their own text."""
        self.stale = 0
        """Tokens in stale placements."""
        self.uncounted = 0
        """Number of placements without text or count."""
        self.by_method: dict[str, int] = {}
        self.segments: dict[str, int] = {}
        self.current: dict[str, int] = {}
        """Number of current copies by item, where not 0."""
        self.keyed: dict[int, int] = {}
        """Number of current copies by placement key."""
        self.held: dict[str, int] = {}
        """Tokens of all copies by item, stale ones included."""
        self.stale_copies: dict[str, int] = {}
        """Number of stale copies by item."""
        self.head = 0
        """Number of placements that providers put first (tools, system)."""
        self.heads: dict[Placement, int] = {}
        """Copies of each placement that providers put first. A stale copy is a separate placement."""
        self.images = 0
        """Number of images."""
        self.cites = 0
        """Number of documents with citations enabled."""
        self.carried = 0
        """Number of placements carried in from before the trace."""

    def copy(self) -> FrameState:
        """Return an independent copy, for a snapshot of a replay."""
        twin = FrameState.__new__(FrameState)
        for name in FrameState.__slots__:
            value = getattr(self, name)
            setattr(twin, name, value.copy() if isinstance(value, dict | list) else value)
        return twin

    def holds(self, item: str) -> bool:
        """Return whether the frame has a copy of an item, a stale one included."""
        return item in self.current or item in self.stale_copies

    def held_before(self, delta: FrameDelta) -> Callable[[str], bool]:
        """Return `holds` as it was before the last edit, `delta`."""

        def held(item: str) -> bool:
            copies = self.current.get(item, 0) + self.stale_copies.get(item, 0)
            copies -= sum([p.item == item for p in delta.inserted])
            return copies + sum([p.item == item for p in delta.removed]) > 0

        return held

    def move_to(self, after: list[Placement], delta: FrameDelta) -> None:
        """Set the frame to `after`; `delta` is its difference from the current frame."""
        self.placements = after
        for placement in delta.removed:
            self._account(placement, -1)
        for placement in delta.inserted:
            self._account(placement, 1)

    def _account(self, p: Placement, sign: int) -> None:
        tokens = p.tokens * sign
        item = p.item
        if p.method == "uncounted":
            self.uncounted += sign
        else:
            self.used += tokens
            self.counted += p.counted * sign
            self.recorded += tokens if p.instead_of is None else p.instead_of * sign
            _add(self.by_method, p.method, tokens)
            _add(self.segments, p.segment, tokens)
            _add(self.held, item, tokens)
        if p.rank < 2:
            self.head += sign
            copies = self.heads.get(p, 0) + sign
            if copies:
                self.heads[p] = copies
            else:
                del self.heads[p]
        if p.kind == "image":
            self.images += sign
        elif p.form and _CITED in p.form:
            self.cites += sign
        if p.stale:
            self.stale += tokens
            _add(self.stale_copies, item, sign)
        else:
            _add(self.current, item, sign)
            _add(self.keyed, p.key, sign)
        if p.carried:
            self.carried += sign


def _add(sums: dict[_Name, int], name: _Name, amount: int) -> None:
    total = sums.get(name, 0) + amount
    if total:
        sums[name] = total
    else:
        sums.pop(name, None)

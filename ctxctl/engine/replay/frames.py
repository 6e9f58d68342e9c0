"""The frame of one thread and target, kept up to date by edits (DESIGN section 3, frame and ledger).

A frame is a plain list of placements in order.  `FrameState` adds the sums that a step reports, each
maintained from what an edit took out and put in, so a step costs what changed in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ctxctl.listdiff import same_end, same_start
from ctxctl.model.results import Placement

_Name = TypeVar("_Name", int, str)
_CITED = '"citations":{"enabled":true'
"""In a document's form: Anthropic's switch.  In an answer `citations` is a list."""


class FrameDelta(NamedTuple):
    """How two frames differ: between a common head and tail, which objects left and which came."""

    prefix: int
    """Placements that both frames begin with."""
    suffix: int
    """Placements that both end with."""
    removed: list[Placement]
    """Only in the previous frame, in its order."""
    inserted: list[Placement]
    """Only in this frame, in its order."""
    reordered: bool
    """Placements that both middles hold stand in another order."""
    before: list[Placement]
    after: list[Placement]

    def middles(self) -> tuple[list[Placement], list[Placement]]:
        """What lies between the common head and tail, in both frames."""
        return (
            self.before[self.prefix : len(self.before) - self.suffix],
            self.after[self.prefix : len(self.after) - self.suffix],
        )


class Flow(NamedTuple):
    """Tokens that entered and left, by the multiset difference of placements."""

    new: int
    freed: int
    new_by_item: dict[str, int]
    freed_by_item: dict[str, int]


def delta_of(before: list[Placement], after: list[Placement], head: int = 0, tail: int = 0) -> FrameDelta:
    """Compare two frames by the identity of their placements.

    `head` and `tail` are numbers of placements known to be the same at either end; with them the work is
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
    """What stands in `after` between what both frames begin and end with: all that came, maybe more."""
    head = same_start(before, after)
    tail = same_end(before, after, min(len(before), len(after)) - head)
    return after[head : len(after) - tail]


def _with_repeats(middle: FrameDelta) -> FrameDelta:
    """The delta of middles in which one placement stands several times."""
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
    """What a delta adds and frees, keyed (item, version, rendering): order and staleness do not count."""
    # Plain dicts: a `Counter` is slow with the few placements of most deltas.
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
    """Tokens of placements as they are recorded, whatever text a what-if set in their place."""
    return sum(p.tokens if p.instead_of is None else p.instead_of for p in placements)


class FrameState:
    """The current frame of a thread, and its sums in tokens."""

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
        """As counted, before any calibration."""
        self.recorded = 0
        """As recorded: with the own texts of items for which a what-if set another one."""
        self.stale = 0
        """Tokens in stale placements."""
        self.uncounted = 0
        """Placements without text or count."""
        self.by_method: dict[str, int] = {}
        self.segments: dict[str, int] = {}
        self.current: dict[str, int] = {}
        """Number of current copies by item; items without one are absent."""
        self.keyed: dict[int, int] = {}
        """Number of current copies by their keys."""
        self.held: dict[str, int] = {}
        """Tokens that all copies of an item hold, stale ones included."""
        self.stale_copies: dict[str, int] = {}
        """Number of stale copies by item."""
        self.head = 0
        """Placements that providers put first (tools, system)."""
        self.heads: dict[Placement, int] = {}
        """These, with the number of copies of each; a stale copy is another one."""
        self.images = 0
        """Placements that are images."""
        self.cites = 0
        """Documents for which citations are asked."""
        self.carried = 0
        """Placements carried in from before the trace."""

    def copy(self) -> FrameState:
        """An independent copy, for a snapshot of a replay."""
        twin = FrameState.__new__(FrameState)
        for name in FrameState.__slots__:
            value = getattr(self, name)
            setattr(twin, name, value.copy() if isinstance(value, dict | list) else value)
        return twin

    def holds(self, item: str) -> bool:
        """Whether some copy of an item is in the frame, a stale one included."""
        return item in self.current or item in self.stale_copies

    def held_before(self, delta: FrameDelta) -> Callable[[str], bool]:
        """What `holds` said before the last edit, which was `delta`."""

        def held(item: str) -> bool:
            copies = self.current.get(item, 0) + self.stale_copies.get(item, 0)
            copies -= sum([p.item == item for p in delta.inserted])
            return copies + sum([p.item == item for p in delta.removed]) > 0

        return held

    def move_to(self, after: list[Placement], delta: FrameDelta) -> None:
        """Take `after` as the frame; `delta` is its difference from the present one."""
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

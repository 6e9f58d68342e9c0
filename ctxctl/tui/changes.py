"""One frame's changes in groups, as the lines of a list.  Plain Python."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from ctxctl.engine.query import Query
from ctxctl.item_names import LONGEST, NameList, fitted, told
from ctxctl.model.results import Change
from ctxctl.model.vocab import STATUSES, Status

ORDER: Final[tuple[Status, ...]] = ("added", "updated", "removed", "omitted", "skipped")
"""What enters first, what stays as it is last."""

Order = Literal["frame", "window", "new", "freed", "name", "kind"]
ORDERS: Final[tuple[Order, ...]] = ("frame", "window", "new", "freed", "name", "kind")
"""What the changes of a group can be sorted by: as they stand in the frame, by tokens, the most first, or by
words.
"""

Facet = Literal["status", "kind", "source", "segment", "server", "none"]
FACETS: Final[tuple[Facet, ...]] = ("status", "kind", "source", "segment", "server", "none")
"""What the changes can be grouped by."""


Causes = Literal["none", "omitted", "many"]
"""Of no change, of what was omitted alone, or of others too."""


class Arrangement(NamedTuple):
    """How the changes are listed."""

    order: Order = "frame"
    reverse: bool = False
    by: Facet = "status"
    only: Query | None = None
    """Those are listed of which this holds."""


AS_IT_IS: Final = Arrangement()
"""By status, in the order of the frame."""


class Holding(NamedTuple):
    """What is known of an item besides its change."""

    stale: int = 0
    """Tokens that older copies of it still hold in the window."""
    saved: int | None = None
    """Tokens that were not sent again because the model has them; None: not known of the single item."""
    segment: str = ""
    uncounted: bool = False
    """The capture holds neither its text nor its size."""


@dataclass(frozen=True, slots=True)
class Group:
    """Changes that have something in common; where only their number is known, `changes` is empty."""

    key: str
    """What they have in common: a status, a kind …"""
    changes: Sequence[Change]
    count: int
    in_window: int
    new: int
    freed: int
    saved: int | None = None
    stale: int = 0
    uncounted: int = 0
    """How many have no known size: they add nothing to the tokens."""
    folded: bool = False
    cause: str | None = None
    """The cause of all of them, where they have one and nothing else is to be said of any."""
    noted: Sequence[Change] = ()
    """Changes to list even where the group is folded: something happened to what was skipped."""

    @property
    def status(self) -> Status | None:
        """The status that the group stands for; None where it stands for something else."""
        return next((status for status in STATUSES if status == self.key), None)

    @property
    def shown(self) -> Sequence[Change]:
        """The changes that are listed below the heading."""
        return self.noted if self.folded else self.changes

    @property
    def lines(self) -> int:
        """Lines of the list, heading included."""
        return 1 + len(self.shown)


@dataclass(frozen=True, slots=True)
class Note:
    """A line above the groups: something about the frame that the reader should know first."""

    text: str
    warning: bool = False


def place_notes(places: Sequence[str]) -> Iterator[Note]:
    """Where captures of a format come from: a line each, as a pane has no room for several."""
    if places:
        yield Note("such captures come from:")
    yield from (Note(f"  {place}") for place in places)


Line = Note | Group | Change


def size_of(change: Change) -> int:
    """Tokens that an item holds in the window, held until it left, or would hold had it not been omitted."""
    return change.in_window or change.freed or (change.tokens if change.status == "omitted" else 0)


def flags_told(change: Change) -> tuple[str, ...]:
    """The flags of a change that say more than its cause and its sign do."""
    return tuple(flag for flag in change.flags if flag not in ("derived-identity", change.cause))


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """The list; `starts` holds the line on which each group begins."""

    notes: tuple[Note, ...] = ()
    groups: tuple[Group, ...] = ()
    starts: tuple[int, ...] = ()
    places: dict[str, tuple[int, int]] | None = None
    """Group index and index in it of each item, for keeping the cursor on an item across frames."""
    names: NameList = field(default_factory=NameList)
    """What the items are called."""
    holdings: Mapping[str, Holding] = field(default_factory=dict)
    """By item, what else is known; of those of which something is."""
    arrangement: Arrangement = AS_IT_IS
    causes: Causes = "many"
    """Of which changes something is to be said beside its amounts."""
    largest: int = 0
    """Tokens of the largest item listed; 0 where there are no two to compare."""

    @classmethod
    def of(
        cls,
        groups: Sequence[Group],
        notes: Sequence[Note] = (),
        names: NameList | None = None,
        holdings: Mapping[str, Holding] | None = None,
        arrangement: Arrangement = AS_IT_IS,
    ) -> ChangeTable:
        """A table of the groups that hold anything, in their order; proportional to the changes."""
        kept = tuple(group for group in groups if group.count)
        places = {
            change.item: (g, n)
            for g, group in enumerate(kept)
            for n, change in enumerate(group.changes or group.noted)
        }
        named, held = names or NameList(), holdings or {}
        said = [
            change
            for group in kept
            if group.cause is None
            for change in group.changes
            if change.cause or change.reason or flags_told(change)
        ]
        stale = any(one.stale for one in held.values())
        causes: Causes = "none"
        if stale or said:
            causes = "many" if stale or any(one.status != "omitted" for one in said) else "omitted"
        sizes = [size_of(change) for group in kept for change in (group.changes or group.noted)]
        largest = max(sizes) if len(sizes) > 1 else 0
        return cls(tuple(notes), kept, (), places, named, held, arrangement, causes, largest)._placed()

    def _placed(self) -> ChangeTable:
        line = len(self.notes)
        starts = []
        for group in self.groups:
            starts.append(line)
            line += group.lines
        return replace(self, starts=tuple(starts))

    @property
    def count(self) -> int:
        """Lines of the list."""
        return len(self.notes) + sum(group.lines for group in self.groups)

    def at(self, line: int) -> Line:
        """What line `line` (0 ≤ line < count) shows; a group stands for its heading."""
        if line < len(self.notes):
            return self.notes[line]
        g = bisect_right(self.starts, line) - 1
        below = line - self.starts[g]
        return self.groups[g] if below == 0 else self.groups[g].shown[below - 1]

    def group_at(self, line: int) -> Group | None:
        """The group to which a line belongs; None on notes, and where nothing has changed."""
        if line < len(self.notes) or not self.groups:
            return None
        return self.groups[bisect_right(self.starts, line) - 1]

    def heading(self, group: Group) -> int:
        """The line of a group's heading, also of one that has been folded since."""
        return next(start for g, start in zip(self.groups, self.starts, strict=True) if g.key == group.key)

    def change_at(self, line: int) -> Change | None:
        """The change on a line, None on headings, notes and outside."""
        found = self.at(line) if 0 <= line < self.count else None
        return found if isinstance(found, Change) else None

    def name(self, change: Change, width: int = LONGEST) -> str:
        """What a change's item is called in at most `width` cells."""
        found = self.names.at(change.item, width)
        return fitted(told(change.title, "", change.item), width) if found is None else found

    def find(self, item: str) -> int | None:
        """The line of an item's change; of one that its folded group does not list, the group's heading."""
        place = (self.places or {}).get(item)
        if place is None:
            return None
        g, n = place
        group = self.groups[g]
        if not group.folded:
            return self.starts[g] + 1 + n
        noted = (k for k, change in enumerate(group.noted, 1) if change.item == item)
        return self.starts[g] + next(noted, 0)

    def first(self) -> int:
        """The line of the first change, else 0."""
        for start, group in zip(self.starts, self.groups, strict=True):
            if group.shown:
                return start + 1
        return 0

    def folded(self, key: str, folded: bool) -> ChangeTable:
        """The same table with one group folded or unfolded."""
        groups = tuple(replace(g, folded=folded) if g.key == key else g for g in self.groups)
        return replace(self, groups=groups)._placed()

    def is_folded(self, key: str) -> bool:
        """Whether a group is folded; False for a group that is not there."""
        return any(group.folded for group in self.groups if group.key == key)


class Facts(NamedTuple):
    """One frame's changes before they are arranged."""

    changes: Sequence[Change]
    """What changed; may hold some of the skipped items, those to which something happened."""
    skipped: Sequence[Change] | None
    """All that was skipped; None: only their number is known."""
    skipped_count: int
    used: int
    """Tokens of the frame's content: what the changes do not hold, the skipped items do."""
    saved: int | None
    stale: int
    holdings: Mapping[str, Holding]
    servers: Callable[[Change], str]
    """The MCP server of an item, empty where its names tell none."""


def arranged_groups(facts: Facts, arrangement: Arrangement) -> list[Group]:
    """The groups, in their order; costs a sort of the changes.

    Where only the number of skipped items is known, they are a group of their own, of which those are listed
    to which something happened.
    """
    unlisted = facts.skipped is None
    noted = [change for change in facts.changes if change.status == "skipped"]
    changes = [change for change in facts.changes if change.status != "skipped"]
    if facts.skipped is not None:
        changes += facts.skipped
    key = _KEYS[arrangement.by](facts)
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(key(change), []).append(change)
    groups = [_group(name, _sorted(held, arrangement, facts), facts) for name, held in found.items()]
    if arrangement.by == "status":
        groups = [replace(g, noted=noted, saved=facts.saved) if g.key == "skipped" else g for g in groups]
    if unlisted:
        some = _group("skipped", noted, facts)
        rest = max(facts.used - sum(group.in_window for group in groups), some.in_window)
        stale = max(facts.stale - sum(group.stale for group in groups), 0)
        unsized = sum(one.uncounted for one in facts.holdings.values())
        unsized = max(unsized - sum(group.uncounted for group in groups), 0)
        some = replace(some, changes=(), count=facts.skipped_count, folded=True, noted=noted)
        groups.append(replace(some, in_window=rest, saved=facts.saved, stale=stale, uncounted=unsized))
    return sorted(groups, key=_RANKS.get(arrangement.by, _by_size))


NONE: Final[dict[Facet, str]] = {"source": "no source", "server": "no server", "segment": "no segment"}
"""The group of what has nothing to be grouped by."""

_KEYS: Final[dict[Facet, Callable[[Facts], Callable[[Change], str]]]] = {
    "status": lambda facts: lambda change: change.status,
    "kind": lambda facts: lambda change: change.kind,
    "source": lambda facts: lambda change: change.source or NONE["source"],
    "segment": lambda facts: lambda change: _holding(facts, change).segment or NONE["segment"],
    "server": lambda facts: lambda change: facts.servers(change) or NONE["server"],
    "none": lambda facts: lambda change: "all",
}

_SEGMENTS: Final = ("tools", "system", "history", "context", "user")


def _by_size(group: Group) -> tuple[object, ...]:
    """What weighs most first; what has nothing in common, and what is not listed, last."""
    return (
        group.key == "skipped",
        group.key in NONE.values(),
        -max(group.in_window, group.freed),
        group.key,
    )


_RANKS: Final[dict[Facet, Callable[[Group], tuple[object, ...]]]] = {
    "status": lambda group: (ORDER.index(group.status) if group.status else len(ORDER),),
    "segment": lambda group: (
        group.key == "skipped",
        _SEGMENTS.index(group.key) if group.key in _SEGMENTS else len(_SEGMENTS),
        group.key,
    ),
}


def _holding(facts: Facts, change: Change) -> Holding:
    return facts.holdings.get(change.item, Holding())


def _sorted(changes: list[Change], arrangement: Arrangement, facts: Facts) -> list[Change]:
    """In the order asked for; what is equal stays as it stands in the frame."""
    keys: dict[Order, Callable[[Change], object]] = {
        "window": lambda change: -change.in_window,
        "new": lambda change: -change.new,
        "freed": lambda change: -change.freed,
        "name": lambda change: (change.title or change.item).casefold(),
        "kind": lambda change: (change.kind, (change.title or change.item).casefold()),
    }
    key = keys.get(arrangement.order)
    if key is not None:
        changes.sort(key=key)  # type: ignore[arg-type]  # one kind of key at a time
    return changes[::-1] if arrangement.reverse else changes


def _group(key: str, changes: Sequence[Change], facts: Facts) -> Group:
    return Group(
        key,
        changes,
        len(changes),
        sum(change.in_window for change in changes),
        sum(change.new for change in changes),
        sum(change.freed for change in changes),
        stale=sum(_holding(facts, change).stale for change in changes),
        uncounted=sum(_holding(facts, change).uncounted for change in changes),
        cause=_common_cause(changes),
    )


def _common_cause(changes: Sequence[Change]) -> str | None:
    """What set all of several changes off, where nothing else is to be said of any of them."""
    said = {(change.cause, change.reason, flags_told(change)) for change in changes}
    if len(changes) < 2 or len(said) != 1:
        return None
    cause, reason, flags = said.pop()
    return cause if reason in (None, cause) and not flags else None

"""What the diff screen is told: the two sides, the items of both, and one item's texts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ctxctl.errors import UsageError
from ctxctl.item_names import LONGEST, Named, NameList, fitted, told
from ctxctl.model.vocab import Provenance, Status, UsedMethod
from ctxctl.tui.sizes import is_unknown

if TYPE_CHECKING:
    from ctxctl.session import Inspector
    from ctxctl.tui.screens.diff.sheet import Sheet

NOTED: Final = frozenset({"moved", "rescored"})
"""What can happen to an item that is otherwise as it was."""


class FrameName(NamedTuple):
    """A frame, by its ordinal in the open trace, or in another one that was opened beside it."""

    ordinal: int
    other: Inspector | None = None


class Pair(NamedTuple):
    """The frames to compare: from `a` to `b`."""

    a: FrameName
    b: FrameName

    def swapped(self) -> Pair:
        """The pair with its sides exchanged."""
        return Pair(self.b, self.a)


Pairing = Callable[["Inspector"], Pair]
"""Names the frames to compare; called in a thread, with the open trace."""


def against(ordinal: int, first: int, marked: int | None) -> Pairing:
    """A frame beside the marked one, or beside the one before step `first` where none other is marked."""

    def pair(inspector: Inspector) -> Pair:
        before = marked if marked is not None and marked != ordinal else inspector.previous(first)
        if before is None:
            raise UsageError("no-frame-before", "no frame before this one in its thread")
        return Pair(FrameName(before), FrameName(ordinal))

    return pair


@dataclass(frozen=True, slots=True)
class SideHead:
    """The head of one side: which frame it is, and what it holds."""

    trace: str
    """File name."""
    address: str
    layer: str
    basis: str
    target: str
    model: str | None
    limit: int | None
    cap: int | None
    used: int
    uncounted: int
    counting: str
    """Counting methods of its tokens."""
    segments: Mapping[str, int]
    policy: str = "recorded"
    items: int = 0
    recorded: int = 0
    """Tokens of the frame's content; `used` is what was sent."""
    method: UsedMethod = "recorded"
    """How `used` is known."""
    error: int | None = None
    """Of an expected size: nine of ten are off by no more."""

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of its size."""
        return is_unknown(self.used, self.uncounted, self.method)

    @property
    def unrecorded(self) -> int:
        """What was sent beside the content; 0 where nothing was billed to tell by."""
        return self.used - self.recorded

    @property
    def label(self) -> str:
        """The address of the frame."""
        return f"{self.trace}@{self.address}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of the two frames: what became of it from one to the other."""

    status: Status
    item: str
    kind: str
    title: str | None
    before: int
    """Tokens of all its copies in the first frame, stale ones included."""
    after: int
    new: int
    freed: int
    cause: str | None = None
    reason: str | None = None
    into: str | None = None
    flags: tuple[str, ...] = ()
    provenance: Provenance = "native"
    words: str = ""
    """First words of an item without a title."""
    places: tuple[int | None, int | None] = (None, None)
    """1-based position of its current copy in each frame."""
    scores: tuple[float | None, float | None] = (None, None)
    versions: tuple[str | None, str | None] = (None, None)
    line: int = 0
    """Line of its record in the second trace, or in the first one where only that has it; 0: none."""
    uncounted: tuple[bool, bool] = (False, False)
    """In which of the frames it is without a known size."""

    @property
    def changed(self) -> bool:
        """Whether anything at all happened to the item."""
        return (
            self.status != "skipped"
            or bool(NOTED.intersection(self.flags))
            or self.before != self.after
            or bool(self.new or self.freed)
        )


@dataclass(frozen=True, slots=True)
class FrameDiff:
    """All items of two frames in the order of their windows.

    Of what is recorded, `after = before + new - freed`; of what was sent, the change of what is not recorded
    comes to that.
    """

    a: SideHead
    b: SideHead
    entries: Sequence[Entry]
    changed: Sequence[int]
    """Indices of the entries to which something happened."""
    new: int
    freed: int
    counts: Mapping[Status, int]
    complete: bool = True
    """False while the causes of removals are still being looked up."""
    remarks: tuple[str, ...] = ()
    """What makes the two sides hard to compare."""
    names: NameList = field(default_factory=NameList)
    """What the items are called."""
    columns: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """Of `COLUMNS`, those in which something is said of an item that changed, and of any item."""

    @property
    def sized(self) -> bool:
        """Whether it is known what was sent on both sides, or on none: then the sizes can be compared."""
        return (self.a.method == "recorded") == (self.b.method == "recorded")

    @classmethod
    def of(
        cls,
        a: SideHead,
        b: SideHead,
        entries: Sequence[Entry],
        flow: tuple[int, int],
        counts: Mapping[Status, int],
        *,
        complete: bool = True,
        directory: str | None = None,
    ) -> FrameDiff:
        """A diff of these entries; proportional to them.  Paths below the directory are shown from there."""
        changed = tuple(n for n, entry in enumerate(entries) if entry.changed)
        rows = (Named(one.item, one.title, one.words, f"{one.status} {one.kind}") for one in entries)
        names = NameList(rows, directory)
        columns = _columns(entries[n] for n in changed), _columns(entries)
        said = tuple(remarks(a, b))
        return cls(a, b, tuple(entries), changed, *flow, counts, complete, said, names, columns)

    def name(self, entry: Entry, width: int = LONGEST) -> str:
        """What an item is called in at most `width` cells."""
        return self.names.at(entry.item, width) or fitted(told(entry.title, entry.words, entry.item), width)


COLUMNS: Final = ("before", "after", "new", "freed", "why")
"""Columns of the table beside kind and item."""


def _columns(entries: Iterable[Entry]) -> frozenset[str]:
    found: set[str] = set()
    for entry in entries:
        told = (
            entry.before or entry.uncounted[0], entry.after or entry.uncounted[1], entry.new, entry.freed,
            entry.cause or entry.reason or entry.flags,
        )  # fmt: skip
        found.update(name for name, any_ in zip(COLUMNS, told, strict=True) if any_)
        if len(found) == len(COLUMNS):
            break
    return frozenset(found)


def remarks(a: SideHead, b: SideHead) -> list[str]:
    """What differs between the sides besides their items."""
    found = []
    if a.layer != b.layer:
        found.append(f"different layers: {a.layer} and {b.layer}")
    if a.target != b.target:
        found.append(f"different targets: {a.target} and {b.target}")
    if a.policy != b.policy:
        found.append(f"different policies: {a.policy} and {b.policy}")
    if a.counting != b.counting and a.counting and b.counting:
        found.append(f"counted differently: {a.counting} and {b.counting}")
    if "policy" in (a.basis, b.basis):
        found.append("simulated: a policy built it")
    if a.method != b.method and "recorded" in (a.method, b.method):
        side = "before" if a.method == "recorded" else "after"
        found.append(f"no bill was read {side}: its size is that of the recorded content")
    return found


@dataclass(frozen=True, slots=True)
class Listing:
    """The rows of the table: the entries that changed, or all of them."""

    diff: FrameDiff | None = None
    everything: bool = False

    @property
    def columns(self) -> frozenset[str]:
        """The columns in which something is said of an item that is listed; all where nothing is."""
        found = frozenset() if self.diff is None else self.diff.columns[self.everything]
        return found or frozenset(COLUMNS)

    @property
    def count(self) -> int:
        """Number of rows."""
        if self.diff is None:
            return 0
        return len(self.diff.entries) if self.everything else len(self.diff.changed)

    def at(self, row: int) -> Entry | None:
        """The entry on a row; None outside."""
        if self.diff is None or not 0 <= row < self.count:
            return None
        return self.diff.entries[row if self.everything else self.diff.changed[row]]

    def row_of(self, entry: int) -> int:
        """The row of an entry, or of the next one that is listed."""
        if self.diff is None or self.everything:
            return entry
        return min(bisect_left(self.diff.changed, entry), max(self.count - 1, 0))

    def entry_of(self, row: int) -> int:
        """The index of the entry on a row."""
        if self.diff is None or self.everything or not self.count:
            return row
        return self.diff.changed[min(max(row, 0), self.count - 1)]

    def change(self, row: int, by: int) -> int | None:
        """The row of the next change after a row, or of the one before it; None if there is no other."""
        if self.diff is None:
            return None
        at = self.entry_of(row)
        changed = self.diff.changed
        place = bisect_right(changed, at) if by > 0 else bisect_left(changed, at) - 1
        return self.row_of(changed[place]) if 0 <= place < len(changed) else None

    def find(self, item: str) -> int | None:
        """The row of an item."""
        if self.diff is None:
            return None
        for n, entry in enumerate(self.diff.entries):
            if entry.item == item:
                return self.row_of(n) if self.everything or entry.changed else None
        return None


class TextKey(NamedTuple):
    """Which text is asked for."""

    pair: Pair
    item: str | None
    """None: the texts of all changed items, one after the other."""
    split: bool
    whole: bool
    """Unchanged lines are there too, all of them."""


@dataclass(frozen=True, slots=True)
class ItemDiff:
    """One item's text level, or that of all items; without a sheet, `note` says why."""

    key: TextKey
    sheet: Sheet | None
    note: str = ""
    added: int = 0
    removed: int = 0
    facts: tuple[str, ...] = field(default=())
    """Phrases about the item's two versions: where it moved, what it scored."""

"""One frame's changes grouped by status, as the lines of a list.  Plain Python."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ctxctl.model.results import Change
from ctxctl.model.vocab import Status

ORDER: Final[tuple[Status, ...]] = ("added", "updated", "removed", "omitted", "skipped")
"""What enters first, what stays as it is last."""


@dataclass(frozen=True, slots=True)
class Group:
    """All changes of one status; where only their number is known, `changes` is empty."""

    status: Status
    changes: Sequence[Change]
    count: int
    in_window: int
    new: int
    freed: int
    folded: bool = False
    noted: Sequence[Change] = ()
    """Changes to list even where the group is folded: something happened to what was skipped."""

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


Line = Note | Group | Change


@dataclass(frozen=True, slots=True)
class ChangeTable:
    """The list; `starts` holds the line on which each group begins."""

    notes: tuple[Note, ...] = ()
    groups: tuple[Group, ...] = ()
    starts: tuple[int, ...] = ()
    places: dict[str, tuple[int, int]] | None = None
    """Group index and index in it of each item, for keeping the cursor on an item across frames."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The first words of items that have no title."""

    @classmethod
    def of(
        cls, groups: Sequence[Group], notes: Sequence[Note] = (), labels: Mapping[str, str] | None = None
    ) -> ChangeTable:
        """A table of the groups that hold anything; proportional to the changes."""
        kept = tuple(sorted((g for g in groups if g.count), key=lambda g: ORDER.index(g.status)))
        places = {
            change.item: (g, n)
            for g, group in enumerate(kept)
            for n, change in enumerate(group.changes or group.noted)
        }
        return cls(tuple(notes), kept, (), places, labels or {})._placed()

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

    def change_at(self, line: int) -> Change | None:
        """The change on a line, None on headings, notes and outside."""
        found = self.at(line) if 0 <= line < self.count else None
        return found if isinstance(found, Change) else None

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

    def folded(self, status: Status, folded: bool) -> ChangeTable:
        """The same table with one group folded or unfolded."""
        groups = tuple(replace(g, folded=folded) if g.status == status else g for g in self.groups)
        return replace(self, groups=groups)._placed()

    def is_folded(self, status: Status) -> bool:
        """Whether a group is folded; False for a group that is not there."""
        return any(group.folded for group in self.groups if group.status == status)


def grouped(
    changes: Sequence[Change],
    skipped: Sequence[Change] | None,
    skipped_count: int,
    used: int,
) -> list[Group]:
    """Groups by status.

    `changes` may hold some of the skipped items, those to which something happened; they are listed always.
    `skipped` holds all of them; None: only their number is known, and their tokens are what is left.
    """
    by_status: dict[Status, list[Change]] = {status: [] for status in ORDER}
    for change in changes:
        by_status[change.status].append(change)
    noted = by_status.pop("skipped")
    groups = [_group(status, found) for status, found in by_status.items()]
    if skipped is not None:
        return [*groups, replace(_group("skipped", skipped), noted=noted)]
    some = _group("skipped", noted)
    rest = max(used - sum(group.in_window for group in groups), some.in_window)
    groups.append(replace(some, changes=(), count=skipped_count, in_window=rest, folded=True, noted=noted))
    return groups


def _group(status: Status, changes: Sequence[Change]) -> Group:
    return Group(
        status,
        changes,
        len(changes),
        sum(change.in_window for change in changes),
        sum(change.new for change in changes),
        sum(change.freed for change in changes),
    )

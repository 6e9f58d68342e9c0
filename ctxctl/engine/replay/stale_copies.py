"""Find the stale copies in a window: those that are not of their item's newest version in it.

Most steps change few copies. So only items with several copies, and their newest versions, are tracked, and
the cost of a step is proportional to the copies that it changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.replay.item_table import ItemTable
from ctxctl.listdiff import place_of
from ctxctl.model.results import Placement

if TYPE_CHECKING:
    from ctxctl.engine.replay.placements import Placer

_MAX_SEARCHED = 8
"""Up to this many copies are searched one by one; for more, the whole frame is scanned."""

_MAX_MARK_CHANGES = 25_000
"""Most changed marks of a thread's copies caused by a new newest version."""
_MIN_COUNTED = 64
"""Smallest number of marks changed at once that counts towards the limit."""

Versions = dict[str | None, list[Placement]]
"""Copies of one item by version."""


class StaleCopies:
    """A thread's last window, with and without stale copies marked."""

    def __init__(self) -> None:
        self._single: dict[str, Placement] = {}
        """The copy of each item that has only one."""
        self._several: dict[str, Versions] = {}
        """The copies of each item that has several."""
        self._newest: dict[str, str | None] = {}
        """The current version of each item in `_several`."""
        self._turned = 0
        """Number of changed marks so far, where many changed at once."""
        self._unmarked: dict[str, None] = {}
        """Items whose versions keep alternating. None of their copies is marked any more."""
        self.given_up: list[str] = []
        """Items in `_unmarked` that no problem has reported yet."""
        self._raw: list[Placement] = []
        self._shown: list[Placement] = self._raw

    def copy(self) -> StaleCopies:
        """Return an independent copy, for a snapshot of a replay."""
        twin = StaleCopies()
        twin._single, twin._newest = dict(self._single), dict(self._newest)
        twin._several = {
            item: {version: list(copies) for version, copies in versions.items()}
            for item, versions in self._several.items()
        }
        twin._turned, twin._unmarked = self._turned, dict(self._unmarked)
        twin.given_up = list(self.given_up)
        twin._raw, twin._shown = self._raw, self._shown
        return twin

    def forget(self, raw: list[Placement]) -> None:
        """Restart with a window in which all placements are new objects."""
        self._single, self._several, self._newest = {}, {}, {}
        for placement in raw:
            self._enter(placement)
        self._raw = []

    def mark(
        self,
        raw: list[Placement],
        change: FrameDelta,
        book: ItemTable,
        placer: Placer,
    ) -> list[Placement]:
        """Return the window with stale copies marked; `change` is its difference from the last one."""
        touched = dict.fromkeys([p.item for p in change.removed])
        touched.update(dict.fromkeys([p.item for p in change.inserted]))
        if change.reordered:
            touched.update(dict.fromkeys([p.item for p in change.middles()[1]]))
        for placement in change.removed:
            self._leave(placement)
        for placement in change.inserted:
            self._enter(placement)
        renewed = book.take_renewed()
        touched.update(dict.fromkeys(item for item in renewed if item in self._several))
        goes_on = change.before is self._raw and len(self._shown) == len(self._raw)
        plain = self._shown is self._raw
        self._raw = raw
        if not self._several and plain and goes_on:
            self._shown = raw
            return raw
        again = self._settle(touched, raw, book)
        if not self._several:
            self._shown = raw
        elif not goes_on or len(again) > _MAX_SEARCHED:
            self._shown = [self._marked(p, placer) for p in raw]
        else:
            self._shown = self._edited(raw, change, again, placer)
        return self._shown

    def _edited(
        self,
        raw: list[Placement],
        change: FrameDelta,
        again: Iterable[Placement],
        placer: Placer,
    ) -> list[Placement]:
        """Return the last marked window with marked new copies and with `again` marked again."""
        head, tail = change.prefix, change.suffix
        middle = [self._marked(p, placer) for p in raw[head : len(raw) - tail]]
        made = self._shown[:head] + middle
        if tail:
            made += self._shown[-tail:]
        for placement in again:
            at = place_of(placement, raw)
            if at is None or len(self._several.get(placement.item, {}).get(placement.version, ())) > 1:
                return [self._marked(p, placer) for p in raw]
            made[at] = self._marked(placement, placer)
        return made

    def _marked(self, placement: Placement, placer: Placer) -> Placement:
        item = placement.item
        if item in self._newest and placement.version != self._newest[item]:
            return placer.stale(placement)
        return placement

    def _enter(self, placement: Placement) -> None:
        item = placement.item
        if item in self._unmarked:
            return
        versions = self._several.get(item)
        if versions is None:
            before = self._single.pop(item, None)
            if before is None:
                self._single[item] = placement
                return
            versions = self._several[item] = {before.version: [before]}
        versions.setdefault(placement.version, []).append(placement)

    def _leave(self, placement: Placement) -> None:
        item = placement.item
        versions = self._several.get(item)
        if versions is None:
            self._single.pop(item, None)
            return
        copies = versions.get(placement.version, [])
        if placement in copies:
            copies.remove(placement)
        if not copies:
            versions.pop(placement.version, None)
        if len(versions) < 2:
            left = next(iter(versions.values()), [])
            if len(left) < 2:
                del self._several[item]
                if left:
                    self._single[item] = left[0]

    def _settle(self, touched: Iterable[str], raw: list[Placement], book: ItemTable) -> list[Placement]:
        """Update the newest versions of changed items. Return copies whose mark may change."""
        again: list[Placement] = []
        for item in touched:
            versions = self._several.get(item)
            known = item in self._newest
            was = self._newest.pop(item, None)
            if versions is None:
                if known and item in self._single:
                    again.append(self._single[item])
                continue
            latest = book.latest.get(item)
            wanted = latest.version if latest is not None else None
            if wanted not in versions:
                wanted = next(p.version for p in reversed(raw) if p.item == item)
            self._newest[item] = wanted
            if not known:
                again += [copy for copies in versions.values() for copy in copies]
            elif was != wanted:
                turned = [*versions.get(was, ()), *versions[wanted]]
                self._turned += len(turned) if len(turned) >= _MIN_COUNTED else 0
                if self._turned > _MAX_MARK_CHANGES and len(turned) >= _MIN_COUNTED:
                    turned = self._give_up(item)
                again += turned
        return again

    def _give_up(self, item: str) -> list[Placement]:
        """Stop marking an item's copies as stale. Return all of them.

        Alternating versions change the mark of every copy at each step, so the work would grow with the
        square of the steps.
        """
        versions = self._several.pop(item)
        del self._newest[item]
        self._unmarked[item] = None
        self.given_up.append(item)
        return [copy for copies in versions.values() for copy in copies]

"""The items of one thread: identity, versions, references, and which are live (DESIGN section 2)."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple

from ctxctl.model.content import Content
from ctxctl.model.records import Item
from ctxctl.model.results import Placement

_MIN_DIGEST = 4
"""Shortest digest prefix accepted as an `@SUFFIX`, as git's shortest abbreviation."""
_VERSION_DIGITS = 16
_MAX_KNOWN_RECORDS = 1 << 15
"""Number of item records remembered by identity. The bound matters if every record differs in a date."""
_DIGEST = re.compile(r"[0-9a-f]{8,64}")


class ItemVersion:
    """One version of an item, as one item record stated it."""

    __slots__ = ("before", "item", "line", "namesake", "older", "placement", "record", "version", "visible")

    def __init__(
        self,
        item: str,
        version: str | None,
        record: Item,
        line: int,
        visible: bool,
        older: ItemVersion | None = None,
        before: ItemVersion | None = None,
        namesake: ItemVersion | None = None,
    ) -> None:
        self.item = item
        self.before = before
        """The version, of any item, that the thread learned before this one."""
        self.older = older
        """The previous version of this item."""
        self.namesake = namesake
        """The previous version of this item with the same name."""
        self.version = version
        self.record = record
        self.line = line
        self.visible = visible
        """Whether the target of this replay can see it."""
        self.placement: Placement | None = None
        """Its plain placement (no wrapper), if made."""

    @property
    def content(self) -> Content | None:
        """The item's own text, if the trace has it."""
        return self.record.content


def version_of(record: Item) -> str | None:
    """Return an item record's version: as given, else by content digest, else by source digest, else None."""
    if record.version is not None:
        return record.version
    if record.content_digest is not None:
        return record.content_digest[:_VERSION_DIGITS]
    for digest in record.source_digests:
        value = digest.rpartition(":")[2]
        if value:
            return value[:_VERSION_DIGITS] if digest.startswith("sha256") else value
    return None


def base_id(record: Item, version: str | None) -> str:
    """Return the item's id without an `@SUFFIX` that is its version or begins one of its digests.

    Any other suffix is part of the id: ids such as ``user@host`` exist.
    """
    head, at, suffix = record.item_id.rpartition("@")
    if not at or not head or not suffix:
        return record.item_id
    if suffix == version or (len(suffix) >= _MIN_DIGEST and _has_digest(record, suffix)):
        return head
    return record.item_id


class _Parked(NamedTuple):
    """State that cannot be rebuilt from the chain of versions."""

    live: tuple[ItemVersion, ...]
    restated: tuple[ItemVersion, ...]
    """The latest version of each item that went back to an older version."""


class _Digests:
    """The versions of one item by digest, for refs that name a version by the start of a digest.

    The digests are sorted, so a ref needs no scan. An answer is remembered until a later version matches.
    """

    def __init__(self) -> None:
        self.upto: ItemVersion | None = None
        """The last version added."""
        self._sorted: list[tuple[str, int]] = []
        """Digests, each with the index of its version."""
        self._whole: dict[str, int] = {}
        """Index of the version by source digest as written, with the name of its algorithm."""
        self._versions: list[ItemVersion] = []
        self._asked: dict[str, tuple[int, ItemVersion | None]] = {}
        """By start of a digest: the number of versions when it was asked, and the answer."""

    def add(self, version: ItemVersion) -> None:
        """Add the next version."""
        for digest in _digests(version.record):
            insort(self._sorted, (digest, len(self._versions)))
        self._whole.update(dict.fromkeys(version.record.source_digests, len(self._versions)))
        self._versions.append(version)
        self.upto = version

    def find(self, beginning: str) -> ItemVersion | None:
        """Return the last version with a digest that begins with `beginning`."""
        seen, found = self._asked.get(beginning, (-1, None))
        if seen < 0:
            at = bisect_left(self._sorted, (beginning, -1))
            best = self._whole.get(beginning, -1)
            while at < len(self._sorted) and self._sorted[at][0].startswith(beginning):
                best = max(best, self._sorted[at][1])
                at += 1
            found = self._versions[best] if best >= 0 else None
        else:
            for version in reversed(self._versions[seen:]):
                if _has_digest(version.record, beginning):
                    found = version
                    break
        self._asked[beginning] = (len(self._versions), found)
        return found


class ItemTable:
    """All items of one thread as of the current line."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.latest: dict[str, ItemVersion] = {}
        self.versions: dict[tuple[str, str | None], ItemVersion] = {}
        self.newest: dict[str, ItemVersion] = {}
        """The newest version of each item. Each leads to the one before, so copies share them."""
        self._last: ItemVersion | None = None
        self._parked: _Parked | None = None
        """What the tables are rebuilt from; they are empty while parked."""
        self.live: dict[str, ItemVersion] = {}
        """Items added or updated, and not removed or compacted away, by first appearance."""
        self.known: dict[Item, ItemVersion] = {}
        """Version by item record. The reader returns one object for equal records."""
        self.appeared: list[ItemVersion] = []
        """Items that became live since `settle`, in order."""
        self.disturbed = False
        """Whether a live item was replaced or left since `settle`."""
        self._digests: dict[str, _Digests] = {}
        """Digests of items that a ref has named by digest. Each is extended on use."""
        self._renewed: set[str] = set()
        """Items whose latest version changed since `take_renewed`."""

    @property
    def last(self) -> ItemVersion | None:
        """The version learned last. Its `before` leads to all others."""
        return self._last

    def copy(self) -> ItemTable:
        """Return an independent copy, for a snapshot of a replay."""
        twin = ItemTable(self.target)
        twin._last = self._last
        if self._parked is not None:
            twin._unpark(self._parked)
        else:
            twin.latest = dict(self.latest)
            twin.versions = dict(self.versions)
            twin.newest = dict(self.newest)
            twin.live = dict(self.live)
        twin.appeared = list(self.appeared)
        twin.disturbed = self.disturbed
        twin._renewed = set(self._renewed)
        return twin

    def park(self) -> None:
        """Free the tables. After this, the table can only be copied."""
        if self._parked is None:
            newest = self.newest
            restated = tuple(v for v in self.latest.values() if newest[v.item] is not v)
            self._parked = _Parked(tuple(self.live.values()), restated)
            self.latest, self.versions, self.newest, self.live = {}, {}, {}, {}

    def relearn(self) -> None:
        """Rebuild the tables that follow from the chain of versions."""
        learned = []
        version = self._last
        while version is not None:
            learned.append(version)
            version = version.before
        learned.reverse()
        self.newest = {v.item: v for v in learned}
        self.versions = {(v.item, v.version): v for v in learned}

    def _unpark(self, parked: _Parked) -> None:
        self.relearn()
        self.latest = dict(self.newest)
        self.latest.update((v.item, v) for v in parked.restated)
        self.live = {v.item: v for v in parked.live}

    def settle(self) -> None:
        """Forget which live items changed. Call this after a frame was made from them."""
        self.appeared = []
        self.disturbed = False

    def take_renewed(self) -> set[str]:
        """Return the items whose latest version changed since the last call."""
        renewed, self._renewed = self._renewed, set()
        return renewed

    def enter(self, record: Item, line: int) -> ItemVersion:
        """Add an added or updated item. It is live from now on."""
        version = self.learn(record, line)
        before = self.live.get(version.item)
        if before is not version:
            self.live[version.item] = version
            if before is None:
                self.appeared.append(version)
            else:
                self.disturbed = True
        return version

    def leave(self, item: str) -> None:
        """Remove an item from the live ones, if it is there."""
        if self.live.pop(item, None) is not None:
            self.disturbed = True

    def learn(self, record: Item, line: int) -> ItemVersion:
        """Add an item without making it live (a summary before its compaction)."""
        known = self.known.get(record)
        if known is not None:
            if self.latest.get(known.item) is not known:
                self.latest[known.item] = known
                self._renewed.add(known.item)
            return known
        name = version_of(record)
        item = base_id(record, name)
        visibility = record.visibility
        visible = self.target in visibility if visibility else self.target == "model"
        self._renewed.add(item)
        if len(self.known) >= _MAX_KNOWN_RECORDS:
            self.known.clear()
        stated = self.versions.get((item, name))
        if stated is not None and stated.visible == visible and _same(stated.record, record):
            self.known[record] = self.latest[item] = stated
            return stated
        older = self.newest.get(item)
        version = ItemVersion(item, name, record, line, visible, older, self._last, stated)
        self.known[record] = self.latest[item] = self.newest[item] = self._last = version
        self.versions[item, name] = version
        return version

    def history(self, item: str) -> Iterator[ItemVersion]:
        """Return all versions of an item, the newest first."""
        version = self.newest.get(item)
        while version is not None:
            yield version
            version = version.older

    def find(self, ref: str) -> ItemVersion | None:
        """Return the version that `ID` (its latest) or `ID@VERSION` names; None if unknown here."""
        version = self.latest.get(ref)
        if version is not None:
            return version
        head, at, suffix = ref.rpartition("@")
        if not at or head not in self.latest:
            return None
        version = self.versions.get((head, suffix))
        if version is not None or len(suffix) < _MIN_DIGEST:
            return version
        return self._by_digest(head, suffix)

    def _by_digest(self, item: str, beginning: str) -> ItemVersion | None:
        """Return the newest version of an item with a digest that begins with `beginning`."""
        known = self._digests.get(item)
        if known is None:
            known = self._digests[item] = _Digests()
        fresh = []
        for version in self.history(item):
            if version is known.upto:
                break
            fresh.append(version)
        for version in reversed(fresh):
            known.add(version)
        return known.find(beginning)

    def source_of(self, ref: str) -> tuple[Mapping[Any, ItemVersion], Hashable, ItemVersion | None]:
        """Return the dict and key by which `find` finds a ref, and the version (None: it uses digests)."""
        version = self.latest.get(ref)
        if version is not None:
            return self.latest, ref, version
        head, _, suffix = ref.rpartition("@")
        return self.versions, (head, suffix), self.versions.get((head, suffix))

    def item_of(self, ref: str) -> str:
        """Return the item id of a ref, known or not.

        `ID@SUFFIX` means `ID` if the suffix looks like a digest or is a version of a known `ID`.
        """
        if ref in self.latest:
            return ref
        head, at, suffix = ref.rpartition("@")
        if not at or not head:
            return ref
        if _DIGEST.fullmatch(suffix):
            return head
        return head if head in self.latest and self.find(ref) is not None else ref

    def version_named(self, ref: str) -> str | None:
        """Return the version in a ref `ID@VERSION` to a known item; None for a plain `ID`."""
        item = self.item_of(ref)
        return ref[len(item) + 1 :] if item != ref else None

    def named(self, ref: str) -> tuple[str, str | None]:
        """Return the item of a ref, and the version that it names; None for a plain `ID`."""
        item = self.item_of(ref)
        if item == ref:
            return item, None
        found = self.find(ref)
        return item, found.version if found is not None else ref[len(item) + 1 :]

    def compact(self, ref: str) -> None:
        """Remove a compaction's source from the live items, if the version it names is the live one."""
        found = self.find(ref)
        if found is None:
            self.leave(self.item_of(ref))
        elif found.item == ref or self.live.get(found.item) is found:
            self.leave(found.item)

    def summarised(self, ref: str, line: int) -> None:
        """Make a compaction's summary live. An undescribed summary is known only by its ref."""
        version = self.find(ref)
        if version is None:
            version = self.learn(Item(item_id=ref, context_kind="thread_summary"), line)
        before = self.live.get(version.item)
        if before is not version:
            self.live[version.item] = version
            if before is None:
                self.appeared.append(version)
            else:
                self.disturbed = True


def _same(a: Item, b: Item) -> bool:
    """Return whether two records of one version have the same placement."""
    return (
        a.content_digest == b.content_digest
        and a.context_kind == b.context_kind
        and a.title == b.title
        and a.source == b.source
        and a.token_estimate == b.token_estimate
        and a.metadata.get("ctxctl") == b.metadata.get("ctxctl")
    )


def _has_digest(record: Item, prefix: str) -> bool:
    return any(digest.startswith(prefix) for digest in _digests(record)) or prefix in record.source_digests


def _digests(record: Item) -> Iterator[str]:
    """Yield the digests of an item's content and sources, without the names of their algorithms."""
    if record.content_digest is not None:
        yield record.content_digest
    for digest in record.source_digests:
        yield digest.rpartition(":")[2]

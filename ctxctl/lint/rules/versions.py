"""Versions that do not say what they are for: whether the content is still the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ctxctl.lint.rule import NO_HITS, Hit, Rule

if TYPE_CHECKING:
    from ctxctl.engine.replay.item_table import ItemVersion
    from ctxctl.engine.replay.step_tracker import ThreadKey
    from ctxctl.lint.context import SeenRecord
    from ctxctl.model.records import Item


def _given(seen: SeenRecord) -> ItemVersion | None:
    """The version that an item's record has just brought, where it names a version and has a text."""
    item = seen.item
    if item is None or item.version is None or item.content_digest is None or item.redaction is not None:
        return None
    return seen.thread.book.known.get(item)


def _alike(a: Item, b: Item) -> bool:
    """Whether two records say the same of an item, beside its content and version."""
    return (a.title, a.source, a.context_kind, a.priority) == (b.title, b.source, b.context_kind, b.priority)


class VersionWithoutChange(Rule):
    """An item's version was bumped and its content is what it was.

    A runtime that sends what has a new version sends it for nothing.  Sanqian's providers may name a version
    of their own; one that takes the time for it (`updatedAt`) bumps it at each save.
    """

    code = "CTX002"
    name = "version-without-change"
    needs = "versions that the runtime gave"
    fix = "Derive the version from the content (a digest of it), or bump it only when the content changes."

    def seen(self, seen: SeenRecord) -> Iterable[Hit]:
        """An item's record with another version and the digest of the one before."""
        version = _given(seen)
        older = version.older if version is not None else None
        if version is None or older is None or older.record.version is None:
            return NO_HITS
        same = older.record.content_digest == version.record.content_digest
        if not same or older.version == version.version or not _alike(older.record, version.record):
            return NO_HITS
        if older.record.redaction is not None or older.record.metadata.get("summary") != (
            version.record.metadata.get("summary")
        ):
            return NO_HITS
        what = f"version {older.version} became {version.version} and the content is the same"
        estimate = version.record.token_estimate
        return (Hit(version.item, f"{version.item}: {what}", seen.place, version.item, estimate),)


class ChangeWithoutVersion(Rule):
    """An item's content changed under a version that was given to other content before.

    Whoever compares versions takes it for unchanged: the model keeps working with what it was sent first.
    """

    code = "CTX003"
    name = "change-without-version"
    severity = "error"
    needs = "versions that the runtime gave"
    fix = "Give each content a version of its own; a digest of the content cannot be forgotten."

    def seen(self, seen: SeenRecord) -> Iterable[Hit]:
        """An item's record with the version of an earlier one and another digest."""
        version = _given(seen)
        if version is None or version.record is not seen.record:
            return NO_HITS
        older = version.namesake
        if older is None or older.record.version is None or older.record.redaction is not None:
            return NO_HITS
        was = older.record.content_digest
        if was is None or was == version.record.content_digest:
            return NO_HITS
        if older.record.source != version.record.source:
            return NO_HITS  # two things under one key: a rule of its own
        message = f"{version.item}: the content changed and its version is still {version.version}"
        return (Hit(version.item, message, seen.place, version.item, version.record.token_estimate),)


class VersionKeyCollision(Rule):
    """Two sources take turns under one item id, so that each overwrites the version of the other.

    Sanqian keys versions by the provider: of two notes picked from one provider each takes the place of the
    other, both look updated at every turn, and the model holds one of them only as a stale copy.
    """

    code = "CTX023"
    name = "version-key-collision"
    severity = "error"
    needs = "items with sources"
    fix = "Key versions by provider and item (`provider/item`), not by the provider alone."

    def __init__(self) -> None:
        self._step: dict[ThreadKey, tuple[tuple[int, int], dict[str, Item]]] = {}

    def seen(self, seen: SeenRecord) -> Iterator[Hit]:
        """An item's record while the same step holds one of another source under its id."""
        item, ids = seen.item, seen.thread.ids
        if item is None or item.source is None or item.content_digest is None or ids is None:
            return
        at = (ids.turn, ids.step)
        step = self._step.get(seen.thread.key)
        if step is None or step[0] != at:
            step = self._step[seen.thread.key] = (at, {})
        name = seen.thread.book.item_of(item.item_id)
        before = step[1].setdefault(name, item)
        if before.source == item.source or before.content_digest == item.content_digest:
            return
        message = f"{name} is used for two sources in one step: {before.source} and {item.source}"
        yield Hit(name, message, seen.place, name, item.token_estimate)

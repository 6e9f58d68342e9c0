"""Events on their way to the file, and the items that may have to be written again to another one."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from ctxctl.record.place import Place

ROOM: Final = 4 << 20
"""Bytes of items that are kept for another file."""
Key = tuple[str, str]


class _Item(NamedTuple):
    """An item in the buffer: where its content lies, and its other fields."""

    at: int
    length: int
    """-1: the item has no content."""
    size: int
    digest: str
    event_type: str
    body: bytes
    item: str | None
    metadata: bytes
    marks: bytes


class ReplayBuffer:
    """Holds the last few megabytes of items, which may have to be written again to another file.

    Contents lie in one ring of memory.  As objects of their own they would cost the caller more than all the
    rest: each would need memory that is in no cache and that the system has to provide first.
    """

    def __init__(self) -> None:
        self._ring = bytearray()
        self._end = 0
        """Bytes written so far; those written more than `ROOM` bytes ago are gone."""
        self._items: OrderedDict[Key, _Item] = OrderedDict()

    def keep(self, key: Key, entry: Entry) -> None:
        """Keep an item; it replaces the version kept before."""
        items = self._items
        items.pop(key, None)
        content = entry.content
        length = len(content.raw) if content is not None else 0
        if length + len(entry.body) > ROOM // 8:
            return
        if not self._ring:
            self._ring = bytearray(ROOM)
        at = self._end
        start = at % ROOM
        if start + length > ROOM:
            at += ROOM - start
            start = 0
        digest, size = "", 0
        if content is not None:
            self._ring[start : start + length] = content.raw
            digest, size = content.digest, content.size
        else:
            length = -1
        items[key] = tuple.__new__(
            _Item,
            (
                at, length, size, digest, entry.event_type, entry.body, entry.item, entry.metadata,
                entry.marks,
            ),
        )  # fmt: skip
        self._end = end = at + max(length, 0) + len(entry.body)
        # The first item is the oldest, and written over first.
        while next(iter(items.values())).at < end - ROOM:
            items.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Forget an item that was removed."""
        self._items.pop(key, None)

    def get(self, key: Key, place: Place) -> Entry | None:
        """Return the item as an entry for this place; None if it is no longer kept."""
        found = self._items.get(key)
        if found is None:
            return None
        content = None
        if found.length >= 0:
            start = found.at % ROOM
            raw = bytes(self._ring[start : start + found.length])
            content = PreparedContent(raw, found.digest, found.size)
        return Entry(
            found.event_type, found.body, place, content, found.item, (), found.metadata, found.marks
        )


class PreparedContent(NamedTuple):
    """A content, ready to be written."""

    raw: bytes
    """The content as JSON."""
    digest: str
    """SHA-256 in hex, as a reader computes it."""
    size: int


class Entry(NamedTuple):
    """One event on its way."""

    event_type: str
    body: bytes
    """The record as a JSON object that is not empty, without its content."""
    place: Place
    content: PreparedContent | None = None
    item: str | None = None
    """Id of an item that the journal tracks, to tell whether it is new, updated or unchanged."""
    refs: tuple[str, ...] = ()
    """Ids of items that the record refers to; those that this file lacks are written again."""
    metadata: bytes = b""
    """Further fields of `metadata`, each with a comma in front."""
    marks: bytes = b""
    """Further fields of `metadata.ctxctl`, each with a comma in front."""
    whole: bool = False
    """Whether `body` is a whole line made elsewhere, without secrets and with its line end."""


class LineBatch:
    """The lines of one write, and what the journal remembers once they are written."""

    __slots__ = ("announced", "counts_losses", "items", "parts", "removed", "shown", "size")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.shown: set[str] = set()
        self.announced: dict[tuple[str, str], int] = {}
        self.items: list[tuple[tuple[str, str], Entry]] = []
        self.removed: list[tuple[str, str]] = []
        self.counts_losses = False

    def add(self, line: bytes) -> None:
        """Add a line."""
        self.parts.append(line)
        self.size += len(line)

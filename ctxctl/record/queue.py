"""Events on their way to the file, and the items that may have to be told again in another one."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from ctxctl.record.place import Place

ROOM: Final = 4 << 20
"""Bytes of items that are kept."""
Key = tuple[str, str]


class _Item(NamedTuple):
    """Where an item's content lies, and the rest of it."""

    at: int
    length: int
    """-1: it has no content."""
    size: int
    digest: str
    event_type: str
    body: bytes
    item: str | None
    metadata: bytes
    marks: bytes


class ReplayBuffer:
    """Holds items that may have to be written again to another file: the last few megabytes of them.

    Contents lie in one stretch of memory that is written over and over.

    Keeping them as objects would cost the caller more than all the rest: each would be made of memory that is
    in no cache, and the system would have to find it first.
    """

    def __init__(self) -> None:
        self._ring = bytearray()
        self._end = 0
        """Bytes so far; what was written more than `ROOM` ago is gone."""
        self._items: OrderedDict[Key, _Item] = OrderedDict()

    def keep(self, key: Key, entry: Entry) -> None:
        """Keep an item as it is now, in the place of what it was."""
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
        # Of what is written over, the first one is the oldest.
        while next(iter(items.values())).at < end - ROOM:
            items.popitem(last=False)

    def forget(self, key: Key) -> None:
        """The item is gone."""
        self._items.pop(key, None)

    def get(self, key: Key, place: Place) -> Entry | None:
        """The item, to be told in another place; None if it is kept no longer."""
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
    """Its JSON."""
    digest: str
    """SHA-256 hex, as a reader computes it."""
    size: int


class Entry(NamedTuple):
    """One event on its way."""

    event_type: str
    body: bytes
    """The record as a JSON object that is not empty, without its content."""
    place: Place
    content: PreparedContent | None = None
    item: str | None = None
    """Id of an item that the recorder keeps track of: whether it is new, updated or unchanged."""
    refs: tuple[str, ...] = ()
    """Ids of items that the record speaks of, to be told again where this file does not have them."""
    metadata: bytes = b""
    """Further fields of `metadata`, each with a comma in front."""
    marks: bytes = b""
    """The same for `metadata.ctxctl`."""
    whole: bool = False
    """`body` is the whole line, as somebody else made it: without secrets, with its line end."""


class LineBatch:
    """The lines of one write, and what the file will have told with them."""

    __slots__ = ("announced", "kept", "parts", "removed", "shown", "size", "told")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self.shown: set[str] = set()
        self.announced: dict[tuple[str, str], int] = {}
        self.kept: list[tuple[tuple[str, str], Entry]] = []
        self.removed: list[tuple[str, str]] = []
        self.told = False

    def add(self, line: bytes) -> None:
        """One more line."""
        self.parts.append(line)
        self.size += len(line)

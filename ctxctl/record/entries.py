"""Events on their way to the file."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.record.place import Place


class Prepared(NamedTuple):
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
    content: Prepared | None = None
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


class Lines:
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

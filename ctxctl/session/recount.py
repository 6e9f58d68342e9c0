"""Counts of a trace's contents under another encoding than the replay's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxctl.model.content import Content
from ctxctl.session.params import counting_room
from ctxctl.tokens.overhead import written_size

if TYPE_CHECKING:
    from ctxctl.model.content import ContentStore


class Recount:
    """Counts each content once; texts that were ever counted are not counted again."""

    def __init__(self, contents: ContentStore, encoding: str) -> None:
        self._contents = contents
        self._room = counting_room(encoding)
        self._encoding = encoding
        self._counted: dict[str, tuple[int, bool]] = {}

    def count(self, content: Content) -> tuple[int, bool]:
        """Tokens of a content, and whether that is exact for the encoding."""
        counted = self._counted.get(content.digest)
        if counted is None:
            counted = self._counted[content.digest] = self._room.count(self._contents.text(content))
        return counted

    def written(self, content: Content) -> int | None:
        """As `Inspector.written`, under this encoding."""
        return written_size(self._contents.text(content), self._room, self._encoding)

    def trim(self, text: str, tokens: int, side: str) -> str:
        """A text cut exactly at a token bound of this encoding."""
        return self._room.trim(text, tokens, side)

    def flush(self) -> None:
        """Write new counts to disk."""
        self._room.flush()

    def close(self) -> None:
        """Write new counts to disk and let the file go."""
        self._room.close()

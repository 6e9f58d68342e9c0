"""Count the contents of a trace, with batched queries to the cache of counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ctxctl.model.content import Content, ContentStore
from ctxctl.model.event import Event
from ctxctl.model.records import Item
from ctxctl.tokens.cache import counts_at, default_path
from ctxctl.tokens.counter import Counter
from ctxctl.tokens.overhead import written_size

_MAX_BATCH_BYTES: Final = 4 << 20
"""Most bytes of texts in one query to the cache. They are decoded already and still in memory."""
_MIN_BATCH: Final = 8
"""Fewest contents in one query. For fewer, the longer query costs more than it saves."""


class CountingRoom:
    """A token counter with a cache of counts. Thread-safe."""

    def __init__(self, encoding: str) -> None:
        path = default_path()
        self._cache = counts_at(path) if path is not None else None
        self.counter = Counter(encoding, self._cache)

    def trim(self, text: str, tokens: int, side: str) -> str:
        """Return the text cut exactly at a token bound."""
        from ctxctl.tokens.trim import trim

        return trim(self.counter, text, tokens, "tail" if side == "tail" else "head")

    def count(self, text: str) -> tuple[int, bool]:
        """Return a text's tokens, and whether the count is exact."""
        return self.counter.count(text)

    def count_of(self, content: Content, contents: ContentStore) -> tuple[int, bool]:
        """Return a content's tokens, and store them in it."""
        counted = content.count
        if counted is None:
            counted = content.count = self.counter.count(contents.text(content))
        return counted

    def foresee(self, batch: Iterable[Event], contents: ContentStore, least: int = 2) -> None:
        """Take the cached counts of a batch's new contents, with one query.

        With fewer than `least`, they are queried one by one, which is cheaper without other threads.
        """
        new = [
            content
            for event in batch
            if type(record := event.record) is Item
            and (content := record.content) is not None
            and content.count is None
        ]
        fresh: dict[Content, None] = {}
        size = 0
        for content in new:
            if content not in fresh and size + content.size <= _MAX_BATCH_BYTES:
                size += content.size
                fresh[content] = None
        if not fresh:
            return
        known = self.counter.known([contents.text(content) for content in fresh], least)
        for content, found in zip(fresh, known, strict=True):
            if found is not None:
                content.count = found

    def counted(self, batches: Iterable[list[Event]], contents: ContentStore) -> Iterator[list[Event]]:
        """Yield batches of a trace's events after querying the cache for their contents."""
        for batch in batches:
            self.foresee(batch, contents, _MIN_BATCH)
            yield batch

    def flush(self) -> None:
        """Write new counts to disk."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Write new counts to disk and close the file."""
        if self._cache is not None:
            self._cache.close()


class Recount:
    """Counts each content once. Texts with a cached count are not counted again."""

    def __init__(self, contents: ContentStore, encoding: str) -> None:
        self._contents = contents
        self._room = CountingRoom(encoding)
        self._encoding = encoding
        self._counted: dict[str, tuple[int, bool]] = {}

    def count(self, content: Content) -> tuple[int, bool]:
        """Return a content's tokens, and whether they are exact for the encoding."""
        counted = self._counted.get(content.digest)
        if counted is None:
            counted = self._counted[content.digest] = self._room.count(self._contents.text(content))
        return counted

    def written(self, content: Content) -> int | None:
        """See `Inspector.written`, with this encoding."""
        return written_size(self._contents.text(content), self._room, self._encoding)

    def trim(self, text: str, tokens: int, side: str) -> str:
        """Return a text cut exactly at a token bound of this encoding."""
        return self._room.trim(text, tokens, side)

    def flush(self) -> None:
        """Write new counts to disk."""
        self._room.flush()

    def close(self) -> None:
        """Write new counts to disk and close the file."""
        self._room.close()


class Recounts:
    """Counts for steps of models that have another encoding than the replay."""

    def __init__(self, room: CountingRoom, contents: ContentStore) -> None:
        self._room = room
        self._contents = contents
        self._by_encoding: dict[str, Recount] = {}
        self._written: dict[tuple[str, str], int | None] = {}
        """Size of a tool's definition in the provider's form, by digest and encoding."""

    def of(self, encoding: str) -> Recount:
        """Return the counter of an encoding."""
        found = self._by_encoding.get(encoding)
        if found is None:
            found = self._by_encoding.setdefault(encoding, Recount(self._contents, encoding))
        return found

    def written(self, content: Content, encoding: str, *, own: bool) -> int | None:
        """See `Inspector.written`; `own` means that the encoding counts like the replay's."""
        key = (content.digest, encoding)
        if key not in self._written:
            if own:
                self._written[key] = written_size(self._contents.text(content), self._room, encoding)
            else:
                self._written[key] = self.of(encoding).written(content)
        return self._written[key]

    def flush(self) -> None:
        """Write new counts to disk."""
        for recount in self._by_encoding.values():
            recount.flush()

    def close(self) -> None:
        """Write new counts to disk and close the files."""
        for recount in self._by_encoding.values():
            recount.close()

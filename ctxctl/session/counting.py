"""Counting the contents of a trace: from the cache in batches, and in another process where that pays."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

from ctxctl.model.content import Content, ContentStore
from ctxctl.model.event import Event
from ctxctl.model.records import Item
from ctxctl.session.counting_beside import CountingBeside
from ctxctl.tokens.cache import CountCache, default_path
from ctxctl.tokens.counter import Counter
from ctxctl.tokens.overhead import written_size

_AT_ONCE: Final = 4 << 20
"""Bytes of the texts that the cache is asked for at once; they are decoded already and still remembered."""
_LEAST: Final = 8
"""Contents that the cache is asked for together: for fewer the longer question costs more than it saves."""
_PAYS: Final = 256 << 10
"""Bytes of uncounted texts from which on another process counts them.

Measured on `tests.bench.generate.working`, cut at 50 KB to 8 MB, nothing cached, by turns with and without:
0.25 MB takes 0.88 of the CPU time (the vocabulary is loaded once all the same, and never taken apart) and
0.8 to 0.9 of the elapsed time, a session of 14 MB 0.7.  Below it there is little to gain.
"""
_AHEAD: Final = 8 << 20
"""Bytes of a trace that are read ahead of what is counted."""


class CountingRoom:
    """A token counter with the cache of counts behind it, and a process beside it where that pays.

    Thread-safe.
    """

    def __init__(self, encoding: str) -> None:
        path = default_path()
        self._cache = CountCache(path) if path is not None else None
        self.counter = Counter(encoding, self._cache)
        self._beside: CountingBeside | None = None
        self._tried = False
        """To start a process; it was refused, or died, or its pass is over."""

    def trim(self, text: str, tokens: int, side: str) -> str:
        """The text cut exactly at a token bound."""
        from ctxctl.tokens.trim import trim

        return trim(self.counter, text, tokens, "tail" if side == "tail" else "head")

    def count(self, text: str) -> tuple[int, bool]:
        """Tokens of a text, and whether the count is exact."""
        return self.counter.count(text)

    def count_of(self, content: Content, contents: ContentStore) -> tuple[int, bool]:
        """Tokens of a content, noted in it; waits where it is being counted."""
        beside = self._beside
        if beside is not None:
            beside.wait_for(content)
        counted = content.count
        if counted is None:
            counted = content.count = self.counter.count(contents.text(content))
        return counted

    def foresee(self, batch: Iterable[Event], contents: ContentStore, least: int = 2) -> list[Content]:
        """Take over what the cache knows of a batch's new contents, all with one question to it.

        Of fewer than `least` it is asked one by one, which is cheaper where no other thread is at work.
        Returns those that are not counted yet.
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
            if content not in fresh and size + content.size <= _AT_ONCE:
                size += content.size
                fresh[content] = None
        if not fresh:
            return []
        found = self.counter.known([contents.text(content) for content in fresh], least)
        for content, count in zip(fresh, found, strict=True):
            content.count = count or content.count
        return [content for content in fresh if content.count is None]

    def counted(
        self, batches: Iterable[list[Event]], contents: ContentStore, size: int
    ) -> Iterator[list[Event]]:
        """Batches of a trace of `size` bytes, each when its contents are counted as far as that pays off.

        What is not in the cache is counted in another process from where there is enough of it, and the
        trace is read on meanwhile.
        """
        if self._beside is not None:  # another pass has it
            for batch in batches:
                self.foresee(batch, contents, _LEAST)
                yield batch
            return
        try:
            yield from self._overlapped(batches, contents, size)
        finally:
            self._end()

    def _overlapped(
        self, batches: Iterable[list[Event]], contents: ContentStore, size: int
    ) -> Iterator[list[Event]]:
        waiting: deque[tuple[list[Event], int]] = deque()
        """Batches with the number of the job that counts the last of their contents."""
        met = 0
        job = 0
        source = iter(batches)
        while True:
            try:
                batch = next(source)
            except StopIteration:
                break
            except Exception:
                # What came before it is shown first, as if nothing had been read ahead.
                yield from (batch for batch, _ in waiting)
                raise
            fresh = self.foresee(batch, contents, _LEAST)
            met += sum(content.size for content in fresh)
            end = batch[-1].offset + batch[-1].length
            if self._beside is None and met * size >= _PAYS * end:
                self._begin()
            beside = self._beside
            if beside is None:
                yield batch
                continue
            job = beside.put(fresh, contents)
            waiting.append((batch, job))
            while waiting and (beside.has_taken(waiting[0][1]) or end - waiting[0][0][0].offset > _AHEAD):
                yield waiting.popleft()[0]
        yield from (batch for batch, _ in waiting)
        if self._beside is not None:
            self._beside.wait()  # what the last events have shown may be counted after them

    def _begin(self) -> None:
        """Start a process to count in, where there is room for one; tried once."""
        if self._tried:
            return
        self._tried = True
        from ctxctl.tokens.counting_process import CountingProcess, may_start

        if not may_start():
            return
        with suppress(OSError):  # no process, or no file for the texts
            self._beside = CountingBeside(self.counter, CountingProcess(self.counter.base))
            self.counter.elsewhere = self._beside.ask

    def _end(self) -> None:
        beside, self._beside, self.counter.elsewhere = self._beside, None, None
        if beside is not None:
            beside.close()

    def flush(self) -> None:
        """Write new counts to disk."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Write new counts to disk and let the file go."""
        self._end()
        if self._cache is not None:
            self._cache.close()


class Recount:
    """Counts each content once; texts that were ever counted are not counted again."""

    def __init__(self, contents: ContentStore, encoding: str) -> None:
        self._contents = contents
        self._room = CountingRoom(encoding)
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

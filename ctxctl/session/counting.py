"""Counting the contents of a trace: from the cache in batches, and in another process where that pays."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import Final

from ctxctl.model.content import Content, ContentStore
from ctxctl.model.event import Event
from ctxctl.model.records import Item
from ctxctl.session.counting_beside import CountingBeside, Fresh
from ctxctl.tokens.cache import counts_at, default_path
from ctxctl.tokens.counter import Counter, Uncounted
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
        self._cache = counts_at(path) if path is not None else None
        self.counter = Counter(encoding, self._cache)
        self._beside: CountingBeside | None = None
        self._lock = Lock()
        self._tried = False
        """Whether a process was started, or was to be: there is one for one pass."""

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

    def foresee(self, batch: Iterable[Event], contents: ContentStore, least: int = 2) -> list[Fresh]:
        """Take over what the cache knows of a batch's new contents, all with one question to it.

        Of fewer than `least` it is asked one by one, which is cheaper where no other thread is at work.
        Returns those that are not counted yet, with their texts.
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
        uncounted: list[Fresh] = []
        known = self.counter.known([contents.text(content) for content in fresh], least)
        for content, found in zip(fresh, known, strict=True):
            if not isinstance(found, Uncounted):
                content.count = found
            elif content.count is None:
                uncounted.append((content, found))
        return uncounted

    def counted(
        self, batches: Iterable[list[Event]], contents: ContentStore, size: int
    ) -> Iterator[list[Event]]:
        """Batches of a trace of `size` bytes, each when its contents are counted as far as that pays off.

        What is not in the cache is counted in another process from where there is enough of it, and the
        trace is read on meanwhile: but never beyond an empty batch, which is passed on when all before it is
        counted.
        """
        met = 0
        source = iter(batches)
        for batch in source:
            if not batch:
                yield batch
                continue
            fresh = self.foresee(batch, contents, _LEAST)
            met += sum(content.size for content, _ in fresh)
            beside = self._begun() if met * size >= _PAYS * _end(batch) else None
            if beside is not None:
                try:
                    yield from self._overlapped(batch, fresh, source, contents, beside)
                finally:
                    self._end(beside)
                return
            yield batch

    def _overlapped(
        self, batch: list[Event], fresh: list[Fresh], source: Iterator[list[Event]], contents: ContentStore,
        beside: CountingBeside,
    ) -> Iterator[list[Event]]:  # fmt: skip
        """A batch with the contents that are not counted, and those behind it, as they are counted."""
        waiting: deque[tuple[list[Event], int]] = deque()
        """Batches with the number of the job that counts the last of their contents."""
        more: list[Event] | None = batch
        while more is not None:
            if not more:
                yield from (batch for batch, _ in waiting)
                waiting.clear()
                beside.wait()
                yield more
                more = next(source, None)
                fresh = self.foresee(more or (), contents, _LEAST)
                continue
            waiting.append((more, beside.put(fresh)))
            while waiting and (
                beside.has_taken(waiting[0][1]) or _end(more) - waiting[0][0][0].offset > _AHEAD
            ):
                yield waiting.popleft()[0]
            try:
                more = next(source, None)
            except Exception:
                # What came before it is shown first, as if nothing had been read ahead.
                yield from (batch for batch, _ in waiting)
                raise
            fresh = self.foresee(more or (), contents, _LEAST)
        yield from (batch for batch, _ in waiting)
        beside.wait()  # what the last events have shown may be counted after them

    def _begun(self) -> CountingBeside | None:
        """A process to count in for one pass, where there is room for one; tried once."""
        with self._lock:
            if self._tried:
                return None
            self._tried = True
        from ctxctl.tokens.counting_process import CountingProcess, may_start

        if not may_start():
            return None
        try:
            beside = CountingBeside(self.counter, CountingProcess(self.counter.base))
        except OSError:  # no process, or no file for the texts
            return None
        self._beside, self.counter.elsewhere = beside, beside.ask
        return beside

    def _end(self, beside: CountingBeside) -> None:
        self._beside = self.counter.elsewhere = None
        beside.close()

    def flush(self) -> None:
        """Write new counts to disk."""
        if self._cache is not None:
            self._cache.flush()

    def close(self) -> None:
        """Write new counts to disk and let the file go."""
        beside = self._beside
        if beside is not None:
            self._end(beside)
        if self._cache is not None:
            self._cache.close()


def _end(batch: list[Event]) -> int:
    """The byte behind a batch."""
    return batch[-1].offset + batch[-1].length


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


class Recounts:
    """Counts for steps of models that have another encoding than the replay."""

    def __init__(self, room: CountingRoom, contents: ContentStore) -> None:
        self._room = room
        self._contents = contents
        self._by_encoding: dict[str, Recount] = {}
        self._written: dict[tuple[str, str], int | None] = {}
        """By digest and encoding, the size of a tool's definition as a provider writes it out."""

    def of(self, encoding: str) -> Recount:
        """What counts with an encoding."""
        found = self._by_encoding.get(encoding)
        if found is None:
            found = self._by_encoding.setdefault(encoding, Recount(self._contents, encoding))
        return found

    def written(self, content: Content, encoding: str, *, own: bool) -> int | None:
        """As `Inspector.written`; `own`: the encoding counts as the replay's does."""
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
        """Write new counts to disk and let the files go."""
        for recount in self._by_encoding.values():
            recount.close()

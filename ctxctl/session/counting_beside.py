"""The contents of a trace that another process counts, while this one reads on."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import RLock
from typing import Final

from ctxctl.model.content import Content
from ctxctl.tokens.counter import Counter, Uncounted
from ctxctl.tokens.counting_process import CountingProcess

_JOB: Final = 128 << 10
"""Bytes of texts that the process is given at once, about: some ten milliseconds of its work."""


Fresh = tuple[Content, Uncounted]
"""A content that is not counted yet, with its text."""


class CountingBeside:
    """What is under way to a counting process and back.  Thread-safe; counts are noted in the contents."""

    def __init__(self, counter: Counter, process: CountingProcess) -> None:
        self._counter = counter
        self._process = process
        self._lock = RLock()
        self._jobs: deque[list[Fresh]] = deque()
        """What was handed over, without the bytes of the texts."""
        self._waiting: set[Content] = set()
        """The contents of all jobs."""
        self._given = 0
        self._taken = 0

    @property
    def lost(self) -> bool:
        """Whether no count will come any more."""
        return self._process.lost

    def put(self, fresh: Iterable[Fresh]) -> int:
        """Have contents counted that were not counted yet; returns the number of the last job.

        What there is no room for stays uncounted.
        """
        job: list[Fresh] = []
        size = 0
        with self._lock:
            for content, text in fresh:
                if content in self._waiting:
                    continue
                if job and size + text.size > _JOB:
                    self._give(job)
                    job, size = [], 0
                job.append((content, text))
                size += text.size
            if job:
                self._give(job)
            return self._given

    def _give(self, job: list[Fresh]) -> None:
        if self._process.put([text.raw for _, text in job]):
            self._jobs.append([(content, Uncounted(b"", text.size, text.key)) for content, text in job])
            self._waiting.update([content for content, _ in job])
            self._given += 1

    def has_taken(self, number: int) -> bool:
        """Whether the counts of a job, and of all before it, have come, or will not come any more."""
        with self._lock:
            while self._taken < number and self._take(wait=False):
                pass
            return self._taken >= number

    def wait_for(self, content: Content) -> None:
        """Wait for a content's count if it is under way."""
        with self._lock:
            while content in self._waiting:
                self._take(wait=True)

    def ask(self, raw: bytes) -> tuple[int, bool] | None:
        """The count of a text in UTF-8, behind all that is under way; None if there is no room for it."""
        with self._lock:
            self.wait()
            counts = self._process.take(wait=True) if self._process.put([raw]) else None
            return counts[0] if counts is not None else None

    def wait(self) -> None:
        """Wait for all that is under way."""
        with self._lock:
            while self._waiting:
                self._take(wait=True)

    def _take(self, *, wait: bool) -> bool:
        """Take the counts of the next job; False if they are not there yet."""
        counts = self._process.take(wait=wait)
        if counts is None and not self._process.lost:
            return False
        if counts is None:
            self._jobs.clear()
            self._waiting.clear()
            self._taken = self._given
            return True
        job = self._jobs.popleft()
        self._taken += 1
        for (content, text), count in zip(job, counts, strict=True):
            if content.count is None and self._counter.keep(text, count):
                content.count = count
        self._waiting.difference_update([content for content, _ in job])
        return True

    def close(self) -> None:
        """End the process; what is under way stays uncounted."""
        with self._lock:
            self._jobs.clear()
            self._waiting.clear()
            self._taken = self._given
            self._process.close()

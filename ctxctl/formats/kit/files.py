"""A source as a seekable file, for readers of archives and databases."""

from __future__ import annotations

import io
import os

from ctxctl.trace.source import Source


class SourceFile(io.RawIOBase):
    """Reads a `Source` like a file opened for reading in binary; closing it leaves the source open."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Byte offset of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move; a place before the start is the start."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        """At most `size` bytes; all that is left where it is negative or None."""
        left = max(0, self._source.size - self._at)
        data = self._source.read(self._at, left if size is None or size < 0 else min(size, left))
        self._at += len(data)
        return data

    def readinto(self, buffer: object, /) -> int:
        """As `read`, into a buffer."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

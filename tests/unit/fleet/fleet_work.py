"""Pieces of work that tests give to worker processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def doubled(data: bytes) -> bytes:
    """The same twice; `die` ends the process, `sleep` takes long."""
    if data == b"die":
        os.kill(os.getpid(), signal.SIGKILL)
    if data == b"sleep":
        time.sleep(600)
    return data * 2


def size_of(path: str, _format: str, words: bytes, more: bytes) -> tuple[bytes, bool]:
    """The words, a capture's bytes, and a line in the file that the words name, for tests to count calls."""
    from ctxctl.errors import UnreadableError
    from ctxctl.trace.source import open_source

    with open(os.fsdecode(words), "a", encoding="utf-8") as log:
        log.write(f"{Path(path).name}\n")
    with open_source(path) as source:
        data = source.read(0, source.size)
    if b"unreadable" in data:
        raise UnreadableError("bad-thing", "it cannot be read")
    if b"bug" in data:
        raise KeyError("secret of the data")
    return data.strip() + more, b"passing" not in data


def counting(data: bytes) -> bytes:
    """Puts a count of 7 for its data into the cache whose path stands before a line end in it."""
    from ctxctl.tokens.cache import CountCache, counts_at

    path, _, text = data.partition(b"\n")
    with counts_at(Path(os.fsdecode(path))) as cache:
        cache.put(CountCache.key("o200k_base", text), 7)
    return b"done"


def dying_once(data: bytes) -> bytes:
    """Ends its process unless there is a file of that name, which it makes."""
    path = Path(os.fsdecode(data))
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return b"done"

"""Memory of a process and of all that it started, together (Linux)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

_PAUSE = 0.02
"""Seconds between two looks; what comes and goes in between is not seen."""
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)
_PROC = Path("/proc")


class Tree:
    """What was seen so far of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.most = 0
        """The most bytes that all of them held at once; pages that they share count once (PSS)."""

    def look(self) -> None:
        """Look once."""
        self.most = max(self.most, sum(_memory(pid) for pid in _descent(self._pid)))


@contextmanager
def watched(pid: int) -> Iterator[Tree]:
    """Watch a process from now until the block is left.  Raises OSError where memory cannot be looked at."""
    if not (_PROC / str(pid) / "smaps_rollup").exists():
        raise OSError("the memory of several processes together can only be measured on Linux")
    tree, over = Tree(pid), Event()

    def look() -> None:
        while not over.is_set():
            tree.look()
            time.sleep(_PAUSE)

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield tree
    finally:
        over.set()
        thread.join()


def _descent(pid: int) -> Iterator[int]:
    """A process and all that it started, as far as they live."""
    yield pid
    try:
        for thread in (_PROC / str(pid) / "task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from _descent(int(child))
    except OSError:  # it has ended
        return


def _memory(pid: int) -> int:
    try:
        found = _PSS.search((_PROC / str(pid) / "smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found is not None else 0

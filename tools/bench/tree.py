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
_RSS = re.compile(r"^Rss:\s+(\d+) kB", re.MULTILINE)
_PRIVATE = re.compile(r"^Private_\w+:\s+(\d+) kB", re.MULTILINE)
_PROC = Path("/proc")


class Tree:
    """What was seen so far of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.most = 0
        """The most bytes that all of them held at once."""

    def look(self) -> None:
        """Look once: at the pages that each holds alone, and at the shared ones of whoever shares most.

        The system's own share (PSS) would be less the more other programs use the same libraries.
        """
        held = [_memory(pid) for pid in _descent(self._pid)]
        alone, shared = sum(own for own, _ in held), max((with_others for _, with_others in held), default=0)
        self.most = max(self.most, alone + shared)


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


def _memory(pid: int) -> tuple[int, int]:
    """Bytes that a process holds alone, and those that it shares with others."""
    try:
        told = (_PROC / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0, 0
    held = _RSS.search(told)
    alone = sum(int(found[1]) for found in _PRIVATE.finditer(told))
    return alone * 1024, (int(held[1]) - alone) * 1024 if held is not None else 0

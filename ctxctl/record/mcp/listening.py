"""Makes records of the JSON-RPC messages that went by, in a thread of its own."""

from __future__ import annotations

import signal
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from ctxctl.record.mcp.speech import Speech, TokenCounts

if TYPE_CHECKING:
    from ctxctl.record.mcp.process import Side
    from ctxctl.record.recorder import Recorder

_WAITING: Final = 64 << 20
"""Bytes that may wait to be looked at."""
_LINE: Final = 64 << 20
"""Longest message that is recorded."""
_PATIENCE: Final = 10.0
"""Seconds that the end waits for what is not recorded yet."""


class Listener:
    """Takes copies of what was passed on; lines are put together and understood later."""

    def __init__(self, recorder: Recorder, session: str | None) -> None:
        self._recorder = recorder
        self._counts = TokenCounts()
        self._speech = Speech(recorder, session, self._counts)
        self._queue: deque[tuple[Side, bytes] | None] = deque()
        self._size = 0
        self._there = threading.Semaphore(0)
        self._lines: dict[Side, _Lines] = {"client": _Lines(), "server": _Lines()}
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def hear(self, side: Side, data: bytes) -> None:
        """Take bytes that went by; never waits."""
        if self._size > _WAITING:
            self._recorder._core.journal.lose("busy")
            # What follows begins in the middle of a message.
            data = b"\n" if b"\n" not in data else data[data.rfind(b"\n") :]
        self._size += len(data)
        self._queue.append((side, data))
        self._there.release()

    def close(self) -> None:
        """Record what is left."""
        self._queue.append(None)
        self._there.release()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            self._recorder._core.journal.lose("not recorded in time")

    def told(self, name: str) -> list[str]:
        """What was offered and used, and what it costs, as lines."""
        return self._counts.told(self._speech.server or name)

    def _work(self) -> None:
        # They are for the thread that passes them on.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            self._there.acquire()
            found = self._queue.popleft()
            if found is None:
                break
            side, data = found
            self._size -= len(data)
            try:
                for line in self._lines[side].add(data):
                    self._hear(side, line)
            except Exception as error:  # nobody is there to hear of it
                self._recorder._core.failed(error)
        try:
            for each, lines in self._lines.items():
                if rest := lines.rest():
                    self._hear(each, rest)
            self._speech.end()
        except Exception as error:
            self._recorder._core.failed(error)

    def _hear(self, side: Side, line: bytes | None) -> None:
        if line is None:
            self._recorder._core.journal.lose("message too long")
            return
        try:
            self._speech.line(side, line)
        except Exception as error:
            self._recorder._core.failed(error)


class _Lines:
    """Lines out of bytes that come in any pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False
        """In the middle of a line that is too long."""

    def add(self, data: bytes) -> list[bytes | None]:
        """The lines that are whole now; None for one that was too long."""
        found: list[bytes | None] = []
        at = 0
        while (end := data.find(b"\n", at)) >= 0:
            self._take(data[at:end])
            found.append(None if self._over else b"".join(self._parts))
            self._parts, self._size, self._over = [], 0, False
            at = end + 1
        if at < len(data):
            self._take(data[at:] if at else data)
        return found

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > _LINE:
            self._parts, self._over = [], True
        elif not self._over:
            self._parts.append(data)

    def rest(self) -> bytes:
        """A last line without an end."""
        return b"".join(self._parts)

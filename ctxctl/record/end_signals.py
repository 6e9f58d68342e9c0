"""Ends a recording in order: the first signal asks for the end, a second one forces it."""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import FrameType

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndSignals:
    """Makes signals ask for the end while its `with` runs; for the main thread only."""

    def __init__(self) -> None:
        self.asked = 0
        """The number of the signal that asked for the end; 0: none did."""
        self._before: dict[int, object] = {}
        self._read = self._write = -1

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        for number in _SIGNALS:
            # A signal that was ignored at the start (`nohup`) stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        os.close(self._read)
        os.close(self._write)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = number
        os.write(self._write, b"x")

    def is_asked(self) -> bool:
        """Whether a signal has asked for the end."""
        return bool(self.asked)

    @property
    def fd(self) -> int:
        """A file descriptor that becomes readable when the end is asked for."""
        return self._read

    def wait(self, seconds: float) -> None:
        """Sleep for this many seconds, or until the end is asked for."""
        if not self.asked:
            select.select([self._read], [], [], seconds)

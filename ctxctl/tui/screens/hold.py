"""Waiting a moment before painting, for what is on its way."""

from __future__ import annotations

from asyncio import TimerHandle, get_running_loop
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from textual.screen import Screen

MOST: Final = 0.03
"""Seconds that a paint waits: a frame's changes mostly come sooner, and then one paint shows both."""
_SETTLING: Final = 0.008
"""Seconds until the screen has heard of all that is to be painted: each widget tells it by a message."""


class Hold:
    """Holds a screen's painting back, from a request until its answer, or until it has waited long enough."""

    def __init__(self, screen: Screen[None], late: Callable[[], None]) -> None:
        self._screen = screen
        self._late = late
        """Called where the answer has not come in time."""
        self.waiting = False
        """Whether the answer is awaited: what it will change need not be made ready now."""
        self._held = ExitStack()
        self._timer: TimerHandle | None = None

    def begin(self) -> None:
        """Hold back; what is held already is not held longer."""
        self.waiting = True
        if self._timer is None:
            self._held.enter_context(self._screen.app.batch_update())
            self._timer = get_running_loop().call_later(MOST, self.release)

    def answered(self) -> None:
        """What was waited for has come, and is being shown."""
        self.waiting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = get_running_loop().call_later(_SETTLING, self.release)

    def release(self) -> None:
        """Paint."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            if self.waiting:
                self.waiting = False
                self._late()
            self._held.close()
            self._screen.check_idle()

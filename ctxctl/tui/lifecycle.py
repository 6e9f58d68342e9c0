"""Leaving the terminal as it was, whatever ends the program."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from typing import Final

SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)
)
_GRACE: Final = 2.0
"""Seconds that an orderly end may take once the terminal is gone."""


def catch_signals(leave: Callable[[int], None]) -> Callable[[], None]:
    """Call `leave` with 128 + number on each of `SIGNALS`; returns what undoes it.

    Only the main thread can; elsewhere (a test's event loop) this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    loop = asyncio.get_running_loop()
    caught = []
    for number in SIGNALS:
        try:
            loop.add_signal_handler(number, leave, 128 + number)
        except (NotImplementedError, RuntimeError, ValueError):
            continue
        caught.append(number)

    def undo() -> None:
        for number in caught:
            loop.remove_signal_handler(number)

    return undo


def hung_up() -> bool:
    """Whether the terminal on stdin is gone; reading it would then fail or spin."""
    if not hasattr(select, "poll"):
        return False
    try:
        poll = select.poll()
        poll.register(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0, 0)
        return any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return True


def end_soon(code: int) -> None:
    """End the process after a grace period, even if writing to a terminal that is gone blocks for ever."""
    timer = threading.Timer(_GRACE, os._exit, (code,))
    timer.daemon = True
    timer.start()

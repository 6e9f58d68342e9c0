"""The application on a terminal that nobody sees, and the work of its event loop.

A key is delivered as the driver of a terminal does it, and what is painted becomes a sequence of bytes as for
any terminal.  Textual's own pilot does neither: it wakes every widget at each key, which costs more than the
key, and leaves the bytes out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from threading import Event
from typing import Final

from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.keys import _character_to_key

from ctxctl.tui.app import CtxApp

_LOOK: Final = 0.005
"""Seconds between two looks at whether the loop still has something to do."""
_STILL: Final = 8
"""So many of them in a row must find nothing; the UI's own pauses are half as long."""


class Terminal(HeadlessDriver):
    """A terminal that takes everything and shows nothing; unlike the headless one, it is painted on."""

    written = 0
    """Characters so far."""

    @property
    def is_headless(self) -> bool:
        """What is painted becomes a sequence of bytes, as for any terminal."""
        return False

    def write(self, data: str) -> None:
        """Count it."""
        self.written += len(data)


class Watch:
    """Adds up the CPU time of the loop's callbacks, all but its own."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.longest = 0.0
        self.ran = 0
        """Callbacks that were not the watch's own."""
        plain: Callable[[asyncio.Handle], None] = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            if getattr(handle._callback, "__self__", None) is self:  # type: ignore[attr-defined]
                plain(handle)
                return
            start = time.thread_time()
            plain(handle)
            took = time.thread_time() - start
            self.ran += 1
            self.spent += took
            self.longest = max(self.longest, took)

        asyncio.Handle._run = timed  # type: ignore[method-assign, assignment]
        self._plain = plain

    def close(self) -> None:
        """Let the loop be."""
        asyncio.Handle._run = self._plain  # type: ignore[method-assign]

    def reset(self) -> None:
        """Begin anew."""
        self.spent = self.longest = 0.0

    async def quiet(self, idle: Event) -> None:
        """Wait until `idle` is set and the loop has had nothing to do for a while."""
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        self._look(over, idle, -1, 0)
        await over

    def _look(self, over: asyncio.Future[None], idle: Event, before: int, still: int) -> None:
        """A callback of the loop, and no task: only so is its own work told apart from the application's."""
        still = still + 1 if before == self.ran and idle.is_set() else 0
        if still < _STILL:
            asyncio.get_running_loop().call_later(_LOOK, self._look, over, idle, self.ran, still)
        elif not over.done():
            over.set_result(None)


class Session:
    """The application on a `Terminal`, and what is typed there."""

    def __init__(self, app: CtxApp, watch: Watch) -> None:
        self.app = app
        self.watch = watch

    async def quiet(self) -> None:
        """Wait until nothing is under way any more."""
        await self.watch.quiet(self.app.loader.idle)

    async def press(self, keys: Sequence[str]) -> None:
        """Type keys one after the other, each as the terminal's driver delivers it; wait for what they do."""
        for key in keys:
            driver = self.app._driver
            if driver is None or not self.app.is_running:
                raise RuntimeError("; ".join(self.app.farewell))
            single = len(key) == 1
            name = _character_to_key(key) if single else key
            driver.process_message(events.Key(name, key if single else None))
            await self.quiet()


@asynccontextmanager
async def session(app: CtxApp, watch: Watch, size: tuple[int, int]) -> AsyncIterator[Session]:
    """Run the application until the block is left; it begins once the trace is read."""
    app.driver_class = Terminal
    app._watch_terminal = lambda: None  # type: ignore[method-assign]
    watch.reset()
    running = asyncio.create_task(app.run_async(size=size))
    here = Session(app, watch)
    while app.turns.state.phase != "ready":
        await asyncio.sleep(0.02)
        if running.done():
            raise RuntimeError("; ".join(app.farewell))
    await here.quiet()
    try:
        yield here
    finally:
        app.exit()
        await running
        app.loader.stop()

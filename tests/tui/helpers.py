"""Driving the UI in tests, and reading what it shows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import textual._wait
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from ctxctl.tui.app import CtxApp
from tests.tui.shared_styles import parse_once

GOLDENS = Path(__file__).parent / "goldens"
SMALL = (80, 24)
LARGE = (200, 50)

# Half of what Textual waits for the program to be at rest, four times a key: most of a test was this waiting.
textual._wait.SLEEP_GRANULARITY = 1 / 100
textual._wait.SLEEP_IDLE = textual._wait.SLEEP_GRANULARITY / 20

parse_once()


def made(inspector: Any) -> CtxApp:
    """The application over a made-up inspector."""
    return CtxApp(lambda: inspector, inspector.name)


async def settle(app: CtxApp, pilot: Pilot[None]) -> None:
    """Wait until the loader has nothing to do and all it said has been painted."""
    for _ in range(500):
        await pilot.pause()
        if not app.is_running or app.return_code is not None:
            return
        if app.loader.idle.is_set():
            await pilot.pause()
            if app.loader.idle.is_set():
                return
        await asyncio.sleep(0.01)
    raise AssertionError("the loader did not come to rest")


class Session:
    """A running application and its pilot."""

    def __init__(self, app: CtxApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        """Press keys, each after the one before has had its effect."""
        for key in keys:
            await self.pilot.press(key)
            await settle(self.app, self.pilot)

    async def resize(self, width: int, height: int) -> None:
        """Make the terminal another size."""
        await self.pilot.resize_terminal(width, height)
        await settle(self.app, self.pilot)

    @property
    def lines(self) -> list[str]:
        """What is on the screen."""
        return ["".join(segment.text for segment in strip) for strip in strips(self.app)]

    @property
    def text(self) -> str:
        """What is on the screen, blanks at line ends left out."""
        return "\n".join(line.rstrip() for line in self.lines) + "\n"


def strips(app: App[None]) -> list[Strip]:
    """The lines of the screen as they would be sent; the one place that uses Textual's private compositor."""
    return cast("list[Strip]", app.screen._compositor.render_strips())


@asynccontextmanager
async def running(app: CtxApp, size: tuple[int, int] = SMALL) -> AsyncIterator[Session]:
    """Run an application without a terminal until everything it opened is shown."""
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        session = Session(app, pilot)
        await settle(app, pilot)
        yield session
    app.loader.stop()


def check_golden(name: str, text: str) -> None:
    """Compare a screen with the one kept; CTXCTL_UPDATE_GOLDENS=1 keeps this one."""
    path = GOLDENS / f"{name}.txt"
    if os.environ.get("CTXCTL_UPDATE_GOLDENS"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    assert path.exists(), f"no {path.name}; make it with CTXCTL_UPDATE_GOLDENS=1"
    assert text == path.read_bytes().decode(), (
        f"differs from {path.name}; accept with CTXCTL_UPDATE_GOLDENS=1"
    )


Opener = Callable[[], Any]

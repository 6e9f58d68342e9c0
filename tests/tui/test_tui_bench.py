"""What the benchmark of keys counts: all that the loop does for one, and nothing of its own."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest
from textual.strip import Strip

from ctxctl.tui.screens.turns.screen import TurnsScreen
from ctxctl.tui.widgets.rows import Rows
from tests.tui.fake import FakeInspector, notes_agent, unreadable
from tests.tui.helpers import made
from tools.bench.loop import Watch, session

BURDEN = 0.02
"""Seconds of CPU."""


def burn() -> None:
    end = time.thread_time() + BURDEN
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("where", ["paint", "handler"])
async def test_sees_a_burden(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    watch = Watch()
    try:
        app = made(FakeInspector(notes_agent()))
        async with session(app, watch, (80, 24)) as here:
            render, step = Rows.render_line, TurnsScreen.action_turn

            def slow_line(self: Rows, y: int) -> Strip:
                burn()
                return render(self, y)

            def slow_step(self: TurnsScreen, by: int) -> None:
                burn()
                step(self, by)

            if where == "paint":
                monkeypatch.setattr(Rows, "render_line", slow_line)
            else:
                monkeypatch.setattr(TurnsScreen, "action_turn", slow_step)
            watch.reset()
            await here.press(["]"])
            assert app.turns.state.cursor == 1
            assert watch.spent > BURDEN
            assert watch.longest >= BURDEN
            assert app._driver.written > 0  # type: ignore[union-attr]
    finally:
        watch.close()


async def test_counts_nothing_of_its_own() -> None:
    watch, idle = Watch(), Event()
    idle.set()
    try:
        await watch.quiet(idle)
        before = watch.ran
        await watch.quiet(idle)
        assert watch.ran - before == 1  # the test itself goes on
    finally:
        watch.close()


def broken() -> Any:
    raise unreadable()


async def test_an_application_that_fails_is_no_measurement() -> None:
    watch = Watch()
    try:
        app = made(FakeInspector(notes_agent()))
        app.loader._open = broken
        with pytest.raises(RuntimeError):
            async with session(app, watch, (80, 24)):
                pass
    finally:
        watch.close()

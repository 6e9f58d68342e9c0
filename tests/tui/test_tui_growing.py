"""The UI while the trace is still being read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fake import Request, SlowInspector, Thing, long_session, notes_agent
from helpers import LARGE, SMALL, Session, made, settle


@asynccontextmanager
async def reading(inspector: SlowInspector, size: tuple[int, int] = SMALL) -> AsyncIterator[Session]:
    """A session over a trace that is not read to its end."""
    app = made(inspector)
    async with app.run_test(size=size) as pilot:
        yield Session(app, pilot)
    app.loader.stop()


async def until(session: Session, told: Callable[[], bool]) -> None:
    """Wait until something is so."""
    for _ in range(300):
        await session.pilot.pause()
        if told():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(session.text)


async def test_turns_show_as_they_are_found_and_can_be_opened() -> None:
    inspector = SlowInspector(long_session(30, 5))
    async with reading(inspector) as session:
        await until(session, lambda: "reading the trace" in session.text)
        assert "turns 1" not in session.text
        inspector.deliver(10)
        await until(session, lambda: "turns 10" in session.text)
        assert "reading the trace… 33%" in session.text
        assert "prompt number 3" in session.text
        await until(session, lambda: "+ added 5" in session.text)
        await session.pilot.press("j", "enter", "j", "enter")
        await until(session, lambda: "changed in 1" in session.text)
        await session.pilot.press("t")
        await until(session, lambda: "made-up.jsonl@2.1" in session.text and "5 blocks" in session.text)
        await session.pilot.press("escape")
        inspector.deliver(20)
        await settle(session.app, session.pilot)
        assert session.app.turns.state.phase == "ready"
        assert "reading" not in session.text
        assert len(session.app.turns.state.list.turns.entries) == 30


async def test_the_cursor_stays_where_the_user_puts_it_while_rows_arrive() -> None:
    inspector = SlowInspector(long_session(300, 5))
    async with reading(inspector) as session:
        inspector.deliver(20)
        await until(session, lambda: "turns 20" in session.text)
        at = 0
        for _ in range(8):
            inspector.deliver(35)
            for _ in range(2):
                await session.pilot.press("j")
                at += 1
                await asyncio.sleep(0.03)
        await settle(session.app, session.pilot)
        assert session.app.turns.state.cursor == at
        assert session.app.turns.query_one("#turns").cursor == at  # type: ignore[attr-defined]
        assert session.app.turns.state.shown is not None


async def test_an_unfolded_turn_that_goes_on_keeps_the_cursor_on_its_step_and_below() -> None:
    things = tuple(Thing(f"i{n}", f"text {n}") for n in range(3))
    requests = [Request(1, things), Request(1, things), Request(1, things), Request(2, things)]
    inspector = SlowInspector(requests)
    async with reading(inspector) as session:
        inspector.deliver(2)
        await until(session, lambda: len(session.app.turns.state.list.turns.rows) == 2)
        await session.pilot.press("l", "j", "j")
        await until(session, lambda: session.app.turns.state.cursor == 2)
        inspector.deliver(2)
        await settle(session.app, session.pilot)
        state = session.app.turns.state
        assert state.place == (0, 1)
        assert state.list.count == 5


async def test_a_turn_that_is_still_read_shows_its_first_step_and_then_all_of_it() -> None:
    inspector = SlowInspector(notes_agent())
    async with reading(inspector) as session:
        inspector.deliver(1)
        await until(session, lambda: "what changed in step 1.1" in session.text)
        assert "turn" not in inspector.calls
        inspector.deliver(3)
        await settle(session.app, session.pilot)
        assert "what changed in turn 1 (2 steps)" in session.text


async def test_what_is_being_looked_at_is_not_exchanged_when_its_turn_ends() -> None:
    inspector = SlowInspector(notes_agent())
    async with reading(inspector, LARGE) as session:
        inspector.deliver(1)
        await until(session, lambda: "what changed in step 1.1" in session.text)
        await session.pilot.press("enter", "j", "j")
        await until(session, lambda: "Cursor: line 12" in session.text)
        inspector.deliver(3)
        await settle(session.app, session.pilot)
        assert "what changed in step 1.1" in session.text
        assert "Cursor: line 12" in session.text
        await session.press("escape")
        assert "what changed in turn 1 (2 steps)" in session.text
        await session.press("enter")
        assert "what changed in turn 1 (2 steps)" in session.text


async def test_leaving_while_the_trace_is_read_closes_it() -> None:
    inspector = SlowInspector(notes_agent())
    async with reading(inspector) as session:
        inspector.deliver(1)
        await until(session, lambda: "turns 1" in session.text)
        await session.pilot.press("q")
    assert inspector.closed
    assert session.app.return_code == 0

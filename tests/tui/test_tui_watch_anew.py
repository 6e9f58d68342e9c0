"""Another session takes the place of the one that is watched, whatever screen is open meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fake import FakeInspector, Request, Thing
from helpers import Session, settle
from test_tui_watch import until, watching
from textual.message import Message

from ctxctl.session import Inspector
from ctxctl.tui.document import Reading
from ctxctl.tui.loader import Activity, Worker
from ctxctl.tui.requests import Answered, Asked
from ctxctl.tui.screens.search.screen import SearchScreen
from ctxctl.tui.screens.turns.requests import ReadingRequest
from ctxctl.tui.screens.turns.screen import TurnsScreen

TRACES = Path(__file__).parents[2] / "traces"
OLD = (TRACES / "notes-assistant.jsonl").read_bytes()
NEW = b"".join((TRACES / "coding-agent.jsonl").read_bytes().splitlines(keepends=True)[:120])

OPEN = {
    "diff": ("D",),
    "text of the diff": ("D", "enter"),
    "assembled text": ("t",),
    "search": ("slash", *"kind:user_message", "enter"),
    "what-if": ("W",),
    "what-if, simulated": ("W", "enter"),
    "overview": ("v",),
    "stages": ("s",),
    "record": ("enter", "enter", "x"),
    "life": ("enter", "enter", "L"),
    "palette over the diff": ("D", "colon"),
    "export over the overview": ("v", "e"),
}


def expected(path: Path) -> tuple[int, list[str]]:
    """How many turns a trace has, and the items that changed in the one that began last."""
    with Inspector.open(path) as inspector:
        rows = inspector.outline().rows
        newest = max(rows, key=lambda row: (row.first_line, row.ordinal))
        changes = inspector.turn(newest.ordinal).changes
        return len({(row.thread, row.turn) for row in rows}), [change.item for change in changes]


async def replaced(session: Session, path: Path, data: bytes) -> list[str]:
    """Put another file there, and wait until the UI shows it; the items that it is to show."""
    other = path.with_suffix(".new")
    other.write_bytes(data)
    count, items = expected(other)
    before = session.app.turns.state.epoch
    other.replace(path)
    for _ in range(400):
        await session.pilot.pause()
        if session.app.turns.state.epoch > before:
            break
        await asyncio.sleep(0.02)
    await until(session, count)
    return items


def shows(session: Session, items: list[str]) -> None:
    """The detail is that of the newest turn, and of this session."""
    state = session.app.turns.state
    assert state.shown is not None
    assert state.shown.error is None
    assert state.shown.target.epoch == state.epoch
    listed = [state.table.change_at(line) for line in range(state.table.count)]
    assert {change.item for change in listed if change is not None} <= set(items)
    assert any(change is not None for change in listed)
    assert state.marked is None
    assert not state.visits


@pytest.mark.slow
@pytest.mark.parametrize("keys", OPEN.values(), ids=OPEN)
async def test_what_spoke_of_the_old_session_is_closed(tmp_path: Path, keys: tuple[str, ...]) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(OLD)
    async with watching(path) as session:
        await until(session, expected(path)[0])
        await session.press("m", *keys)
        over = not isinstance(session.app.screen, TurnsScreen)
        items = await replaced(session, path, NEW)
        assert isinstance(session.app.screen, TurnsScreen)
        shows(session, items)
        if over:
            assert "closed" in " ".join(session.text.split())
        await session.press("n", "D", "escape", "t", "escape", "k", "F")
        shows(session, items)
    assert session.app.return_code in (0, None)
    assert not session.app.fault


@pytest.mark.slow
async def test_the_help_stays(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(OLD)
    async with watching(path) as session:
        await until(session, expected(path)[0])
        await session.press("question_mark")
        screen = session.app.screen
        items = await replaced(session, path, NEW)
        assert session.app.screen is screen
        await session.press("escape")
        shows(session, items)


@pytest.mark.slow
async def test_hits_of_the_old_session_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(OLD)
    async with watching(path) as session:
        await until(session, expected(path)[0])
        await session.press("slash", *"user", "enter")
        await replaced(session, path, NEW)
        await session.press("n")
        assert "nothing was searched for yet" in session.text
        await session.press("slash")
        screen = session.app.screen
        assert isinstance(screen, SearchScreen)
        assert screen.state.finds is None
        await session.press("enter")
        with Inspector.open(path) as inspector:
            count = len(inspector.outline().rows)
        assert screen.state.finds is not None
        assert all(hit.ordinal < count for hit in screen.state.finds.hits)


@pytest.mark.slow
async def test_it_is_replaced_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(OLD)
    async with watching(path) as session:
        await until(session, expected(path)[0])
        for n in range(4):
            await session.press("D" if n % 2 else "t")
            items = await replaced(session, path, NEW if n % 2 == 0 else OLD)
            shows(session, items)
        await settle(session.app, session.pilot)
    assert not session.app.fault


class Slow(FakeInspector):
    """Answers when it is allowed to."""

    def __init__(self, *requests: Request, **settings: Any) -> None:
        super().__init__(requests, **settings)
        self.begun, self.go = Event(), Event()

    def step(self, ordinal: int) -> Any:
        self.begun.set()
        assert self.go.wait(10)
        return super().step(ordinal)


class Asker:
    """Takes answers as a screen does."""

    is_attached = True

    def __init__(self) -> None:
        self.told: list[Message] = []
        self.came = Event()

    def post_message(self, message: Message) -> bool:
        self.told.append(message)
        self.came.set()
        return True


@pytest.mark.parametrize("failing", [None, ValueError("closed file"), OSError("closed")])
def test_an_answer_of_the_old_session_that_comes_late_is_dropped(failing: Exception | None) -> None:
    request = Request(1, (Thing("note", "some text"),))
    old = Slow(request, failing={} if failing is None else {"step": failing})
    new = FakeInspector([request])
    asker, activity, faults = Asker(), Activity(), list[Message]()
    worker = Worker("views", faults.append, activity)
    asked = Asked(ReadingRequest("stages", "stages", 0), asker)  # type: ignore[arg-type]
    worker.open(old)  # type: ignore[arg-type]
    try:
        worker.ask(asked)
        assert old.begun.wait(10)
        worker.open(new)  # type: ignore[arg-type]
        old.go.set()
        assert activity.idle.wait(10)
        assert asker.told == []
        assert faults == [], "a fault of a session that is no longer shown is none"
        worker.ask(asked)
        assert asker.came.wait(10)
        assert [type(message.value) for message in asker.told if isinstance(message, Answered)] == [Reading]
    finally:
        worker.stop()
        worker.join()

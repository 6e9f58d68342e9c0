"""The UI on a session that is being written: it grows, is replaced, and comes late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers import SMALL, Session, running, settle

from ctxctl.inspector import Inspector
from ctxctl.inspector.live import Live
from ctxctl.tui.app import CtxApp

TRACE = Path(__file__).parents[2] / "traces" / "notes-assistant.jsonl"
LINES = TRACE.read_bytes().splitlines(keepends=True)


def turns_of(lines: list[bytes], folder: Path) -> int:
    """How many turns a trace of these lines has."""
    path = folder / "counted.jsonl"
    path.write_bytes(b"".join(lines))
    with Inspector.open(path) as inspector:
        return len({row.turn for row in inspector.outline().rows})


@asynccontextmanager
async def watching(path: Path) -> AsyncIterator[Session]:
    app = CtxApp(lambda: pytest.fail("the trace is watched, not opened"), path.name, lambda: Live(path))
    async with running(app, SMALL) as session:
        yield session


async def until(session: Session, count: int) -> None:
    """Wait until the list holds so many turns."""
    for _ in range(400):
        await session.pilot.pause()
        if len(session.app.turns.state.list.turns.entries) == count:
            await settle(session.app, session.pilot)
            return
        await asyncio.sleep(0.02)
    found = len(session.app.turns.state.list.turns.entries)
    raise AssertionError(f"{count} turns expected, {found} shown")


def append(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as file:
        file.write(b"".join(lines))


async def test_turns_appear_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    third = len(LINES) // 3
    append(path, LINES[:third])
    async with watching(path) as session:
        await until(session, turns_of(LINES[:third], tmp_path))
        append(path, LINES[third : 2 * third])
        await until(session, turns_of(LINES[: 2 * third], tmp_path))
        append(path, [*LINES[2 * third : -1], LINES[-1][:20]])
        await until(session, turns_of(LINES[:-1], tmp_path))
        append(path, [LINES[-1][20:]])
        await until(session, turns_of(LINES, tmp_path))
        entries = session.app.turns.state.list.turns.entries
    with Inspector.open(TRACE) as inspector:
        rows = inspector.outline().rows
        assert [entry.used for entry in entries] == [
            [row for row in rows if row.turn == turn][-1].used for turn in range(1, len(entries) + 1)
        ]


async def test_it_stays_with_the_newest_turn_until_the_user_moves_away(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    third = len(LINES) // 3
    append(path, LINES[:third])
    async with watching(path) as session:
        await until(session, turns_of(LINES[:third], tmp_path))
        state = session.app.turns.state
        assert state.cursor == state.list.count - 1
        append(path, LINES[third : 2 * third])
        await until(session, turns_of(LINES[: 2 * third], tmp_path))
        state = session.app.turns.state
        assert state.cursor == state.list.count - 1
        await session.press("k")
        before = session.app.turns.state.entry
        assert before is not None
        append(path, LINES[2 * third :])
        await until(session, turns_of(LINES, tmp_path))
        state = session.app.turns.state
        assert state.entry is not None
        assert state.entry.turn == before.turn
        assert "newer" in session.text
        await session.press("F")
        state = session.app.turns.state
        assert state.cursor == state.list.count - 1
        assert "newer" not in session.text


async def test_a_file_that_is_replaced_is_shown_afresh(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    append(path, LINES)
    async with watching(path) as session:
        await until(session, turns_of(LINES, tmp_path))
        other = tmp_path / "other.jsonl"
        some = LINES[: len(LINES) // 3]
        other.write_bytes(b"".join(some))
        other.replace(path)
        await until(session, turns_of(some, tmp_path))


async def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "later.jsonl"
    async with watching(path) as session:
        assert "waiting" in session.text
        append(path, LINES)
        await until(session, turns_of(LINES, tmp_path))
        assert "live" in session.text

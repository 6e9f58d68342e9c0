"""The UI on a session that is being written: it grows, is replaced, and comes late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from helpers import SMALL, Session, running, settle

from ctxctl.session import Inspector
from ctxctl.session.live import LiveSession
from ctxctl.tui.app import CtxApp
from ctxctl.tui.watching import Watching, watching_phrase

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
    app = CtxApp(
        lambda: pytest.fail("the trace is watched, not opened"), path.name, lambda: LiveSession(path)
    )
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_step_that_is_still_being_written_is_marked_and_goes_on_under_the_eyes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "live.jsonl"
    turn = 30
    append(path, LINES[:turn])
    async with watching(path) as session:
        await until(session, turns_of(LINES[:turn], tmp_path))
        for upto in range(turn, turn + 12):
            append(path, LINES[upto : upto + 1])
            await until(session, turns_of(LINES[: upto + 1], tmp_path))
            for _ in range(100):
                if session.app.turns.state.trace.watching.events >= upto + 1:  # type: ignore[union-attr]
                    break
                await asyncio.sleep(0.02)
            await settle(session.app, session.pilot)
            state = session.app.turns.state
            assert state.entry is not None
            last = state.entry.last
            assert last >= state.list.turns.settled, "nobody knows yet that it is over"
            assert state.shown is not None
            assert state.shown.step is not None
            assert state.shown.step.window.used == state.list.turns.rows[last].used
            assert "so far" in session.text
            assert "still being written" in session.text
            assert any(line.count("…") for line in session.lines if "▌" in line)
        await session.press("g")
        assert "still being written" not in session.text
        assert session.app.turns.state.entry is not None
        assert session.app.turns.state.entry.last < session.app.turns.state.list.turns.settled


@pytest.mark.slow
async def test_sub_agents_that_come_line_by_line(tmp_path: Path) -> None:
    """Steps of several threads are open at once: ordinals, and the places of turns, are others each time."""
    lines = (TRACE.parent / "coding-agent.jsonl").read_bytes().splitlines(keepends=True)[:75]
    path = tmp_path / "live.jsonl"
    async with watching(path) as session:
        for n, line in enumerate(lines):
            append(path, [line])
            await asyncio.sleep(0.02)
            if n % 10 == 5:
                await session.press("v", "escape", "k", "m", "enter", "j", "F", "h")
        for _ in range(200):
            watching_now = session.app.turns.state.trace.watching
            if watching_now is not None and watching_now.events == len(lines):
                break
            await asyncio.sleep(0.02)
        await settle(session.app, session.pilot)
        await session.press("F")
        state = session.app.turns.state
        with Inspector.open(path) as inspector:
            rows = inspector.outline().rows
            newest = max(rows, key=lambda row: (row.first_line, row.ordinal))
        assert state.entry is not None
        assert (state.entry.thread, state.entry.turn) == (newest.thread, newest.turn)
        assert {(e.thread, e.turn, e.steps, e.used) for e in state.list.turns.entries} == {
            (thread, turn, len(found), found[-1].used)
            for thread, turn in {(row.thread, row.turn) for row in rows}
            for found in [[row for row in rows if (row.thread, row.turn) == (thread, turn)]]
        }
    assert session.app.return_code in (0, None)


async def test_a_file_that_goes_away_is_told_of_and_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"
    append(path, LINES)
    async with watching(path) as session:
        await until(session, turns_of(LINES, tmp_path))
        path.unlink()
        for _ in range(200):
            await session.pilot.pause()
            if "is gone" in session.text:
                break
            await asyncio.sleep(0.02)
        assert "waiting for it to come back" in session.text
        assert len(session.app.turns.state.list.turns.entries) == turns_of(LINES, tmp_path)
        append(path, LINES[:30])
        await until(session, turns_of(LINES[:30], tmp_path))
        assert "gone" not in session.lines[0]


@pytest.mark.slow
async def test_a_newer_session_of_a_directory_is_announced_and_shown(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    append(folder / "a.jsonl", LINES[:30])
    async with watching(folder) as session:
        await until(session, turns_of(LINES[:30], tmp_path))
        assert session.lines[0].split()[0] == "a.jsonl"
        assert session.app.trace_name == str(folder / "a.jsonl")
        append(folder / "b.jsonl", LINES)
        await until(session, turns_of(LINES, tmp_path))
        assert session.lines[0].split()[0] == "b.jsonl"
        assert "now following a newer session" in " ".join(session.text.replace("▌", " ").split())
        assert session.app.front_address() == f"{folder / 'b.jsonl'}@12"


@pytest.mark.parametrize("state", ["waiting", "reading", "following", "gone", "refused", "over"])
def test_every_state_of_a_watch_has_words(state: str) -> None:
    assert state not in watching_phrase(Watching(state)).split(" · ")
    assert "12 events/s" in watching_phrase(Watching(state, rate=12.0))

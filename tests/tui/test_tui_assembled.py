"""The assembled text's screen, driven by keys, without a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake import FakeInspector, Request, Thing, notes_agent
from helpers import LARGE, SMALL, Session, check_golden, running
from test_tui_hostile import faults, hostile, strips

from ctxctl.errors import UsageError
from ctxctl.session import Inspector
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.assembled.screen import AssembledScreen
from ctxctl.tui.widgets.rows import Rows

ROOT = Path(__file__).parents[2]
CODING = ROOT / "traces" / "coding-agent.jsonl"


@pytest.fixture(autouse=True)
def _dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)


def on(inspector: Any, ordinal: int) -> CtxApp:
    """The application with the assembled text in front."""
    return CtxApp(lambda: inspector, inspector.name, first=AssembledScreen(ordinal))  # type: ignore[arg-type]


def screen(session: Session) -> AssembledScreen:
    found = session.app.screen
    assert isinstance(found, AssembledScreen)
    return found


def notes() -> FakeInspector:
    return FakeInspector(notes_agent())


def ordinal_with_break() -> int:
    """A step of the coding agent whose possible prefix ended in the middle."""
    with Inspector.open(CODING) as inspector:
        for row in inspector.outline().rows:
            broken = inspector.step(row.ordinal).cache.broken_by
            if broken is not None and broken.status == "updated" and broken.position > 3:
                return row.ordinal
    raise AssertionError("no such step")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_screens_look_as_they_did(size: tuple[int, int]) -> None:
    async with running(on(notes(), 3), size) as session:
        check_golden(f"assembled-first-{size[0]}x{size[1]}", session.text)
    async with running(on(Inspector.open(CODING), ordinal_with_break()), size) as session:
        await session.press("c")
        check_golden(f"assembled-break-{size[0]}x{size[1]}", session.text)


async def test_t_opens_it_and_enter_leads_to_the_item() -> None:
    async with running(CtxApp(notes, "made-up.jsonl")) as session:
        await session.press("G", "t", "right_square_bracket", "right_square_bracket")
        assert "editor state" in session.text
        assert screen(session).view.block == 2
        await session.press("enter")
        assert session.app.screen is session.app.turns
        state = session.app.turns.state
        assert state.place is not None
        assert state.list.turns.entries[state.place.turn].turn == 3
        assert state.item == "editor-state"


async def test_brackets_go_from_block_to_block_to_the_last() -> None:
    async with running(on(notes(), 3)) as session:
        blocks = len(notes_agent()[3].things)
        assert f"block 1 of {blocks}" in session.text
        for n in range(1, blocks):
            await session.press("right_square_bracket")
            assert f"block {n + 1} of {blocks}" in session.text
        await session.press("right_square_bracket")
        assert f"block {blocks} of {blocks}" in session.text
        await session.press("left_square_bracket")
        assert f"block {blocks - 1} of {blocks}" in session.text


async def test_the_current_block_follows_the_view() -> None:
    long = FakeInspector([Request(1, tuple(Thing(f"i{n}", f"words {n}\n" * 10) for n in range(30)))])
    async with running(on(long, 0)) as session:
        await session.press("G")
        assert "block 30 of 30" in session.text
        await session.press("g")
        assert "block 1 of 30" in session.text
        await session.press("pagedown", "pagedown", "pagedown")
        assert 3 < screen(session).view.block < 12


async def test_the_outline_keeps_step_with_the_text() -> None:
    long = FakeInspector([Request(1, tuple(Thing(f"i{n}", f"words {n}\n" * 10) for n in range(90)))])
    async with running(on(long, 0), LARGE) as session:
        outline = session.app.screen.query_one("#outline", Rows)
        await session.press("G")
        assert outline.cursor == 89
        await session.press("tab", "g", "j", "j")
        assert screen(session).view.block == 2
        assert "words 2" in session.lines[4]
        await session.press("tab", "right_square_bracket")
        assert outline.cursor == 3
        # Where there is no room for the outline, the text has the keys.
        await session.press("tab")
        await session.resize(100, 30)
        assert session.app.focused is screen(session).view


async def test_what_is_seen_is_the_exact_text() -> None:
    with Inspector.open(CODING) as inspector:
        text = inspector.assembled(20)
    async with running(on(Inspector.open(CODING), 20)) as session:
        seen = screen(session).seen()
        assert seen is not None
        assert seen.text == text
        assert seen.name.startswith("assembled text of coding-agent.jsonl@")


async def test_the_prefix_is_a_bar_and_its_end_is_marked() -> None:
    async with running(on(Inspector.open(CODING), ordinal_with_break()), (120, 30)) as session:
        assert "possible cache prefix" in session.lines[1]
        assert "ended by" in session.lines[1]
        assert session.lines[4][1] == "█"
        await session.press("c")
        assert "✂ the cache prefix ends here" in session.text
        at = next(n for n, line in enumerate(session.lines) if "✂ the cache" in line)
        assert session.lines[at + 1][1] == "░"


async def test_words_are_found() -> None:
    async with running(on(Inspector.open(CODING), 20)) as session:
        await session.press("slash", *"export", "enter")
        assert "match 1 of" in session.text
        first = screen(session).view.block
        await session.press("n", "n", "n", "n", "n", "n", "n", "n")
        assert screen(session).view.block > first
        await session.press("escape")
        assert isinstance(session.app.screen, AssembledScreen)
        await session.press("escape")
        assert session.app.screen is session.app.turns


async def test_a_text_that_is_not_recorded_says_so_in_its_place() -> None:
    things = (Thing("a", "first"), Thing("b", None, title="lost"), Thing("c", "last"))
    async with running(on(FakeInspector([Request(1, things)]), 0)) as session:
        assert "text not recorded" in session.text
        assert "[b: text not recorded]" in session.text
        assert "uncounted" in session.text


async def test_what_was_not_injected_is_not_said_to_be_sent() -> None:
    async with running(on(notes(), 3)) as session:
        assert "! not known to have been sent" in session.text


async def test_an_empty_frame() -> None:
    async with running(on(FakeInspector([Request(1, ())]), 0), LARGE) as session:
        await session.press("right_square_bracket", "c", "enter", "G", "g", "tab", "slash", "x", "enter")
        assert "0 blocks" in session.text
        assert not session.app.fault


async def test_a_frame_that_cannot_be_read() -> None:
    failing = FakeInspector(notes_agent(), failing={"frame": UsageError("no-such-frame", "no step 3")})
    async with running(on(failing, 3)) as session:
        assert "no step 3" in session.text
        await session.press("right_square_bracket", "c", "enter", "escape")
        assert not session.app.fault


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (40, 10), (20, 6)], ids=str)
async def test_no_attack_gets_through(size: tuple[int, int]) -> None:
    async with running(on(hostile(), 1), size) as session:
        for keys in ((), ("right_square_bracket",), ("G",), ("slash", "e", "enter", "n")):
            await session.press(*keys)
            assert list(faults(strips(session.app))) == [], keys
        assert not session.app.fault


async def test_ten_thousand_blocks_and_ten_megabytes() -> None:
    things = [Thing(f"i{n}", f"text {n}", "tool_result", f"result {n}") for n in range(10_000)]
    things[5_000] = Thing("big", "word " * 2_000_000, "tool_result", "the big one")
    async with running(on(FakeInspector([Request(1, tuple(things))], cap=None), 0), LARGE) as session:
        assert "10,000 blocks" in session.text
        await session.press("right_square_bracket", "pagedown", "G")
        view = screen(session).view
        for _ in range(600):
            if view.done:
                break
            await session.pilot.pause(0.02)
        await session.press("G")
        assert "block 10,000 of 10,000" in session.text
        assert "text 9999" in session.text

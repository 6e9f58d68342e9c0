"""The line of commands and the help, on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake import FakeInspector, Request, SlowInspector, Thing, notes_agent
from helpers import LARGE, SMALL, Session, check_golden, made, running, settle
from test_tui_hostile import ALL, faults, hostile, strips
from textual import events

from ctxctl.tui import keys
from ctxctl.tui.screens.palette import Palette
from ctxctl.tui.screens.reader import Help
from ctxctl.tui.shell import in_force


def notes() -> FakeInspector:
    return FakeInspector(notes_agent())


async def command(session: Session, line: str) -> None:
    """Type a command and take it."""
    await session.press("colon", *(("space" if char == " " else char) for char in line), "enter")


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_they_look_as_they_did(size: tuple[int, int]) -> None:
    async with running(made(notes()), size) as session:
        await session.press("colon", *"theme")
        check_golden(f"palette-{size[0]}x{size[1]}", "\n".join(session.text.splitlines()[-14:]) + "\n")
        await session.press("escape", "question_mark")
        check_golden(f"help-{size[0]}x{size[1]}", session.text)


HELD = [
    *(":⏎⏎", ":⏎:⏎:⏎", ":theme⏎⏎⏎", ":help⏎:help⏎", ":⎋⎋:⏎", "??⎋⎋?", "vqvq", "v⏎v⏎⏎", "D⎋D⎋⎋", "/a⏎⏎⎋⎋"),
    *("//⎋/⎋", "tqtq", "f⎋f⏎f", "⏎⏎//⏎/⎋"),
]


@pytest.mark.parametrize("keys", HELD)
async def test_keys_that_come_while_a_screen_goes_do_nothing_on_it(
    keys: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # one of the commands writes a file
    names = {"⏎": "enter", "⎋": "escape"}
    async with running(made(notes())) as session:
        for key in keys * 3:
            name = names.get(key, key)
            session.app.post_message(events.Key(name, None if key in names else key))
        await settle(session.app, session.pilot)
        assert (session.app.fault, session.app.farewell) == (False, [])
        if session.app.return_code is None:
            assert session.app.turns in session.app.screen_stack
            while session.app.screen is not session.app.turns:
                session.app.pop_screen()
            await session.press("question_mark")
            assert isinstance(session.app.screen, Help)


async def test_every_command_in_force_is_listed_and_each_key_of_the_screen_is_one() -> None:
    async with running(made(notes())) as session:
        await session.press("colon")
        assert isinstance(session.app.screen, Palette)
        listed = {row.argument for row in session.app.screen.choice.commands}
        wanted = {action.id for action in keys.ACTIONS if action.scope in ("app", "turns", "list")}
        hidden = wanted - listed
        assert hidden == {"palette"}


@pytest.mark.parametrize(
    ("line", "turn", "step"),
    [
        ("3", 3, None),
        ("-1", 3, None),
        ("2", 2, None),
        ("1.1", 1, 0),
        ("1.2", 1, 1),
        (":2", 2, None),
        ("@main:2", 2, None),
    ],
)
async def test_addresses_lead_there(line: str, turn: int, step: int | None) -> None:
    async with running(made(notes())) as session:
        await command(session, line)
        state = session.app.turns.state
        assert state.entry is not None
        assert state.place is not None
        assert state.entry.turn == turn
        if step is not None:
            assert state.place.step == step


async def test_an_address_leads_to_the_main_screen_from_any_other() -> None:
    async with running(made(notes())) as session:
        await session.press("question_mark")
        await command(session, "3")
        assert session.app.screen is session.app.turns
        assert session.app.turns.state.entry.turn == 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("line", "why"), [("99", "no such turn"), ("1.9", "no such step"), ("who:1", "no thread is called")]
)
async def test_what_is_not_there_is_said(line: str, why: str) -> None:
    async with running(made(notes())) as session:
        await command(session, line)
        assert why in " ".join(session.text.replace("▌", "").split())
        assert session.app.turns.state.cursor == 0


async def test_a_turn_number_is_one_of_the_session_in_front() -> None:
    thing = Thing("m1", "x")
    requests = [Request(turn, (thing,), session=name) for name in ("a", "b") for turn in (1, 2)]
    async with running(made(FakeInspector(requests))) as session:
        await session.press("G", "k")
        await command(session, "2")
        state = session.app.turns.state
        assert state.entry is not None
        assert (state.entry.session, state.entry.turn) == ("b", 2)
        await command(session, "a/2")
        assert session.app.turns.state.entry.session == "a"  # type: ignore[union-attr]


async def test_a_turn_can_be_gone_to_while_the_trace_is_being_read() -> None:
    inspector = SlowInspector([Request(n + 1, (Thing("m1", str(n)),)) for n in range(30)])
    app = made(inspector)
    async with app.run_test() as pilot:
        inspector.deliver(10)
        for _ in range(300):
            await pilot.pause(0.02)
            if app.turns.state.list.count >= 8:
                break
        for key in ("colon", "5", "enter"):
            await pilot.press(key)
        for _ in range(300):
            await pilot.pause(0.02)
            if app.turns.state.cursor:
                break
        assert app.turns.state.entry.turn == 5  # type: ignore[union-attr]
        assert app.turns.state.phase == "reading"
    app.loader.stop()


@pytest.mark.slow
async def test_commands_do_what_their_keys_do() -> None:
    async with running(made(notes())) as session:
        await command(session, "next turn")
        assert session.app.turns.state.entry.turn == 2  # type: ignore[union-attr]
        await command(session, "list.last")
        assert session.app.turns.state.entry.turn == 3  # type: ignore[union-attr]
        await command(session, "stages")
        assert len(session.app.screen_stack) == 3
        await command(session, "reader.back")
        assert session.app.screen is session.app.turns
        await command(session, "theme contrast-dark")
        assert session.app.theme == "contrast-dark"
        await command(session, "q")
    assert session.app.return_code == 0


@pytest.mark.slow
async def test_the_list_is_gone_through_and_lines_come_back() -> None:
    async with running(made(notes())) as session:
        await session.press("colon", *"turn", "down", "down", "up")
        palette = session.app.screen
        assert isinstance(palette, Palette)
        assert palette.choice.at == 1
        await session.press("tab", "shift+tab", "shift+tab", "up", "escape")
        await command(session, "next turn")
        await command(session, "about")
        await session.press("escape", "colon", "up", "up")
        palette = session.app.screen
        assert isinstance(palette, Palette)
        assert palette.choice.chosen is not None
        assert palette.choice.chosen.argument == "turn.next"
        await session.press("down")
        assert palette.choice.chosen.argument == "about"
        await session.press("down", "escape")
        assert session.app.screen is session.app.turns


async def test_nothing_is_done_where_nothing_is_meant() -> None:
    async with running(made(notes())) as session:
        await session.press("colon", *"xyzzy", "enter", "down", "up")
        assert isinstance(session.app.screen, Palette)
        assert "no command has that name" in session.text
        await session.press("escape")
        assert session.app.screen is session.app.turns


async def test_a_click_chooses_and_a_second_one_does_it() -> None:
    async with running(made(notes())) as session:
        await session.press("colon", *"turn.")
        y = next(n for n, line in enumerate(session.lines) if "next turn" in line)
        await session.pilot.click(offset=(20, y))
        await session.press("enter")
        assert session.app.turns.state.entry.turn == 2  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (40, 10), (20, 5), (3, 2)], ids=str)
async def test_hostile_lines_and_small_terminals(size: tuple[int, int]) -> None:
    async with running(made(hostile()), size) as session:
        await session.press("colon")
        session.app.screen.query_one("#command").action_history(0)  # type: ignore[attr-defined]
        session.app.screen.query_one("#command").value = ALL  # type: ignore[attr-defined]
        await session.press("x", "left")
        assert list(faults(strips(session.app))) == []
        await session.press("enter", "escape", "colon", "1", "enter", "question_mark", "G")
        assert list(faults(strips(session.app))) == []
        assert not session.app.fault


async def test_help_shows_the_screen_in_front_first_and_its_key_closes_it() -> None:
    async with running(made(notes())) as session:
        await session.press("s", "question_mark")
        assert session.text.splitlines()[1].strip("│┃ ").startswith("Full-screen texts")
        await session.press("question_mark")
        assert sum(isinstance(screen, Help) for screen in session.app.screen_stack) == 0
        assert in_force(session.app.screen)["reader.back"] is session.app.screen


async def test_what_a_text_takes_the_key_of_can_still_be_asked_for() -> None:
    async with running(made(notes())) as session:
        await session.press("enter", "j", "enter")
        found = in_force(session.app.screen)
        assert {"search", "text.find", "turn.next", "quit"} <= set(found)
        assert found["search"] is session.app.turns

"""The whole UI, driven by keys, without a terminal."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fake import FakeInspector, long_session, notes_agent, unreadable
from helpers import LARGE, SMALL, check_golden, made, running, settle

from ctxctl.model.problem import Problem
from ctxctl.model.records import Fidelity
from ctxctl.model.results import Counts, Summary
from ctxctl.tui.app import CtxApp
from ctxctl.tui.loader import FAULT_EXIT


@pytest.fixture(autouse=True)
def _dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)


def notes(**settings: Any) -> FakeInspector:
    return FakeInspector(notes_agent(), **settings)


async def test_the_first_screen_shows_turns_changes_and_the_window() -> None:
    async with running(made(notes())) as session:
        assert "turns 3" in session.text
        assert "Rewrite" in session.text
        assert "what changed in turn 1 (2 steps)" in session.text
        assert "+ added 5" in session.text
        assert "of 400 sent" in session.text


SCREENS: dict[str, tuple[str, ...]] = {
    "turns": (),
    "steps": ("l", "j", "j"),
    "changes": ("right_square_bracket", "enter"),
    "diff": ("right_square_bracket", "enter", "j", "j", "j", "enter"),
    "content": ("right_square_bracket", "enter", "j", "j", "j", "enter", "d"),
    "removed": ("G", "enter", "j", "j", "enter"),
    "skipped": ("G", "a"),
    "assembled": ("G", "t"),
    "problems": ("p",),
    "help": ("question_mark",),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_screens_look_as_they_did(size: tuple[int, int]) -> None:
    problems = [Problem(7, 4021, "bad-json", "not a JSON value"), Problem(9, 5000, "unknown-field", "x")]
    async with running(made(notes(problems=problems)), size) as session:
        start = session.app.turns.state
        for name, keys in SCREENS.items():
            await session.press(*keys)
            check_golden(f"{name}-{size[0]}x{size[1]}", session.text)
            if len(session.app.screen_stack) > 2:
                await session.press("escape")
            session.app.turns.apply(start)
            await settle(session.app, session.pilot)


async def test_brackets_change_the_turn_from_any_pane_and_stay_on_the_item() -> None:
    async with running(made(notes())) as session:
        await session.press("enter", "j", "j")
        assert session.app.turns.state.item == "editor-state"
        await session.press("right_square_bracket")
        state = session.app.turns.state
        assert (state.pane, state.cursor) == ("changes", 1)
        assert state.selected is not None
        assert (state.selected.item, state.selected.status) == ("editor-state", "updated")


async def test_the_item_pane_shows_a_real_diff_and_d_its_content() -> None:
    async with running(made(notes())) as session:
        await session.press(*SCREENS["diff"])
        assert "\u2212 Cursor: line 12" in session.text
        assert "+ Cursor: line 40" in session.text
        await session.press("d")
        assert "1  Cursor: line 40" in session.text
        assert "line 12" not in session.text


async def test_escape_goes_back_pane_by_pane_and_tab_cycles() -> None:
    async with running(made(notes())) as session:
        await session.press("enter", "enter")
        panes = []
        for key in ("escape", "escape", "escape", "tab", "tab", "tab", "shift+tab"):
            await session.press(key)
            panes.append(session.app.turns.state.pane)
        assert panes == ["changes", "turns", "turns", "changes", "item", "turns", "item"]


async def test_keys_typed_faster_than_they_are_painted_go_where_they_should() -> None:
    async with running(made(notes())) as session:
        for key in ("enter", "j", "j", "enter"):
            await session.app._press_keys([key])
        await settle(session.app, session.pilot)
        state = session.app.turns.state
        assert (state.cursor, state.pane, state.item) == (0, "item", "editor-state")


async def test_a_wide_terminal_shows_the_item_beside_the_changes() -> None:
    async with running(made(notes()), LARGE) as session:
        assert "get_note" in session.text
        await session.press("enter", "j", "j")
        assert "Cursor: line 12" in session.text
        await session.resize(80, 24)
        assert "Cursor: line 12" not in session.text
        await session.resize(200, 50)
        assert "Cursor: line 12" in session.text


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (1, 1), (300, 100)])
async def test_every_key_works_at_any_size(size: tuple[int, int]) -> None:
    keys = "j l j enter j enter d j escape right_square_bracket a tab G t G escape p escape"
    async with running(made(notes()), size) as session:
        await session.pilot.press(*keys.split(), "question_mark", "escape", "T")
        await settle(session.app, session.pilot)
    assert not session.app.fault


async def test_a_narrow_terminal_shows_one_pane_at_a_time() -> None:
    async with running(made(notes()), (40, 10)) as session:
        assert "Rewrite this no" in session.text
        assert "added" not in session.text
        await session.press("enter")
        assert "+ added 5" in session.text
        await session.press("j", "j", "enter")
        assert "Cursor: line 12" in session.text


async def test_resizing_over_and_over_breaks_nothing() -> None:
    async with running(made(notes())) as session:
        for n in range(30):
            await session.pilot.resize_terminal(1 + n * 7 % 190, 1 + n * 5 % 60)
        await session.resize(*SMALL)
        assert "turns 3" in session.text
    assert not session.app.fault


async def test_problems_are_counted_and_listed() -> None:
    problems = [Problem(7, 4021, "bad-json", "not a JSON value")]
    async with running(made(notes(problems=problems))) as session:
        assert "p 1 problem" in session.text
        await session.press("p")
        assert "line 7, byte 4,021  bad-json  not a JSON value" in session.text


async def test_what_the_capture_told_is_said() -> None:
    inspector = notes()
    facts = {"messages": {"native": 3}, "reasoning": {"native": 1, "not recorded": 2}}
    inspector.summary = Summary(1, 1, 1, 2, 9, 0, 0, 0, Counts(), 0, {}, (Fidelity("claude-code", 2, facts),))
    async with running(made(inspector)) as session:
        await session.press("i")
        assert "format claude-code" in session.text
        assert "reasoning (1 of 3)" in session.text
        assert "system prompt" in session.text


async def test_the_theme_can_be_changed() -> None:
    async with running(made(notes())) as session:
        assert session.app.current_theme.dark
        await session.press("T")
        assert not session.app.current_theme.dark


async def test_the_terminal_may_say_that_it_is_light(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLORFGBG", "0;15")
    async with running(made(notes())) as session:
        assert not session.app.current_theme.dark


async def test_without_colour_every_sign_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(made(notes())) as session:
        await session.press("G", "enter")
        for sign in ("+ added", "\u2212 removed", "∅ omitted", "= skipped", "▌", "┏"):
            assert sign in session.text


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+q", 0), ("ctrl+c", 130)])
async def test_exit_codes_of_keys(key: str, code: int) -> None:
    async with running(made(notes())) as session:
        await session.press(key)
    assert session.app.return_code == code


async def test_leaving_closes_the_trace() -> None:
    inspector = notes()
    async with running(made(inspector)) as session:
        await session.press("q")
    assert inspector.closed


async def test_a_trace_that_cannot_be_opened_ends_the_ui_with_its_exit_code() -> None:
    def fail() -> Any:
        raise unreadable()

    app = CtxApp(fail, "x.jsonl")
    async with running(app):
        pass
    assert app.return_code == 3
    assert app.farewell == ["no readable event", "is it a trace?"]


async def test_a_trace_that_turns_out_unreadable_is_closed_again() -> None:
    inspector = notes(failing={"outline": unreadable()})
    app = made(inspector)
    async with running(app):
        pass
    assert (app.return_code, inspector.closed) == (3, True)


async def test_an_error_in_one_view_is_shown_there_and_the_rest_works() -> None:
    inspector = notes(failing={"compare": unreadable("the file is gone")})
    async with running(made(inspector)) as session:
        await session.press("G", "D")
        assert "the file is gone" in session.text
        await session.press("escape", "k")
        assert "what changed in turn 2" in session.text
        await session.press("q")
    assert session.app.return_code == 0


async def test_a_bug_in_one_view_is_told_without_data_and_remembered() -> None:
    inspector = notes(failing={"compare": ValueError("SECRET of the trace")})
    async with running(made(inspector)) as session:
        await session.press("G", "D")
        assert "internal error: ValueError" in session.text
        assert "SECRET" not in session.text
        await session.press("escape", "q")
    assert session.app.return_code == FAULT_EXIT
    assert len(session.app.farewell) == 1
    assert "SECRET" not in session.app.farewell[0]


async def test_a_crash_ends_with_its_place_and_without_data() -> None:
    app = made(notes())

    async def crash() -> None:
        async with running(app) as session:
            app.turns.apply = lambda new, **_: 1 / 0  # type: ignore[method-assign,assignment]
            await session.press("j")

    with pytest.raises(ZeroDivisionError):
        await crash()
    assert app.return_code == FAULT_EXIT
    assert app.farewell[0].startswith("internal error: ZeroDivisionError at ")
    assert app._exit_renderables == []


async def test_while_the_cursor_runs_only_the_last_frame_is_computed() -> None:
    inspector = FakeInspector(long_session(300, 5))
    async with running(made(inspector)) as session:
        asked = inspector.calls.count("step")
        await session.pilot.press(*["j"] * 20)
        await settle(session.app, session.pilot)
        state = session.app.turns.state
        assert state.cursor == 20
        assert state.shown is not None
        assert inspector.calls.count("step") - asked <= 21


async def test_coming_back_to_a_turn_does_not_compute_it_again() -> None:
    inspector = FakeInspector(long_session(5, 5))
    async with running(made(inspector)) as session:
        await session.press("j", "j")
        asked = inspector.calls.count("step")
        await session.press("k", "k")
        assert inspector.calls.count("step") == asked


async def test_moving_through_ten_thousand_turns_costs_the_loop_little() -> None:
    inspector = FakeInspector(long_session(10_000, 8))
    async with running(made(inspector)) as session:
        assert "turns 10,000" in session.text
        turns = session.app.turns
        spent = []
        for _ in range(60):
            started = time.thread_time()
            turns.action_turn(1)
            spent.append(time.thread_time() - started)
        spent.sort()
        assert spent[56] < 0.05, "moving must not depend on the number of turns"
        await session.press("G")
        assert turns.state.cursor == 9_999

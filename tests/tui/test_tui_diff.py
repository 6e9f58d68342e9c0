"""The diff screen, driven by keys, without a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake import FakeInspector, Request, Thing, notes_agent
from helpers import LARGE, SMALL, Session, check_golden, running, settle
from test_tui_hostile import faults, hostile, strips

from ctxctl.session import Inspector
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.diff.screen import DiffScreen
from ctxctl.tui.screens.diff.values import FrameName, Pair, against
from ctxctl.tui.screens.diff.view import SheetView

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLORFGBG", raising=False)


def on(inspector: Any, a: int, b: int, other: Any = None) -> CtxApp:
    """The application with the diff screen in front."""
    pair = Pair(FrameName(a, other), FrameName(b))
    return CtxApp(lambda: inspector, inspector.name, first=DiffScreen(lambda _: pair, first=True))


def screen(session: Session) -> DiffScreen:
    found = session.app.screen
    assert isinstance(found, DiffScreen)
    return found


def notes() -> FakeInspector:
    return FakeInspector(notes_agent())


LONG = "\n".join(f"line {n}" for n in range(200))


def long_texts() -> FakeInspector:
    """Two frames of one long text that changed in three places, and an item that came."""
    new = (
        LONG.replace("line 10\n", "line ten\n")
        .replace("line 90\n", "")
        .replace("line 150", "line one fifty\nmore")
    )
    return FakeInspector(
        [
            Request(1, (Thing("system", "Be brief.", "system_prompt"), Thing("doc", LONG, title="the plan"))),
            Request(
                2,
                (
                    Thing("system", "Be brief.", "system_prompt"),
                    Thing("doc", new, title="the plan"),
                    Thing("q", "And now?\nQuickly."),
                ),
            ),
        ]
    )


GOLDENS: dict[str, tuple[str, ...]] = {
    "items": (),
    "everything": ("c",),
    "text": ("enter",),
    "unified": ("enter", "u"),
    "all": ("a",),
    "swapped": ("x",),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE, (120, 30)], ids=["80x24", "200x50", "120x30"])
async def test_screens_look_as_they_did(size: tuple[int, int]) -> None:
    for name, keys in GOLDENS.items():
        async with running(on(notes(), 1, 3), size) as session:
            await session.press(*keys)
            check_golden(f"diffscreen-{name}-{size[0]}x{size[1]}", session.text)


async def test_the_main_screen_opens_it_on_the_frame_before() -> None:
    async with running(CtxApp(notes, "made-up.jsonl")) as session:
        await session.press("G", "D")
        state = screen(session).state
        assert state.pair == Pair(FrameName(2), FrameName(3))
        assert "made-up.jsonl@3.1" in session.text
        await session.press("escape")
        assert session.app.screen is session.app.turns


async def test_a_marked_frame_is_what_it_is_compared_with() -> None:
    async with running(CtxApp(notes, "made-up.jsonl")) as session:
        await session.press("m", "G", "D")
        assert screen(session).state.pair == Pair(FrameName(1), FrameName(3))
        await session.press("q")
        # The marked frame beside itself says nothing: there it is the one before.
        await session.press("g", "D")
        assert screen(session).state.error or screen(session).state.pair != Pair(FrameName(1), FrameName(1))


async def test_a_first_frame_says_that_there_is_none_before() -> None:
    app = CtxApp(notes, "made-up.jsonl", first=DiffScreen(against(0, 0, None)))
    async with running(app) as session:
        assert "no frame before this one in its thread" in session.text
        await session.press("n", "c", "a", "x", "enter", "u", "tab")
        assert not app.fault


async def test_the_arithmetic_and_the_causes_are_seen() -> None:
    async with running(on(notes(), 2, 3)) as session:
        assert "omitted: budget_limit" in session.text or "budget_limit" in session.text
        assert "before" in session.lines[2]
        assert "= " in session.lines[2]
        assert screen(session).state.listing.diff is not None
        assert screen(session).state.listing.diff.complete


async def test_changes_are_gone_through_inside_and_across_texts() -> None:
    async with running(on(long_texts(), 0, 1)) as session:
        await session.press("enter")
        view = screen(session).query_one("#sheet", SheetView)
        assert view.where == "change 1 of 3"
        await session.press("n", "n")
        assert view.where == "change 3 of 3"
        assert "line one fifty" in session.text
        await session.press("n")
        assert screen(session).state.item == "q"
        assert "And now?" in session.text
        await session.press("N")
        assert screen(session).state.item == "doc"
        assert view.where == "change 3 of 3"
        await session.press("left_square_bracket", "left_square_bracket")
        assert view.where == "change 1 of 3"
        await session.press("escape")
        assert screen(session).state.level == "items"


async def test_the_change_in_front_follows_the_view() -> None:
    async with running(on(long_texts(), 0, 1)) as session:
        await session.press("enter", "c", "G")
        view = screen(session).query_one("#sheet", SheetView)
        assert view.where == "change 3 of 3"
        await session.press("g")
        assert view.where == "change 1 of 3"
        await session.press("n")
        assert view.where == "change 2 of 3"


async def test_side_by_side_where_there_is_room() -> None:
    async with running(on(long_texts(), 0, 1), (120, 30)) as session:
        await session.press("enter")
        assert "side by side" in session.text
        row = next(line for line in session.lines if "line ten" in line)
        assert "line 10" in row
        await session.press("u")
        assert "side by side" not in session.text
        assert "line 10" not in next(line for line in session.lines if "line ten" in line)
        await session.press("u")
        await session.resize(90, 30)
        assert "unified: too narrow for two" in session.text


async def test_changed_words_stand_out() -> None:
    async with running(on(long_texts(), 0, 1), (120, 30)) as session:
        await session.press("enter")
        plain = {"bold": set(), "other": set()}  # type: ignore[var-annotated]
        for strip in strips(session.app):
            for segment in strip:
                if segment.style is not None and "ten" in segment.text:
                    plain["bold" if segment.style.bold else "other"].add(segment.text.strip())
        assert "ten" in plain["bold"]


async def test_swapping_turns_everything_round() -> None:
    async with running(on(long_texts(), 0, 1)) as session:
        before = screen(session).state.listing.diff
        await session.press("x")
        after = screen(session).state.listing.diff
        assert before is not None
        assert after is not None
        assert (after.a, after.b) == (before.b, before.a)
        assert (after.new, after.freed) == (before.freed, before.new)
        assert "swapped" in session.text
        await session.press("x")
        assert screen(session).state.listing.diff == before


async def test_all_changed_items_as_one_text() -> None:
    async with running(on(long_texts(), 0, 1), (120, 40)) as session:
        await session.press("a")
        assert "the plan" in session.text
        assert "line ten" in session.text
        await session.press("n", "n", "n")
        assert "And now?" in session.text
        await session.press("escape")
        assert screen(session).state.level == "items"


async def test_wide_screens_show_the_text_beside_the_items() -> None:
    async with running(on(long_texts(), 0, 1), LARGE) as session:
        assert "line ten" in session.text
        await session.press("j")
        assert "And now?" in session.text
        await session.press("tab", "k")
        assert screen(session).state.level == "text"
        assert screen(session).state.item == "q"


async def test_what_is_seen_can_be_taken_away() -> None:
    async with running(on(long_texts(), 0, 1)) as session:
        table = screen(session).seen()
        assert table is not None
        assert "the plan" in table.text
        assert "before" in table.text
        await session.press("enter")
        text = screen(session).seen()
        assert text is not None
        assert "-line 10\n+line ten\n" in text.text
        assert text.name == "diff from made-up.jsonl@1.1 to made-up.jsonl@2.1"


async def test_texts_that_are_not_recorded_say_so() -> None:
    requests = [
        Request(1, (Thing("a", None, title="lost"), Thing("b", "text"))),
        Request(2, (Thing("a", "now there", title="lost"), Thing("c", None))),
    ]
    async with running(on(FakeInspector(requests), 0, 1)) as session:
        await session.press("enter")
        assert "The trace holds no text of it in the first frame" in session.text
        await session.press("escape", "G", "k", "enter")
        await session.press("a")
        assert "holds no text of it" in session.text


async def test_equal_frames_have_no_change() -> None:
    async with running(on(notes(), 1, 1)) as session:
        assert "0 changed of 5 items" in session.text
        await session.press("n", "enter", "u", "c", "j", "enter")
        assert "the same text at both ends" in session.text
        assert not session.app.fault


@pytest.mark.slow
async def test_empty_frames() -> None:
    requests = [Request(1, ()), Request(2, (Thing("a", "text"),)), Request(3, ())]
    for a, b in ((0, 2), (0, 1), (1, 2)):
        async with running(on(FakeInspector(requests), a, b)) as session:
            await session.press("enter", "n", "a", "c", "x", "escape", "escape")
            assert not session.app.fault


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (120, 30), (40, 10), (20, 6)], ids=str)
async def test_no_attack_gets_through(size: tuple[int, int]) -> None:
    async with running(on(hostile(), 0, 1), size) as session:
        for keys in (
            (),
            ("c",),
            ("enter",),
            ("u",),
            ("c", "n", "n"),
            ("escape", "a"),
            ("G",),
            ("escape", "x"),
        ):
            await session.press(*keys)
            assert list(faults(strips(session.app))) == [], keys
        assert not session.app.fault


@pytest.mark.slow
async def test_ten_thousand_placements() -> None:
    before = tuple(Thing(f"i{n}", f"text {n} " * 3, "tool_result", f"result {n}") for n in range(10_000))
    after = tuple(
        thing._replace(text=f"{thing.text}!") if n % 1000 == 0 else thing for n, thing in enumerate(before)
    )
    inspector = FakeInspector([Request(1, before), Request(2, after)], cap=None)
    async with running(on(inspector, 0, 1)) as session:
        assert "10 changed of 10,000 items" in session.text
        await session.press("c", "G", "N", "enter")
        assert screen(session).state.item == "i9000"
        assert "text 9000" in session.text
        assert screen(session).state.listing.count == 10_000


async def test_two_files_of_different_formats() -> None:
    other = Inspector.open(ROOT / "fixtures" / "codex" / "rollout.jsonl")
    main = Inspector.open(ROOT / "traces" / "coding-agent.jsonl")
    with other:
        async with running(on(main, 0, 3, other), (120, 30)) as session:
            assert "rollout.jsonl@" in session.lines[0]
            assert "coding-agent.jsonl@" in session.lines[1]
            diff = screen(session).state.listing.diff
            assert diff is not None
            assert diff.a.used == other.step(0).window.used
            assert diff.b.recorded == sum(entry.after for entry in diff.entries)
            assert diff.a.recorded == sum(entry.before for entry in diff.entries)
            await session.press("a", "n", "n", "escape", "x")
            assert "coding-agent.jsonl@" in session.lines[0]
            assert not session.app.fault


async def test_opened_by_itself_q_leaves_and_escape_shows_the_trace() -> None:
    app = on(notes(), 1, 3)
    async with running(app) as session:
        await session.press("enter", "q")
        assert app.return_code == 0
    app = on(notes(), 1, 3)
    async with running(app) as session:
        await session.press("escape")
        assert app.screen is app.turns
        await settle(app, session.pilot)
        assert app.return_code is None

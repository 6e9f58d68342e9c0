"""What a compaction took, in the UI: its lines lead to the items that went, and to where things came back."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import LARGE, SMALL, check_golden, running

from ctxctl.session import Inspector
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.pointers.screen import PointerScreen
from tests.unit.analysis.test_handed_on import call, item, session

TAKEN = [
    call("one", file_path="/home/me/app/src/clock.py", note="words " * 40),
    call("two", command="make lint"),
    call("three", todos=[{"content": "mend \x1b[31mthe clock", "status": "pending"}]),
    item("ask", "Keep port 8443 open, please", kind="user_message"),
]


def compacted(tmp_path: Path) -> Path:
    return session(
        tmp_path, TAKEN, "The clock of src/clock.py was wrong.", [call("again", command="make lint")]
    )


def app(path: Path) -> CtxApp:
    return CtxApp(lambda: Inspector.open(path), path.name)


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_the_page_looks_as_it_did(size: tuple[int, int], tmp_path: Path) -> None:
    async with running(app(compacted(tmp_path)), size) as ui:
        await ui.press("right_square_bracket", "C")
        check_golden(f"compactions-{size[0]}x{size[1]}", ui.text)
        assert "\x1b" not in ui.text


async def test_a_thing_that_came_back_leads_to_its_step(tmp_path: Path) -> None:
    async with running(app(compacted(tmp_path)), LARGE) as ui:
        await ui.press("right_square_bracket", "C")
        screen = ui.app.screen
        assert isinstance(screen, PointerScreen)
        line = next(n for n, text in enumerate(screen.view.document.text.split("\n")) if "again at" in text)
        assert "make lint" in screen.view.document.text.split("\n")[line]
        screen.view.action_move(line)
        await ui.press("enter")
        state = ui.app.turns.state
        assert state.entry is not None
        assert state.entry.turn == 3


async def test_the_largest_lead_to_the_item_that_went(tmp_path: Path) -> None:
    async with running(app(compacted(tmp_path)), LARGE) as ui:
        await ui.press("right_square_bracket", "C")
        screen = ui.app.screen
        assert isinstance(screen, PointerScreen)
        texts = screen.view.document.text.split("\n")
        screen.view.action_move(texts.index("the largest of it") + 1)
        await ui.press("enter")
        assert ui.app.turns.state.item == "one"
        assert ui.app.turns.state.selected is not None
        assert ui.app.turns.state.selected.status == "removed"


async def test_the_key_is_named_where_there_was_a_compaction(tmp_path: Path) -> None:
    async with running(app(compacted(tmp_path)), LARGE) as ui:
        assert "C compaction" not in ui.lines[-1]
        await ui.press("right_square_bracket")
        assert "C compaction" in ui.lines[-1]
        await ui.press("right_square_bracket", "C")
        assert "◇ 2.1" in ui.text, "a turn without one has those of the trace"


async def test_its_note_leads_to_the_page(tmp_path: Path) -> None:
    async with running(app(compacted(tmp_path)), LARGE) as ui:
        await ui.press("right_square_bracket", "enter", "g")
        state = ui.app.turns.state
        assert state.table.notes[0].text.startswith("◇ 4 items, 102 tokens went")
        await ui.press("enter")
        assert isinstance(ui.app.screen, PointerScreen)


async def test_a_trace_without_compactions_says_so() -> None:
    async with running(app(Path(__file__).parents[2] / "traces" / "notes-assistant.jsonl")) as ui:
        await ui.press("C")
        assert "no compaction is recorded in this trace" in ui.text

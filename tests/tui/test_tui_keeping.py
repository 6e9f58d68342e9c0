"""What was left out: its size and reason in the list, what keeping it would take, and the ways there."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from fake import FakeInspector, notes_agent
from helpers import LARGE, SMALL, made, running

from ctxctl.model.results import Change, Counts, Ledger, Turn, Window
from ctxctl.model.vocab import UsedMethod
from ctxctl.session import Inspector
from ctxctl.tui.answers.turns import passing_notes
from ctxctl.tui.app import CtxApp
from ctxctl.tui.screens.turns.item_view import item_head, keep_cost

RETRIEVAL = Path(__file__).parents[2] / "traces" / "retrieval-agent.jsonl"
TINY = (40, 10)


def change(status: str = "omitted", tokens: int = 73, *, title: str = "Discounts") -> Change:
    return Change(
        status=status,  # type: ignore[arg-type]
        item="fares#5",
        kind="retrieval_result",
        title=title,
        version="v1",
        previous_version=None,
        tokens=tokens,
        in_window=0 if status in ("omitted", "removed") else tokens,
        new=0,
        freed=0,
        cause=status,
        reason="low_relevance",
        into=None,
        flags=(),
        source="fares",
        provenance="native",
    )


def window(
    used: int,
    *,
    limit: int | None = 1600,
    reserved: int | None = 400,
    cap: int | None = 1200,
    uncounted: int = 0,
    method: UsedMethod = "reported",
) -> Window:
    free = None if cap is None else max(cap - used, 0)
    over = None if cap is None else max(used - cap, 0)
    return Window(limit, reserved, cap, used, free, over, uncounted, {}, used_method=method)


def said(of: Change, in_window: Window | None) -> str:
    return " | ".join(piece.text for piece in keep_cost(of, in_window))


@pytest.mark.parametrize(
    ("used", "words"),
    [
        (854, "≈ 73 tokens to keep it | 346 free | it would fit"),
        (1127, "≈ 73 tokens to keep it | 73 free | it would fit"),
        (1128, "≈ 73 tokens to keep it | 72 free | needs a window of 1,601"),
        (1200, "≈ 73 tokens to keep it | 0 free | needs a window of 1,673"),
        (1674, "≈ 73 tokens to keep it | over by 474 | needs a window of 2,147"),
    ],
)
def test_the_window_that_would_have_kept_it(used: int, words: str) -> None:
    assert said(change(), window(used)) == words
    assert said(change("removed"), window(used)) == words


def test_a_limit_of_the_prompt_by_itself_is_what_would_have_to_grow() -> None:
    assert said(change(), window(990, cap=1000)).endswith("needs 1,063 of input")
    only = window(990, limit=None, reserved=None, cap=1000)
    assert said(change(), only).endswith("needs 1,063 of input")


def test_what_is_not_known_is_not_said() -> None:
    unknown = window(900, limit=None, reserved=None, cap=None)
    assert said(change(), unknown) == "≈ 73 tokens to keep it | no limit known: not known whether it fits"
    assert said(change(tokens=0), window(900)) == "size not recorded: what keeping it would take is not known"
    content = window(900, uncounted=2, method="recorded")
    assert said(change(), content) == "≈ 73 tokens to keep it | at most 300 free | may fit"
    assert said(change(), None) == ""


def test_what_is_free_is_known_as_well_as_what_was_sent() -> None:
    # A bill has in it what nobody counted; the record alone has not what it lacks.
    assert said(change(), window(900, uncounted=2)).endswith("| 300 free | it would fit")
    assert said(change(), window(900, method="recorded")).endswith("| at most 300 free | may fit")
    assert said(change(), window(900, method="expected")).endswith("| ≈300 free | may fit")
    assert said(change(), window(900, method="expected", uncounted=1)).endswith(
        "| at most ≈300 free | may fit"
    )


@pytest.mark.parametrize("status", ["added", "updated", "skipped"])
def test_nothing_is_said_of_what_is_in_the_frame(status: str) -> None:
    assert keep_cost(change(status), window(900)) == []


@pytest.mark.parametrize("width", [20, 38, 58, 70, 200])
def test_the_head_has_the_pane_s_width_and_says_the_size_first(width: int) -> None:
    for line in item_head(change(title="\x1b[31m[/]\u202e"), "content", width, window=window(1674)):
        text = "".join(part for part, _ in line)
        assert len(text) == width
        assert "\x1b" not in text
    second = "".join(part for part, _ in item_head(change(), "content", width, window=window(1674))[1])
    assert second.startswith(" ≈ 73 tokens"[:width])
    assert ("needs a window of 2,147" in second) == (width >= 58)


# The screen -------------------------------------------------------------------------------------------------


def opened() -> CtxApp:
    return CtxApp(lambda: Inspector.open(RETRIEVAL), RETRIEVAL.name)


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_the_list_says_how_large_and_why(size: tuple[int, int]) -> None:
    async with running(opened(), size) as session:
        row = next(line for line in session.lines if "∅" in line and "Food" in line)
        assert "(36)" in row
        assert "low_relevance" in row


@pytest.mark.slow
async def test_from_the_search_to_what_it_would_have_taken() -> None:
    async with running(opened()) as session:
        await session.press("slash", *"status:omitted", "enter", "enter")
        for _ in range(20):
            selected = session.app.turns.state.selected
            if selected is not None and selected.title == "Discounts":
                break
            await session.press("n")
        await session.press("enter")
        assert "turn 6/8" in session.text
        assert "low_relevance" in session.text
        # 1,815 were billed of 1,200, in a window of 1,600: 1,600 + 1,815 + 73 - 1,200.
        assert "≈ 73 tokens to keep it  needs a window of 2,288" in session.text


async def test_a_budget_that_is_exceeded_has_no_tick() -> None:
    async with running(opened()) as session:
        assert "bud ✓46%" in session.text
        await session.press(*["right_square_bracket"] * 5)
        assert "bud !151%" in session.text


@pytest.mark.slow
async def test_hits_in_the_frame_that_is_shown_move_the_cursor() -> None:
    async with running(opened()) as session:
        await session.press(*["right_square_bracket"] * 4, "enter", "G")
        await session.press("slash", *"status:omitted", "enter", "g", "enter")
        seen = []
        for _ in range(12):
            state = session.app.turns.state
            seen.append((state.target.ordinal, state.item, state.selected and state.selected.item))  # type: ignore[union-attr]
            await session.press("n")
        assert len({target for target, _, _ in seen}) < len({(target, item) for target, item, _ in seen})
        assert all(item == selected for _, item, selected in seen), seen
        assert "n N · ⌫ back" in session.text or "no hit after" in session.text


async def test_back_from_a_jump_in_the_same_frame_finds_the_item_again() -> None:
    async with running(opened()) as session:
        await session.press("enter", "j")
        before = session.app.turns.state
        session.app.turns.jump(0, "food#2")
        session.app.turns.jump(0, "bikes#1")
        await session.press()
        assert session.app.turns.state.selected.item == "bikes#1"  # type: ignore[union-attr]
        await session.press("backspace", "backspace")
        after = session.app.turns.state
        assert (after.item, after.change) == (before.item, before.change)
        await session.press("backspace")
        assert "no jump to go back from" in session.text


async def test_keys_without_effect_say_so() -> None:
    async with running(opened()) as session:
        await session.press("enter", "g")
        for key in ("d", "L", "x", "comma"):
            await session.press(key)
            assert "the cursor is on no item" in session.text
            assert session.app.turns.state.pane == "changes"
        await session.press("j")
        assert "no item under" not in session.text
        await session.press("escape", "G", "right_curly_bracket")
        assert "no compaction, cache break, warning or omission after this turn" in session.text


async def test_an_item_s_tabs_open_from_the_list_of_turns() -> None:
    for key, tab in (("L", "life"), ("x", "record"), ("d", "diff")):
        async with running(made(FakeInspector(notes_agent()))) as session:
            await session.press("right_square_bracket", key)
            state = session.app.turns.state
            assert (state.pane, state.shown_tab) == ("item", tab)


async def test_notes_that_are_cut_can_be_read_whole() -> None:
    async with running(opened()) as session:
        await session.press(*["right_square_bracket"] * 5, "enter", "g", "enter")
        assert "resolved by: booking:R7K2QD" in session.text
        await session.press("escape")
        assert session.app.turns.state.pane == "changes"


@pytest.mark.parametrize(
    ("steps", "new", "told"),
    [
        (3, 900, "800 more tokens entered and left again within the turn: see its steps"),
        (3, 105, ""),
        (1, 900, ""),
    ],
)
def test_what_came_and_went_within_a_turn_is_told(steps: int, new: int, told: str) -> None:
    kept = msgspec.structs.replace(change("added", 100), new=100)
    ledger = Ledger(0, new, 100 - new, 100, None, 0, 0)
    turn = Turn(None, "main", 1, None, "model", steps, ledger, Counts(added=1), (kept,))
    assert "".join(note.text for note in passing_notes(turn)) == told


@pytest.mark.parametrize("size", [SMALL, TINY], ids=["80x24", "40x10"])
async def test_lists_with_a_scrollbar_are_painted_without_colour(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(opened(), size) as session:
        await session.press("enter", "a", "G", "escape")
        assert "turn" in session.text
    assert session.app.return_code in (0, None)


async def test_the_smallest_screen_keeps_the_keys_that_lead_on() -> None:
    async with running(opened(), TINY) as session:
        assert "⏎ open" in session.lines[-1]
        assert "? help" in session.lines[-1]

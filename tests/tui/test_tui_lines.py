"""What the lines of the views say.  No event loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from fake import FakeInspector, Request, Thing, notes_agent

from ctxctl import wording
from ctxctl.text import cells
from ctxctl.tui import series
from ctxctl.tui.answers import trace_facts, turns
from ctxctl.tui.layout import Column, Parts, Piece, laid_out, spread
from ctxctl.tui.outline import Grouping
from ctxctl.tui.screens.turns import budget_bar, header, item_view, lines
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.state import State, Trace

WIDTHS = [0, 1, 2, 5, 10, 24, 33, 34, 44, 47, 60, 68, 80, 92, 140, 200]


def said(parts: Parts) -> str:
    return "".join(text for text, _ in parts)


def loaded(inspector: Any, line: int = 0, *, skipped: bool = False) -> State:
    growth = Grouping().take(inspector.outline().rows, complete=True)
    state = moves.outlined(State(Trace(inspector.name)), growth, trace_facts.trace(inspector))
    state = replace(moves.to_line(state, line), skipped=skipped)
    assert state.target is not None
    return moves.detailed(state, turns.detail(inspector, state.target, skipped))


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0"), (812, "812"), (1000, "1.0k"), (41_204, "41.2k"), (999_999, "999k"), (1_300_000, "1.3M")],
)
def test_short_numbers(n: int, text: str) -> None:
    assert wording.short(n) == text
    assert len(wording.short(-n)) <= 6


def test_numbers_have_their_signs() -> None:
    assert wording.number(41_204) == "41,204"
    assert wording.signed(946) == "+946"
    assert wording.signed(-377) == "\u2212377"
    assert wording.signed(0) == "0"
    assert wording.share(1, 3) == "33%"
    assert wording.share(1, 0) == "-"


def test_the_gauge_is_empty_full_or_between() -> None:
    assert series.level_sign(0, 100) == " "
    assert series.level_sign(1, 100) == "▁"
    assert series.level_sign(100, 100) == "█"
    assert series.level_sign(5000, 100) == "█"
    assert series.level_sign(5, 0) == "█"


def test_counting_methods_of_a_sum() -> None:
    assert wording.methods({}) == ""
    assert wording.methods({"declared": 1, "exact:o200k_base": 9}) == "exact:o200k_base + declared"
    assert wording.methods({"a": 1, "b": 2, "c": 3}) == "c + 2 more"


@pytest.mark.parametrize("width", WIDTHS)
def test_every_line_has_exactly_the_width(width: int) -> None:
    state = loaded(FakeInspector(notes_agent()), 2, skipped=True)
    state = moves.toggle_steps(moves.to_line(state, 0), True)
    made = [lines.turn_line(state, n, width) for n in range(state.list.count)]
    made += [lines.change_line(state.table, n, width) for n in range(state.table.count)]
    made += [lines.change_heading(state.table, width), lines.turn_heading(state, width)]
    for parts in made:
        assert cells(said(parts)) == width
    if width >= 2:
        step = None if state.detail is None else state.detail.step
        for parts in [
            *header.head(state, width),
            budget_bar.bar(step, width),
            budget_bar.legend(step, width),
        ]:
            assert cells(said(parts)) == width


def test_a_turn_line_has_number_title_and_tokens() -> None:
    line = said(lines.turn_line(loaded(FakeInspector(notes_agent())), 0, 60))
    assert line.startswith("▸  1")
    assert " 1 " in line
    assert "Rewrite this note" in line
    assert "+102" in line


def test_steps_are_below_their_turn() -> None:
    state = moves.toggle_steps(loaded(FakeInspector(notes_agent())))
    assert "├1.1" in said(lines.turn_line(state, 1, 40))
    assert "└1.2" in said(lines.turn_line(state, 2, 40))


def test_other_threads_are_marked() -> None:
    ask = Thing("a", "text")
    state = loaded(FakeInspector([Request(1, (ask,)), Request(1, (ask,), thread="explorer", title="look")]))
    assert "↳explorer ≈ look" in said(lines.turn_line(state, 1, 60))


def test_changes_have_sign_title_tokens_and_cause() -> None:
    state = loaded(FakeInspector(notes_agent()), 2)
    text = "\n".join(said(lines.change_line(state.table, n, 120)) for n in range(state.table.count))
    assert "· injection not recorded" in text
    assert "+ added 1" in text
    assert "\u2212 removed 1" in text
    assert "omitted: budget_limit" in text
    assert "∅ omitted 1" in text
    assert "= skipped 6" in text


def test_items_without_a_title_show_their_first_words() -> None:
    state = loaded(FakeInspector(notes_agent()), 1)
    text = "\n".join(said(lines.change_line(state.table, n, 120)) for n in range(state.table.count))
    assert "“Here it is, rewritten.”" in text
    narrow = "\n".join(said(lines.change_line(state.table, n, 60)) for n in range(state.table.count))
    assert "asst   “Here" in narrow


def test_spread_drops_the_least_important_first() -> None:
    left, right = [Piece("left", "", 9), Piece("unimportant", "", 1)], [Piece("right", "", 8)]
    assert said(spread(left, right, 40)).split() == ["left", "unimportant", "right"]
    assert said(spread(left, right, 18)).split() == ["left", "right"]
    assert said(spread(left, right, 8)).split() == ["left"]
    assert said(spread(left, right, 40)).endswith("right ")


def test_columns_share_the_rest() -> None:
    parts = laid_out([Column("abcdef"), Column("12", "", 4, right=True)], 8)
    assert said(parts) == "abc…  12"
    assert said(laid_out([Column("abcdef"), Column("12", "", 4, right=True)], 6)) == "    12"


def test_the_head_says_where_we_are() -> None:
    state = loaded(FakeInspector(notes_agent()), 1)
    first, second, third = (said(parts) for parts in header.head(state, 140))
    assert first.split("  ")[0].strip() == "made-up.jsonl"
    for words in ("s1", "main", "gpt-4o", "turn 2/3", "step 1/1", "window (inferred)"):
        assert words in first
    assert "exact:o200k_base" in first
    for words in ("140 of 400 sent", "35%", "260 free", "limit: recorded", "┄400"):
        assert words in second
    for words in ("recorded 107", "not recorded 33"):
        assert words in second
    assert "billed ✓ 140, 70 cached" in third


def test_the_head_says_that_events_came_too_late() -> None:
    state = loaded(FakeInspector(notes_agent()))
    assert "late event" not in said(header.head(state, 140)[0])
    late = replace(state, trace=replace(state.trace, late=41))
    for width in (80, 140):
        assert "41 late events · p" in said(header.head(late, width)[0])


def test_the_head_says_what_is_unknown() -> None:
    inspector = FakeInspector([Request(1, (Thing("a", "text"), Thing("b", None)))], cap=None)
    _, second, third = (said(parts) for parts in header.head(loaded(inspector), 120))
    assert "limit unknown" in second
    assert "1 uncounted" in second
    assert "┄" not in second
    assert third.rstrip().endswith("billed ✓")


def test_the_head_says_when_the_window_is_over_its_limit() -> None:
    inspector = FakeInspector([Request(1, (Thing("a", "word " * 400),))], cap=100)
    assert "over by at least 400" in said(header.head(loaded(inspector), 120)[1])


def step_with(segments: dict[str, int]) -> Any:
    state = loaded(FakeInspector(notes_agent()))
    assert state.detail is not None
    assert state.detail.step is not None
    window = msgspec.structs.replace(state.detail.step.window, used=sum(segments.values()), free=100, cap=400)
    return msgspec.structs.replace(state.detail.step, segments=segments, window=window)


def test_the_bar_names_segments_in_the_providers_order() -> None:
    bar = said(
        budget_bar.bar(step_with({"user": 60, "history": 200, "system": 60, "tools": 80, "mine": 50}), 120)
    )
    order = [bar.index(name) for name in ("tools", "system", "history", "user", "mine", "free", "reserve")]
    assert order == sorted(order)


def test_the_smallest_segment_still_has_a_cell() -> None:
    bar = said(budget_bar.bar(step_with({"tools": 1, "history": 100_000}), 60))
    assert bar[1] == "T"


@pytest.mark.parametrize("width", range(40))
def test_the_bar_fits_any_width(width: int) -> None:
    step = step_with({"tools": 1, "system": 5, "history": 900, "context": 3, "user": 2, "x": 1})
    assert cells(said(budget_bar.bar(step, width))) == width
    assert cells(said(budget_bar.legend(step, width))) == width


def test_digests_are_not_told() -> None:
    state = loaded(FakeInspector(notes_agent()), 1)
    line = state.table.find("editor-state")
    assert line is not None
    change = state.table.change_at(line)
    assert change is not None
    assert item_view.versions(change) == "a different text than before"

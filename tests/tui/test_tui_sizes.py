"""What was sent, how that is known, and what of it is recorded: wherever the UI says a size."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fake import FakeInspector, Request, Thing
from helpers import made, running

from ctxctl.model.results import Step, Window
from ctxctl.session import Inspector
from ctxctl.session.survey import row_of
from ctxctl.text import cells
from ctxctl.tui.answers import trace_facts
from ctxctl.tui.answers import turns as answers
from ctxctl.tui.layout import Parts, Piece
from ctxctl.tui.outline import Grouping, Turns
from ctxctl.tui.screens.overview import chart
from ctxctl.tui.screens.overview import lines as overview
from ctxctl.tui.screens.overview.chart import Axis
from ctxctl.tui.screens.turns import budget_bar, header, lines
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.header import content_pieces, sent_pieces
from ctxctl.tui.screens.turns.state import State, Trace
from ctxctl.tui.series import Figures, Series
from ctxctl.tui.sizes import COMPACTS, amount, compaction_phrase


def window(used: int = 60_919, recorded: int = 16_117, **other: Any) -> Window:
    cap = other.pop("cap", 200_000)
    facts: dict[str, Any] = {
        "limit": cap, "reserved": None, "cap": cap, "used": used,
        "free": None if cap is None else max(cap - used, 0),
        "over": None if cap is None else max(used - cap, 0),
        "uncounted": 0, "by_method": {"estimate:o200k_base": recorded}, "recorded": recorded,
        "unrecorded": used - recorded, "used_method": "reported", "limit_source": "catalogue",
    }  # fmt: skip
    return Window(**{**facts, **other})


def texts(pieces: list[Piece]) -> str:
    return " | ".join(piece.text for piece in pieces)


def said(parts: Parts) -> str:
    return "".join(text for text, _ in parts)


# The head ---------------------------------------------------------------------------------------------------


def test_what_was_billed_stands_without_more() -> None:
    assert (
        texts(sent_pieces(window()))
        == "60,919 of 200,000 sent | 30% | 139,081 free | limit: from the model table"
    )
    assert texts(content_pieces(window())) == "recorded 16,117 | not recorded 44,802"


def test_what_is_expected_has_its_error() -> None:
    expected = window(used_method="expected", used_error=1200)
    assert texts(sent_pieces(expected)) == (
        "≈60,919 of 200,000 sent | expected ±1,200 | ≈30% | ≈139,081 free | limit: from the model table"
    )
    assert "expected | " in texts(sent_pieces(window(used_method="expected")))


def test_what_is_only_recorded_says_so_in_the_number_s_own_phrase() -> None:
    content = window(16_117, used_method="recorded", unrecorded=None)
    assert texts(sent_pieces(content)) == (
        "16,117 of 200,000 recorded (no bill read) | at least 8.1% | at most 183,883 free"
        " | limit: from the model table"
    )
    assert content_pieces(content) == []


def test_a_what_if_with_the_rest_of_the_last_bill_is_expected() -> None:
    supposed = window(used_method="recorded")
    assert texts(sent_pieces(supposed)).startswith("≈60,919 of 200,000 sent | expected | ")


def test_without_a_limit_nothing_is_free() -> None:
    assert texts(sent_pieces(window(cap=None, limit_source=None))) == "60,919 sent | limit unknown"


def test_more_than_the_cap_is_over() -> None:
    assert "103% | over by 6,000 | limit:" in texts(sent_pieces(window(206_000)))
    assert "≈103% | over by ≈6,000" in texts(sent_pieces(window(206_000, used_method="expected")))


def test_what_nobody_counted_is_in_a_bill() -> None:
    def style(of: Window) -> str:
        return next(piece.style for piece in sent_pieces(of) if piece.text == "2 uncounted")

    assert style(window(uncounted=2)) == "muted"
    assert style(window(uncounted=2, used_method="recorded", unrecorded=None)) == "warning"


def test_a_record_that_weighs_more_than_the_bill_is_said() -> None:
    assert texts(content_pieces(window(14_913))) == "recorded 16,117 | 1,204 more than billed"


def test_a_size_has_the_sign_of_how_it_is_known() -> None:
    assert amount(60_919, "reported") == "60,919"
    assert amount(60_919, "expected", brief=True) == "≈60.9k"
    assert amount(16_117, "recorded", brief=True) == "r16.1k"
    assert amount(16_117, "recorded", brief=True, content=False) == "16.1k"


# The bar ----------------------------------------------------------------------------------------------------


def step(of: Window, **segments: int) -> Step:
    inspector = FakeInspector([Request(1, (Thing("a", "text"),))])
    inspector.outline()
    whole = {"unrecorded": of.unrecorded, **segments} if of.unrecorded else segments
    return msgspec.structs.replace(inspector.step(0), window=of, segments=whole)


def test_what_is_not_recorded_comes_first() -> None:
    held = step(window(), history=16_000, user=117)
    bar = budget_bar.bar(held, 202)
    assert bar[1] == ("▒▒ not recorded ".ljust(44, "▒"), "segment-unrecorded")
    assert said(bar).index("▏history") > 40
    assert said(budget_bar.legend(held, 160)).startswith(
        " ▒ not recorded 44,802  ■ history 16,000  ■ user 117"
    )
    assert said(budget_bar.legend(held, 80)).startswith(" ▒ not recorded 44.8k  ■ history 16.0k")
    assert said(budget_bar.bar(held, 62)).startswith(" ▒▒▒▒▒▒▒▒▒▒▒▒▒")


def test_less_than_nothing_is_not_drawn_but_said() -> None:
    held = step(window(14_913, cap=20_000, limit_source="recorded"), history=16_000, user=117)
    bar = budget_bar.bar(held, 102)
    assert "▒" not in said(bar)
    # What is recorded fills no more than was sent: three quarters of the cap.
    filled = sum(len(text) for text, style in bar if style.startswith("segment-"))
    assert filled == 75
    assert "! recorded content is counted at 1,204 more than was sent" in said(budget_bar.legend(held, 160))
    assert "recorded 1.2k over what was sent" in said(budget_bar.legend(held, 80))


@pytest.mark.parametrize("method", ["expected", "recorded"])
def test_what_is_free_is_no_surer_than_what_was_sent(method: Any) -> None:
    held = step(window(used_method=method, unrecorded=None), history=60_919)
    sign = "≈" if method == "expected" else "≤"
    assert f"free {sign}139k" in said(budget_bar.bar(held, 100))
    assert f"· free {sign}139k" in said(budget_bar.legend(held, 80))


def test_the_runtime_s_own_line_is_marked() -> None:
    of = window(threshold=167_000, threshold_source="Claude Code 2.1: window - 20,000 - 13,000")
    held = step(of, history=16_117)
    bar = budget_bar.bar(held, 202)
    assert said(bar).index(COMPACTS) == 1 + 167
    assert (COMPACTS, "threshold") in bar
    assert "┆ compacts at 167,000 (Claude Code 2.1)  " in said(budget_bar.legend(held, 160))
    assert "┆ compacts at 167k  " in said(budget_bar.legend(held, 80))
    plain = step(window(), history=16_117)
    assert COMPACTS not in said(budget_bar.bar(plain, 202))
    assert "compacts" not in said(budget_bar.legend(plain, 200))


def test_the_mark_stands_in_a_segment_too_and_where_no_limit_is_known() -> None:
    full = step(window(180_000, threshold=100_000), history=16_117)
    assert said(budget_bar.bar(full, 202))[1 + 100] == COMPACTS
    of = window(50_000, cap=None, limit_source=None, threshold=100_000)
    bar = budget_bar.bar(step(of, history=16_117), 102)
    assert said(bar).rstrip().endswith(COMPACTS)
    assert "free" not in said(bar)


@pytest.mark.parametrize("threshold", range(1_000, 200_000, 1_000))
def test_the_mark_stands_beside_names_and_numbers(threshold: int) -> None:
    held = step(window(130_000, threshold=threshold), history=100_000, user=9_000)
    bar = said(budget_bar.bar(held, 82))
    assert bar.count(COMPACTS) == 1
    assert "free 70.0k" in bar
    assert "history" in bar
    assert "U" in bar.split("history")[1]


@pytest.mark.parametrize("width", range(0, 60, 3))
@pytest.mark.parametrize("used", [10, 14_913, 60_919, 250_000])
def test_every_bar_has_its_width(width: int, used: int) -> None:
    held = step(window(used, threshold=167_000), history=16_000, user=117)
    assert cells(said(budget_bar.bar(held, width))) == width
    assert cells(said(budget_bar.legend(held, width))) == width


# Charts and lists -------------------------------------------------------------------------------------------


def series(*figures: Figures) -> Series:
    found = Series()
    for n, one in enumerate(figures):
        found.put(n, one)
    return found


def test_of_several_turns_the_highest_says_how_it_is_known() -> None:
    found = series(Figures(50), Figures(70, expected=70), Figures(60, content=60))
    assert [found.over(0, n).method for n in (0, 1, 2, 3)] == ["reported", "reported", "expected", "expected"]
    assert found.over(2, 3).method == "recorded"
    many = series(*[Figures(n, expected=n if n % 2 else 0, threshold=n) for n in range(1, 101)])
    assert many.over(0, 100).method == "reported"
    assert many.over(0, 99).method == "expected"
    assert many.over(10, 99).threshold == 99


def test_what_nobody_billed_is_dimmed() -> None:
    found = series(Figures(50, 100), Figures(50, 100, expected=50), Figures(50, 100, content=50))
    (line,) = header.sparkline(found, None, 40)
    assert [style for text, style in line if text[:1] in "▁▂▃▄▅"] == ["gauge", "gauge-unbilled"]
    assert [style for text, style in line if style.startswith("gauge")][1:] == ["gauge-unbilled"]


def test_the_chart_has_the_runtime_s_line() -> None:
    found = series(*[Figures(40_000, 200_000, 200_000, threshold=160_000)] * 3)
    made = [said(parts) for parts in chart.chart(Axis(found, 0), 40, 14)]
    marked = [line for line in made if chart.COMPACTS in line]
    assert len(marked) == 1
    assert marked[0].lstrip().startswith("160k")
    none = series(*[Figures(40_000, 200_000, 200_000)] * 3)
    assert not any(chart.COMPACTS in said(parts) for parts in chart.chart(Axis(none, 0), 40, 14))


def loaded(inspector: Any) -> State:
    growth = Grouping().take(inspector.outline().rows, complete=True)
    return moves.outlined(State(Trace(inspector.name)), growth, trace_facts.trace(inspector))


ASK = Thing("ask", "word " * 40)


def test_the_list_of_turns_says_which_sizes_were_billed() -> None:
    state = loaded(FakeInspector([Request(1, (ASK,), reported=300), Request(2, (ASK,))]))
    assert " sent " in said(lines.turn_heading(state, 60))
    assert "300" in said(lines.turn_line(state, 0, 60))
    assert " r50 " in said(lines.turn_line(state, 1, 60))
    plain = loaded(FakeInspector([Request(1, (ASK,)), Request(2, (ASK,))]))
    assert " record " in said(lines.turn_heading(plain, 60))
    assert " 50 " in said(lines.turn_line(plain, 1, 60))


def test_more_than_its_cap_is_marked_whatever_the_flags_say() -> None:
    inspector = FakeInspector([Request(1, (ASK,), reported=300), Request(2, (ASK,), reported=500)], cap=400)
    state = loaded(inspector)
    assert "!" not in said(lines.turn_line(state, 0, 60))
    assert "!" in said(lines.turn_line(state, 1, 60))
    assert [row.over for row in inspector.known] == [False, True]
    steps = []
    for tokens in (300, 500):
        requests = [Request(1, (ASK,), reported=tokens), Request(1, (ASK,), reported=9)]
        unfolded = moves.toggle_steps(moves.to_line(loaded(FakeInspector(requests, cap=400)), 0))
        steps.append(said(lines.turn_line(unfolded, 1, 60)))
    assert ["over" in line for line in steps] == [False, True]
    first, last = (said(overview.turn_in_front(moved, overview.opened(moved), 90, 80)) for moved in
                   (state, moves.to_line(state, 1)))  # fmt: skip
    assert "300 sent (75% of 400)" in first
    assert "over" not in first
    assert "500 sent (125% of 400)" in last
    assert "! over" in last


@pytest.mark.parametrize(("reported", "words"), [(300, "peak 300 sent"), (None, "peak 50 recorded")])
def test_the_peak_says_what_it_is_of(reported: int | None, words: str) -> None:
    state = loaded(FakeInspector([Request(1, (ASK,), reported=reported)]))
    assert words in said(overview.total_lines(state, overview.opened(state), 80)[1])


def test_a_row_keeps_how_its_size_is_known() -> None:
    of = window(used_method="expected", threshold=167_000, threshold_source="Claude Code")
    row = row_of(0, step(of))
    assert (row.used, row.recorded, row.unrecorded, row.method) == (60_919, 16_117, 44_802, "expected")
    assert (row.limit_source, row.threshold, row.threshold_source) == ("catalogue", 167_000, "Claude Code")
    assert compaction_phrase(167_000, None) == "compacts at 167,000"
    turns = Turns.of([row])
    assert (turns.entries[0].method, turns.entries[0].peak_method) == ("expected", "expected")


def test_what_came_beside_the_changes_is_noted() -> None:
    inspector = FakeInspector([Request(1, (ASK,), reported=300), Request(2, (ASK,), reported=500)])
    inspector.outline()
    (note,) = answers.unrecorded_notes(inspector.known[0], inspector.step(1))
    assert note.text == "+200 tokens that are not recorded: 300 → 500 sent"
    near = msgspec.structs.replace(inspector.known[0], unrecorded=426)
    assert answers.unrecorded_notes(near, inspector.step(1)) == []
    assert answers.unrecorded_notes(None, inspector.step(1)) == []
    assert answers.unrecorded_notes(msgspec.structs.replace(near, unrecorded=None), inspector.step(1)) == []


async def test_the_overview_says_whose_line_it_is() -> None:
    inspector = FakeInspector([Request(1, (ASK,), reported=300)])
    plain = inspector._row

    def row(n: int) -> Any:
        source = "Claude Code: a rule"
        return msgspec.structs.replace(plain(n), threshold=350, threshold_source=source)

    inspector._row = row  # type: ignore[method-assign]
    async with running(made(inspector)) as session:
        await session.press("v")
        assert "╌ compacts at 350 (Claude Code)" in session.text
        assert "300 sent (75% of 400)" in session.text


def test_on_a_claude_code_capture_every_size_is_the_bill() -> None:
    from pathlib import Path

    capture = Path(__file__).parents[2] / "fixtures" / "claude_code" / "session.jsonl"
    with Inspector.open(capture) as inspector:
        rows = inspector.outline().rows
        assert any(row.method == "reported" for row in rows)
        for row in rows:
            if row.method == "reported":
                assert row.used == row.reported == row.recorded + (row.unrecorded or 0)

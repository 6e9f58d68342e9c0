"""The chart, the series behind it, and the screen with the whole session."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fake import FakeInspector, Request, SlowInspector, Thing, long_session, notes_agent
from helpers import LARGE, SMALL, check_golden, made, running, settle

from ctxctl.text import cells
from ctxctl.tui.layout import Parts
from ctxctl.tui.outline import Turns
from ctxctl.tui.screens.overview import chart
from ctxctl.tui.screens.overview import lines as overview
from ctxctl.tui.screens.overview.chart import Axis
from ctxctl.tui.screens.overview.screen import Overview
from ctxctl.tui.screens.turns import header
from ctxctl.tui.screens.turns.view import State, Trace
from ctxctl.tui.series import COMPACTED, FLAGGED, Figures, Series, column_of, turns_of


def said(parts: Parts) -> str:
    return "".join(text for text, _ in parts)


def series(
    *used: int, cap: int = 100, limit: int = 0, marks: dict[int, int] | None = None, threshold: int = 0
) -> Series:
    found = Series()
    for n, tokens in enumerate(used):
        found.put(n, Figures(tokens, cap, limit, (marks or {}).get(n, 0), threshold=threshold))
    return found


def test_what_is_summed_up_beforehand_is_what_all_turns_have() -> None:
    rng = random.Random(1)
    for _ in range(60):
        found, plain = Series(), list[Figures]()
        for _ in range(rng.randint(0, 300)):
            figures = Figures(*(rng.randint(0, 15) for _ in range(4)))
            kind = rng.random()
            if kind < 0.6 or not plain:
                found.put(len(plain), figures)
                plain.append(figures)
            elif kind < 0.7:
                found.extend([figures] * rng.randint(0, 70))
                plain += [figures] * (len(found) - len(plain))
            elif kind < 0.85:
                at = rng.randrange(len(plain))
                found.put(at, figures)
                plain[at] = figures
            elif kind < 0.95:
                found.pop()
                plain.pop()
            else:
                found.cut(rng.randint(0, len(plain)))
                del plain[len(found) :]
        assert len(found) == len(plain)
        for _ in range(20):
            a, b = rng.randint(0, len(plain)), rng.randint(0, len(plain))
            marks = 0
            for figures in plain[a:b]:
                marks |= figures.marks
            most = [max((f[n] for f in plain[a:b]), default=0) for n in range(3)]
            assert found.over(a, b) == Figures(*most, marks)


@pytest.mark.parametrize("count", [1, 2, 7, 80, 999])
def test_each_turn_stands_in_one_column(count: int) -> None:
    for width in (1, 3, 60, 2000):
        for turn in range(count):
            assert turn in turns_of(column_of(turn, count, width), count, width)


def test_a_sparkline_has_its_limit_its_compaction_and_the_current_turn() -> None:
    (line,) = header.sparkline(series(10, 100, 20, 30, marks={2: COMPACTED}), 3, 12)
    assert said(line) == "▁█╵▃┄100    "
    assert ("▃", "gauge-here") in line
    (line,) = header.sparkline(series(0, 100), 0, 12)
    assert (" ", "gauge-here") in line  # where one is, it is not higher than it was
    upper, lower = header.sparkline(series(10, 100), 0, 12, 2)
    assert (said(upper)[:2], said(lower)[:2]) == ("┄█", "▂█")


async def test_the_table_of_threads_leaves_out_what_none_of_them_has() -> None:
    async with running(made(FakeInspector(threads()))) as session:
        state = session.app.turns.state
        view = overview.opened(state)
        shown = set[str]()
        for width in range(50, 220):
            heading = said(overview.table_heading(view, state, width))
            rows = [said(overview.thread_line(view, n, width, state)) for n in range(len(view.threads))]
            assert {cells(line) for line in (heading, *rows)} == {width}
            assert all(row[:18].strip() for row in rows)
            for name in overview._columns(view, state, width):
                end = heading.index(f" {name}") + 1 + len(name)
                shown.add(name)
                assert {row[:end].split()[-1] for row in rows} != {"·"}, name
        assert {"freed", "◇", "!", "cost", "model"} <= shown
        assert not {"↯", "∅", "cached"} & shown


def test_many_turns_share_a_column_that_shows_the_highest() -> None:
    used = [1] * 1000
    used[437] = 100
    (line,) = header.sparkline(series(*used), 0, 54)
    assert said(line).count("█") == 1
    assert cells(said(line)) == 54


@pytest.mark.parametrize("width", [0, 1, 5, 9, 10, 40, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 9, 30])
def test_a_chart_fills_its_cells(width: int, height: int) -> None:
    for found in (series(), series(5), series(*range(300), limit=120, marks={7: FLAGGED})):
        made_lines = chart.chart(Axis(found, 0), width, height)
        assert len(made_lines) == height
        assert {cells(said(line)) for line in made_lines} == {width}


def test_a_chart_has_the_limit_above_what_is_reserved() -> None:
    lines = [said(line) for line in chart.chart(Axis(series(40, 80, cap=100, limit=120), 1), 40, 14)]
    dashed = next(n for n, line in enumerate(lines) if "┄" in line)
    slashed = [n for n, line in enumerate(lines) if "\u2571" in line]
    assert dashed < min(slashed)
    assert lines[dashed].split("│")[0].strip() == "120"
    assert "▲" in lines[-1]


def test_a_chart_far_below_its_limit_is_drawn_as_high_as_its_bars() -> None:
    far = series(20_000, 80_000, cap=0, limit=1_000_000)
    near = series(20_000, 400_000, cap=0, limit=1_000_000)
    lines = [said(line) for line in chart.chart(Axis(far, 1), 60, 14)]
    assert "┄ the limit of 1,000,000 is above this" in lines[0]
    assert not any("┄" in line for line in lines[1:])
    full = next(n for n, line in enumerate(lines) if "█" in line)
    assert full == 1, "the highest bar ends below the line that tells of the limit"
    assert any(line.startswith(f"{'50.0k':>7} │") for line in lines)
    lines = [said(line) for line in chart.chart(Axis(near, 1), 60, 14)]
    assert lines[0].startswith(f"{'1.0M':>7} │┄")
    compacts = series(1_000, 2_000, cap=0, limit=0, threshold=300_000)
    lines = [said(line) for line in chart.chart(Axis(compacts, 1), 60, 14)]
    assert "╌ compaction at 300,000 is above this" in lines[0]


@pytest.mark.parametrize("line", ["limit", "threshold"])
def test_a_chart_with_a_line_near_its_bars_is_drawn_up_to_its_limit(line: str) -> None:
    found, last = series(80_000, cap=0, limit=1_000_000), Figures(90_000, limit=1_000_000)
    found.put(1, last._replace(**{line: 300_000}))
    rows = [said(parts) for parts in chart.chart(Axis(found, 1), 60, 14)]
    assert "is above" not in "".join(rows)
    assert any(("┄" if line == "limit" else chart.COMPACTS) in row for row in rows[1:])


def test_without_a_limit_a_chart_has_none() -> None:
    text = "".join(said(line) for line in chart.chart(Axis(series(40, 80, cap=0), 0), 40, 14))
    assert "┄" not in text
    assert "\u2571" not in text


def test_columns_lead_to_turns_of_note_first() -> None:
    asks = (Thing("a", "text " * 9),)
    requests = [Request(n + 1, asks, flags=("compacted",) if n == 57 else ()) for n in range(100)]
    state = State(Trace("t"))
    state.list.turns.grow(_growth(requests))
    view = overview.opened(state)
    for _ in range(6):
        view = overview.to_column(view, state.list.turns, 1, 10)
    assert view.turn == 60
    assert overview.to_column(view, state.list.turns, -1, 10).turn == 57
    assert overview.to_edge(view, True).turn == 99


def by_steps() -> list[Request]:
    """Two turns of many steps, with a compaction in the second."""
    told = tuple(Thing(f"m{n}", "words and words " * 6) for n in range(40))
    first = [Request(1, told[: n + 1], reported=30 * (n + 1), title="first") for n in range(10)]
    second = [Request(2, told[: n + 11], reported=30 * (n + 11), title="second") for n in range(20)]
    after = [Request(2, told[28 : 30 + n], flags=("compacted",) if not n else ()) for n in range(10)]
    return first + second + after


def test_where_turns_are_few_a_chart_shows_their_steps() -> None:
    state = State(Trace("t"))
    state.list.turns.grow(_growth(by_steps()))
    view = overview.opened(state)
    axis = overview.axis_of(view, state.list.turns, 60)
    assert len(axis.series) == 40
    assert (axis.at, [start for start, _ in axis.starts]) == (9, [0, 10])
    lines = [said(line) for line in chart.chart(axis, 60 + chart.AXIS + 1, 20)]
    numbered, turned = lines[-2:]
    assert numbered.split("└")[0].split() == ["step"]
    assert numbered.rstrip("─ ").endswith("40")
    assert turned.split() == ["turn", "1", "2"]
    (marked,) = (line for line in lines if "◇" in line)
    assert marked.index("◇") == chart.AXIS + 1 + 30
    assert len(overview.axis_of(view, state.list.turns, 6).series) == 2, (
        "two turns fill six cells well enough"
    )


def test_columns_of_steps_lead_to_steps() -> None:
    state = State(Trace("t"))
    turns = state.list.turns
    turns.grow(_growth(by_steps()))
    view = overview.opened(state)
    on = overview.to_column(view, turns, 1, 60)
    assert (on.turn, on.ordinal) == (1, 10)
    for _ in range(19):
        on = overview.to_column(on, turns, 1, 60)
    assert on.ordinal == 29
    assert "step 2.21" in said(overview.turn_in_front(state, overview.to_column(on, turns, 1, 60), 120, 60))
    back = overview.to_turn(on, -1)
    assert (back.turn, back.ordinal) == (0, None)


def test_steps_that_are_told_anew_have_one_place_each() -> None:
    from ctxctl.tui.outline import Grouping

    rows = FakeInspector(by_steps()).outline().rows
    rng = random.Random(3)
    for _ in range(30):
        turns, grouping = Turns(), Grouping()
        known = settled = 0
        while known < len(rows):
            known = min(known + rng.randint(1, 9), len(rows))
            open_rows = Unsettled(rows[:known])
            kept = rng.randint(0, settled) if rng.random() < 0.2 else None
            settled = open_rows.settled = max(known - rng.randint(0, 4), settled)
            turns.grow(grouping.take(open_rows, kept=kept))
        turns.grow(grouping.take(rows, complete=True))
        (thread,) = turns.tree.threads.values()
        assert thread.by_step is not None
        assert list(thread.by_step.ordinals) == list(range(len(rows)))
        series = thread.by_step.series
        assert [series.over(n, n + 1).used for n in range(len(rows))] == [row.used for row in rows]


class Unsettled(list[Any]):
    """Rows of which the last may be others the next time."""

    settled = 0


def _growth(requests: list[Request]) -> object:
    from ctxctl.tui.outline import Grouping

    return Grouping().take(FakeInspector(requests).outline().rows, complete=True)


def threads() -> list[Request]:
    """A session with a compaction and a thread beside it."""
    base = Thing("s", "You are " * 8, "system_prompt", "system")
    grow = [Thing(f"m{n}", "words and words " * 6) for n in range(20)]
    requests = [Request(n + 1, (base, *grow[: n + 1]), reported=90 + n) for n in range(9)]
    requests.append(Request(10, (base, grow[9]), flags=("compacted",), title="shorter"))
    requests.append(Request(1, (base, grow[10]), thread="[red]scout[/]", title="look"))
    requests.append(Request(11, (base, *grow[9:16]), flags=("missing_context",)))
    return requests


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_the_overview_looks_as_it_did(size: tuple[int, int]) -> None:
    async with running(made(FakeInspector(threads())), size) as session:
        await session.press("v", "h")
        check_golden(f"overview-{size[0]}x{size[1]}", session.text)
        await session.press("j")
        assert "[red]scout[/]" in session.text


async def test_enter_leads_to_the_turn_and_backspace_back() -> None:
    async with running(made(FakeInspector(threads()))) as session:
        await session.press("v", "dollar_sign", "left_square_bracket")
        assert isinstance(session.app.screen, Overview)
        await session.press("enter")
        assert session.app.turns.state.entry is not None
        assert session.app.turns.state.entry.turn == 10
        await session.press("backspace")
        assert session.app.turns.state.cursor == 0
        await session.press("v", "escape")
        assert not isinstance(session.app.screen, Overview)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 10), (20, 5), (1, 1)])
async def test_the_overview_works_at_any_size(size: tuple[int, int]) -> None:
    async with running(made(FakeInspector(notes_agent())), size) as session:
        await session.press("v", "l", "h", "j", "right_square_bracket", "dollar_sign", "0", "enter")
    assert not session.app.fault


async def test_the_overview_grows_while_the_trace_is_read() -> None:
    inspector = SlowInspector(long_session(30, 3))
    app = made(inspector)
    async with app.run_test(size=SMALL) as pilot:
        inspector.deliver(10)
        while len(app.turns.state.list.turns.entries) < 10:
            await pilot.pause(0.02)
        await pilot.press("v")
        screen = app.screen
        assert isinstance(screen, Overview)
        inspector.deliver(20)
        await settle(app, pilot)
        while len(screen.view.threads[0][0].turns) < 30 or screen._seen != screen._known():
            await pilot.pause(0.05)
        seen = screen.seen()
        assert seen is not None
        assert "30 turns" in seen.text
        assert "reading" not in seen.text
    app.loader.stop()


def test_turns_of_a_thread_are_summed_up() -> None:
    turns = Turns.of(FakeInspector(threads()).outline().rows)
    main = turns.tree.threads["s1", "main"]
    assert (len(main.turns), main.compactions, main.warnings) == (11, 1, 1)
    assert main.reported == sum(90 + n for n in range(9))
    assert main.models == {"gpt-4o": 11}


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x50"])
async def test_sessions_that_begin_and_end_alike_are_told_apart(size: tuple[int, int]) -> None:
    asked = [Request(1, (Thing("a", "one"),), session=f"task-{n}.trial-0") for n in range(3)]
    async with running(made(FakeInspector(asked)), size) as seen:
        await seen.press("v")
        assert sum(f"task-{n}.trial-0 main" in seen.text for n in range(3)) >= 2


@pytest.mark.parametrize(
    ("top", "rows", "labels"),
    [
        (200_000, 20, {"200k": 0, "150k": 5, "100k": 10, "50.0k": 15}),
        (1_048_576, 20, {"1.0M": 0, "500k": 10}),
        (246, 8, {"246": 0, "200": 1, "100": 4}),
    ],
)
def test_the_axis_has_round_amounts(top: int, rows: int, labels: dict[str, int]) -> None:
    shape = chart.layout(1, 60, 60)._replace(rows=rows)
    told = [chart._label([Figures(used=top)], shape, top, row).strip() for row in range(rows)]
    found = {label: row for row, label in enumerate(told) if label}
    assert found == labels

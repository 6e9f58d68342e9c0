"""Turns of a trace that is still being written: rows that are taken back, rows that turn out otherwise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from fake import FakeInspector, Request, Thing
from hypothesis import given
from hypothesis import strategies as st

from ctxctl.model.outline import Row
from ctxctl.session.live_inspector import LiveRows
from ctxctl.tui.folding import Folding
from ctxctl.tui.outline import Grouping, Turns

THING = Thing("a", "a text")
THREADS = ("main", "explorer", "other")
BASE = FakeInspector([Request(1, (THING,))]).outline().rows[0]


def row(ordinal: int, thread: str, turn: int, used: int, title: str | None) -> Row:
    return msgspec.structs.replace(
        BASE, ordinal=ordinal, thread=thread, turn=turn, step=1, used=used, new=used % 7, freed=used % 3,
        title=title, compacted=used % 11 == 0, flags=("over_budget",) if used % 13 == 0 else (),
    )  # fmt: skip


STEPS = st.lists(
    st.tuples(st.sampled_from(THREADS), st.booleans(), st.integers(0, 90), st.booleans()), max_size=12
)


def rows_of(steps: Sequence[tuple[str, bool, int, bool]], after: Sequence[Row] = ()) -> list[Row]:
    """Rows that go on behind others; turns of a thread count from 1."""
    rows = list(after)
    turn = dict.fromkeys(THREADS, 0) | {row.thread: row.turn for row in rows}
    for thread, begins, used, titled in steps:
        new = begins or not turn[thread]
        turn[thread] += new
        rows.append(row(len(rows), thread, turn[thread], used, f"{used}" if new and titled else None))
    return rows


def facts(turns: Turns) -> object:
    return (
        [
            (e.session, e.thread, e.turn, e.title, list(e.ordinals[: e.steps]), e.steps, e.used, e.new,
             e.freed, e.cap, e.compacted, e.flagged, e.whole)
            for e in turns.entries
        ],
        turns.totals, turns.highest, turns.sessions, turns.peak,
    )  # fmt: skip


def at_once(rows: Sequence[Row]) -> Turns:
    turns = Turns()
    turns.grow(Grouping().take(rows))
    return turns


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 5), STEPS, STEPS, st.booleans()), max_size=8))
def test_rows_taken_back_leave_no_trace(moves: list[tuple[int, object, object, bool]]) -> None:
    grouping, turns = Grouping(), Turns()
    settled: list[Row] = []
    seen: list[tuple[Turns, object]] = []
    for back, more, provisional, cuts in moves:
        kept = len(settled) - min(back, len(settled)) if cuts else len(settled)
        settled = rows_of(more, settled[:kept])  # type: ignore[arg-type]
        view = rows_of(provisional, settled)  # type: ignore[arg-type]
        rows = LiveRows(settled, len(settled), tuple(view[len(settled) :]), {})
        growth = grouping.take(rows, kept=kept)
        before = [(entry, list(entry.ordinals[: entry.steps])) for entry in turns.entries]
        turns.grow(growth)
        assert facts(turns) == facts(at_once(view))
        for entry, ordinals in before:
            assert list(entry.ordinals[: entry.steps]) == ordinals, "a value that was handed out has changed"
        seen.append((turns, None))
    turns.grow(grouping.take(settled, complete=True))
    assert facts(turns) == facts(Turns.of(settled))


def test_a_title_that_is_provisional_gives_way_to_the_real_one() -> None:
    first, second = row(0, "main", 1, 5, None), row(1, "main", 1, 6, None)
    grouping, turns = Grouping(), Turns()
    turns.grow(grouping.take(LiveRows([first], 1, (second,), {0: "so far"})))
    assert turns.entries[0].title == "so far"
    titled = msgspec.structs.replace(first, title="in the end")
    turns.grow(grouping.take(LiveRows([titled, second], 2, (), {}), kept=1))
    assert turns.entries[0].title == "in the end"


def test_what_is_taken_back_costs_what_it_was() -> None:
    rows = rows_of([("main", True, n, False) for n in range(2000)])
    grouping = Grouping()
    grouping.take(LiveRows(rows[:1998], 1998, (rows[1998],), {}))
    growth = grouping.take(LiveRows(rows[:1999], 1999, (rows[1999],), {}), kept=1998)
    assert [index for index, _ in growth.entries] == [1997, 1998, 1999]


def test_a_list_forgets_the_unfolded_turns_that_are_gone() -> None:
    grouping, turns = Grouping(), Turns()
    turns.grow(grouping.take(LiveRows([row(0, "main", 1, 5, None)], 1, (row(1, "main", 2, 5, None),), {})))
    folding = Folding(turns).with_turns([0, 1])
    assert folding.count == 4
    turns.grow(grouping.take(LiveRows([row(0, "main", 1, 5, None)], 1, (), {}), kept=1))
    again = folding.with_turns(folding.unfolded)
    assert (again.unfolded, again.count) == ({0}, 2)

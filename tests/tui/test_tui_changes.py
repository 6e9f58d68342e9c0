"""Sorting, grouping and folding what changed.  No event loop, but for the keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from fake import FakeInspector, Request, Thing, long_session, notes_agent
from helpers import LARGE, made, running

from ctxctl.text import cells
from ctxctl.tui.answers import turns
from ctxctl.tui.changes import (
    FACETS,
    ORDERS,
    Arrangement,
    ChangeTable,
    Facts,
    Group,
    Holding,
    arranged_groups,
)
from ctxctl.tui.outline import Grouping
from ctxctl.tui.screens.turns import lines
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.state import State, Target, Trace

THINGS = (
    Thing("mcp__github__search", "a tool " * 3, "tool_definition"),
    Thing("mcp__files__read", "a tool " * 30, "tool_definition"),
    Thing("b", "x" * 400, "tool_result", "Beta"),
    Thing("a", "x" * 80, "user_message", "alpha"),
)
TARGET = Target(0, whole_turn=False, first=0)


def table(how: Arrangement, *, skipped: bool = False, inspector: Any = None, target: Target = TARGET) -> Any:
    inspector = inspector or FakeInspector([Request(1, THINGS)])
    return turns.detail(inspector, target, skipped, how).table


def names(found: Any) -> list[str]:
    return [change.item for group in found.groups for change in group.changes]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("frame", ["mcp__github__search", "mcp__files__read", "b", "a"]),
        ("window", ["b", "mcp__files__read", "a", "mcp__github__search"]),
        ("new", ["b", "mcp__files__read", "a", "mcp__github__search"]),
        ("freed", ["mcp__github__search", "mcp__files__read", "b", "a"]),
        ("name", ["a", "b", "mcp__files__read", "mcp__github__search"]),
        ("kind", ["mcp__files__read", "mcp__github__search", "b", "a"]),
    ],
)
def test_changes_are_sorted(order: Any, expected: list[str]) -> None:
    assert names(table(Arrangement(order))) == expected
    assert names(table(Arrangement(order, reverse=True))) == expected[::-1]


def test_changes_are_grouped_with_their_sums() -> None:
    found = table(Arrangement(by="server"))
    assert [(g.key, g.count, g.in_window) for g in found.groups] == [
        ("files", 1, 52),
        ("github", 1, 5),
        ("no server", 2, 120),
    ]
    assert [g.key for g in table(Arrangement(by="segment")).groups] == ["tools", "history", "user"]
    assert [g.key for g in table(Arrangement(by="kind")).groups] == [
        "tool_result", "tool_definition", "user_message",
    ]  # fmt: skip
    assert [g.key for g in table(Arrangement(by="source")).groups] == ["no source"]
    assert [(g.key, g.count) for g in table(Arrangement(by="none")).groups] == [("all", 4)]


@pytest.mark.parametrize("by", FACETS)
@pytest.mark.parametrize("skipped", [False, True])
def test_however_it_is_grouped_the_window_is_the_same(by: Any, skipped: bool) -> None:
    inspector = FakeInspector(notes_agent())
    found = table(
        Arrangement(by=by), skipped=skipped, inspector=inspector, target=Target(3, whole_turn=True, first=3)
    )
    assert sum(group.in_window for group in found.groups) == inspector.step(3).window.recorded
    assert sum(group.count for group in found.groups) == 9
    for width in (20, 44, 80, 140):
        for line in range(found.count):
            text = "".join(part for part, _ in lines.change_line(found, line, width))
            assert cells(text) == width


def loaded(inspector: Any) -> State:
    growth = Grouping().take(inspector.outline().rows, complete=True)
    return answered(moves.outlined(State(Trace("t")), growth, Trace("t")), inspector)


def answered(state: State, inspector: Any) -> State:
    assert state.target is not None
    return moves.detailed(state, turns.detail(inspector, state.target, state.skipped, state.arrangement))


def test_keys_go_through_all_orders_and_groups_and_stay_on_the_item() -> None:
    inspector = FakeInspector(notes_agent())
    state = loaded(inspector)
    line = state.table.find("n1")
    assert line is not None
    state = moves.to_change(state, line)
    for _ in ORDERS:
        state = answered(moves.sort(state), inspector)
        assert state.selected is not None
        assert state.selected.item == "n1"
    for _ in FACETS:
        state = answered(moves.group(state), inspector)
        assert state.selected is not None
        assert state.selected.item == "n1"
    assert state.arrangement == Arrangement()
    assert moves.reverse(state).arrangement.reverse


def test_all_groups_fold_at_once_and_the_cursor_stays_in_its_own() -> None:
    inspector = FakeInspector(notes_agent())
    state = answered(moves.to_line(loaded(inspector), 1), inspector)
    line = state.table.find("editor-state")
    assert line is not None
    state = moves.toggle_groups(moves.to_change(state, line))
    assert state.table.is_folded("added")
    assert isinstance(found := state.table.at(state.change), Group)
    assert found.key == "updated"
    back = moves.toggle_groups(state)
    assert not back.table.is_folded("added")
    assert back.selected is not None
    assert back.selected.item == "editor-state"


def test_an_item_that_is_sought_is_found_among_the_skipped() -> None:
    inspector = FakeInspector(notes_agent())
    state = replace(moves.to_line(loaded(inspector), 2), item="system", seeking=True)
    state = answered(state, inspector)
    assert state.skipped
    state = answered(state, inspector)
    assert state.selected is not None
    assert (state.selected.item, state.seeking) == ("system", False)


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("mcp__github__create_issue", "github"),
        ("mcp__a_b__c", "a_b"),
        ("read_file", ""),
        ("mcp__\x1b[31m", ""),
    ],
)
def test_servers_are_told_by_names(name: str, server: str) -> None:
    (change,) = FakeInspector([Request(1, (Thing(name, "x"),))]).step(0).changes
    assert turns.server_of(change) == server


async def test_the_keys_sort_and_group_and_say_so() -> None:
    async with running(made(FakeInspector([Request(1, THINGS, title="all")])), LARGE) as session:
        await session.press("enter", "S")
        assert "what changed in turn 1 · ↓ window" in session.text
        await session.press("R")
        assert "↑ window" in session.text
        await session.press("B", "B", "B", "B")
        assert "by server" in session.text
        assert "no server 2 ▾" in session.text
        await session.press("z")
        assert "no server 2 ▸" in session.text
        await session.press("B")
        assert "not grouped" in session.text


async def test_ten_thousand_changes_are_sorted_away_from_the_loop() -> None:
    async with running(made(FakeInspector(long_session(1, 10_000)))) as session:
        await session.press("enter", "S", "S", "S", "S")
        state = session.app.turns.state
        assert state.table.arrangement.order == "name"
        assert state.table.count == 10_001


@pytest.mark.parametrize("by", FACETS)
def test_what_nobody_counted_is_not_nothing(by: Any) -> None:
    (sealed, *_) = (change for group in table(Arrangement()).groups for change in group.changes)
    sealed = msgspec.structs.replace(sealed, tokens=0, in_window=0, new=0)
    held = {sealed.item: Holding(uncounted=True), "other": Holding(uncounted=True)}
    facts = Facts([sealed], None, 1, 0, None, 0, held, lambda _: "")
    how = Arrangement(by=by)
    found = ChangeTable.of(arranged_groups(facts, how), holdings=held, arrangement=how)
    shown = ["".join(text for text, _ in lines.change_line(found, n, 60)) for n in range(found.count)]
    assert [line.split()[-1] for line in shown] == ["-", "-", "-"]
    some = replace(found.groups[0], in_window=900)
    partly = ChangeTable.of([some], holdings=held)
    assert "≥900" in "".join(text for text, _ in lines.change_line(partly, 0, 60))

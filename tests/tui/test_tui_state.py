"""What is being looked at, and what keys make of it.  No event loop."""

from __future__ import annotations

from typing import Any, cast

import pytest
from fake import FakeInspector, notes_agent

from ctxctl.tui.answers import turns
from ctxctl.tui.changes import Group, Note
from ctxctl.tui.document import Document
from ctxctl.tui.outline import Grouping, Growth
from ctxctl.tui.screens.turns import state as moves
from ctxctl.tui.screens.turns.state import Detail, ItemText, State, Trace


@pytest.fixture
def inspector() -> Any:
    return FakeInspector(notes_agent())


@pytest.fixture
def state(inspector: Any) -> State:
    return load(moves.outlined(State(Trace("t")), whole(inspector), Trace("t")), inspector)


def whole(inspector: Any) -> Growth:
    return Grouping().take(inspector.outline().rows, complete=True)


def load(state: State, inspector: Any) -> State:
    """What the loader would do now."""
    assert state.target is not None
    return moves.detailed(state, turns.detail(inspector, state.target, state.skipped))


def select(state: State, item: str) -> State:
    line = state.table.find(item)
    assert line is not None
    return moves.to_change(state, line)


def test_phases_follow_the_loader(inspector: Any) -> None:
    state = State(Trace("t"))
    assert state.phase == "opening"
    state = moves.opened(state, Trace("t"))
    assert (state.phase, state.progress) == ("reading", 0.0)
    assert moves.progressed(state, 0.5).progress == 0.5
    assert moves.progressed(state, 7.0).progress == 1.0
    state = moves.outlined(state, whole(inspector), Trace("t", problems=3))
    assert (state.phase, state.progress, state.trace.problems) == ("ready", None, 3)
    assert moves.progressed(state, 0.9) is state


def test_a_turn_asks_for_its_last_frame_against_the_turn_before(state: State) -> None:
    assert state.target is not None
    assert (state.target.ordinal, state.target.first, state.target.whole_turn) == (1, 0, True)
    stepped = moves.to_line(moves.toggle_steps(state), 1)
    assert stepped.target is not None
    assert (stepped.target.ordinal, stepped.target.first, stepped.target.whole_turn) == (0, 0, False)


def test_the_cursor_stays_inside_the_list(state: State) -> None:
    assert moves.to_line(state, 99).cursor == 2
    assert moves.to_line(state, -5).cursor == 0
    empty = State(Trace("t"))
    assert moves.to_line(empty, 3).cursor == 0
    assert empty.target is None
    for move in (moves.toggle_steps, moves.toggle_group, moves.toggle_skipped, moves.enter, moves.back):
        move(empty)
    assert moves.next_turn(empty, 1) is empty


def test_next_turn_from_a_step_goes_to_the_next_turn_and_back_to_its_own(state: State) -> None:
    on_step = moves.to_line(moves.toggle_steps(state), 2)
    assert on_step.place is not None
    assert on_step.place.step == 1
    forward = moves.next_turn(on_step, 1).place
    assert forward is not None
    assert (forward.turn, forward.step) == (1, None)
    home = moves.next_turn(on_step, -1).place
    assert home is not None
    assert (home.turn, home.step) == (0, None)


def test_next_turn_stops_at_the_ends(state: State) -> None:
    last = moves.next_turn(state, 50)
    assert last.cursor == 2
    assert moves.next_turn(last, 1) is last
    assert moves.next_turn(state, -1).cursor == 0


def test_folding_from_a_step_leads_to_its_turn(state: State) -> None:
    unfolded = moves.toggle_steps(state, True)
    assert unfolded.list.count == 5
    on_step = moves.to_line(unfolded, 2)
    assert moves.toggle_steps(on_step, True) is on_step
    folded = moves.toggle_steps(on_step, False)
    assert (folded.list.count, folded.cursor) == (3, 0)


def test_a_turn_of_one_step_does_not_unfold(state: State) -> None:
    assert moves.toggle_steps(moves.to_line(state, 1)).list.count == 3


def test_changes_are_grouped_by_status(state: State, inspector: Any) -> None:
    state = load(moves.to_line(state, 2), inspector)
    found = [state.table.at(line) for line in range(state.table.count)]
    heads = [(line.status, line.count) for line in found if isinstance(line, Group)]
    assert heads == [("added", 1), ("removed", 1), ("omitted", 1), ("skipped", 6)]
    assert isinstance(found[0], Note)
    removed = next(line for line in found if getattr(line, "item", "") == "n1")
    assert (cast("Any", removed).cause, cast("Any", removed).reason) == ("omitted", "budget_limit")


def test_late_changes_of_another_frame_are_ignored(state: State, inspector: Any) -> None:
    late = turns.detail(inspector, cast("Any", state.target), False)
    moved = moves.to_line(state, 2)
    assert moves.detailed(moved, late) is moved
    assert moved.shown is None
    assert moved.detail is state.detail, "the old changes stay until the new ones are there"


def test_the_cursor_stays_on_an_item_across_turns(state: State, inspector: Any) -> None:
    state = select(state, "editor-state")
    state = load(moves.next_turn(state, 1), inspector)
    assert state.selected is not None
    assert (state.selected.item, state.selected.status) == ("editor-state", "updated")


def test_an_item_that_is_not_there_leaves_the_cursor_on_the_first_change(
    state: State, inspector: Any
) -> None:
    state = select(state, "n1")
    state = load(moves.next_turn(state, 1), inspector)
    assert state.selected is not None
    assert state.selected.item == "m2"
    assert state.item == "n1", "and it comes back with the item"
    state = load(moves.next_turn(state, 1), inspector)
    assert state.selected is not None
    assert state.selected.item == "n1"


def test_skipped_items_are_listed_on_demand(state: State, inspector: Any) -> None:
    state = load(moves.to_line(state, 1), inspector)
    folded = state.table.count
    asked = moves.toggle_skipped(state)
    assert asked.skipped
    assert asked.table.count == folded, "they are not there yet"
    listed = load(asked, inspector)
    assert listed.table.count == folded + 4
    hidden = moves.toggle_skipped(listed)
    assert hidden.table.count == folded
    assert moves.toggle_skipped(hidden).table.count == folded + 4, "without asking again"


def test_a_folded_group_stays_folded_in_the_next_frame(state: State, inspector: Any) -> None:
    state = moves.to_change(state, state.table.starts[0])
    folded = moves.toggle_group(state)
    assert folded.table.is_folded("added")
    following = load(moves.next_turn(folded, 1), inspector)
    assert following.table.is_folded("added")
    assert not moves.toggle_group(folded).table.is_folded("added")


def test_enter_leads_in_and_escape_leads_out(state: State) -> None:
    inside = moves.enter(state)
    assert inside.pane == "changes"
    item = moves.enter(inside)
    assert item.pane == "item"
    assert moves.enter(item) is item
    assert moves.back(item).pane == "changes"
    assert moves.back(moves.back(moves.back(item))).pane == "turns"


def test_enter_on_a_heading_folds_it(state: State) -> None:
    inside = moves.to_change(moves.enter(state), 0)
    folded = moves.enter(inside)
    assert folded.pane == "changes"
    assert folded.table.is_folded("added")


def test_panes_cycle_both_ways(state: State) -> None:
    assert moves.cycle(state, 1).pane == "changes"
    assert moves.cycle(state, -1).pane == "item"
    assert moves.cycle(state, 3).pane == "turns"


def test_updated_items_show_their_diff_first_and_others_their_content(state: State, inspector: Any) -> None:
    assert state.shown_tab == "content"
    state = select(load(moves.to_line(state, 1), inspector), "editor-state")
    assert state.shown_tab == "diff"
    chosen = moves.toggle_tab(state)
    assert chosen.shown_tab == "content"
    assert select(chosen, "m2").shown_tab == "content"
    assert moves.toggle_tab(chosen).shown_tab == "diff"


def test_late_texts_of_another_item_are_ignored(state: State) -> None:
    wanted = state.wanted
    assert wanted is not None
    text = ItemText(wanted, Document("x"), None)
    assert moves.texted(state, text).shown_text is text
    elsewhere = select(state, "editor-state")
    assert moves.texted(elsewhere, text) is elsewhere


def test_a_failed_frame_shows_nothing_and_breaks_nothing(state: State) -> None:
    from ctxctl.tui.changes import ChangeTable

    assert state.target is not None
    failed = moves.detailed(state, Detail(state.target, None, None, ChangeTable(), error="gone"))
    assert failed.window is None
    assert failed.selected is None
    assert moves.toggle_group(failed) is failed
    assert moves.toggle_groups(failed).selected is None
    moves.enter(moves.enter(failed))

"""Skipped items to which something happened, and what a simulated or doubtful frame says of itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fake import FakeInspector, notes_agent

from ctxctl.model.results import StageView, Step
from ctxctl.tui.answers import turns
from ctxctl.tui.changes import ChangeTable, Group, Note
from ctxctl.tui.screens.turns.lines import change_line
from ctxctl.tui.screens.turns.state import Target

STEP = Target(3, whole_turn=False, first=3)


class Noting(FakeInspector):
    """Its steps say that the system prompt, unchanged, has moved."""

    def step(self, ordinal: int) -> Step:
        step = super().step(ordinal)
        frame = self.frame(ordinal)
        system = next(p for p in frame.placements if p.item == "system")
        moved = msgspec.structs.replace(turns._unchanged(system, system.tokens), flags=("moved",))
        return msgspec.structs.replace(step, changes=(*step.changes, moved))


@pytest.fixture
def inspector() -> Any:
    return Noting(notes_agent())


def skipped_of(table: ChangeTable) -> Group:
    return next(group for group in table.groups if group.status == "skipped")


def words(table: ChangeTable, line: int) -> str:
    return "".join(text for text, _ in change_line(table, line, 100))


def test_a_skipped_item_that_moved_is_listed_without_the_others(inspector: Any) -> None:
    table = turns.detail(inspector, STEP, False).table
    group = skipped_of(table)
    assert group.count == inspector.step(3).counts.skipped > 1
    assert [change.item for change in group.shown] == ["system"]
    line = table.find("system")
    assert line is not None
    assert table.change_at(line) is group.shown[0]
    assert "moved" in words(table, line)
    assert table.count == line + 1
    assert sum(g.in_window for g in table.groups) == inspector.step(3).window.recorded


def test_all_skipped_items_are_listed_once_and_say_what_happened(inspector: Any) -> None:
    table = turns.detail(inspector, STEP, True).table
    items = [change.item for change in skipped_of(table).shown]
    assert len(items) == len(set(items)) == inspector.step(3).counts.skipped
    line = table.find("system")
    assert line is not None
    assert "moved" in words(table, line)
    folded = table.folded("skipped", True)
    assert [change.item for change in skipped_of(folded).shown] == ["system"]
    others = next(item for item in items if item != "system")
    assert folded.find(others) == folded.starts[-1]


def test_a_simulated_step_says_so_once_and_where_it_differs(inspector: Any) -> None:
    step = inspector.step(3)
    stages = step.stages | {"selection": StageView("differs")}
    simulated = msgspec.structs.replace(
        step, basis="policy", flags=("simulated", "unknown_base"), stages=stages
    )
    notes = turns.frame_notes(simulated)
    assert [note.warning for note in notes] == [True, True, False]
    assert Note("not what was recorded: selection", warning=True) in notes
    assert sum(note.text.startswith("simulated") for note in notes) == 1
    assert any("not known in full" in note.text for note in notes)

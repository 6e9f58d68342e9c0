"""Replay data of one thread, from which frames, edits and policies are made."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.engine.replay.edits import ThreadEdits
from ctxctl.engine.replay.item_table import ItemTable
from ctxctl.engine.replay.placements import Count, Placer
from ctxctl.engine.replay.step_facts import StepFacts
from ctxctl.engine.replay.step_tracker import ThreadKey
from ctxctl.model.content import ContentStore
from ctxctl.model.results import Placement


class StepIds(NamedTuple):
    """Position and ids of the open step."""

    turn: int
    step: int
    turn_id: str | None
    step_id: str | None
    time: str | None
    first_line: int
    first_byte: int
    new_turn: bool


class ThreadData:
    """The items of a thread and the records of its open step. `ThreadState` replays them.

    Windows, histories and policies read this value and do not depend on the replay.
    """

    def __init__(self, key: ThreadKey, target: str, store: ContentStore, count: Count) -> None:
        self.key = key
        self.book = ItemTable(target)
        self.placer = Placer(self.book, store, count)
        self.ids: StepIds | None = None
        self.facts = StepFacts()
        """Facts of the open step so far, up to its last assembly if it has one."""
        self.later: StepFacts | None = None
        """Facts after the open step's last assembly: this step's if a seal follows, else the next step's."""
        self.assembled: list[Placement] = []
        """The open step's assembly, resolved as of its line."""
        self.editing: ThreadEdits | None = None
        """Edits of a what-if, applied before any policy; None without edits."""
        self.scores: dict[str, float] = {}
        self.placed: set[str] = set()
        """Append mode: items that were ever in a frame of this thread."""
        self.index: dict[str, int] | None = None
        """Append mode: position of each item's current copy."""

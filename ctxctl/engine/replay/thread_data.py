"""What replay holds of one thread while it goes on: what frames, edits and policies are made from."""

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
    """Where the open step is and what the trace calls it."""

    turn: int
    step: int
    turn_id: str | None
    step_id: str | None
    time: str | None
    first_line: int
    first_byte: int
    new_turn: bool


class ThreadData:
    """The items of a thread and the records of its open step; `ThreadState` replays them.

    Window, history and policies take this as a value: they read it, and none of them knows the replay.
    """

    def __init__(self, key: ThreadKey, target: str, store: ContentStore, count: Count) -> None:
        self.key = key
        self.book = ItemTable(target)
        self.placer = Placer(self.book, store, count)
        self.ids: StepIds | None = None
        self.facts = StepFacts()
        """Recorded for the open step so far, up to its last assembly if it has one."""
        self.later: StepFacts | None = None
        """Recorded after the open step's last assembly: this step's if a seal follows, else the next's."""
        self.assembled: list[Placement] = []
        """The open step's assembly, resolved as of its line."""
        self.editing: ThreadEdits | None = None
        """What is dropped or set, before any policy; None where nothing is."""
        self.scores: dict[str, float] = {}
        self.placed: set[str] = set()
        """Append mode: items that were in a frame of this thread at some time."""
        self.index: dict[str, int] | None = None
        """Append mode: position of each item's current copy."""

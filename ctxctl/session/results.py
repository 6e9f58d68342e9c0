"""What passes over a trace come to, as values of the façade."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.model.outline import Row
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Summary, Window

_KEPT_PROBLEMS = 1000
LATE = frozenset(("late-event", "late-usage"))
"""Problems that say that an event came for a step that was over."""


class ReportedProblems:
    """Problems of one pass of the engine: the first of them, and how many there were."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.count = 0
        self.late = 0
        """Events for a step that was over (`late-event`, `late-usage`)."""

    def add(self, problem: Problem) -> None:
        """Add a problem."""
        self.count += 1
        if problem.slug in LATE:
            self.late += 1
        if self.count <= _KEPT_PROBLEMS:
            self.kept.append(problem)


class FrameDiff(NamedTuple):
    """Two frames compared by the plain definition.

    Of recorded content `after = before + new - freed + reweighed`; of what was sent, the same with the
    difference of what is not recorded: `sent_after = sent_before + new - freed + reweighed + unrecorded`.
    """

    changes: tuple[Change, ...]
    new: int
    freed: int
    before: int
    """Tokens of the first frame's recorded content."""
    after: int
    sent_before: int
    """What was sent with the first frame; how that is known, its step's window says."""
    sent_after: int
    unrecorded: int | None
    """What more was sent beside the second frame's content than beside the first's; None: of one of them
    nobody knows."""

    @property
    def reweighed(self) -> int:
        """By how much texts that both frames hold weigh more in the second: a thread's bills refine what its
        later texts are weighed with, and two traces may be of two models.  Nearly always 0."""
        return self.after - self.before - self.new + self.freed


def frame_diff(a: Window, b: Window, changes: tuple[Change, ...], new: int, freed: int) -> FrameDiff:
    """The comparison of two frames with their sizes."""
    beside = None
    if a.unrecorded is not None and b.unrecorded is not None:
        beside = b.unrecorded - a.unrecorded
    return FrameDiff(changes, new, freed, a.recorded, b.recorded, a.used, b.used, beside)


class Outline(NamedTuple):
    """Every step of a replay as a small row, in the order of the steps."""

    rows: tuple[Row, ...]
    summary: Summary

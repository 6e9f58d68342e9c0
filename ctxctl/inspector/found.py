"""What passes over a trace come to, as values of the façade."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.model.outline import Row
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Summary

_KEPT_PROBLEMS = 1000


class Reported:
    """Problems of one pass of the engine: the first of them, and how many there were."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.count = 0

    def add(self, problem: Problem) -> None:
        """Take one in."""
        self.count += 1
        if self.count <= _KEPT_PROBLEMS:
            self.kept.append(problem)


class FrameDiff(NamedTuple):
    """Two frames compared by the plain definition."""

    changes: tuple[Change, ...]
    new: int
    freed: int
    before: int
    after: int


class Outline(NamedTuple):
    """Every step of a replay as a small row, in the order of the steps."""

    rows: tuple[Row, ...]
    summary: Summary

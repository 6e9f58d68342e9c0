"""Bounds what an import says of a file that is wrong on every line."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ctxctl.formats.lines import Report
from ctxctl.model.problem import Problem

KEPT: Final = 10_000
"""Problems of one kind that are told one by one."""


class Enough:
    """Takes problems and passes the first ones of each kind on; `finish` tells how many more there were."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._seen: Counter[str] = Counter()
        self._last: dict[str, Problem] = {}

    def __call__(self, problem: Problem) -> None:
        """Take one in."""
        self._seen[problem.slug] += 1
        if self._seen[problem.slug] <= KEPT:
            self._report(problem)
        else:
            self._last[problem.slug] = problem

    def finish(self) -> None:
        """Tell, at the place of the last one of each kind, how many were passed over."""
        for slug, last in self._last.items():
            more = self._seen[slug] - KEPT
            self._report(Problem(last.line, last.byte, slug, f"{more} more of this kind up to here"))
        self._last.clear()

"""Bounds what an import says of a file that is wrong on every line."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ctxctl.formats.lines import Report
from ctxctl.formats.understood import Understood
from ctxctl.model.problem import Problem

KEPT: Final = 10_000
"""Problems of one kind that are told one by one."""


class Enough:
    """Takes problems and passes the first ones of each kind on; `finish` tells how many more there were.

    It is the `report` that an importer gets, and carries the account of what it did not understand.
    """

    def __init__(self, report: Report, understood: Understood | None = None) -> None:
        self.understood = understood or Understood()
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

    def said(self, slug: str) -> bool:
        """Whether a problem of this kind was told."""
        return self._seen[slug] > 0

    def finish(self) -> None:
        """Tell, at the place of the last one of each kind, how many were passed over."""
        for slug, last in self._last.items():
            more = self._seen[slug] - KEPT
            self._report(Problem(last.line, last.byte, slug, f"{more} more of this kind up to here"))
        self._last.clear()

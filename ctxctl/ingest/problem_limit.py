"""Bounds what an import says of a file that is wrong on every line."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ctxctl.ingest.lines import Report
from ctxctl.ingest.understood import Understood
from ctxctl.model.problem import Problem

EMPTY: Final = "no-model-calls"
"""The problem that is kept back until all was looked at."""
KEPT: Final = 10_000
"""Problems of one kind that are told one by one."""


class ProblemLimit:
    """Takes problems and passes the first ones of each kind on; `finish` tells how many more there were.

    It is the `report` that an importer gets, and carries the account of what it did not understand.
    """

    def __init__(self, report: Report, understood: Understood | None = None) -> None:
        self.understood = understood or Understood()
        self._report = report
        self._seen: Counter[str] = Counter()
        self._held: list[Problem] = []
        self._releasing = False
        self._last: dict[str, Problem] = {}

    def __call__(self, problem: Problem) -> None:
        """Take one problem in, and pass it on unless there were too many of its kind."""
        if problem.slug == EMPTY and not self._releasing:
            self._held.append(problem)
            return
        self._seen[problem.slug] += 1
        if self._seen[problem.slug] <= KEPT:
            self._report(problem)
        else:
            self._last[problem.slug] = problem

    @property
    def said_any(self) -> bool:
        """Whether any problem was told."""
        return bool(self._seen or self._held or self._releasing)

    def held(self) -> list[Problem]:
        """The problems that say that there is nothing to replay: told at the end, with what was looked at."""
        held, self._held, self._releasing = self._held[:KEPT], [], True
        return held

    def finish(self) -> None:
        """Tell, at the place of the last one of each kind, how many were passed over."""
        for slug, last in self._last.items():
            more = self._seen[slug] - KEPT
            self._report(Problem(last.line, last.byte, slug, f"{more} more of this kind up to here"))
        self._last.clear()

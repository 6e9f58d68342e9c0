"""Problems as one line each, in the form that editors and CI systems recognise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxctl.labels import plural
from ctxctl.model.problem import Problem
from ctxctl.text import visible


def problem_line(name: str, problem: Problem) -> str:
    """``file:line: byte N: slug: message``; a problem of the whole file has no line."""
    place = f"{problem.line}: byte {problem.byte}: " if problem.line else " "
    return f"{visible(name)}:{place}{problem.slug}: {visible(problem.message)}"


def problem_lines(name: str, problems: Sequence[Problem], total: int, cap: int | None) -> Iterator[str]:
    """At most `cap` of the problems (None: all), then how many more there are of the `total`."""
    shown = problems if cap is None else problems[:cap]
    for problem in shown:
        yield problem_line(name, problem)
    if total > len(shown):
        yield f"{visible(name)}: {plural(total - len(shown), 'more problem')} not shown ({total:,} in all)"

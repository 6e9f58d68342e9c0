"""A section of the benchmark: what it measures, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.bench.cases import Bench
from tools.bench.rows import Row


@dataclass(frozen=True)
class Section:
    """One question that a reader may have.

    Attributes:
        name: For `--only`.
        title: The heading on the page.
        about: What was measured on what, and where the targets come from.
        add: Adds its cases, and writes the inputs that it needs.
        rows: Its targets, in the order of the page.
    """

    name: str
    title: str
    about: str
    add: Callable[[Bench], None]
    rows: Callable[[Bench], list[Row]]

"""Text of a trace in GitHub's markdown: in code spans, where nothing is markup, a link or a mention."""

from __future__ import annotations

import re
from typing import Final

from ctxctl.text import ELLIPSIS, visible

_RUN: Final = re.compile("`+")
_LONGEST: Final = 8
"""Backticks in a row that a fence goes around; parsers give up on very long fences."""


def code(text: str, most: int = 80) -> str:
    """A text as one code span, cut to `most` characters; one line, also where it stands in a table.

    A pipe would end the cell of a table whatever stands around it, so it is written as its code point.
    """
    shown = visible(text[: most * 2])
    if len(shown) > most or len(text) > most * 2:
        shown = shown[:most] + ELLIPSIS
    shown = shown.replace("|", "⟨U+007C⟩")
    longest = max((len(run) for run in _RUN.findall(shown)), default=0)
    if longest > _LONGEST:
        shown = shown.replace("`", "⟨U+0060⟩")
        longest = 0
    if not shown.strip():
        return "` `"
    fence = "`" * (longest + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def table(heads: list[str], rows: list[list[str]], right: set[int] | None = None) -> list[str]:
    """A table; cells are markdown already."""
    rule = ["---:" if right and n in right else "---" for n in range(len(heads))]
    lines = [heads, rule, *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def details(summary: str, lines: list[str]) -> list[str]:
    """A part that is opened by a click; `summary` holds no text of a trace."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>", ""]

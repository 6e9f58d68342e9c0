"""The only way text becomes something that Textual paints.

Textual reads markup in nearly every string it is given, and passes escape sequences on to the terminal from
every widget.  Here each text goes through `text.visible` and into objects that hold no markup, so that what a
trace says can neither style, nor click, nor steer the terminal.  Our own words take the same road.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.strip import Strip

from ctxctl.text import visible

Part = tuple[str, str]
"""A piece of a line: its text and the name of its style (a component class)."""


def shown(text: str) -> str:
    """One line that is safe on a terminal; tabs are expanded, a line feed becomes its picture."""
    if text.isascii() and text.isprintable():
        return text
    return visible(text, newline=True).replace("\n", "␊")


def content(text: str) -> Content:
    """A text for a widget's title or body: one line, without markup."""
    return Content(shown(text))


def strip(parts: Iterable[Part], width: int, style_of: Callable[[str], Style], base: Style) -> Strip:
    """A line of exactly `width` cells: every part, and what is left of the width, painted over `base`."""
    segments = []
    for name, run in groupby(parts, itemgetter(1)):
        text = "".join([text for text, _ in run])
        if text:
            segments.append(Segment(shown(text), base + style_of(name) if name else base))
    return Strip(segments).adjust_cell_length(max(width, 0), base)

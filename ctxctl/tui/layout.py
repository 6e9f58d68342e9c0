"""Phrases and columns in a number of cells, as parts: (text, style name).  Plain Python.

Style names are component classes of the widgets (see ``app.tcss``).  Text from the trace is made visible here
because its width matters; `literal` does it again for everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ctxctl.text import cells, clip, pad, preview, visible

Parts = list[tuple[str, str]]


class Column(NamedTuple):
    """One cell of a line; `width` 0 takes what the others leave, at least nothing.

    `fit` gives the text for the cells that there are, where it is not to be cut on its right.
    """

    text: str
    style: str = ""
    width: int = 0
    right: bool = False
    fit: Callable[[int], str] | None = None


_LEAST: Final = 3
"""Cells below which a text is left out: it would be an ellipsis and little more."""


def laid_out(columns: Sequence[Column], width: int) -> Parts:
    """The columns side by side in `width` cells; texts are raw and become visible, clipped and padded."""
    rest = max(width - sum(column.width for column in columns), 0)
    parts: Parts = []
    room = width
    for column in columns:
        size = min(column.width or rest, max(room, 0))
        if not column.width and size < _LEAST:
            column = column._replace(text="", fit=None)
        if column.fit is not None:
            column = column._replace(text=column.fit(size))
        parts.append((pad(_visible(column.text, size), size, right=column.right), column.style))
        room -= size
    return parts


def _visible(text: str, size: int) -> str:
    """The beginning of a text, on one line, long enough to fill `size` cells."""
    return visible(text[: size * 2 + 64])


def one_line(text: str) -> str:
    """A text of the trace as a phrase: blanks and line ends run together, and no longer than any pane."""
    return preview(text, 400)


class Piece(NamedTuple):
    """A phrase of a header line; the ones of the lowest rank go first where there is no room."""

    text: str
    style: str = ""
    rank: int = 5
    key: str = ""
    """The key that does what the phrase says; stands before it."""


def spread(left: Sequence[Piece], right: Sequence[Piece], width: int) -> Parts:
    """Phrases from the left and from the right edge, two blanks apart, with one blank at either edge."""
    sides = [[p._replace(text=one_line(p.text)) for p in side if p.text] for side in (left, right)]
    while sum(map(len, sides)) > 1 and sum(_length(side) for side in sides) + 4 > width:
        lowest = min((piece.rank, side, n) for side in (0, 1) for n, piece in enumerate(sides[side]))
        del sides[lowest[1]][lowest[2]]
    parts: Parts = [(" ", "")]
    room = max(width - 2, 0)
    for n, side in enumerate(sides):
        if n == 1:
            gap = max(room - _length(side), 0)
            parts.append((" " * gap, ""))
            room -= gap
        for k, piece in enumerate(side):
            key = clip(f"{piece.key} ", room) if piece.key else ""
            text = clip(piece.text, room - cells(key))
            gap = min(2 if k < len(side) - 1 else 0, room - cells(key) - cells(text))
            parts += [(key, "key"), (text, piece.style), (" " * gap, "")]
            room -= cells(key) + cells(text) + gap
    parts.append((" " * (room + 1), ""))
    return parts


def _length(side: Sequence[Piece]) -> int:
    """Number of cells that phrases take with two blanks between them."""
    keys = sum(cells(piece.key) + 1 for piece in side if piece.key)
    return sum(cells(piece.text) for piece in side) + keys + 2 * max(len(side) - 1, 0)

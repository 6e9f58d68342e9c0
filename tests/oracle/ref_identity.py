"""The reference, part 6: which pieces of a request are those of the one before (DESIGN section 2, identity).

For pieces that the runtime gave no id: what stands verbatim on both sides, in order, is the same.  Said with
a table over all pairs; which of several equal alignments is taken, DESIGN leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """One piece of a request."""

    role: str
    text: str
    name: str = ""
    """Its id, where the runtime gave one."""


def standing(before: Sequence[Piece], after: Sequence[Piece]) -> int:
    """How many pieces stand verbatim on both sides in the same order, at most."""
    named = {piece.name for piece in before} & {piece.name for piece in after} - {""}
    table = [[0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i, old in enumerate(before, 1):
        for j, new in enumerate(after, 1):
            table[i][j] = max(table[i - 1][j], table[i][j - 1])
            if alike(old, new, named):
                table[i][j] = max(table[i][j], table[i - 1][j - 1] + 1)
    return table[-1][-1]


def alike(old: Piece, new: Piece, named: set[str]) -> bool:
    """The same role and text; an id that both requests have is its own piece's only."""
    if old[:2] != new[:2]:
        return False
    if old.name in named or new.name in named:
        return old.name == new.name
    # An id of the one before may be left out when it is sent back; one that is new tells of another piece.
    return not new.name

"""The placements of an assembly, kept for assemblies that are spliced from it later."""

from __future__ import annotations

from collections.abc import Sequence

from ctxctl.model.records import Assembly
from ctxctl.model.results import Placement

_CHAIN = 32
"""Splices at most that lead from a folded assembly to the list which it is made from again."""

Piece = tuple[int, int] | list[Placement]
"""Of a spliced assembly: a stretch of its base's placements, or placements of its own."""


class Resolved:
    """An assembly's placements, and how many each block gave where that is not one each.

    One that was spliced from another can be folded: it then keeps what it is made of and not the list.  What
    it is made of, its bases' lists and pieces included, is never more than twice the list.
    """

    __slots__ = ("_base", "_depth", "_list", "_made_of", "_pieces", "era", "record", "size", "spans")

    def __init__(
        self,
        placements: list[Placement],
        spans: list[int] | None,
        base: Resolved | None = None,
        pieces: Sequence[Piece] = (),
    ) -> None:
        self._list: list[Placement] | None = placements
        self.size = len(placements)
        """Number of placements."""
        self.spans = spans
        self.record: Assembly | None = None
        self.era = 0
        """In which sizes: a thread may go on with a model of another encoding."""
        self._base: Resolved | None = None
        self._pieces: tuple[Piece, ...] = ()
        self._depth = 0
        self._made_of = self.size
        """Entries of all lists and pieces that it is made of."""
        if base is None or base._depth == _CHAIN:
            return
        made_of = base._made_of + sum(1 if isinstance(piece, tuple) else len(piece) for piece in pieces)
        if made_of <= 2 * self.size:
            self._base, self._pieces = base, tuple(piece for piece in pieces if piece)
            self._depth, self._made_of = base._depth + 1, made_of

    @property
    def placements(self) -> list[Placement]:
        """The placements, never to be changed; a folded one makes the list anew each time."""
        made = self._list
        if made is not None or self._base is None:
            return made or []
        base, made = self._base.placements, []
        for piece in self._pieces:
            made += base[piece[0] : piece[1]] if isinstance(piece, tuple) else piece
        return made

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.size if self.spans is None else len(self.spans)

    def fold(self) -> None:
        """Let go of the list if it can be made again."""
        if self._base is not None:
            self._list = None

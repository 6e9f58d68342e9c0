"""Placements in other sizes, after a thread has switched to another encoding."""

from __future__ import annotations

from typing import Final

import msgspec

from ctxctl.engine.sizes.weighing import Weigher
from ctxctl.model.results import Placement

_COUNTED: Final = frozenset(("counted", "calibrated", "estimated"))
"""Methods based on a count of the text."""


class Reweigher:
    """Converts placements to current sizes. Equal ones stay one object, also in copies of a replay."""

    def __init__(self, weigher: Weigher, last: Reweigher | None = None) -> None:
        """Continue from `last`, which made the previous sizes; None if those were the first."""
        self._weigher = weigher
        self._made: dict[Placement, Placement] = {}
        """Converted placements by the placement in its first sizes."""
        self._first: dict[Placement, Placement] = {}
        self._before = last._first if last is not None else {}
        self._lists: dict[int, tuple[list[Placement], list[Placement]]] = {}

    def over(self, weigher: Weigher) -> Reweigher:
        """Return a reweigher for a copy of the replay. It shares the results so far."""
        twin = Reweigher(weigher)
        twin._made, twin._first, twin._before = self._made, self._first, self._before
        return twin

    def all(self, placements: list[Placement]) -> list[Placement]:
        """Reweigh a list; the same list gives the same result object."""
        known = self._lists.get(id(placements))
        if known is None:
            # Keep a reference to the old list, so that its `id` is not reused.
            known = self._lists[id(placements)] = placements, [self.one(p) for p in placements]
        return known[1]

    def one(self, placement: Placement) -> Placement:
        """Reweigh one placement. One without a text, or with a declared size, does not change."""
        first = self._before.get(placement, placement)
        made = self._made.get(first)
        if made is None:
            made = self._weighed(first)
            if not self._weigher.aside:  # copies of a replay share the table
                made = self._made.setdefault(first, made)
                self._first[made] = first
        return made

    def _weighed(self, placement: Placement) -> Placement:
        if placement.content is None or placement.method not in _COUNTED:
            return placement
        size = self._weigher.size(placement.content, None, placement.kind, placement.key)
        return msgspec.structs.replace(
            placement, tokens=size.tokens, method=size.method, counted=size.counted
        )

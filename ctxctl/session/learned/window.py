"""The window of a captured request and its learnable items, updated from request to request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from ctxctl.session.learned.book import STANDING

_KINDS: Final = STANDING | {"policy_note", "runtime_state", "durable_memory", "external_resource"}
_MAX_MOVING_SPLICES: Final = 8
"""Most splices for which later blocks are moved. With more, the list is rebuilt."""

Name = tuple[str, str]
"""Kind and version of a learnable item."""


class HeldPlacement(NamedTuple):
    """A placement of a captured request, from which the set is learned."""

    kind: str
    role: str
    segment: str
    title: str | None
    text: str | None
    version: str = ""
    """Digest of the text, or of its canonical form if another form was sent; empty without a text."""

    @property
    def name(self) -> Name | None:
        """Its kind and version; None if it cannot be learned."""
        return (self.kind, self.version) if self.kind in _KINDS and self.text else None


Common = dict[Name, HeldPlacement]
"""The items common to all requests of a kind of thread, in the order of the first request."""


class CarriedWindow:
    """A window as one list of placements per block. A splice costs what it changes.

    Args:
        blocks: The blocks of the window.
    """

    def __init__(self, blocks: list[list[HeldPlacement]]) -> None:
        self._blocks = blocks
        self.placements = 0
        """Number of placements."""
        self.present: Counter[Name] = Counter()
        """Number of copies of each learnable item."""
        self.fresh: list[HeldPlacement] = []
        """Learnable placements that entered since this was cleared."""
        self.gone: list[Name] = []
        """Learnable items that left at the last change."""
        self.is_whole = True
        """Whether its assembly listed all of it."""
        self.met: Common | None = None
        """The items it was last compared with, all of which were in it then."""
        self._enter(blocks)

    def splice(self, splices: list[list[int]], fresh: list[list[HeldPlacement]]) -> None:
        """Apply splices `[at, removed, inserted]`, in ascending order."""
        self.is_whole = False
        blocks = self._blocks
        left = [block for at, removed, _ in splices for block in blocks[at : at + removed]]
        if len(splices) <= _MAX_MOVING_SPLICES:
            self._moved(splices, fresh)
        else:
            self._made_anew(splices, fresh)
        self._enter(fresh)
        for block in left:
            self.placements -= len(block)
            self.present.subtract(name for held in block if (name := held.name) is not None)
        names = dict.fromkeys(name for block in left for held in block if (name := held.name) is not None)
        self.gone = [name for name in names if self.present[name] <= 0]
        for name in self.gone:
            del self.present[name]

    def _moved(self, splices: list[list[int]], fresh: list[list[HeldPlacement]]) -> None:
        blocks, end, used = self._blocks, len(self._blocks), len(fresh)
        for at, removed, inserted in reversed(splices):
            start = min(at, end)  # what lies beyond its end is new
            blocks[start : min(at + removed, end)] = fresh[used - inserted : used]
            used -= inserted

    def _made_anew(self, splices: list[list[int]], fresh: list[list[HeldPlacement]]) -> None:
        made: list[list[HeldPlacement]] = []
        at = used = 0
        for start, removed, inserted in splices:
            made += self._blocks[at:start]
            made += fresh[used : used + inserted]
            at, used = start + removed, used + inserted
        self._blocks = made + self._blocks[at:]

    def _enter(self, blocks: Iterable[list[HeldPlacement]]) -> None:
        for block in blocks:
            self.placements += len(block)
            for held in block:
                name = held.name
                if name is not None:
                    self.present[name] += 1
                    self.fresh.append(held)

    def held(self) -> list[HeldPlacement]:
        """Return all of its placements, in order."""
        return [held for block in self._blocks for held in block]

    def standing(self) -> Common:
        """Return its learnable items in order, each once."""
        found: Common = {}
        for held in self.held():
            name = held.name
            if name is not None:
                found.setdefault(name, held)
        return found

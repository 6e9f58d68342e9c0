"""The frame in `window` mode: each request carries the whole window (DESIGN section 3, rule 1).

Assemblies are resolved to placements and kept as bases for later splices.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ctxctl.engine.replay.append import after_compactions
from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.engine.replay.placements import Placer
from ctxctl.engine.replay.reweighing import Reweigher
from ctxctl.engine.replay.stale_copies import StaleCopies
from ctxctl.model.records import Assembly, Block, Splice
from ctxctl.model.results import Placement
from ctxctl.model.vocab import Basis

if TYPE_CHECKING:
    from ctxctl.engine.replay.step_facts import FactsReading, StepFacts
    from ctxctl.engine.replay.thread_data import ThreadData

_MAX_UNFOLDED = 8
"""Number of recent assemblies that keep their placements as a list, even if they could be rebuilt."""
_MAX_KEPT_CELLS = 400_000
"""Placements that all kept assemblies may hold together. At least two assemblies are kept."""

_MAX_CHAIN = 32
"""Longest chain of splices from which a folded assembly is rebuilt."""

_CELLS_FREE = 100_000_000
_CELLS_EACH = 20_000
"""Placements that splices of a thread may copy: a fixed allowance, plus an allowance for each splice.

A splice of a few bytes copies the whole window, so a small log could cause unbounded work. Above 20,000
items, the copy costs more than all other work for a request.
"""

Piece = tuple[int, int] | list[Placement]
"""Part of a spliced assembly: a range of its base's placements, or new placements."""


class Resolved:
    """An assembly's placements, and the number of placements per block where it is not one each.

    A spliced assembly can be folded: it then keeps its pieces instead of the list. The pieces, with its
    bases' lists and pieces, hold at most twice as many entries as the list.
    """

    __slots__ = ("_base", "_depth", "_list", "_made_of", "_pieces", "cut", "era", "record", "size", "spans")

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
        """How often sizes had changed when it was resolved: a thread may switch to another encoding."""
        self.cut = False
        """Whether it is incomplete, because its base was too large or was itself cut."""
        self._base: Resolved | None = None
        self._pieces: tuple[Piece, ...] = ()
        self._depth = 0
        self._made_of = self.size
        """Entries of all lists and pieces that it is rebuilt from."""
        if base is None or base._depth == _MAX_CHAIN:
            return
        made_of = base._made_of + sum([1 if isinstance(piece, tuple) else len(piece) for piece in pieces])
        if made_of <= 2 * self.size:
            self._base, self._pieces = base, tuple([piece for piece in pieces if piece])
            self._depth, self._made_of = base._depth + 1, made_of

    @property
    def placements(self) -> list[Placement]:
        """The placements, not to be modified. A folded assembly rebuilds the list on each access."""
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

    @property
    def cells(self) -> int:
        """The most placements that a splice of this assembly copies."""
        return self.size if self._list is not None else self.size * (1 + self._depth)

    def fold(self) -> None:
        """Free the list if it can be rebuilt."""
        if self._base is not None:
            self._list = None


class _Hint(NamedTuple):
    """A spliced list and its base, with the lengths of their common head and tail."""

    base: list[Placement]
    made: list[Placement]
    head: int
    tail: int
    removed: list[Placement]
    inserted: list[Placement]

    def delta(self) -> FrameDelta:
        """Return the difference that the splice made."""
        return FrameDelta(self.head, self.tail, self.removed, self.inserted, False, self.base, self.made)


class FrameChange(NamedTuple):
    """Two frames and their difference."""

    before: list[Placement]
    after: list[Placement]
    delta: FrameDelta


class WindowResolver:
    """Resolves assemblies to placements and builds window-mode frames."""

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        self._resolved: OrderedDict[str, Resolved] = OrderedDict()
        self._parked: tuple[Resolved, ...] = ()
        """The values of `_resolved` while this is parked."""
        self._open: deque[Resolved] = deque()
        self._cells = 0
        self._spare = _CELLS_FREE
        """Placements that splices may still copy."""
        self._raw: list[Placement] = []
        """The last frame before stale copies were marked."""
        self._stale = StaleCopies()
        self._live: list[Placement] = []
        self._live_taken = False
        self._hint: _Hint | None = None
        """The change that the last splice made."""
        self.change: FrameChange | None = None
        """The last frame's difference from the previous one, if known."""
        self._era = 0
        """How often sizes have changed."""
        self.fault: str | None = None
        """The slug of the problem in the last assembly's splices. The replay reports it."""
        self.goes_on = False
        """Whether that problem comes from a base's problem that was reported already."""

    def copy(self, placer: Placer) -> WindowResolver:
        """Return an independent copy, for a snapshot of a replay."""
        twin = WindowResolver(placer)
        twin._resolved = _by_id(self._parked) if self._parked else self._resolved.copy()
        twin._open = self._open.copy()
        twin._raw, twin._live, twin._live_taken = self._raw, self._live, self._live_taken
        twin._cells, twin._spare = self._cells, self._spare
        twin._era = self._era
        twin._stale = self._stale.copy()
        return twin

    def park(self) -> None:
        """Free memory. After this, the resolver can only be copied."""
        self._parked = self._parked or tuple(self._resolved.values())
        self._resolved = OrderedDict()

    def recount(self, anew: Reweigher) -> None:
        """Change to other sizes, both of what is kept and of what is made from it later."""
        self._raw, self._live = anew.all(self._raw), anew.all(self._live)
        self._stale.forget(self._raw)
        self._hint = self.change = None
        self._live_taken = False
        self._era += 1

    @property
    def given_up(self) -> bool:
        """Whether `take_given_up` would return any items."""
        return bool(self._stale.given_up)

    def take_given_up(self) -> list[str]:
        """Return the items whose copies are no longer marked as stale, since the last call."""
        given_up, self._stale.given_up = self._stale.given_up, []
        return given_up

    def _in_era(self, found: Resolved) -> Resolved:
        """Return a resolved assembly in current sizes."""
        anew = self._placer.anew
        if found.era == self._era or anew is None:
            return found
        made = Resolved(anew.all(found.placements), found.spans)
        made.record, made.era, made.cut = found.record, self._era, found.cut
        return made

    @property
    def kept(self) -> int:
        """Number of assemblies that are kept for later splices."""
        return len(self._resolved)

    def resolve(self, assembly: Assembly, segments: dict[str, str]) -> list[Placement]:
        """Return the placements of an assembly as of its own line. Kept blocks of a base do not change."""
        self.fault, self.goes_on = None, False
        base = self._resolved.get(assembly.base) if assembly.base is not None else None
        base = self._in_era(base) if base is not None else None
        if assembly.base is not None and base is None:
            self.fault = "unknown-base"
            # Only its new blocks are known. Append them to the last window.
            base = Resolved(self._raw, None)
            at = len(self._raw)
            assembly = msgspec.structs.replace(assembly, splices=(Splice(at, 0, len(assembly.blocks)),))
        elif base is not None and not base.cut and assembly.splices and _reach(assembly) > base.blocks:
            self.fault = "bad-splice"
        if base is not None and (base.cut or self._spare + _CELLS_EACH < base.cells):
            self.fault, self.goes_on = "windows-too-large", base.cut
            base = None
        if base is not None:
            self._spare += _CELLS_EACH - base.cells
            resolved = self._spliced(base, assembly, segments)
        else:
            resolved = self._whole(_ordered(assembly.blocks), segments)
        resolved.record, resolved.era = assembly, self._era
        resolved.cut = self.fault == "windows-too-large"
        if assembly.assembly_id is not None:
            before = self._resolved.get(assembly.assembly_id)
            self._cells -= before.size if before is not None else 0
            self._resolved[assembly.assembly_id] = resolved
            self._resolved.move_to_end(assembly.assembly_id)
            self._cells += resolved.size
            while self._cells > _MAX_KEPT_CELLS and len(self._resolved) > 2:
                _, oldest = self._resolved.popitem(last=False)
                self._cells -= oldest.size
        self._open.append(resolved)
        if len(self._open) > _MAX_UNFOLDED:
            self._open.popleft().fold()
        return resolved.placements

    def assembly(self, assembly_id: str) -> tuple[Assembly, list[Placement]] | None:
        """Return an earlier assembly, and its placements as of its own line."""
        found = self._resolved.get(assembly_id)
        if found is None or found.record is None:
            return None
        return found.record, self._in_era(found).placements

    def _whole(self, blocks: tuple[Block, ...] | list[Block], segments: dict[str, str]) -> Resolved:
        if not [block for block in blocks if len(block.refs) != 1]:
            return Resolved(self._placer.singles(blocks, segments), None)
        placements: list[Placement] = []
        spans: list[int] | None = None
        make = self._placer.block
        for at, block in enumerate(blocks):
            found = make(block, segments)
            placements += found
            if len(found) != 1 and spans is None:
                spans = [1] * at
            if spans is not None:
                spans.append(len(found))
        return Resolved(placements, spans)

    def _spliced(self, base: Resolved, assembly: Assembly, segments: dict[str, str]) -> Resolved:
        fresh = self._whole(assembly.blocks, segments)
        old, new = base.placements, fresh.placements
        old_spans, new_spans = base.spans, fresh.spans
        plain = old_spans is None and new_spans is None
        if not plain:
            old_spans = old_spans or [1] * len(old)
            new_spans = new_spans or [1] * len(new)
        placements: list[Placement] = []
        spans: list[int] = []
        removed: list[Placement] = []
        pieces: list[Piece] = []
        old_at, new_at = _offsets(old_spans), _offsets(new_spans)
        at = taken = 0
        for splice in assembly.splices:
            end = splice.at + splice.removed
            kept = old_at(at), old_at(splice.at)
            stop = taken + splice.inserted
            own = new[new_at(taken) : new_at(stop)]
            stretch = old[kept[0] : kept[1]]
            if placements:
                placements += stretch
            else:
                placements = stretch
            placements += own
            pieces += (kept, own)
            removed += old[kept[1] : old_at(end)]
            if old_spans is not None and new_spans is not None:
                spans += old_spans[at : splice.at] + new_spans[taken:stop]
            at, taken = end, stop
        tail = old[old_at(at) :]
        placements += tail
        pieces.append((old_at(at), len(old)))
        # If the window equals its base, count all of it as head, not as head and tail.
        head, end = (old_at(assembly.splices[0].at), len(tail)) if assembly.splices else (len(tail), 0)
        used = new[: new_at(taken)]
        # After a splice beyond the end of its base, the common head and tail are unreliable.
        sound = self.fault != "bad-splice"
        self._hint = _Hint(old, placements, head, end, removed, used) if sound else None
        if old_spans is not None:
            spans += old_spans[at:]
        return Resolved(placements, None if plain else spans, base, pieces)

    def blocks(self, assembly_id: str | None) -> int | None:
        """Return the number of blocks of an assembly, including those of its base."""
        found = self._resolved.get(assembly_id) if assembly_id is not None else None
        return found.blocks if found is not None else None

    def delta(self, before: list[Placement], after: list[Placement]) -> FrameDelta | None:
        """Return the difference of two frames if it is known from the last `frame` call."""
        change = self.change
        if change is not None and change.before is before and change.after is after:
            return change.delta
        return None

    def frame(
        self, thread: ThreadData, facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement]]:
        """Return the window by the strongest record, with older versions of an item marked as stale."""
        if facts.assembly is not None or facts.selection is not None:
            thread.book.settle()
            self._live_taken = False
        if facts.assembly is not None:
            return "assembly", self._current(thread, thread.assembled)
        dropped = reading.dropped()
        if facts.selection is not None:
            visible = [p for p in reading.selected() if p.item not in dropped and _visible(thread, p)]
            if facts.cuts:
                visible, _ = after_compactions(thread, facts.cuts, visible)
            return "selection", self._current(thread, visible)
        return "items", self._current(thread, self._live_frame(thread, dropped))

    def _live_frame(self, thread: ThreadData, dropped: dict[str, str | None]) -> list[Placement]:
        book, plain = thread.book, self._placer.plain
        if book.disturbed or not self._live_taken:
            self._live = [plain(v) for v in book.live.values() if v.visible]
        elif book.appeared:
            live = self._live + [plain(v) for v in book.appeared if v.visible]
            self._hint = _Hint(self._live, live, len(self._live), 0, [], live[len(self._live) :])
            self._live = live
        self._live_taken = True
        book.settle()
        if dropped:
            return [p for p in self._live if p.item not in dropped]
        return self._live

    def _current(self, thread: ThreadData, raw: list[Placement]) -> list[Placement]:
        """Mark each copy as stale that is not of its item's newest version in the frame."""
        hint = self._hint
        known = hint is not None and hint.base is self._raw and hint.made is raw
        change = hint.delta() if hint is not None and known else delta_of(self._raw, raw)
        self.change = FrameChange(self._raw, raw, change)
        self._raw = raw
        return self._stale.mark(raw, change, thread.book, self._placer)


def _by_id(kept: Iterable[Resolved]) -> OrderedDict[str, Resolved]:
    found = OrderedDict[str, Resolved]()
    for resolved in kept:
        assert resolved.record is not None
        assert resolved.record.assembly_id is not None
        found[resolved.record.assembly_id] = resolved
    return found


def _reach(assembly: Assembly) -> int:
    """Return how many blocks of the base the splices refer to."""
    last = assembly.splices[-1]
    return last.at + last.removed


def _offsets(spans: list[int] | None) -> Callable[[int], int]:
    """Return a function from a block index to the number of placements before that block."""
    if spans is None:
        return lambda block: block
    before = [0, *accumulate(spans)]
    return lambda block: before[min(block, len(spans))]


def _ordered(blocks: tuple[Block, ...]) -> tuple[Block, ...] | list[Block]:
    """Return blocks by `position`. A block without one keeps its place."""
    if not [b for b in blocks if b.position is not None]:
        return blocks
    rows = [(index if b.position is None else b.position, index) for index, b in enumerate(blocks)]
    if rows == sorted(rows):
        return blocks
    return [blocks[index] for _, index in sorted(rows)]


def _visible(thread: ThreadData, placement: Placement) -> bool:
    version = thread.book.find(placement.item)
    return version is None or version.visible

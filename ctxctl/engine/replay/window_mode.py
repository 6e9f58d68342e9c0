"""The frame in `window` mode: each request carries the whole window (DESIGN section 3, rule 1).

Assemblies are resolved to placements and kept for those that are spliced from them later.
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

_OPEN = 8
"""Assemblies resolved last that keep their placements as a list, whatever they were spliced from."""
_KEPT_CELLS = 400_000
"""Placements that the assemblies kept for later splices may hold together; at least two are kept."""

_CHAIN = 32
"""Splices at most that lead from a folded assembly to the list which it is made from again."""

_CELLS_FREE = 100_000_000
_CELLS_EACH = 20_000
"""Placements that the splices of a thread may copy: once, and for each of them.

A splice of a few bytes copies the window that it changes, whatever its size, so a small log could cause
endless work.  A window of more than 20,000 items costs more to copy than all else that is done for a request.
"""

Piece = tuple[int, int] | list[Placement]
"""Of a spliced assembly: a stretch of its base's placements, or placements of its own."""


class Resolved:
    """An assembly's placements, and how many each block gave where that is not one each.

    One that was spliced from another can be folded: it then keeps what it is made of and not the list.  What
    it is made of, its bases' lists and pieces included, is never more than twice the list.
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
        """In which sizes: a thread may go on with a model of another encoding."""
        self.cut = False
        """Whether it is not the whole window: its base was too large, or itself cut."""
        self._base: Resolved | None = None
        self._pieces: tuple[Piece, ...] = ()
        self._depth = 0
        self._made_of = self.size
        """Entries of all lists and pieces that it is made of."""
        if base is None or base._depth == _CHAIN:
            return
        made_of = base._made_of + sum([1 if isinstance(piece, tuple) else len(piece) for piece in pieces])
        if made_of <= 2 * self.size:
            self._base, self._pieces = base, tuple([piece for piece in pieces if piece])
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

    @property
    def cells(self) -> int:
        """Placements that are copied, at most, to make another window of this one."""
        return self.size if self._list is not None else self.size * (1 + self._depth)

    def fold(self) -> None:
        """Let go of the list if it can be made again."""
        if self._base is not None:
            self._list = None


class _Hint(NamedTuple):
    """Two lists of which one was spliced from the other, and what they share at either end."""

    base: list[Placement]
    made: list[Placement]
    head: int
    tail: int
    removed: list[Placement]
    inserted: list[Placement]

    def delta(self) -> FrameDelta:
        """The difference that the splicing made."""
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
        """What `_resolved` holds, while this is parked."""
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
        """What the last splicing left alone."""
        self.change: FrameChange | None = None
        """The last frame's difference from the one before, where it is known already."""
        self._era = 0
        """How often sizes became others."""
        self.fault: str | None = None
        """What was wrong with the last assembly's splices, as a problem's slug; the replay reports it."""
        self.goes_on = False
        """Whether that goes on from a fault of its base, which was reported."""

    def copy(self, placer: Placer) -> WindowResolver:
        """An independent copy, for a snapshot of a replay."""
        twin = WindowResolver(placer)
        twin._resolved = _by_id(self._parked) if self._parked else self._resolved.copy()
        twin._open = self._open.copy()
        twin._raw, twin._live, twin._live_taken = self._raw, self._live, self._live_taken
        twin._cells, twin._spare = self._cells, self._spare
        twin._era = self._era
        twin._stale = self._stale.copy()
        return twin

    def park(self) -> None:
        """Let go of what takes room: from here on this can only be copied, and the copy has it again."""
        self._parked = self._parked or tuple(self._resolved.values())
        self._resolved = OrderedDict()

    def recount(self, anew: Reweigher) -> None:
        """Sizes are others from here on: of what is kept, and of what is made of it later."""
        self._raw, self._live = anew.all(self._raw), anew.all(self._live)
        self._stale.forget(self._raw)
        self._hint = self.change = None
        self._live_taken = False
        self._era += 1

    @property
    def given_up(self) -> bool:
        """Whether `take_given_up` would give any."""
        return bool(self._stale.given_up)

    def take_given_up(self) -> list[str]:
        """Items of which no copy is told to be stale any more, since this was asked last."""
        given_up, self._stale.given_up = self._stale.given_up, []
        return given_up

    def _in_era(self, found: Resolved) -> Resolved:
        """An assembly as it was resolved, in today's sizes."""
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
        """The placements of an assembly as of its own line; kept blocks of a base stay as they were there."""
        self.fault, self.goes_on = None, False
        base = self._resolved.get(assembly.base) if assembly.base is not None else None
        base = self._in_era(base) if base is not None else None
        if assembly.base is not None and base is None:
            self.fault = "unknown-base"
            # Its new blocks are all that is known: they go behind the window as it last was.
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
            while self._cells > _KEPT_CELLS and len(self._resolved) > 2:
                _, oldest = self._resolved.popitem(last=False)
                self._cells -= oldest.size
        self._open.append(resolved)
        if len(self._open) > _OPEN:
            self._open.popleft().fold()
        return resolved.placements

    def assembly(self, assembly_id: str) -> tuple[Assembly, list[Placement]] | None:
        """An earlier assembly that an injection names, as it was resolved at its own line."""
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
        # Of a window that is the same as its base, all is head: what is both would be counted twice.
        head, end = (old_at(assembly.splices[0].at), len(tail)) if assembly.splices else (len(tail), 0)
        used = new[: new_at(taken)]
        # What a splice beyond the end of its base left alone is not where it says.
        sound = self.fault != "bad-splice"
        self._hint = _Hint(old, placements, head, end, removed, used) if sound else None
        if old_spans is not None:
            spans += old_spans[at:]
        return Resolved(placements, None if plain else spans, base, pieces)

    def blocks(self, assembly_id: str | None) -> int | None:
        """Number of blocks of an assembly, those of its base included."""
        found = self._resolved.get(assembly_id) if assembly_id is not None else None
        return found.blocks if found is not None else None

    def delta(self, before: list[Placement], after: list[Placement]) -> FrameDelta | None:
        """The difference of two frames if the last frame's making gave it."""
        change = self.change
        if change is not None and change.before is before and change.after is after:
            return change.delta
        return None

    def frame(
        self, thread: ThreadData, facts: StepFacts, reading: FactsReading
    ) -> tuple[Basis, list[Placement]]:
        """The window by the strongest thing recorded, with older versions of an item marked stale."""
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
        """Mark as stale each copy that is not of its item's newest version in the frame."""
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
    """How many blocks of its base the splices speak of."""
    last = assembly.splices[-1]
    return last.at + last.removed


def _offsets(spans: list[int] | None) -> Callable[[int], int]:
    """Tells how many placements there are before a block, also behind the last one."""
    if spans is None:
        return lambda block: block
    before = [0, *accumulate(spans)]
    return lambda block: before[min(block, len(spans))]


def _ordered(blocks: tuple[Block, ...]) -> tuple[Block, ...] | list[Block]:
    """Blocks by `position`; one without keeps its place in the list."""
    if not [b for b in blocks if b.position is not None]:
        return blocks
    rows = [(index if b.position is None else b.position, index) for index, b in enumerate(blocks)]
    if rows == sorted(rows):
        return blocks
    return [blocks[index] for _, index in sorted(rows)]


def _visible(thread: ThreadData, placement: Placement) -> bool:
    version = thread.book.find(placement.item)
    return version is None or version.visible

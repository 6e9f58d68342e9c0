"""The policy `sibyl` on one thread: what it knows of a pack is kept, and a step costs what changed in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final

from ctxctl.model.fitting import Drop, Fate, Moves, Outcome, Room, Seat, Swap, characters
from ctxctl.plugins.sibyl.policy.markdown import sizes, trailer
from ctxctl.plugins.sibyl.policy.pieces import HEADER, KIND, TRAILER, is_heading, shortened

_GONE: Final = Drop(0, "budget_limit")
_by_place = attrgetter("place")


class _Piece:
    """What is known of an item of the pack."""

    __slots__ = ("block", "most", "swap")

    def __init__(self) -> None:
        self.most = 0
        """Characters of content that the others are for; 0: none yet."""
        self.block = 0
        """Characters that it takes, with its line end."""
        self.swap: Swap | None = None
        """Its shorter form; None: it stays as it is."""


class Packer:
    """It looks at the pack alone, however much else there is.

    Items and headings stand in order, beside them the characters that the markdown has behind each were
    nothing left out.  A search in these sums finds where the markdown ends: only what stands between the ends
    of two steps, and beside what came or left, has another fate.
    """

    def __init__(self) -> None:
        self._tokens = 0
        """Of all that is there, the pack or not."""
        self._parts: list[Seat] = []
        """Items and headings, in order."""
        self._sums: list[int] = []
        """Of the first of them, with their headings and without the header; as many as were needed."""
        self._trailers: dict[Seat, None] = {}
        self._items = 0
        self._chars = 0
        """Of the pack as recorded, with line ends."""
        self._header = 0
        """Characters of the header."""
        self._lengths: dict[Seat, int] = {}
        """Of the pack's parts and the header."""
        self._odd = 0
        """Headings that are memories themselves: they never stay in a markdown that is cut."""
        self._most = 0
        """Characters that an item may take at present; 0: nothing is cut."""
        self._end: int | None = None
        """Place of the first item that has no room; None: all have."""
        self._cap = 0
        self._trimmed = False
        self._fated: dict[Seat, None] = {}
        """Those that have a fate."""
        self._dropped = self._saved = 0
        """How many of them are dropped, and their tokens."""
        self._changed: dict[Seat, None] = {}

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Take them in."""
        self._move((), seats)

    def state(self) -> Any:
        """It has none."""
        return None

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step."""
        self._changed = {}
        beside = self._move(moves.left, moves.came)
        limit = sizes(room.cap if room is not None else None, self._items, 1)
        if room is None or limit.chars is None or not self._items:
            for seat in list(self._fated):
                self._turn(seat, None)
            self._most, self._end, self._trimmed = 0, None, False
            fits = room is None or self._tokens <= room.cap
            return Outcome("fits" if fits else "still_over", self._changed)
        if self._chars <= limit.chars:
            return self._all_in(limit.content, room, beside)
        whole = limit.content != self._most
        if whole:
            self._sums, self._most = [], limit.content
        end = self._ended(limit.chars - self._header)
        broken = end < len(self._parts)
        trimmed = broken or bool(self._odd)
        whole |= trimmed != self._trimmed
        look: Iterable[int] = range(len(self._parts))
        if not whole:
            before = len(self._parts) if self._end is None else self._at(self._end)
            ats = [self._at(place) for place in beside]
            look = {*ats, *(at - 1 for at in ats), *range(min(before, end) - 1, max(before, end))}
        self._trimmed, self._end = trimmed, self._parts[end].place if broken else None
        for at in look:
            if 0 <= at < len(self._parts):
                self._turn(self._parts[at], self._fate(at, end, room.cap))
        self._end_with(room.cap, end, anew=whole or room.cap != self._cap, came=moves.came)
        self._cap = room.cap
        verdict = "fitted" if self._tokens - self._saved <= room.cap else "still_over"
        cut = len(self._fated) - self._dropped
        return Outcome(verdict, self._changed, self._dropped, cut)  # type: ignore[arg-type]

    def _all_in(self, most: int, room: Room, beside: list[int]) -> Outcome:
        """All have room: only what is longer than its share is cut."""
        whole = most != self._most or self._end is not None or self._trimmed
        if most != self._most:
            self._sums, self._most = [], most
        self._end, self._trimmed, self._cap = None, False, room.cap
        parts = self._parts
        for at in range(len(parts)) if whole else [self._at(place) for place in beside]:
            if at < len(parts):
                known = None if is_heading(parts[at].candidate) else self._known(parts[at]).swap
                self._turn(parts[at], known)
        for seat in self._trailers if whole else ():
            if seat.candidate.kind != KIND:
                self._turn(seat, None)
        if self._tokens - self._saved > room.cap:
            return Outcome("still_over", self._changed, 0, len(self._fated))
        return Outcome("fitted" if self._fated else "fits", self._changed, 0, len(self._fated))

    def _move(self, left: Iterable[Seat], came: Iterable[Seat]) -> list[int]:
        """Follow a window; the places of the items and headings that left or came."""
        gone: dict[Seat, None] = {}
        fresh: dict[Seat, None] = {}
        for seats, parts, sign in ((left, gone, -1), (came, fresh, 1)):
            for seat in seats:
                self._tokens += sign * seat.candidate.tokens
                if self._account(seat, sign):
                    parts[seat] = None
        for seat in left:
            self._turn(seat, None)
            self._changed.pop(seat, None)
        places = [seat.place for seat in (*gone, *fresh)]
        if places:
            at = self._at(min(places))
            rest = self._parts[at:]
            self._parts[at:] = sorted([*(s for s in rest if s not in gone), *fresh], key=_by_place)
            del self._sums[at:]
        return places

    def _account(self, seat: Seat, sign: int) -> bool:
        """Count one in or out; whether it is an item or a heading."""
        candidate = seat.candidate
        memory, heading = candidate.kind == KIND, is_heading(candidate)
        size = sign * (self._length(seat, sign) + 1) if memory or heading or candidate.item == HEADER else 0
        if memory:
            self._items += sign
            self._chars += size
        if heading:
            self._chars += size
        if heading and memory:
            self._odd += sign
        if candidate.item == HEADER:
            self._chars += size
            self._header += size
        elif candidate.item == TRAILER and sign > 0:
            self._trailers[seat] = None
        elif candidate.item == TRAILER:
            del self._trailers[seat]
        if sign > 0 and memory and not heading:
            seat.unit = _Piece()
        return memory or heading

    def _length(self, seat: Seat, sign: int = 0) -> int:
        """Characters of an item, a heading or the header; read once, while it is there."""
        found = self._lengths.get(seat)
        if found is None:
            found = self._lengths[seat] = characters(seat.candidate)
        if sign < 0:
            del self._lengths[seat]
        return found

    def _ended(self, space: int) -> int:
        """Index of the first item that has no room; the number of parts where all have."""
        parts, sums = self._parts, self._sums
        while len(sums) < len(parts) and not (sums and sums[-1] > max(space, 0)):
            at = len(sums)
            total = sums[-1] if sums else 0
            if not is_heading(parts[at].candidate):
                total += self._known(parts[at]).block
                if at and is_heading(parts[at - 1].candidate):
                    total += self._length(parts[at - 1]) + 1
            sums.append(total)
        end, first = bisect_right(sums, space), bisect_right(sums, 0)
        if end <= first < len(parts):
            # The first item always stays: the second one ends it.
            end = first + 1
            while end < len(parts) and is_heading(parts[end].candidate):
                end += 1
        return max(end, first)

    def _at(self, place: int) -> int:
        return bisect_left(self._parts, place, key=_by_place)

    def _known(self, seat: Seat) -> _Piece:
        piece: _Piece = seat.unit
        if piece.most != self._most:
            text = seat.candidate.read()
            short = shortened(text, self._most)
            piece.most = self._most
            piece.block = (self._length(seat) if short is None else len(short)) + 1
            piece.swap = Swap(0, short) if short is not None and short != text else None
        return piece

    def _fate(self, at: int, end: int, cap: int) -> Fate:
        """Of an item or a heading, where the markdown ends before `end`."""
        parts, candidate = self._parts, self._parts[at].candidate
        if is_heading(candidate):
            filled = at + 1 < end and not is_heading(parts[at + 1].candidate)
            return _GONE if self._trimmed and (candidate.kind == KIND or not filled) else None
        if at >= end:
            return _GONE
        if self._trimmed and candidate.item == TRAILER:
            return Swap(0, trailer(cap))
        return self._known(parts[at]).swap

    def _end_with(self, cap: int, end: int, *, anew: bool, came: Iterable[Seat]) -> None:
        """Say at the end of a markdown that it was cut."""
        for seat in self._trailers if anew else [seat for seat in came if seat in self._trailers]:
            if seat.candidate.kind == KIND:
                self._turn(seat, self._fate(self._at(seat.place), end, cap))
            else:
                self._turn(seat, Swap(0, trailer(cap)) if self._trimmed else None)

    def _turn(self, seat: Seat, fate: Fate) -> None:
        """Give a seat its fate."""
        was = seat.fate
        if was is fate or was == fate:
            return
        for one, sign in ((was, -1), (fate, 1)):
            if type(one) is Drop:
                self._dropped += sign
                self._saved += sign * seat.candidate.tokens
        seat.fate = fate
        self._changed[seat] = None
        if fate is None:
            del self._fated[seat]
        else:
            self._fated[seat] = None

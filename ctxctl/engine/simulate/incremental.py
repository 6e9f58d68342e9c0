"""An incremental fitting policy on one thread: the cost of a step is proportional to its changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from ctxctl.engine.replay.changes import Cause, NamedItem
from ctxctl.engine.replay.frames import FrameDelta, delta_of
from ctxctl.engine.replay.placements import Placer
from ctxctl.engine.simulate.placements import PlacementMaker
from ctxctl.engine.simulate.state import Make, SeatList, by_place
from ctxctl.engine.simulate.unfitted_window import too_large
from ctxctl.model.fitting import Candidate, Cut, Drop, Kept, Moves, Note, Outcome, Room, Seat, Swap
from ctxctl.model.results import Placement


class Edit(NamedTuple):
    """The placements at one place of the frame, before and after; None if there is none."""

    place: int
    before: Placement | None
    after: Placement | None


class CarriedOutStep(NamedTuple):
    """A keeper's decision for one step, and the resulting frame."""

    outcome: Outcome
    frame: list[Placement]
    delta: FrameDelta | None
    """Difference from the previous frame; None if that is unknown here."""
    causes: dict[str, Cause]
    """Causes of the items that left the frame and are left out."""
    named: tuple[NamedItem, ...]
    """Items that are newly left out."""
    truncated: frozenset[str]
    tokens: int
    """Tokens in the frame."""


T = TypeVar("T")
_SEATS_FREE = 1_000_000
_SEATS_EACH = 500
"""Seats that a thread may decide again: a fixed allowance, plus an allowance for each step.

Most steps decide only a few seats. But if a thousand calls share one id, they all enter and leave together,
at every step.
"""


class IncrementalWindow:
    """The keeper of one thread, its seats, and the resulting frame."""

    def __init__(self, policy: Kept, state: Any, gone: frozenset[str]) -> None:
        """Continue from `state` and `gone` (items left out) of the previous step."""
        self._policy = policy
        self._made_of = (state, gone)
        self._scene: SeatList[Placement] = SeatList()
        self._spare = _SEATS_FREE
        self._begin()

    def _begin(self) -> None:
        keeper = self._policy.keeper()
        assert keeper is not None
        self._keeper = keeper
        self._fresh = True
        """Whether there is no frame to edit yet."""
        self._frame: list[Placement] = []
        self._places: list[int] = []
        self._tokens = 0
        self._notes: dict[int, Placement] = {}
        self._shown: dict[Placement, int] = {}
        """Number of seats that show a placement."""
        self._dropped: dict[str, int] = {}
        """Number of dropped seats by item."""
        self._cut: dict[str, int] = {}
        """Number of cut or swapped seats by item."""
        self._truncated: frozenset[str] = frozenset()

    @property
    def made_of(self) -> tuple[Any, frozenset[str]]:
        """The policy's state and the items left out, from which a copy continues. Neither is modified."""
        return self._made_of if self._fresh else (self._keeper.state(), frozenset(self._dropped))

    def step(
        self, window: list[Placement], changed_values: Iterable[str], make: Make[Placement],
        room: Room | None, made: PlacementMaker, placer: Placer, grown: tuple[list[Placement], int] = ([], 0),
    ) -> CarriedOutStep:  # fmt: skip
        """Decide one step.

        Args:
            window: What would be in it had nothing been left out.
            changed_values: Items whose priority or score the trace may state anew since the step before.
            make: The candidate of a placement, as of now.
            room: None: there is room for all.
            made: Makes what stands for others.
            placer: The thread's.
            grown: The window before, and how many that it begins with are surely there still.

        Raises CtxctlError("what-if-too-large") where so many come and go so often that it would take long.
        """
        altered = self._altered(changed_values, make)
        moves = self._scene.move_to(window, make, grown)
        if moves is None and not self._fresh:
            self._made_of = (self._keeper.state(), frozenset(self._dropped))
            self._begin()
        if self._fresh or moves is None:
            self._keeper.start(self._scene.seats, self._made_of[0])
            moves = Moves(self._scene.seats, (), (), ())
        else:
            left = set(moves.left)
            moves = moves._replace(altered=[seat for seat in altered if seat not in left])
        outcome = self._keeper.step(moves, room)
        return self._carried_out(moves, outcome, made, placer)

    def _altered(self, items: Iterable[str], make: Make[Placement]) -> list[Seat]:
        found = []
        for item in items:
            seats = self._scene.of(item)
            # The trace's values belong to an item, so one of its copies stands for all.
            one = next(iter(seats), None)
            if one is None or _values(make(one.placement)) == _values(one.candidate):
                continue
            for seat in seats:
                was, now = seat.candidate, make(seat.placement)
                if _values(now) != _values(was):
                    seat.candidate = was._replace(priority=now.priority, score=now.score)
                    found.append(seat)
        return found

    def _carried_out(
        self, moves: Moves, outcome: Outcome, made: PlacementMaker, placer: Placer
    ) -> CarriedOutStep:
        had: dict[str, bool] = {}
        """By item with a seat dropped before or now: whether one was dropped at the previous step."""
        edits: list[Edit] = []
        cut = bool(self._fresh)
        for seat in moves.left:
            cut |= self._account(seat, None, had)
            if seat.shown is not None:
                _count(self._shown, seat.shown, -1)
                edits.append(Edit(seat.place, seat.shown, None))
        newly: list[Seat] = []
        gone = set(moves.left)
        touched = moves.seats if self._fresh else dict.fromkeys((*moves.came, *outcome.changed))
        self._spare += _SEATS_EACH - len(touched)
        if self._spare < 0:
            raise too_large()
        for seat in touched:
            fate, was = seat.fate, seat.was
            new = seat.shown is None and was is None
            if seat in gone or (fate == was and not new):
                continue
            cut |= self._account(seat, fate, had)
            if type(fate) is Drop and type(was) is not Drop:
                newly.append(seat)
            before, seat.shown = seat.shown, _shown(seat, made, placer)
            if before is not seat.shown:
                if before is not None:
                    _count(self._shown, before, -1)
                if seat.shown is not None:
                    _count(self._shown, seat.shown, 1)
                edits.append(Edit(seat.place, before, seat.shown))
        if cut:
            self._truncated = frozenset(self._cut)
        edits += self._noted(outcome.notes, made, placer)
        edits.sort(key=by_place)
        frame, delta = self._edited(edits)
        removed = self._dropped if delta is None else {p.item: None for p in delta.removed}
        summary = next(iter(self._notes.values())).item if outcome.summary and self._notes else None
        causes = {item: self._cause(item, summary) for item in removed if item in self._dropped}
        was_gone = self._made_of[1] if self._fresh else None
        newly.sort(key=by_place)
        named = tuple(
            NamedItem(seat.placement.item, seat.placement, Cause(None, seat.fate.reason, None, True))
            for seat in newly
            if seat.fate is not None
            and not (had[seat.placement.item] if was_gone is None else seat.placement.item in was_gone)
        )
        self._fresh = False
        return CarriedOutStep(outcome, frame, delta, causes, named, self._truncated, self._tokens)

    def _account(self, seat: Seat, fate: Drop | Cut | Swap | None, had: dict[str, bool]) -> bool:
        """Take a seat's fate, or its leaving. Return whether the cut items changed."""
        item, cut = seat.placement.item, False
        for now, sign in ((seat.was, -1), (fate, 1)):
            if type(now) is Drop:
                had.setdefault(item, item in self._dropped)
                _count(self._dropped, item, sign)
            elif now is not None:
                cut = True
                _count(self._cut, item, sign)
        seat.was = fate
        return cut

    def _noted(
        self, notes: Sequence[tuple[int, Note]], made: PlacementMaker, placer: Placer
    ) -> Iterator[Edit]:
        """Yield the edits that replace the policy's own texts."""
        now = {place: made.note(placer, note) for place, note in notes}
        for place in self._notes.keys() | now.keys():
            before, after = self._notes.get(place), now.get(place)
            if before is not after:
                yield Edit(place, before, after)
        self._notes = now

    def _cause(self, item: str, summary: str | None) -> Cause:
        if summary is not None:
            return Cause("compacted", None, summary, True)
        fate = next(seat.fate for seat in self._scene.of(item) if type(seat.fate) is Drop)
        return Cause("omitted", fate.reason, None, True)

    def _edited(self, edits: list[Edit]) -> tuple[list[Placement], FrameDelta | None]:
        """Return the frame after the edits, which are in order, and its difference from the previous one."""
        before, old = self._frame, self._places
        if not edits and not self._fresh:
            return before, FrameDelta(len(before), 0, [], [], False, before, before)
        frame: list[Placement] = []
        places: list[int] = []
        removed: list[Placement] = []
        inserted: list[Placement] = []
        at = prefix = 0
        for number, (place, was, now) in enumerate(edits):
            to = bisect_left(old, place, at)
            if not number:
                prefix = to
            frame += before[at:to]
            places += old[at:to]
            at = to
            if was is not None:
                at += 1
                removed.append(was)
                self._tokens -= was.tokens
            if now is not None:
                frame.append(now)
                places.append(place)
                inserted.append(now)
                self._tokens += now.tokens
        frame += before[at:]
        places += old[at:]
        self._frame, self._places = frame, places
        if self._fresh:
            return frame, None
        suffix = len(before) - at
        if self._plain(removed, inserted):
            return frame, FrameDelta(prefix, suffix, removed, inserted, False, before, frame)
        return frame, delta_of(before, frame, prefix, suffix)

    def _plain(self, removed: list[Placement], inserted: list[Placement]) -> bool:
        """Return whether removed and inserted have no placement in common and none twice."""
        if removed and inserted and not {p.key for p in removed}.isdisjoint(p.key for p in inserted):
            return False
        changed = removed + inserted
        if len(set(changed)) != len(changed):
            return False
        fresh = set(inserted)
        return all(self._shown.get(placement, 0) <= (placement in fresh) for placement in changed)


def _values(candidate: Candidate) -> tuple[Any, Any]:
    return candidate.priority, candidate.score


def _shown(seat: Seat, made: PlacementMaker, placer: Placer) -> Placement | None:
    """Return the placement in the frame for a seat."""
    fate, placement = seat.fate, seat.placement
    assert isinstance(placement, Placement)
    if fate is None:
        return placement
    if isinstance(fate, Drop):
        return None
    if isinstance(fate, Cut):
        return made.cut(placer, placement, fate)
    return made.swapped(placer, placement, fate)


def _count(sums: dict[T, int], what: T, sign: int) -> None:
    total = sums.get(what, 0) + sign
    if total:
        sums[what] = total
    else:
        del sums[what]

"""Keepers of the policies that take units out in an order: a step costs what changed since the last one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from ctxctl.model.fitting import Candidate, Drop, Fate, Moves, Note, Outcome, Room, Seat, Swap, Verdict
from ctxctl.policies.fitting.grouping import Unit, UnitTable
from ctxctl.policies.fitting.protection import Protection

Rank = Callable[[Unit], tuple[float, ...]]


class SendsAll:
    """Of a policy that takes nothing out: it sends what fits, and says what it is if it does not."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict
        self._tokens = 0

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Count them."""
        self._tokens = sum(seat.candidate.tokens for seat in seats)

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Say whether it fits."""
        self._tokens += sum(seat.candidate.tokens for seat in moves.came)
        self._tokens -= sum(seat.candidate.tokens for seat in moves.left)
        return Outcome("fits" if room is None or self._tokens <= room.cap else self._verdict, ())

    def state(self) -> Any:
        """It has none."""
        return None


class RankedQueue:
    """Things by rank, the lowest or the highest first; what is no longer true of one is skipped."""

    def __init__(self, *, highest: bool = False) -> None:
        self._heap: list[tuple[tuple[float, ...], int, Any]] = []
        self._sign = -1 if highest else 1
        self._stamps: dict[Any, int] = {}
        self._next = 0

    def add(self, what: Any, rank: tuple[float, ...]) -> None:
        """Put one in, or in another place; no two have the same rank."""
        self._next += 1
        self._stamps[what] = self._next
        heappush(self._heap, (tuple(self._sign * value for value in rank), self._next, what))

    def drop(self, what: Any) -> None:
        """Take one out, if it is in."""
        self._stamps.pop(what, None)

    def first(self) -> Any:
        """The first one, or None."""
        heap = self._heap
        while heap:
            _, stamp, what = heap[0]
            if self._stamps.get(what) == stamp:
                return what
            heappop(heap)
        return None


class Names:
    """Names of what is out, and how often each is; what was out at the step before is told until `settle`."""

    def __init__(self) -> None:
        self.before: dict[str, int] = {}
        self.latest: list[str] = []
        """Those that were not in it one step earlier: copies of them follow."""
        self._added: list[str] = []
        self._taken: list[str] = []
        self._afresh = False

    def start(self, state: Any) -> None:
        """Begin with the names of a state."""
        self.before, self._afresh = dict.fromkeys(state or (), 1), True

    def add(self, names: Iterable[str]) -> None:
        """These are out from now on."""
        self._added += names

    def take(self, names: Iterable[str]) -> None:
        """These were, and are no longer."""
        self._taken += names

    def settle(self) -> None:
        """The step is over."""
        if self._afresh:
            self.before, self._taken, self._afresh = {}, [], False
        self.latest = [name for name in dict.fromkeys(self._added) if name not in self.before]
        for name in self._added:
            self.before[name] = self.before.get(name, 0) + 1
        for name in self._taken:
            if self.before[name] == 1:
                del self.before[name]
            else:
                self.before[name] -= 1
        self._added, self._taken = [], []

    def state(self) -> frozenset[str] | None:
        """What a policy is handed at the next step."""
        return frozenset(self.before) or None


class IncrementalEviction:
    """Takes units out in the order of their rank until the rest fits, and keeps them out."""

    def __init__(
        self,
        rules: Protection,
        rank: Rank,
        reason: str,
        *,
        target: float,
        sticky: bool,
        summary: int | None = None,
    ) -> None:
        """`summary`: tokens of the one that stands for what left; None: nothing does."""
        self._ground = UnitTable(rules)
        self._rank = rank
        self._fate = Drop(0, reason)
        self._target = target
        self._sticky = sticky
        self._summary = summary
        self._names = Names()
        self._kept = RankedQueue()
        self._last = RankedQueue(highest=True)
        """What is gone; without stickiness the last to leave is the first to come back."""
        self._eldest = RankedQueue()
        """What is gone, by its place: there the summary stands."""
        self._gone: dict[Unit, tuple[int, tuple[str, ...]]] = {}
        """With the tokens and the names that it had when it left."""
        self._tokens = 0
        """Of what is gone."""
        self._seats = 0
        self._changed: dict[Seat, None] = {}
        self._start: Moves | None = None

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Take them in; what was gone is recognised by its name."""
        self._start = Moves(seats, (), seats, ())
        self._names.start(state)

    def state(self) -> Any:
        """Names of what is gone; None while all is there."""
        return self._names.state()

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step."""
        if self._start is not None:
            moves, self._start = self._start, None
        self._changed = {}
        changed = self._ground.move(moves, self._names.latest)
        for unit in changed:
            self._back(unit)
            self._kept.drop(unit)
        fits = room is None or self._ground.tokens <= room.cap
        if fits:
            for unit in list(self._gone):
                self._back(unit)
                self._kept.add(unit, self._rank(unit))
        before = self._names.before if self._sticky and not fits else {}
        for unit in changed:
            if not unit.loose:
                continue
            if before and any(seat.candidate.name in before for seat in unit.seats):
                self._out(unit)
            else:
                self._kept.add(unit, self._rank(unit))
        total = self._ground.tokens if room is None or fits else self._fitted(room.cap)
        self._names.settle()
        if room is None or fits:
            return Outcome("fits", self._changed)
        verdict: Verdict = "fitted" if total <= room.cap else "still_over"
        if self._summary is None or not self._gone:
            return Outcome(verdict, self._changed, self._seats)
        place = self._eldest.first().first - 1
        notes = ((place, Note(0, None, self._summary)),)
        return Outcome(verdict, self._changed, self._seats, notes=notes, summary=True)

    def _fitted(self, cap: int) -> int:
        """Take out what has to go; the tokens that are left."""
        kept, last = self._kept, self._last
        if not self._sticky:
            while (unit := kept.first()) is not None and (end := last.first()) is not None:
                if self._rank(unit) > self._rank(end):
                    break
                self._out(unit)
        bound = int(cap * self._target)
        if self._total() > cap or not self._sticky:
            while self._total() > bound and (unit := kept.first()) is not None:
                self._out(unit)
        if not self._sticky:
            while (unit := last.first()) is not None and self._total() + unit.tokens <= bound:
                self._back(unit)
                kept.add(unit, self._rank(unit))
        return self._total()

    def _total(self) -> int:
        return self._ground.tokens - self._tokens + ((self._summary or 0) if self._gone else 0)

    def _out(self, unit: Unit) -> None:
        names = tuple(seat.candidate.name for seat in unit.seats)
        self._gone[unit] = (unit.tokens, names)
        self._names.add(names)
        self._tokens += unit.tokens
        self._seats += len(names)
        self._kept.drop(unit)
        if not self._sticky:
            self._last.add(unit, self._rank(unit))
        if self._summary is not None:
            self._eldest.add(unit, (unit.first,))
        self._turn(unit, self._fate)

    def _back(self, unit: Unit) -> None:
        """Bring a unit back, if it is gone."""
        was = self._gone.pop(unit, None)
        if was is None:
            return
        self._tokens -= was[0]
        self._names.take(was[1])
        self._seats -= len(was[1])
        self._last.drop(unit)
        self._eldest.drop(unit)
        self._turn(unit, None)

    def _turn(self, unit: Unit, fate: Fate) -> None:
        for seat in unit.seats:
            seat.fate = fate
            self._changed[seat] = None


class IncrementalDeferral:
    """Swaps the largest for references until the rest fits, and leaves them so."""

    def __init__(
        self, rules: Protection, kinds: Collection[str], gain: Callable[[Candidate], tuple[str, int]]
    ) -> None:
        """`gain`: the text that stands for a candidate, and the tokens that this saves at least."""
        self._ground = UnitTable(rules)
        self._kinds = kinds
        self._gain = gain
        self._gains: dict[Seat, tuple[Swap, int]] = {}
        """Of what can be swapped with a gain."""
        self._whole = RankedQueue()
        self._swapped: dict[Seat, None] = {}
        self._names = Names()
        self._saved = 0
        self._changed: dict[Seat, None] = {}
        self._start: Moves | None = None

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Take them in; what was swapped is recognised by its name."""
        self._start = Moves(seats, (), seats, ())
        self._names.start(state)

    def state(self) -> Any:
        """Names of what is swapped; None while all is there."""
        return self._names.state()

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step."""
        if self._start is not None:
            moves, self._start = self._start, None
        self._changed = {}
        seats = [seat for unit in self._ground.move(moves, self._names.latest) for seat in unit.seats]
        for seat in (*moves.left, *seats):
            self._back(seat)
            self._whole.drop(seat)
        for seat in moves.left:
            self._gains.pop(seat, None)
        fits = room is None or self._ground.tokens <= room.cap
        if fits:
            for seat in list(self._swapped):
                self._back(seat)
                self._wait(seat)
        before = {} if fits else self._names.before
        for seat in seats:
            if not self._able(seat):
                continue
            if seat.candidate.name in before:
                self._swap(seat)
            else:
                self._wait(seat)
        if room is None or fits:
            self._names.settle()
            return Outcome("fits", self._changed)
        while self._ground.tokens - self._saved > room.cap and (seat := self._whole.first()) is not None:
            self._swap(seat)
        self._names.settle()
        verdict: Verdict = "fitted" if self._ground.tokens - self._saved <= room.cap else "still_over"
        return Outcome(verdict, self._changed, cut=len(self._swapped))

    def _able(self, seat: Seat) -> bool:
        if seat.candidate.kind not in self._kinds or not seat.unit.loose:
            return False
        if seat not in self._gains:
            text, saved = self._gain(seat.candidate)
            self._gains[seat] = Swap(0, text, "budget_limit"), saved
        return self._gains[seat][1] > 0

    def _wait(self, seat: Seat) -> None:
        self._whole.add(seat, (-seat.candidate.tokens, seat.place))

    def _swap(self, seat: Seat) -> None:
        seat.fate, saved = self._gains[seat]
        self._whole.drop(seat)
        self._swapped[seat] = self._changed[seat] = None
        self._saved += saved
        self._names.add((seat.candidate.name,))

    def _back(self, seat: Seat) -> None:
        if seat not in self._swapped:
            return
        del self._swapped[seat]
        self._saved -= self._gains[seat][1]
        self._names.take((seat.candidate.name,))
        seat.fate = None
        self._changed[seat] = None

"""Policies that decide from step to step can also be asked about one window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import msgspec

from ctxctl.model.fitting import Candidate, Cut, Drop, Fit, Keeper, Moves, Note, Outcome, Room, Seat, Swap


class StepwisePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy of this kind has its rules in its keeper alone."""

    def keeper(self) -> Keeper:
        """Make a keeper that applies this policy to one thread."""
        raise NotImplementedError

    def fit(self, candidates: Sequence[Candidate], room: Room, state: Any) -> Fit:
        """Decide one window, which is the first step of a new keeper.  O(n log n) in the candidates."""
        keeper = self.keeper()
        seats = [Seat(candidate, 4 * number) for number, candidate in enumerate(candidates, 1)]
        keeper.start(seats, state)
        outcome = keeper.step(Moves(seats, (), (), ()), room)
        return fit_of(seats, outcome, keeper.state())


def fit_of(seats: Sequence[Seat], outcome: Outcome, state: Any = None) -> Fit:
    """Return what a keeper decided of all seats of a window, as `fit` would."""
    drops: list[Drop] = []
    cuts: list[Cut] = []
    swaps: list[Swap] = []
    for at, seat in enumerate(seats):
        fate = seat.fate
        if type(fate) is Drop:
            drops.append(Drop(at, fate.reason))
        elif type(fate) is Cut:
            cuts.append(fate._replace(at=at))
        elif type(fate) is Swap:
            swaps.append(fate._replace(at=at))
    sources = tuple(drop.at for drop in drops) if outcome.summary else ()
    notes: list[Note] = []
    for place, note in outcome.notes:
        before = bisect_left(seats, place, key=lambda seat: seat.place)
        notes.append(note._replace(before=before, sources=sources))
    return Fit(
        outcome.verdict, tuple(drops), tuple(cuts), tuple(swaps), tuple(notes), outcome.level, state,
        outcome.told,
    )  # fmt: skip

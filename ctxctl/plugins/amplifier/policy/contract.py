"""The policy `amplifier_contract`: the example of Amplifier's context contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import Meta

from ctxctl.model.fitting import Candidate, Drop, Keeper, Moves, Outcome, Room, Seat, Verdict, characters
from ctxctl.policies.fitting.grouping import Unit, UnitTable
from ctxctl.policies.fitting.incremental_eviction import RankedQueue
from ctxctl.policies.fitting.protection import Protection
from ctxctl.policies.fitting.stepwise import StepwisePolicy

_SYSTEM = ("system_prompt", "developer_instruction")


class AmplifierContract(StepwisePolicy, frozen=True, kw_only=True):
    """The example manager of Amplifier's context contract: the oldest messages leave for good.

    Rules of the contract's `SimpleContext` (first published version):

    - Size: a quarter of the characters of all contents; `max_tokens` is the cap.
    - Beyond `threshold` of it, all but system messages leave, oldest first, until no more than `target` is
      left; what left never comes back.
    - As printed, its loop measures the list that it does not shorten, so that it empties the conversation;
      `literal=true` does that. Here, as the comment beside it says, the last that fit are kept.
    - As printed, it may tear a tool call from its results, which providers refuse; `pairs=false` does that.

    The context manager that Amplifier comes with is policy `amplifier`.
    """

    name = "amplifier_contract"
    early = True
    threshold: Annotated[float, Meta(description="share of the cap beyond which it acts", gt=0, le=1)] = 0.9
    target: Annotated[float, Meta(description="share of the cap to go down to", gt=0, le=1)] = 0.7
    pairs: Annotated[bool, Meta(description="tool calls and their results leave together")] = True
    literal: Annotated[bool, Meta(description="as the example runs: everything but the system leaves")] = (
        False
    )

    def keeper(self) -> Keeper:
        """Make a keeper that lets units leave one after the other."""
        return _Shedder(self)


def _chars(candidate: Candidate) -> int:
    return characters(candidate) or 4 * candidate.tokens


class _Shedder:
    """The policy on one thread."""

    def __init__(self, policy: AmplifierContract) -> None:
        self._policy = policy
        self._ground = UnitTable(Protection(protect_recent=0, protect_kinds=_SYSTEM), paired=policy.pairs)
        self._names: set[str] = set()
        self._latest: list[str] = []
        """Names that left at the step before: copies of theirs follow."""
        self._away: dict[Seat, None] = {}
        self._chars = 0
        """Of the messages that are left."""
        self._line = RankedQueue()
        self._changed: dict[Seat, None] = {}
        self._start: Moves | None = None

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Take them in; what is gone is gone by name."""
        self._start = Moves(seats, (), seats, ())
        self._names = set(state or ())

    def state(self) -> Any:
        """Names of all that ever left."""
        return frozenset(self._names)

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step."""
        if self._start is not None:
            moves, self._start = self._start, None
        self._changed = {}
        changed = self._ground.move(moves, self._latest)
        for seat in moves.left:
            if seat in self._away:
                del self._away[seat]
            elif seat.candidate.segment != "tools":
                self._chars -= _chars(seat.candidate)
        for seat in moves.came:
            if seat.candidate.segment != "tools":
                self._chars += _chars(seat.candidate)
        if room is None:
            self._names = set()
            for seat in list(self._away):
                self._back(seat)
                changed[seat.unit] = None
        for unit in changed:
            self._leave(seat for seat in unit.seats if seat.candidate.name in self._names)
            self._line.drop(unit)
            if unit.loose:
                self._line.add(unit, (unit.first,))
        self._latest = []
        if room is None:
            return Outcome("fits", self._changed)
        if self._chars // 4 > room.cap * self._policy.threshold:
            self._shed(room.cap * self._policy.target)
        verdict: Verdict = "fitted" if self._away else "fits"
        if self._chars // 4 > room.cap:
            verdict = "still_over"
        return Outcome(verdict, self._changed, len(self._away))

    def _shed(self, most: float) -> None:
        while self._policy.literal or self._chars // 4 > most:
            unit: Unit | None = self._line.first()
            if unit is None:
                break
            self._line.drop(unit)
            self._leave(unit.seats)
            self._latest += [seat.candidate.name for seat in unit.seats]
        self._names.update(self._latest)

    def _leave(self, seats: Iterable[Seat]) -> None:
        for seat in seats:
            if seat not in self._away and seat.candidate.segment != "tools":
                self._away[seat] = self._changed[seat] = None
                self._chars -= _chars(seat.candidate)
                seat.fate = _GONE

    def _back(self, seat: Seat) -> None:
        del self._away[seat]
        self._changed[seat] = None
        self._chars += _chars(seat.candidate)
        seat.fate = None


_GONE = Drop(0, "budget_limit")

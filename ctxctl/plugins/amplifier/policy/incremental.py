"""The keeper of the policy `amplifier` in its newer version: messages, sizes and memory from step to step."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

from ctxctl.model.fitting import Drop, Fate, Moves, Note, Outcome, Room, Seat, Swap, Verdict
from ctxctl.plugins.amplifier.policy.ladder import climb
from ctxctl.plugins.amplifier.policy.messages import (
    NOTICE,
    Memory,
    Message,
    in_conversation,
    is_system,
    of_candidates,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctxctl.model.fitting import Candidate
    from ctxctl.plugins.amplifier.policy.ladder import Rules

by_place = attrgetter("place")
_GONE: Final = Drop(0, "budget_limit")
_STALE: Final = Drop(0, "stale")


class Decisions(Protocol):
    """What the policy decides of sizes alone: its parameters, and the sentences of its notice."""

    @property
    def truncate_chars(self) -> int:
        """Characters left of a cut result."""

    def budget(self, room: Room) -> int:
        """Tokens that the messages may take."""

    def exceeds(self, tokens: int, budget: int) -> bool:
        """Whether it acts."""

    def ladder(self, budget: int) -> Rules:
        """What the ladder is climbed under."""

    def telling(
        self,
        counts: tuple[int, int, int, int],
        before: tuple[int, int],
        after: tuple[int, int],
        sizes: tuple[int, int],
    ) -> dict[str, int]:
        """What is recorded of a compaction, as `Amplifier.telling` has it."""

    def telling_text(self, told: Mapping[str, int]) -> str | None:
        """The notice of a compaction; None: it gives none."""

    def noticed(self, candidate: Candidate, text: str | None) -> Drop | Swap | None:
        """What becomes of the runtime's own notice where the policy's is `text`."""


class Held:
    """A message of the conversation and the seats that it is made of."""

    __slots__ = ("chars", "gone", "message", "name", "seats")

    def __init__(self, message: Message, seats: list[Seat]) -> None:
        self.message = message
        self.seats = seats
        self.name: str = seats[0].candidate.name
        self.chars = message.chars
        """As it came."""
        self.gone = False

    @property
    def size(self) -> int:
        """As it came."""
        return self.chars // 4

    @property
    def first(self) -> int:
        """Its place."""
        return self.seats[0].place


by_first = attrgetter("first")


class Compactor:
    """context-simple on one thread."""

    def __init__(self, policy: Decisions) -> None:
        self._policy = policy
        self._helds: list[Held] = []
        self._of: dict[Message, Held] = {}
        self._named: dict[str, list[Held]] = {}
        self._system: list[Seat] = []
        self._prompt: Message | None = None
        self._notices: list[Seat] = []
        self._raw = self._now = 0
        """Tokens of the messages as they came, and of what is left of them."""
        self._answered: dict[str, int] = {}
        """By call, how many results of it are left."""
        self._touched: dict[Held, None] = {}
        """What is gone, or another text stands for."""
        self._acting = False
        self._seats_gone = self._said = 0
        self._decided: list[str] = []
        """Names that were decided on at the step before: copies of theirs follow at this one."""
        self._changed: dict[Seat, None] = {}
        self._start: Moves | None = None
        self._recall(Memory(sizes={}))

    def _recall(self, memory: Memory) -> None:
        self._removed, self._truncated = set(memory.removed), set(memory.truncated)
        self._stubbed = set(memory.stubbed)
        self._level, self._told, self._sizes = memory.level, memory.told, memory.sizes

    def start(self, seats: Sequence[Seat], state: Any) -> None:
        """Take them in, and what was decided."""
        self._start = Moves(seats, (), seats, ())
        if state is not None:
            self._recall(state)

    def state(self) -> Memory:
        """What was decided so far."""
        return Memory(
            frozenset(self._removed), frozenset(self._truncated), frozenset(self._stubbed), self._level,
            self._told, self._sizes,
        )  # fmt: skip

    def step(self, moves: Moves, room: Room | None) -> Outcome:
        """Decide one step."""
        if self._start is not None:
            moves, self._start = self._start, None
        self._changed = {}
        if room is None:
            self._decided = [*self._removed, *self._truncated, *self._stubbed]
            self._recall(Memory(sizes=self._sizes))
        self._again()
        self._follow(moves)
        floor = self._prompt.size if self._prompt is not None else 0
        if room is None:
            return self._untouched("fits", ())
        policy = self._policy
        budget = policy.budget(room)
        size = floor + self._raw
        if not policy.exceeds(size, budget):
            return self._untouched("still_over" if size > budget else "fits", self._notices)
        level = told = None
        self._act(True)
        if policy.exceeds(floor + self._now, budget):
            told = self._climb(floor, budget)
            level = self._level
        verdict: Verdict = "still_over" if floor + self._now > budget else "fitted"
        stale, swapped, notes = self._notice()
        dropped = self._seats_gone + stale
        return Outcome(verdict, self._changed, dropped, self._said + swapped, notes, level=level, told=told)

    # -- messages ----------------------------------------------------------------------------------------

    def _follow(self, moves: Moves) -> None:
        """Make the messages anew where the window changed."""
        seats = moves.seats
        places: list[int] = []
        system = False
        for seat in (*moves.left, *moves.came):
            candidate = seat.candidate
            if is_system(candidate):
                system = True
            if in_conversation(candidate):
                places.append(seat.place)
            if candidate.item == NOTICE:
                self._notices = [other for other in self._notices if other is not seat]
        self._notices += [seat for seat in moves.came if seat.candidate.item == NOTICE]
        self._notices.sort(key=by_place)
        if system:
            left = set(moves.left)
            self._system = [seat for seat in self._system if seat not in left]
            self._system += [seat for seat in moves.came if is_system(seat.candidate)]
            self._system.sort(key=by_place)
            made = of_candidates([seat.candidate for seat in self._system], self._sizes)
            self._prompt = made[0] if made else None
        if not places:
            return
        low, high = min(places), max(places)
        helds = self._helds
        begin = max(0, bisect_left(helds, low, key=by_first) - 1)
        end = min(len(helds), bisect_right(helds, high, key=by_first) + 1)
        old = helds[begin:end]
        start = min(low, old[0].first) if old else low
        stop = max(high, old[-1].seats[-1].place) if old else high
        stretch = seats[bisect_left(seats, start, key=by_place) : bisect_right(seats, stop, key=by_place)]
        stretch = [seat for seat in stretch if in_conversation(seat.candidate)]
        made = of_candidates([seat.candidate for seat in stretch], self._sizes)
        made = [message for message in made if message.role != "system"]
        for held in old:
            self._withdraw(held)
        fresh = [
            Held(message, [stretch[at] for at in message.of]) for message in made if message.role != "system"
        ]
        helds[begin:end] = fresh
        for held in fresh:
            self._enter(held)

    def _withdraw(self, held: Held) -> None:
        self._raw -= held.size
        self._count(held, -1)
        self._touched.pop(held, None)
        del self._of[held.message]
        others = self._named[held.name]
        others.remove(held)
        if not others:
            del self._named[held.name]
        self._fate(held, seats_only=True)

    def _enter(self, held: Held) -> None:
        self._raw += held.size
        self._of[held.message] = held
        self._named.setdefault(held.name, []).append(held)
        self._apply(held)

    def _apply(self, held: Held) -> None:
        """What was decided on a message, which is as it came."""
        message, name = held.message, held.name
        if name in self._removed:
            held.gone = True
        elif name in self._truncated:
            message.truncate(self._policy.truncate_chars)
            message.state = "truncated"
        elif name in self._stubbed:
            message.stub()
        self._count(held, 1)
        self._fate(held)

    def _again(self) -> None:
        """Copies of what was decided on at the step before."""
        for name in dict.fromkeys(self._decided):
            for held in self._named.get(name, ()):
                self._count(held, -1)
                message = held.message
                message.chars, message.said, message.state, held.gone = held.chars, None, "", False
                self._apply(held)
        self._decided = []

    def _count(self, held: Held, sign: int) -> None:
        """Take a message into the sums of what is left, or out of them."""
        if held.gone:
            self._seats_gone += sign * len(held.seats)
            return
        self._now += sign * held.message.size
        self._said += sign * (held.message.said is not None)
        call = held.message.answers
        if call is not None:
            total = self._answered.get(call, 0) + sign
            if total:
                self._answered[call] = total
            else:
                del self._answered[call]

    def _fate(self, held: Held, *, seats_only: bool = False) -> None:
        """Give a message's seats their fates; `seats_only`: none, the message is no longer there."""
        said = held.message.said
        if held.gone or said is not None:
            self._touched[held] = None
        else:
            self._touched.pop(held, None)
        acting = self._acting and not seats_only
        for number, seat in enumerate(held.seats):
            fate: Fate = None
            if acting and held.gone:
                fate = _GONE
            elif acting and said is not None and not number:
                fate = Swap(0, said)
            self._turn(seat, fate)
        if seats_only:
            self._touched.pop(held, None)

    def _turn(self, seat: Seat, fate: Fate) -> None:
        if seat.fate != fate:
            seat.fate = fate
            self._changed[seat] = None

    def _act(self, acting: bool) -> None:
        """Whether what was decided is in force: it is not while all that came fits."""
        if acting != self._acting:
            self._acting = acting
            for held in list(self._touched):
                self._fate(held)

    # -- decisions ---------------------------------------------------------------------------------------

    def _untouched(self, verdict: Verdict, stale: Iterable[Seat]) -> Outcome:
        """All stays, but a notice of what was not done here."""
        self._act(False)
        for seat in self._notices:
            self._turn(seat, None)
        dropped = 0
        for seat in stale:
            self._turn(seat, _STALE)
            dropped += 1
        if dropped and verdict == "fits":
            verdict = "fitted"
        return Outcome(verdict, self._changed, dropped)

    def _climb(self, floor: int, budget: int) -> dict[str, int]:
        """Go up the ladder with what is left, and remember what it decided."""
        policy = self._policy
        rules = policy.ladder(budget)
        rest = [held for held in self._helds if not held.gone]
        for held in rest:
            self._count(held, -1)
        made = climb([held.message for held in rest], rules, floor)
        gone = [self._of[message] for message in made.removed]
        for held in gone:
            held.gone = True
        for held in rest:
            self._count(held, 1)
            self._fate(held)
        removed = {held.name for held in gone}
        states: dict[str, set[str]] = {"truncated": set(), "stubbed": set()}
        for message in made.kept:
            if message.state:
                states[message.state].add(self._of[message].name)
        self._decided = [*removed, *states["truncated"], *states["stubbed"]]
        self._removed |= removed
        self._truncated = (self._truncated | states["truncated"]) - self._removed
        self._stubbed = (self._stubbed | states["stubbed"]) - self._removed
        self._level = max(self._level, made.level)
        counts = (self._level, len(self._removed), len(self._truncated), len(self._stubbed))
        system = self._prompt is not None
        self._told = policy.telling(
            counts,
            (floor + self._raw, len(self._helds) + system),
            (floor + self._now, len(made.kept) + system),
            (budget, rules.target),
        )
        return self._told

    def _notice(self) -> tuple[int, int, tuple[tuple[int, Note], ...]]:
        """Notices that are dropped, that are swapped, and the policy's own with its place."""
        text = self._policy.telling_text(self._told) if self._told is not None and not self._waits() else None
        stale = swapped = 0
        for seat in self._notices:
            fate = self._policy.noticed(seat.candidate, text)
            self._turn(seat, fate)
            stale += isinstance(fate, Drop)
            swapped += isinstance(fate, Swap)
            if not isinstance(fate, Drop):
                text = None
        if text is None:
            return stale, swapped, ()
        place = self._system[-1].place if self._system else 0
        for held in reversed(self._helds):
            if not held.gone:
                place = max(place, held.seats[-1].place)
                break
        return stale, swapped, ((place + 1, Note(0, text, role="user", kind="policy_note")),)

    def _waits(self) -> bool:
        """Whether calls at the end have no result yet."""
        for held in reversed(self._helds):
            if not held.gone and held.message.role != "tool":
                return any(call not in self._answered for call in held.message.calls)
        return False

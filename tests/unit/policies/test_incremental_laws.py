"""Keepers decide, step by step, what the plain definition decides of each window by itself: seeded walks."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from ctxctl.engine.simulate.state import SeatList
from ctxctl.model.fitting import Candidate, Cut, Drop, Fit, Moves, Note, Outcome, Room, Seat, Swap
from ctxctl.policies.registry import policy_by_name
from tests.oracle.plain_policies import plain_fit
from tests.unit.policies.fitting_help import candidate

POLICIES = (
    "fifo", "fifo:target=0.5", "fifo:sticky=false,target=0.6", "fifo:protect_recent=0,protect_head=false",
    "priority", "priority:target=0.7,protect_recent=0", "priority:sticky=false,protect_head=false",
    "priority:protect_kinds=file+tool_result,protect_recent=2", "reject", "ask_for_choice", "policy_block",
    "truncate_tail", "truncate_tail:protect_recent=0", "truncate_tail:protect_kinds=tool_result",
    "truncate_middle", "truncate_middle:protect_head=false,protect_recent=2",
    "summarize_oldest:summary_tokens=5", "summarize_oldest:summary_tokens=40,protect_recent=0",
    "summarize_low_priority:summary_tokens=3,target=0.6", "defer_to_retrieval",
    "defer_to_retrieval:protect_recent=0,protect_kinds=file", "amplifier_contract",
    "amplifier_contract:literal=true", "amplifier_contract:pairs=false,target=0.3",
)  # fmt: skip
KINDS = (
    "user_message", "assistant_message", "assistant_message", "tool_call", "tool_result", "file",
    "retrieval_result", "system_prompt", "tool_definition",
)  # fmt: skip
WALKS, STEPS = 50, 14


def windows(random: Random) -> Iterator[tuple[list[Candidate], Room | None]]:
    """Windows that mostly grow at their end, and what there is room for."""
    window: list[Candidate] = []
    ever: list[Candidate] = []
    for step in range(STEPS):
        fresh = []
        for number in range(random.choice((0, 1, 1, 2, 3))):
            kind = random.choice(KINDS)
            pairs = (f"c{random.randrange(4)}",) if kind.startswith("tool_") and kind != KINDS[-1] else ()
            made = candidate(
                f"m{step}.{number}", random.choice((0, 1, 5, 20, 60, 90, 150)), kind, pairs=pairs,
                priority=random.choice((None, 0.0, 1.0, 2.0)), title=random.choice((None, "a title")),
            )  # fmt: skip
            fresh.append(random.choice(ever) if ever and random.random() < 0.15 else made)
        ever += fresh
        at = len(window) if random.random() < 0.6 else random.randint(0, len(window))
        gone = random.choice((0, 0, 0, 0, 1, 3))
        window = [*window[:at], *fresh, *window[at + gone :]]
        yield window, random.choice((None, Room(90), Room(150), Room(150), Room(150), Room(260)))


class Stepwise:
    """A policy's keeper in the hands of its caller."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._keeper = policy.keeper()
        self._list = SeatList()
        self._begun = False

    def step(self, window: list[Candidate], room: Room | None) -> tuple[Outcome, list[Seat]]:
        before = {id(seat): seat.fate for seat in self._list.seats}
        moves = self._list.move_to(window, lambda one: one)  # type: ignore[arg-type, return-value]
        if moves is None or not self._begun:
            state = self._keeper.state()
            self._keeper = self._policy.keeper()
            self._keeper.start(self._list.seats, state)
            moves, self._begun, before = Moves(self._list.seats, (), (), ()), True, {}
        outcome = self._keeper.step(moves, room)
        for seat in self._list.seats:
            if seat.fate != before.get(id(seat)):
                assert seat in outcome.changed, "what is decided otherwise is among what changed"
        return outcome, list(self._list.seats)

    def state(self) -> Any:
        return self._keeper.state()


def same(one: Fit, other: Fit) -> bool:
    """No state is the same as an empty one."""
    return one._replace(state=one.state or None) == other._replace(state=other.state or None)


def fates_of(fit: Fit, window: list[Candidate]) -> list[Any]:
    fates: list[Any] = [None] * len(window)
    for one in (*fit.drops, *fit.cuts, *fit.swaps):
        fates[one.at] = without_index(one)
    return fates


def without_index(fate: Drop | Cut | Swap | None) -> Drop | Cut | Swap | None:
    return None if fate is None else fate._replace(at=0)


def plain_note(note: Note) -> tuple[Any, ...]:
    return note.text, note.tokens, note.role, note.kind


@pytest.mark.parametrize("name", POLICIES)
def test_each_step_is_decided_as_by_itself(name: str) -> None:
    policy: Any = policy_by_name(name)
    for walk in range(WALKS):
        stepwise, state = Stepwise(policy), None
        for step, (window, room) in enumerate(windows(Random(walk))):
            where = f"walk {walk}, step {step}"
            plain = Fit("fits") if room is None else plain_fit(policy, window, room, state)
            if room is not None:
                assert same(policy.fit(window, room, state), plain), where
            state = plain.state
            outcome, seats = stepwise.step(window, room)
            assert [seat.candidate for seat in seats] == window, where
            assert outcome.verdict == plain.verdict, where
            fates = [without_index(seat.fate) for seat in seats]
            assert fates == fates_of(plain, window), where
            assert outcome.dropped == len(plain.drops), where
            assert outcome.cut == len(plain.cuts) + len(plain.swaps), where
            notes = [
                (sum(seat.place < place for seat in seats), *plain_note(note))
                for place, note in outcome.notes
            ]
            assert notes == [(note.before, *plain_note(note)) for note in plain.notes], where
            assert outcome.summary == bool(plain.notes), where
            assert (stepwise.state() or None) == (state or None), where


def test_the_walks_come_by_every_verdict() -> None:
    seen = set()
    for name in POLICIES:
        policy: Any = policy_by_name(name)
        for walk in range(WALKS):
            stepwise = Stepwise(policy)
            seen |= {stepwise.step(window, room)[0].verdict for window, room in windows(Random(walk))}
    assert seen == {"fits", "fitted", "still_over", "rejected", "asks", "blocked"}


@pytest.mark.parametrize("name", POLICIES)
def test_a_step_at_which_nothing_moves_has_nothing_to_tell(name: str) -> None:
    """A step costs what changed in it, however much was decided before."""
    policy: Any = policy_by_name(name)
    for walk in range(10):
        stepwise = Stepwise(policy)
        for step, (window, room) in enumerate(windows(Random(walk))):
            # Of an item that is there twice each copy is looked at again once the other one has left.
            once = list({one.name: one for one in window}.values())
            stepwise.step(once, room)
            assert list(stepwise.step(once, room)[0].changed) == [], f"walk {walk}, step {step}"

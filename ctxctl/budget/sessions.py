"""Sessions drawn from a plan: what the parts hold in each turn, and what is said and called."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from random import Random
from statistics import NormalDist
from typing import Final, NamedTuple

from ctxctl.budget.measure import Measured
from ctxctl.budget.plan import DRIFT, Arrival, Conversation, Plan

TALK: Final = ("user messages", "answers", "tool calls", "tool results")
"""What the conversation adds to the parts of a plan, in the order of `Turn`'s sums."""


class Piece(NamedTuple):
    """One version of a part, or one item of a retrieval."""

    part: int
    """Index of the part."""
    name: str
    """Equal for equal versions."""
    tokens: int
    fresh: bool
    """Whether it was not there in the turn before."""


class Call(NamedTuple):
    """A tool call and its result, in tokens."""

    call: int
    result: int


class Unit(NamedTuple):
    """A turn that is drawn whole."""

    arrivals: tuple[Arrival, ...]
    """What is new in each of its requests."""
    sums: tuple[int, int, int, int]
    """All of it, by `TALK`."""


class Turn(NamedTuple):
    """One turn."""

    pieces: tuple[Piece, ...]
    """What all parts hold, in the plan's order."""
    user: int
    rounds: tuple[tuple[Call, ...], ...]
    """The calls of each answer that has some; there is one request more than rounds."""
    answer: int
    unit: Unit | None = None
    """In place of `user`, `rounds` and `answer`."""


def session(plan: Plan, parts: tuple[Measured, ...], run: int) -> Iterator[Turn]:
    """The turns of one session; the same plan and run give the same turns.

    What is drawn for one part or for the conversation does not hang on the others: each has a stream of
    chance of its own, so that a changed plan is held against the same luck.
    """
    talk = plan.conversation
    streams = [_stream(plan.seed, run, part.part.name) for part in parts]
    chance = _stream(plan.seed, run, "")
    held: list[tuple[Piece, ...]] = [()] * len(parts)
    versions = [0] * len(parts)
    units = _units(talk, chance) if talk.seen else None
    pace = _pace(talk.drift, _stream(plan.seed, run, "/pace")) if talk.drift else 1.0
    for turn in range(talk.turns):
        for at, (part, stream) in enumerate(zip(parts, streams, strict=True)):
            changed = stream.random() < part.part.rate
            if turn == 0 and part.part.now is not None:
                held[at] = (Piece(at, f"part {at}.now", part.part.now, True),)
            elif turn == 0 or changed:
                versions[at] += 1
                held[at] = tuple(_pieces(part, at, versions[at], stream))
            elif held[at] and held[at][0].fresh:
                held[at] = tuple(piece._replace(fresh=False) for piece in held[at])
        pieces = tuple(piece for held_now in held for piece in held_now)
        if units is not None:
            yield Turn(pieces, 0, (), 0, next(units))
            continue
        yield Turn(
            pieces,
            _at(pace, talk.user.draw(chance)),
            tuple(_rounds(plan, chance, pace)),
            _at(pace, talk.answer.draw(chance)),
        )


def _pieces(part: Measured, at: int, version: int, chance: Random) -> Iterator[Piece]:
    count = 1 if part.part.items is None else part.part.items.draw(chance)
    for number in range(count):
        yield Piece(at, f"part {at}.{version}.{number}", part.size.draw(chance), True)


def _rounds(plan: Plan, chance: Random, pace: float) -> Iterator[tuple[Call, ...]]:
    talk = plan.conversation
    left = talk.calls.draw(chance)
    while left > 0:
        now = min(left, max(1, talk.parallel.draw(chance)))
        left -= now
        drawn = ((talk.call.draw(chance), talk.result.draw(chance)) for _ in range(now))
        yield tuple(Call(_at(pace, call), _at(pace, result)) for call, result in drawn)


def _units(talk: Conversation, chance: Random) -> Iterator[Unit]:
    """Recorded turns, some in a row at a time: what follows what is kept, and what is large comes in bursts.

    Each session draws from its own resample of the record and at its own pace, as one that goes on is not
    what it was: without that sessions would be alike, and the percentiles too near to each other.
    """
    count = len(talk.seen)
    together = min(talk.together, count)
    pace = _pace(DRIFT if talk.drift is None else talk.drift, chance)
    own: list[int] = []
    while len(own) < count:
        own += _row(together, count, chance)
    paced: dict[int, Unit] = {}
    while True:
        for nth in _row(together, count, chance):
            at = own[nth]
            if at not in paced:
                paced[at] = _paced(talk.seen[at], pace)
            yield paced[at]


def _pace(drift: float, chance: Random) -> float:
    return exp(drift * NormalDist().inv_cdf(min(max(chance.random(), 1e-9), 1 - 1e-9)))


def _at(pace: float, tokens: int) -> int:
    return int(tokens * pace + 0.5)


def _row(together: int, count: int, chance: Random) -> list[int]:
    first = int(chance.random() * count)
    return [(first + n) % count for n in range(together)]


def _paced(arrivals: tuple[Arrival, ...], pace: float) -> Unit:
    made = [tuple(_at(pace, tokens) for tokens in arrival) for arrival in arrivals]
    user, answer, call, result = (sum(column) for column in zip(*made, strict=True))
    return Unit(tuple((a, b, c, d) for a, b, c, d in made), (user, answer, call, result))


def _stream(seed: int, run: int, name: str) -> Random:
    """Seeding with a text hashes it; the numbers that follow are the same on every version of Python."""
    return Random(f"{seed}/{run}/{name}")

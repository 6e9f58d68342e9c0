"""Sessions drawn from a plan: what the parts hold in each turn, and what is said and called."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from ctxctl.budget.measure import Measured
from ctxctl.budget.plan import Plan

TALK: Final = ("user messages", "answers", "tool calls", "tool results")
"""What the conversation adds to the parts of a plan, in the order of `Turn`'s sums."""


class Piece(NamedTuple):
    """One version of a part, or one item of a retrieval."""

    part: int
    """Index of the part."""
    name: str
    """The same for the same version."""
    tokens: int
    fresh: bool
    """Whether it was not there in the turn before."""


class Call(NamedTuple):
    """A tool call and its result, in tokens."""

    call: int
    result: int


class Turn(NamedTuple):
    """One turn."""

    pieces: tuple[Piece, ...]
    """What all parts hold, in the plan's order."""
    user: int
    rounds: tuple[tuple[Call, ...], ...]
    """The calls of each answer that has some; there is one request more than rounds."""
    answer: int


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
    for turn in range(talk.turns):
        for at, (part, stream) in enumerate(zip(parts, streams, strict=True)):
            changed = stream.random() < part.part.rate
            if turn == 0 or changed:
                versions[at] += 1
                held[at] = tuple(_pieces(part, at, versions[at], stream))
            elif held[at] and held[at][0].fresh:
                held[at] = tuple(piece._replace(fresh=False) for piece in held[at])
        yield Turn(
            tuple(piece for pieces in held for piece in pieces),
            talk.user.draw(chance),
            tuple(_rounds(plan, chance)),
            talk.answer.draw(chance),
        )


def _pieces(part: Measured, at: int, version: int, chance: Random) -> Iterator[Piece]:
    count = 1 if part.part.items is None else part.part.items.draw(chance)
    for number in range(count):
        yield Piece(at, f"part {at}.{version}.{number}", part.size.draw(chance), True)


def _rounds(plan: Plan, chance: Random) -> Iterator[tuple[Call, ...]]:
    talk = plan.conversation
    left = talk.calls.draw(chance)
    while left > 0:
        now = min(left, max(1, talk.parallel.draw(chance)))
        left -= now
        yield tuple(Call(talk.call.draw(chance), talk.result.draw(chance)) for _ in range(now))


def _stream(seed: int, run: int, name: str) -> Random:
    """Seeding with a text hashes it; the numbers that follow are the same on every version of Python."""
    return Random(f"{seed}/{run}/{name}")

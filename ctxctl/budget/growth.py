"""How large the window would be at the end of each turn if nothing were ever left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from ctxctl.budget.distribution import quantile
from ctxctl.budget.measure import Measured
from ctxctl.budget.plan import Plan
from ctxctl.budget.sessions import TALK, Turn, session


class Growth(NamedTuple):
    """The windows of all runs, turn by turn."""

    names: tuple[str, ...]
    """What takes room: the parts of the plan, then the kinds of `TALK`."""
    rows: tuple[tuple[tuple[int, ...], ...], ...]
    """Tokens by run, turn and name at the last request of the turn, which is its largest."""
    first: int = 1
    """Number of the first turn."""

    def wanted(self, turn: int) -> list[int]:
        """The whole window of each run at a turn."""
        return [sum(run[turn - self.first]) for run in self.rows]

    def first_over(self, cap: int, without: int | None = None, kept: float = 0.5) -> list[int | None]:
        """The first turn of each run that is over the cap; `without` holds only `kept` of its tokens."""
        found = (_first(run, cap, without, kept) for run in self.rows)
        return [turn if turn is None else turn + self.first for turn in found]


class AtTurn(NamedTuple):
    """Tokens of the window at a turn that half, 95 and 99 of 100 sessions do not exceed."""

    turn: int
    p50: int
    p95: int
    p99: int


class FirstTurn(NamedTuple):
    """The turn that half, 95 and 99 of 100 sessions reach before something happens (it happens in it, at the
    earliest); None: it does not happen within the conversation."""

    p50: int | None
    p95: int | None
    p99: int | None


class Between(NamedTuple):
    """First turns over all runs; None: not within the conversation."""

    early: int | None
    """One run in twenty has it before this turn."""
    middle: int | None
    """Half of the runs have it by this turn."""
    late: int | None
    """Nineteen runs of twenty have it by this turn."""


def grown_runs(plan: Plan, parts: tuple[Measured, ...]) -> Growth:
    """Draw all runs of a plan."""
    names = (*(part.part.name for part in parts), *TALK)
    history = plan.start.history if plan.start is not None else ()
    before = [sum(column) for column in zip(*history, strict=True)] or [0] * len(TALK)
    runs = (tuple(_sums(parts, session(plan, parts, run), before)) for run in range(plan.runs))
    return Growth(names, tuple(runs), plan.first)


def at_turn(growth: Growth, turn: int) -> AtTurn:
    """The window at a turn over all runs."""
    wanted = growth.wanted(turn)
    return AtTurn(turn, *(quantile(wanted, share) for share in (0.5, 0.95, 0.99)))


def first_turn(turns: Iterable[int | None]) -> FirstTurn:
    """Over all runs, if any; one in which it does not happen reaches further than any turn."""
    ordered = sorted(turns, key=lambda turn: (turn is None, turn or 0))
    if not ordered:
        return FirstTurn(None, None, None)
    found = []
    for share in (0.5, 0.95, 0.99):
        found.append(ordered[max(0, ceil((1 - share) * len(ordered) - 1e-9) - 1)])
    return FirstTurn(*found)


def between(turns: Iterable[int | None]) -> Between:
    """The turns by which 5, 50 and 95 of 100 runs, if any, have it, by nearest rank."""
    ordered = sorted(turns, key=lambda turn: (turn is None, turn or 0))
    if not ordered:
        return Between(None, None, None)
    return Between(*(ordered[max(0, ceil(share * len(ordered) - 1e-9) - 1)] for share in (0.05, 0.5, 0.95)))


def _sums(
    parts: tuple[Measured, ...], turns: Iterable[Turn], before: Sequence[int]
) -> Iterable[tuple[int, ...]]:
    stays = [part.part.stays for part in parts]
    kept = [0] * len(parts)
    user, answers, calls, results = before
    for turn in turns:
        now = [0] * len(parts)
        for piece in turn.pieces:
            now[piece.part] += piece.tokens
            if stays[piece.part] and piece.fresh:
                kept[piece.part] += piece.tokens
        held = [kept[at] if stays[at] else now[at] for at in range(len(parts))]
        if turn.unit is not None:
            user, answers, calls, results = (
                a + b for a, b in zip((user, answers, calls, results), turn.unit.sums, strict=True)
            )
        user += turn.user
        for round_ in turn.rounds:
            calls += sum(call.call for call in round_)
            results += sum(call.result for call in round_)
        yield (*held, user, answers, calls, results)
        answers += turn.answer


def _first(run: tuple[tuple[int, ...], ...], cap: int, without: int | None, kept: float) -> int | None:
    """Index of the first turn that is over the cap."""
    for number, row in enumerate(run):
        wanted = sum(row)
        if without is not None:
            wanted -= row[without] - int(row[without] * kept)
        if wanted > cap:
            return number
    return None

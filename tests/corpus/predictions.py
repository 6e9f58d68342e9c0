"""How long a session lasts: plans from its first half, and straight lines, held against its second half.

Sizes and caps are in billed tokens: `window.used` of sessions of which nearly all requests were billed.

What is asked was settled before anything was predicted: see docs/budget.md, "How far to trust it".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from math import floor
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from ctxctl.budget.continuation import LEAST_TURNS, continuation_plan, session_so_far
from ctxctl.budget.growth import between, grown_runs
from ctxctl.budget.measure import Measured, Reader
from ctxctl.budget.plan import Plan, parse
from ctxctl.errors import CtxctlError
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.tokens.counter import Counter

LONG = 40
"""Requests of a session that counts as a long one."""
SMALLEST = 120_000
"""Bytes of a file that may hold a long session: so many requests leave more, most of all 280 kB."""
LEVELS = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(19, 20))
"""Where the caps lie: from the size at the half to the largest size after it."""
BILLED = Fraction(9, 10)
"""Share of its requests that were billed, of a session that is asked about."""
GROWS = Fraction(1, 20)
"""By how much a session has to grow in its second half to be asked about."""


class Asked(NamedTuple):
    """One session and cap: in how many units after the half the window is first over it."""

    session: str
    requests: int
    """Of the whole session."""
    mark: tuple[int, ...]
    """Some of its first sizes: sessions that have them in common are one session, recorded several times."""
    unit: str
    half: int
    """The last unit that is known."""
    size: int
    """The window there."""
    cap: int
    true: int
    early: int
    predicted: int
    late: int
    lines: tuple[int, ...]
    """As `LINES`."""
    knowing: int
    """A line as steep as the mean growth after the half was: no guess, but what a guess is measured by."""

    @property
    def held_out(self) -> bool:
        """Whether the session is one of those that no choice in the engine was made on."""
        return int(sha256(f"data/{self.session}main".encode()).hexdigest(), 16) % 2 == 1

    @property
    def missed(self) -> bool:
        """Whether the truth is outside of the interval."""
        return not self.early <= self.true <= self.late


class _Thread(NamedTuple):
    unit: str
    sizes: list[int]
    """By unit, the largest window of its requests."""
    ends: list[int]
    """By unit, the window of its last request."""
    half: int
    """How many units the first half has."""
    address: str
    """Of the last request of the first half."""


def asked(path: Path, name: str) -> list[Asked]:
    """The questions that a file gives, if it holds a long session; of several the longest."""
    try:
        with Inspector.open(path, calibration="saved") as inspector:
            places = inspector.places()
            key, ordinals = max(places.by_thread.items(), key=lambda pair: len(pair[1]))
            if len(ordinals) < LONG:
                return []
            steps = [at.step for at, _ in inspector.walk() if (at.step.session, at.step.thread) == tuple(key)]
            used = [step.window.used for step in steps]
            if not of_bills(steps):
                return []
            thread = _thread([step.turn for step in steps], used)
            size, most = thread.ends[thread.half - 1], max(thread.sizes[thread.half :])
            if most - size < max(Fraction(1000), size * GROWS):
                return []
            session = f"{key.session}/" if key.session is not None else ""
            found = session_so_far(inspector, f"{session}{key.thread}:{thread.address}")
            assert (found.unit, found.number) == (thread.unit, thread.half)
            text = continuation_plan(found, name, inspector.params.encoding)
    except (CtxctlError, ValueError):
        return []
    plan = parse(text, name)
    parts = Reader(Path(), Counter("o200k_base", None), exact=False).measure(plan)
    assert _window(plan, parts) == size == found.step.window.used
    return list(_questions(thread, plan, parts, name, used))


def of_bills(steps: Sequence[Step]) -> bool:
    """Whether the sizes of a session's requests are those of its bills."""
    return sum(step.window.used_method == "reported" for step in steps) >= BILLED * len(steps)


def of_the_corpus(root: Path) -> list[Asked]:
    """All questions; of sessions that are recorded several times the longest record."""
    found = []
    for path in sorted(p for p in root.rglob("*") if p.is_file() and p.stat().st_size >= SMALLEST):
        if rows := asked(path, path.relative_to(root).as_posix()):
            found.append(rows)
    kept: dict[tuple[int, ...], list[Asked]] = {}
    for rows in sorted(found, key=lambda rows: -rows[0].requests):
        kept.setdefault(rows[0].mark, rows)
    return sorted(row for rows in kept.values() for row in rows)


def _thread(turns: Sequence[int], used: Sequence[int]) -> _Thread:
    """The half is the middle request; the end of its turn, where enough turns are before it."""
    middle = len(used) // 2 - 1
    had = list(dict.fromkeys(turns[: middle + 1]))
    if len(had) < LEAST_TURNS or had[-1] == turns[-1]:
        step = turns[: middle + 1].count(turns[middle])
        return _Thread("request", list(used), list(used), middle + 1, f"{turns[middle]}.{step}")
    groups: dict[int, list[int]] = {}
    for turn, tokens in zip(turns, used, strict=True):
        groups.setdefault(turn, []).append(tokens)
    largest, ends = [max(group) for group in groups.values()], [group[-1] for group in groups.values()]
    return _Thread("turn", largest, ends, len(had), str(had[-1]))


def _questions(
    thread: _Thread, plan: Plan, parts: tuple[Measured, ...], name: str, used: list[int]
) -> Iterator[Asked]:
    half = thread.half
    size, most = thread.ends[half - 1], max(thread.sizes[half:])
    growth = grown_runs(plan, parts)
    ahead = plan.conversation.turns
    for level in LEVELS:
        cap = size + int((most - size) * level)
        true = next(n for n, tokens in enumerate(thread.sizes[half:], 1) if tokens > cap)
        found = between(growth.first_over(cap))
        early, middle, late = ((turn if turn is not None else plan.last) - plan.first + 1 for turn in found)
        drawn = tuple(line(thread.ends[:half], cap, ahead) for line in LINES.values())
        knowing = _reached(Fraction(size), _growth(thread.ends[half - 1 :]), cap, ahead)
        yield Asked(
            name, len(used), tuple(used[5:15]), thread.unit, half, size, cap, true, early, middle, late,
            drawn, knowing,
        )  # fmt: skip


def _window(plan: Plan, parts: tuple[Measured, ...]) -> int:
    assert plan.start is not None
    return plan.start.tokens + sum(part.part.now if part.part.now is not None else part.p50 for part in parts)


def least_squares(sizes: Sequence[int], cap: int, ahead: int) -> int:
    """The line that is nearest to all sizes of the first half."""
    mean = Fraction(sum(sizes), len(sizes))
    return _reached(mean + _slope(sizes) * Fraction(len(sizes) - 1, 2), _slope(sizes), cap, ahead)


def first_to_last(sizes: Sequence[int], cap: int, ahead: int) -> int:
    """The line through the first and the last size."""
    return _reached(Fraction(sizes[-1]), Fraction(sizes[-1] - sizes[0], len(sizes) - 1), cap, ahead)


def from_the_last(sizes: Sequence[int], cap: int, ahead: int) -> int:
    """As steep as the line of least squares, and through the last size."""
    return _reached(Fraction(sizes[-1]), _slope(sizes), cap, ahead)


LINES = {
    "least squares": least_squares,
    "first to last": first_to_last,
    "least squares, from the last size": from_the_last,
}
"""Straight lines by what they are called."""


def _growth(sizes: Sequence[int]) -> Fraction:
    """The mean growth of a unit; of units in which the window lost more than a fifth, nothing."""
    pairs = list(pairwise(sizes))
    return Fraction(sum(after - before for before, after in pairs if 5 * after > 4 * before), len(pairs))


def _slope(sizes: Sequence[int]) -> Fraction:
    middle = Fraction(len(sizes) - 1, 2)
    over = sum(((n - middle) * (n - middle) for n in range(len(sizes))), Fraction())
    return sum(((n - middle) * tokens for n, tokens in enumerate(sizes)), Fraction()) / over


def _reached(last: Fraction, slope: Fraction, cap: int, ahead: int) -> int:
    """After how many units a line is first over the cap; as far as the plan looks if it never is."""
    if slope <= 0:
        return ahead
    return min(ahead, max(1, floor((cap - last) / slope) + 1))


def table(rows: Sequence[Asked]) -> list[str]:
    """A row of Markdown for each session, its caps from the nearest to the farthest."""
    named = list(LINES).index("first to last")
    out = [
        "| session | counted | half | tokens there | true | predicted | p5 to p95 | straight line |",
        "|---|---|---:|---:|---|---|---|---|",
    ]
    by_session: dict[str, list[Asked]] = {}
    for row in rows:
        by_session.setdefault(row.session, []).append(row)
    for session, mine in by_session.items():
        one = mine[0]
        held = (f"**{row.early}-{row.late}**" if row.missed else f"{row.early}-{row.late}" for row in mine)
        cells = (
            _short(session), f"{one.unit}s", f"{one.half:,}", f"{one.size:,}", _row(row.true for row in mine),
            _row(row.predicted for row in mine), _row(held), _row(row.lines[named] for row in mine),
        )  # fmt: skip
        out.append(f"| {' | '.join(cells)} |")
    return out


def summary(rows: Sequence[Asked]) -> list[str]:
    """A row of Markdown for the plan and one for each straight line, over all and over the held out."""
    held = [row for row in rows if row.held_out]
    out = [
        f"| median error ({len(rows)} questions; held out: {len(held)}) | relative | mean | units "
        "| held out: relative | mean | units |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    names = ("plan", *(f"line: {name}" for name in LINES), "*with the true mean growth after the half*")
    for at, name in enumerate(names):
        told = (error for some in (rows, held) for error in _errors(some, at))
        out.append(f"| {name} | {' | '.join(told)} |")
    return out


def guesses(row: Asked) -> tuple[int, ...]:
    """The plan's, those of `LINES`, then the one that knows."""
    return (row.predicted, *row.lines, row.knowing)


def relative(row: Asked, at: int) -> float:
    """Error of a guess as a share of the true distance."""
    return abs(guesses(row)[at] - row.true) / row.true


def _errors(rows: Sequence[Asked], at: int) -> Iterator[str]:
    shares = [relative(row, at) for row in rows]
    yield f"{median(shares):.1%}"
    yield f"{mean(shares):.1%}"
    yield f"{median(abs(guesses(row)[at] - row.true) for row in rows):.1f}"


def _row(values: Iterable[object]) -> str:
    return " · ".join(map(str, values))


def _short(session: str) -> str:
    """The kind, and what tells a file from others."""
    kind, _, rest = session.partition("/")
    rest = rest.removesuffix("/full.jsonl")
    return f"{kind} {rest if len(rest) <= 36 else '…' + rest[-35:]}"

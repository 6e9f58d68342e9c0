"""What plans from recorded sessions say of one that is not among them: its first overflow, in billed tokens.

Of each client with several long sessions, each session is held out once; the plan comes from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from predictions import LONG, SMALLEST, of_bills

from ctxctl.budget.derive import derived_plan
from ctxctl.budget.distribution import quantile
from ctxctl.budget.growth import Between, between, grown_runs
from ctxctl.budget.measure import Reader
from ctxctl.budget.observe import Observed
from ctxctl.budget.plan import parse
from ctxctl.errors import CtxctlError
from ctxctl.model.results import Step
from ctxctl.session import Inspector
from ctxctl.tokens.counter import Counter

CAPS = (0.5, 0.9)
"""Shares of the session's requests whose bills are not over the caps."""
SEVERAL = 3
"""Long sessions that a client has at least."""


class Long(NamedTuple):
    """A long session."""

    name: str
    sizes: tuple[tuple[int, int], ...]
    """Of each request, its turn (counted without gaps) and its bill."""
    observed: Observed

    @property
    def client(self) -> str:
        """The folder of its captures."""
        return self.name.partition("/")[0]


class Told(NamedTuple):
    """One session and cap."""

    session: str
    client: str
    share: float
    cap: int
    unit: str
    ahead: int
    """The last unit of the plan."""
    true: int
    found: Between

    @property
    def early(self) -> bool:
        """Whether it overflowed before the plan says that one in twenty does."""
        return self.true < (self.found.early or self.ahead + 1)

    @property
    def late(self) -> bool:
        """Whether it overflowed after the plan says that nineteen of twenty have."""
        return self.found.late is not None and self.true > self.found.late

    @property
    def error(self) -> float:
        """Of the middle, as a share of the truth."""
        return abs((self.found.middle or self.ahead + 1) - self.true) / self.true


def of_the_corpus(root: Path) -> list[Told]:
    """All sessions and caps."""
    by_client: dict[str, list[Long]] = {}
    for found in _long(root):
        by_client.setdefault(found.client, []).append(found)
    return [
        told
        for sessions in by_client.values()
        if len(sessions) >= SEVERAL
        for session in sessions
        for told in _told(session, [other for other in sessions if other is not session])
    ]


def _long(root: Path) -> list[Long]:
    """Of sessions that are recorded several times, the longest record."""
    found = []
    for path in sorted(p for p in root.rglob("*") if p.is_file() and p.stat().st_size >= SMALLEST):
        try:
            with Inspector.open(path, calibration="saved") as inspector:
                places = inspector.places()
                key, ordinals = max(places.by_thread.items(), key=lambda pair: len(pair[1]))
                if len(ordinals) < LONG:
                    continue
                steps, observed = list[Step](), Observed()
                for at, _ in inspector.walk():
                    if (at.step.session, at.step.thread) == tuple(key):
                        steps.append(at.step)
                        observed.add(at.step, at.placements)
        except (CtxctlError, ValueError):
            continue
        if of_bills(steps):
            turns = list(dict.fromkeys(step.turn for step in steps))
            sizes = tuple((turns.index(step.turn) + 1, step.window.used) for step in steps)
            found.append(Long(path.relative_to(root).as_posix(), sizes, observed))
    kept: dict[tuple[int, ...], Long] = {}
    for one in sorted(found, key=lambda one: -len(one.sizes)):
        kept.setdefault(tuple(tokens for _, tokens in one.sizes[5:15]), one)
    return sorted(kept.values(), key=lambda one: one.name)


def _told(session: Long, others: Sequence[Long]) -> Iterator[Told]:
    plan = parse(derived_plan([other.observed for other in others], ["others"], "o200k_base"), "others")
    growth = grown_runs(plan, Reader(Path(), Counter("o200k_base", None), exact=False).measure(plan))
    unit = plan.conversation.unit
    for share in CAPS:
        cap = quantile((tokens for _, tokens in session.sizes), share)
        over = (
            n if unit == "request" else turn for n, (turn, size) in enumerate(session.sizes, 1) if size > cap
        )
        if (true := next(over, None)) is not None:
            yield Told(
                session.name,
                session.client,
                share,
                cap,
                unit,
                plan.last,
                true,
                between(growth.first_over(cap)),
            )


def summary(rows: Sequence[Told]) -> list[str]:
    """A row of Markdown for each client and cap, then for all."""
    out = [
        "| client | counted | cap: its bills below | sessions | within p5 to p95 | before p5 | after p95 "
        "| median error of p50 |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for client in (*sorted({row.client for row in rows}), "all"):
        for share in CAPS:
            some = [row for row in rows if client in (row.client, "all") and row.share == share]
            early, late = sum(row.early for row in some), sum(row.late for row in some)
            units = " or ".join(sorted({f"{row.unit}s" for row in some}))
            cells = (
                client, units, f"{share:.0%}", str(len(some)), str(len(some) - early - late), str(early),
                str(late), f"{median(row.error for row in some):.0%}",
            )  # fmt: skip
            out.append(f"| {' | '.join(cells)} |")
    return out

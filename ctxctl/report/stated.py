"""What a runtime says that its requests cost, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ctxctl.analysis.stated import StatedSums
from ctxctl.labels import dollars, plural, signed_share
from ctxctl.model.addresses import prefix
from ctxctl.report.money_json import exact
from ctxctl.text import visible

RUNS = 5
"""Runs whose cost is listed."""


def stated_lines(stated: StatedSums, steps: int) -> Iterator[str]:
    """Sentences for people; none where nothing states a cost."""
    if stated.requests:
        yield (
            f"{dollars(stated.usd)} by the runtime's own account, for {stated.requests:,} of"
            f" {plural(steps, 'step')}; {_beside(stated)}"
        )
    for run in stated.runs[:RUNS]:
        step = run.step
        where = f"{visible(prefix(step.thread))}{step.turn}.{step.step}"
        yield f"{dollars(run.usd)} in all by the runtime's own account, as of {where}"
    if len(stated.runs) > RUNS:
        yield f"and {plural(len(stated.runs) - RUNS, 'other')} (--json lists them)"


def _beside(stated: StatedSums) -> str:
    if stated.unpriced == stated.requests:
        return "the table has no price for them"
    priced = f"the table's prices come to {dollars(stated.table)}"
    if stated.unpriced:
        return f"{priced}, without {stated.unpriced:,} that have none"
    return f"{priced} for the same{_off(stated.usd, stated.table)}"


def _off(said: Decimal, table: Decimal) -> str:
    if not table:
        return ""
    share = (said - table) / table
    return f" (stated {signed_share(share)})" if abs(share) >= Decimal("0.0005") else ""


def stated_object(stated: StatedSums) -> dict[str, Any] | None:
    """The sums as JSON, money as text with all its digits; None where nothing states a cost."""
    if not stated.requests and not stated.runs:
        return None
    return {
        "requests": stated.requests,
        "usd": exact(stated.usd) if stated.requests else None,
        "table_usd": exact(stated.table) if stated.requests > stated.unpriced else None,
        "unpriced_requests": stated.unpriced,
        "runs": [
            {
                "session": run.step.session,
                "thread": run.step.thread,
                "turn": run.step.turn,
                "step": run.step.step,
                "usd": exact(run.usd),
            }
            for run in stated.runs
        ],
    }

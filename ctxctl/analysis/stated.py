"""What a runtime, a router or a tracing service says that requests cost, beside the price of the table."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ctxctl.model.money import ZERO, Money
from ctxctl.model.results import Step


class Run(NamedTuple):
    """What a run is said to have cost in all, as told with its last request."""

    step: Step
    usd: Decimal


class StatedSums:
    """Sums over a session; feed it with `add`.  Only the price of the table is worked out here."""

    def __init__(self) -> None:
        self.requests = 0
        """Of which a cost is stated."""
        self.usd = ZERO
        self.table = ZERO
        """Their price by the table, of those that have one."""
        self.unpriced = 0
        """Of these requests, the ones without a price."""
        self.runs: list[Run] = []
        """In the order of the trace; a later one may hold an earlier one's cost, which no capture tells."""

    def add(self, step: Step, billed: Money | None) -> None:
        """Take in one request, with its price by the table (None: not known)."""
        stated, total = stated_of(step), step.usage.terms.stated_total_usd if step.usage else None
        if total is not None:
            self.runs.append(Run(step, Decimal(total)))
        if stated is None:
            return
        self.requests += 1
        self.usd += stated
        if billed is None:
            self.unpriced += 1
        else:
            self.table += billed.total


def stated_of(step: Step) -> Decimal | None:
    """What a request is said to have cost; None where nothing says it."""
    said = step.usage.terms.stated_usd if step.usage is not None else None
    return None if said is None else Decimal(said)

"""What a plan's sessions cost, with what a prompt cache can give back."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from ctxctl.budget.fitted import Request, Run
from ctxctl.budget.plan import Model
from ctxctl.budget.spread import quantile
from ctxctl.model.money import ZERO, Tokens, priced
from ctxctl.tokens.catalogue.rates import Priced, RateBook


class Bill(NamedTuple):
    """US dollars and tokens of sessions, over the runs under the policy."""

    p50: Decimal
    """Of a session."""
    p95: Decimal
    p99: Decimal
    per_turn: Decimal
    """The mean over all turns of all runs."""
    uncached: Decimal
    """Half of the sessions would cost no more than this without a cache."""
    tokens: Tokens
    """The mean of a session, rounded down."""
    source: str
    notes: tuple[str, ...]
    """Whose prices they are, and what was assumed."""


def billed(model: Model, runs: Sequence[Run], own: dict[str, dict[str, Any]]) -> tuple[Bill | None, str]:
    """The bill, or None and why nobody can tell it."""
    if model.name is None:
        return None, "The plan names no model."
    book = RateBook(own, None)
    sessions: list[Decimal] = []
    plain: list[Decimal] = []
    totals = [0] * len(Tokens())
    turns = 0
    found: Priced | None = None
    for run in runs:
        money = without = ZERO
        for request in run.requests:
            rates = book.rates(model.name, model.provider, model.date, request.sent)
            found = rates
            tokens = spent(request, rates, caching=model.caching)
            cost = priced(tokens, rates.rates)
            bare = priced(Tokens(request.sent, 0, 0, request.output), rates.rates)
            if cost is None or bare is None:
                return None, f"{model.name}: {rates.note}"
            money += cost.total
            without += bare.total
            totals = [a + b for a, b in zip(totals, tokens, strict=True)]
        turns += len({request.turn for request in run.requests})
        sessions.append(money)
        plain.append(without)
    if not runs:
        return None, "A session is too long to be taken to its end."
    if found is None:
        return None, "No request is sent."
    p50, p95, p99 = (quantile(sessions, share) for share in (0.5, 0.95, 0.99))
    return Bill(
        p50, p95, p99, sum(sessions, ZERO) / turns, quantile(plain, 0.5),
        Tokens(*(total // len(runs) for total in totals)), found.source, tuple(_notes(model, found)),
    ), ""  # fmt: skip


def spent(request: Request, found: Priced, *, caching: bool) -> Tokens:
    """How a request is billed: what begins like the one before is read from the cache, the rest is written to
    it where that has a price of its own."""
    if not caching or found.rates.cache_read is None:
        return Tokens(request.sent, 0, 0, request.output)
    rest = request.sent - request.prefix
    if found.rates.cache_write is None:
        return Tokens(rest, request.prefix, 0, request.output)
    return Tokens(0, request.prefix, rest, request.output)


def _notes(model: Model, found: Priced) -> list[str]:
    notes = [found.note]
    if model.caching and found.rates.cache_read is None:
        notes.append("No price for reading from a cache is known: all is plain input.")
    elif model.caching:
        notes.append(
            "All that a request begins with like the one before is read from the cache: the least cost."
        )
    return notes

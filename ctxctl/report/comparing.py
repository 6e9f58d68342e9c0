"""A what-if beside the record as JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, get_args

from ctxctl.analysis.comparison import Comparison
from ctxctl.model.turnpairs import TurnPair, TurnSide
from ctxctl.model.vocab import UsedMethod
from ctxctl.model.whatif import Pair, Totals
from ctxctl.report import jsonout
from ctxctl.report.header import Header


def trace(header: Header, comparison: Comparison) -> dict[str, Any]:
    """The first line: the recorded side's parameters, and what is supposed in the place of the record."""
    supposed = comparison.supposed
    told = jsonout.supposed(supposed.limits, supposed.params.edited)
    return {**jsonout.trace(header), "supposed": told}


def supposition(comparison: Comparison) -> dict[str, Any]:
    """The second line: what the simulated side is replayed under."""
    supposed = comparison.supposed
    params = supposed.params
    return {
        "type": "supposition",
        "policy": params.policy,
        "model": params.model,
        "encoding": params.encoding,
        "provenance": "simulated",
        "notes": list(supposed.notes),
    }


def turn(value: TurnPair) -> dict[str, Any]:
    """One turn on both sides."""
    return {
        "type": "comparison",
        "session": value.session,
        "thread": value.thread,
        "turn": value.turn,
        "title": value.title,
        "steps": value.steps,
        "recorded": _side(value.recorded),
        "simulated": _side(value.simulated),
    }


def _side(side: TurnSide) -> dict[str, Any]:
    return {
        "used": side.used,
        "used_method": side.method,
        "recorded": side.recorded,
        "cap": side.cap,
        "free": side.free,
        "over": side.over,
        "sent": side.sent,
        "uncounted": side.uncounted,
        "omitted": side.omitted,
        "truncated": side.truncated,
        "compactions": side.compactions,
        "possible_prefix": side.prefix,
        "cache_breaks": side.breaks,
        "broken_tokens": side.lost,
        "context_cost": _money(side.cost),
        "unpriced_steps": side.unpriced,
    }


def summary(comparison: Comparison, turns: int) -> dict[str, Any]:
    """Both sides over all turns."""
    return {
        "type": "comparison_summary",
        "currency": "USD",
        "turns": turns,
        "recorded": _totals(comparison.recorded, simulated=False),
        "simulated": _totals(comparison.simulated, simulated=True),
        "first_differing": _place(comparison.first_differing),
        "appended_steps": comparison.appended,
        "held_steps": comparison.held,
        "prices_from": dict(comparison.prices_from),
    }


def _totals(side: Totals, *, simulated: bool) -> dict[str, Any]:
    first = side.first_over
    return {
        "steps": side.steps,
        "steps_over": side.over,
        "steps_unknown": side.unknown,
        "first_over": _place(first),
        "first_over_by": None if first is None else (first.simulated if simulated else first.recorded).over,
        "sent": side.sent,
        "omitted": side.omitted,
        "truncated": side.truncated,
        "compactions": side.compactions,
        "possible_prefix": side.prefix,
        "cache_breaks": side.breaks,
        "broken_tokens": side.lost,
        "context_cost": _money(side.cost),
        "unpriced_steps": side.unpriced,
        "recorded_by_method": dict(sorted(side.by_method.items())),
        "known_by": {name: side.known_by[name] for name in get_args(UsedMethod) if name in side.known_by},
    }


def _place(pair: Pair | None) -> dict[str, Any] | None:
    if pair is None:
        return None
    return {"session": pair.session, "thread": pair.thread, "turn": pair.turn, "step": pair.step}


def _money(amount: Decimal) -> str:
    """With all its digits: a sum of what is known."""
    return f"{amount.normalize():f}" if amount else "0"

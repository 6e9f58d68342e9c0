"""An estimate and its findings as lines of JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ctxctl.budget.check import Finding
from ctxctl.budget.estimate import Estimate
from ctxctl.report.money_json import tokens_object


def objects(found: Estimate) -> Iterator[dict[str, Any]]:
    """`budget`, then a line for each `part`, each `budget_turn`, and each part that helps when `shrunk`."""
    base = found.ground
    yield {
        "type": "budget",
        "version": 1,
        "plan": found.name,
        "model": found.plan.model.name,
        "provider": found.plan.model.provider,
        "cap": found.cap,
        "window": base.room.window,
        "reserve": base.room.reserve,
        "max_input": base.room.max_input,
        "limits_from": base.limits_from,
        "encoding": base.encoding,
        "encoding_known": base.exact,
        "assumed": base.assumed or None,
        "policy": found.plan.policy,
        "seed": found.plan.seed,
        "runs": found.plan.runs,
        "unit": found.unit,
        "start": _start(found),
        "runs_to_compaction": found.acted,
        "runs_under_policy": found.runs,
        "total": {level: found.total(level) for level in ("p50", "p95", "p99")},
        "first_overflow": found.first_wanted._asdict(),
        "first_overflow_between": found.first_between._asdict(),
        "first_compaction": found.first_acted._asdict() if found.acted else None,
        "first_still_over": found.first_over._asdict() if found.runs else None,
        "left_out_first": [left._asdict() for left in found.left_out],
        "cost": _bill(found),
    }
    for part in found.parts:
        yield {
            "type": "part",
            "name": part.part.name,
            "kind": part.part.kind,
            "segment": part.part.where,
            "server": part.part.server,
            "method": part.method,
            "tokens": {"p50": part.p50, "p95": part.p95, "p99": part.p99},
            "share": part.p95 / found.cap if found.cap else None,
            "pieces": [piece._asdict() for piece in part.pieces],
        }
    for turn in found.turns:
        levels = {"p50": turn.p50, "p95": turn.p95, "p99": turn.p99}
        free = {level: found.cap - tokens for level, tokens in levels.items()}
        yield {"type": "budget_turn", "turn": turn.turn, "wanted": levels, "free": free}
    for shrunk in found.shrunk:
        yield {
            "type": "shrunk",
            "name": shrunk.name,
            "tokens": shrunk.tokens,
            "kept": 0.5,
            "first_overflow": shrunk.first_over._asdict(),
        }


def finding_object(finding: Finding) -> dict[str, Any]:
    """One finding of the gate."""
    return {"type": "budget_finding", **finding._asdict()}


def check_object(findings: list[Finding]) -> dict[str, Any]:
    """The gate's verdict, its last line."""
    failed = sum(finding.level == "error" for finding in findings)
    return {"type": "check", "passed": not failed, "failed": failed, "notes": len(findings) - failed}


def _start(found: Estimate) -> dict[str, Any] | None:
    start = found.plan.start
    if start is None:
        return None
    return {"trace": start.trace, "turn": start.turn, "tokens": found.start_tokens}


def _bill(found: Estimate) -> dict[str, Any] | None:
    bill = found.bill
    if bill is None:
        return None
    names = ("p50", "p95", "p99", "per_turn", "uncached")
    return {
        "currency": "USD",
        **{name: _text(getattr(bill, name)) for name in names},
        "tokens": tokens_object(bill.tokens),
        "prices_from": bill.source,
        "notes": list(bill.notes),
    }


def _text(amount: Decimal) -> str:
    return f"{amount.normalize():f}"

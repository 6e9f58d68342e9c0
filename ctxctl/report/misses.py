"""Cache misses that nothing recorded explains, in words and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.labels import dollars
from ctxctl.model.missed import miss_reason
from ctxctl.model.results import Miss
from ctxctl.report.money_json import exact

if TYPE_CHECKING:
    from ctxctl.analysis.costs import Costs, StepCost

SIGN: Final = "↯"


def miss_text(miss: Miss) -> str:
    """One miss, safe for a terminal: `↯ missed 41,203 (expired: idle 12 min, kept for 5 min)`."""
    return f"{SIGN} missed {miss.tokens:,} ({miss_reason(miss)})"


def miss_cell(cost: StepCost) -> str:
    """Tokens, cause and cost, for a table; empty without a miss."""
    miss = cost.step.cache.miss
    return "" if miss is None else f"{miss.tokens:,} {miss.cause} {dollars(cost.missed)}"


def misses_text(costs: Costs) -> str:
    """All misses of a session, the dearest cause first."""
    whole = costs.misses.whole
    parts = []
    for cause, found in costs.misses.by_cause.items():
        money = dollars(found.money) if found.number > found.unpriced else "not priced"
        parts.append(f"{cause} {found.number:,}, {money}")
    money = dollars(whole.money) if whole.number > whole.unpriced else "not priced"
    priced = (
        f", {whole.unpriced:,} of them without a known price" if 0 < whole.unpriced < whole.number else ""
    )
    return (
        f"{money} for {whole.tokens:,} tokens that a cache could have given and did not{priced}; "
        f"cache misses by cause: {'; '.join(parts)}; derived"
    )


def miss_object(cost: StepCost) -> dict[str, Any] | None:
    """A step's miss as JSON, with what it cost; null without one."""
    miss = cost.step.cache.miss
    return None if miss is None else {"cause": miss.cause, "tokens": miss.tokens, "usd": exact(cost.missed)}


def misses_object(costs: Costs) -> dict[str, Any]:
    """The sums by cause as JSON."""
    whole = costs.misses.whole
    return {
        "count": whole.number,
        "tokens": whole.tokens,
        "usd": exact(whole.money),
        "unpriced": whole.unpriced,
        "by_cause": {
            cause: {"count": s.number, "tokens": s.tokens, "usd": exact(s.money), "unpriced": s.unpriced}
            for cause, s in costs.misses.by_cause.items()
        },
    }

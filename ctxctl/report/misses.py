"""Cache misses that nothing recorded explains, in words and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ctxctl.model.results import Miss
from ctxctl.report.money import dollars, exact
from ctxctl.text import visible

if TYPE_CHECKING:
    from ctxctl.inspector.costs import Costs, StepCost

SIGN: Final = "↯"
_WORDS: Final = {
    "expired": "expired",
    "model": "another model than before",
    "unrecorded": "what is not recorded changed",
    "unexplained": "not explained",
}
_SAID: Final = 40
"""Characters of what the client said."""


def miss_text(miss: Miss) -> str:
    """One miss, safe for a terminal: `↯ missed 41,203 (expired: idle 12 min, kept for 5 min)`."""
    return f"{SIGN} missed {miss.tokens:,} ({why(miss)})"


def why(miss: Miss) -> str:
    """The cause, and the times that it rests on or that at least are known."""
    told = []
    if miss.idle is not None and miss.idle >= 1:
        told.append(f"idle {_span(miss.idle)}")
    if miss.cause == "expired" and miss.lifetime is not None:
        told.append(f"kept for {_span(miss.lifetime)}")
    if miss.recorded_cause is not None:
        told.append(f"said to be {visible(miss.recorded_cause[:_SAID])}")
    return _WORDS[miss.cause] + (f": {', '.join(told)}" if told else "")


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            amount = f"{seconds / size:.1f}" if seconds < 10 * size else f"{seconds / size:.0f}"
            return f"{amount.removesuffix('.0')} {unit}"
    return f"{seconds:.0f} s"


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

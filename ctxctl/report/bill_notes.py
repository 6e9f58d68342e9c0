"""Notes on bills, in words and as JSON: partial outputs and cache misses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ctxctl.model.cost_sums import Paid
from ctxctl.model.missed import miss_reason
from ctxctl.model.results import Miss
from ctxctl.report.jsonout import exact
from ctxctl.wording import APPROXIMATE, NOT_KNOWN, cost_text, dollars, plural, stated_text

if TYPE_CHECKING:
    from decimal import Decimal

    from ctxctl.analysis.request_cost import StepCost
    from ctxctl.analysis.turn_sums import TurnSum
    from ctxctl.model.cost_sums import CostSums, PartialOutputs, StatedSums
    from ctxctl.model.results import UsageView


def with_mark(text: str, is_counted: bool) -> str:
    """A figure, with the mark before it where part of it is as counted."""
    return f"{APPROXIMATE}{text}" if is_counted else text


def paid_text(paid: Paid) -> str:
    """What some requests cost, with the signs of how it is known; `-` where no price is."""
    if paid.unpriced == paid.steps or not paid.is_known:
        return NOT_KNOWN
    return cost_text(paid.cost, counted=paid.is_counted, least=bool(paid.unpriced) or paid.is_least)


def sum_text(costs: CostSums) -> str:
    """The cost of all requests, with the same signs, or else what `known_text` has."""
    return known_text(
        costs.cost, costs.stated, costs.steps, counted=costs.is_counted, least=costs.at_least, grown=False
    )


def known_text(
    cost: Decimal | None, stated: StatedSums, steps: int, *, counted: bool, least: bool, grown: bool
) -> str:
    """A cost, or else the cost that the runtime states; `grown`: there are more requests than these."""
    if cost is None and stated.cost is not None:
        return stated_text(stated.cost, priced=stated.is_priced, least=grown or stated.is_least(steps))
    return cost_text(cost, counted=counted, least=grown or least)


def partial_text(usage: UsageView) -> str | None:
    """A clause about an output that the client logged too early; None where the log has it whole."""
    if usage.believed_output is None:
        return None
    return f"{usage.believed_output:,} out as counted: the client logged its output before the answer's end"


def partial_lines(sums: PartialOutputs) -> Iterator[str]:
    """A sentence about outputs that the client logged too early; none where there are none."""
    if sums.requests:
        yield (
            f"output of {plural(sums.requests, 'request')} was logged before the answer's end: "
            f"{sums.reported:,} reported, {sums.counted:,} counted"
        )


SIGN: Final = "↯"


def miss_text(miss: Miss) -> str:
    """One miss, safe for a terminal: `↯ missed 41,203 (expired: idle 12 min, kept for 5 min)`."""
    return f"{SIGN} missed {miss.tokens:,} ({miss_reason(miss)})"


def miss_cell(cost: StepCost) -> str:
    """Tokens, cause and cost, for a table; empty without a miss."""
    miss = cost.step.cache.miss
    return "" if miss is None else f"{miss.tokens:,} {miss.cause} {dollars(cost.missed)}"


def misses_text(costs: CostSums) -> str:
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
        f"{money} for {whole.tokens:,} tokens that a cache could have returned, but did not{priced}; "
        f"cache misses by cause: {'; '.join(parts)}; derived"
    )


def miss_object(cost: StepCost) -> dict[str, Any] | None:
    """A step's miss as JSON, with what it cost; null without one."""
    miss = cost.step.cache.miss
    return None if miss is None else {"cause": miss.cause, "tokens": miss.tokens, "usd": exact(cost.missed)}


def misses_object(costs: CostSums) -> dict[str, Any]:
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


def turn_cost(row: TurnSum) -> str:
    """The cost of a turn, with the signs for counted parts and for a lower bound; where no
    request has a known cost, the cost that the runtime states for the turn."""
    said = paid_text(Paid(row.steps, row.cost, row.unpriced, row.is_counted, row.is_least, row.is_known))
    usd = None if row.stated is None else row.stated.usd
    if said != NOT_KNOWN or row.stated is None or usd is None:
        return said
    return stated_text(usd, priced=row.stated.total.usd is None)

"""The gate: a plan's estimate held against its limits and against a committed baseline."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from ctxctl.budget.distribution import Amount
from ctxctl.budget.estimate import Estimate
from ctxctl.budget.plan import Bounds
from ctxctl.errors import UsageError
from ctxctl.text import visible
from ctxctl.wording import dollars, price

RULES: Final = {
    "does-not-fit": "The first request has to fit.",
    "total-limit": "All parts together stay within limits.total.",
    "part-limit": "A part stays within its limit.",
    "server-limit": "The tool definitions of a server stay within their limit.",
    "headroom-limit": "Enough is free at the last request of a turn.",
    "overflow-limit": "No turn before limits.overflow_turn overflows.",
    "cost-limit": "A session costs no more than limits.cost_per_session.",
    "baseline-worse": "No number is worse than in the baseline, but for the tolerance.",
    "baseline-new": "All that is measured is in the baseline.",
    "baseline-stale": "The baseline names nothing that is no longer there.",
    "baseline-loose": "The baseline allows no more than is needed, but for the tolerance.",
}
"""What each rule demands."""


class Finding(NamedTuple):
    """One demand of the plan or the baseline that is not met."""

    rule: str
    """A key of `RULES`."""
    subject: str
    """What it is about: a part, a server, a turn; empty: the whole.  Untrusted text."""
    message: str
    """One sentence with the numbers; shown text."""
    hint: str
    """What to do; shown text."""
    level: Literal["error", "note"] = "error"


def limits_kept(found: Estimate) -> list[Finding]:
    """Findings for what breaks a limit of the plan, in the order of `RULES`.

    Raises UsageError("unknown-price") where the cost has a limit and nobody knows it.
    """
    return list(_broken(found, found.plan.limits))


def _broken(found: Estimate, bounds: Bounds) -> Iterator[Finding]:
    cap, level = found.cap, bounds.at
    first = getattr(found.turns[0], level)
    if first > cap:
        yield Finding(
            "does-not-fit", "",
            f"{found.unit} {found.plan.first} has {first:,} tokens at {level}, {first - cap:,} over the cap",
            f"largest part: {_largest(found, level)}",
        )  # fmt: skip
    if bounds.total is not None and found.total(level) > bounds.total.of(cap):
        yield Finding(
            "total-limit", "", f"all parts have {_over(found.total(level), bounds.total, cap, level)}",
            f"largest part: {_largest(found, level)}",
        )  # fmt: skip
    for name, bound in bounds.parts.items():
        part = next(part for part in found.parts if part.part.name == name)
        tokens = getattr(part, level)
        if tokens > bound.of(cap):
            largest = sorted(part.pieces, key=lambda piece: -piece.tokens)[:3]
            told = ", ".join(f"{visible(piece.name)} {piece.tokens:,}" for piece in largest)
            yield Finding(
                "part-limit", name, f"part {visible(name)!r} has {_over(tokens, bound, cap, level)}",
                f"largest in it: {told}" if told else "its size is in the plan",
            )  # fmt: skip
    for name, bound in bounds.servers.items():
        tokens = found.server(name, level)
        if tokens > bound.of(cap):
            yield Finding(
                "server-limit", name,
                f"tools of server {visible(name)!r} have {_over(tokens, bound, cap, level)}",
                f"largest tools: {_tools(found, name)}",
            )  # fmt: skip
    yield from _over_time(found, bounds)


def _over_time(found: Estimate, bounds: Bounds) -> Iterator[Finding]:
    cap, level = found.cap, bounds.at
    for head in bounds.headroom:
        wanted = getattr(found.turns[head.turn - found.plan.first], level)
        need = head.free.of(cap)
        if cap - wanted < need:
            yield Finding(
                "headroom-limit", f"turn {head.turn}",
                f"at {found.unit} {head.turn} {cap - wanted:,} tokens are free at {level}, not {need:,}",
                _help(found),
            )  # fmt: skip
    turn, unit = getattr(found.first_wanted, level), found.unit
    if bounds.overflow_turn is not None and turn is not None and turn < bounds.overflow_turn:
        yield Finding(
            "overflow-limit", "",
            f"{unit} {turn} overflows at {level}, {unit} {bounds.overflow_turn} may be the first",
            _help(found),
        )  # fmt: skip
    if bounds.cost_per_session is not None:
        if found.bill is None:
            raise UsageError(
                "unknown-price",
                f"the plan limits the cost, which is not known: {visible(found.unpriced)}",
                hint="name the provider, plan fewer turns, or give prices in ctxctl.toml (docs/models.md)",
            )
        cost, most = getattr(found.bill, level), Decimal(str(bounds.cost_per_session))
        if cost > most:
            yield Finding(
                "cost-limit",
                "",
                f"a session costs {dollars(cost)} at {level}, limit {price(most)}",
                _help(found),
            )


def _over(tokens: int, bound: Amount, cap: int, level: str) -> str:
    limit = bound.of(cap)
    share = f" ({bound} of the cap)" if bound.share is not None else ""
    return f"{tokens:,} tokens at {level}, {tokens - limit:,} over the limit of {limit:,}{share}"


def _largest(found: Estimate, level: str) -> str:
    if not found.parts:
        return "none"
    part = max(found.parts, key=lambda part: int(getattr(part, level)))
    return f"{visible(part.part.name)!r}, {getattr(part, level):,} tokens"


def _tools(found: Estimate, server: str) -> str:
    pieces = [piece for part in found.parts if part.part.server == server for piece in part.pieces]
    largest = sorted(pieces, key=lambda piece: -piece.tokens)[:3]
    return ", ".join(f"{visible(piece.name)} {piece.tokens:,}" for piece in largest) or "none is listed"


def _help(found: Estimate) -> str:
    """What to shrink first."""
    if not found.shrunk:
        return f"see the {found.unit}s"
    best = found.shrunk[0]
    level = found.plan.limits.at
    turn = getattr(best.first_over, level)
    then = "nothing overflows" if turn is None else f"the first overflow is {found.unit} {turn}"
    return f"with half of {visible(best.name)!r} {then}"

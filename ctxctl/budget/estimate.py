"""A plan worked out: its parts, its sessions, its cost, and what to shrink.

`PlanBase` is what the numbers rest on: what a prompt may hold and in which encoding, and who says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctxctl.budget.distribution import quantile
from ctxctl.budget.fitted import Request, Run, fitted_runs, runs_until_acting
from ctxctl.budget.growth import AtTurn, Between, FirstTurn, Growth, at_turn, between, first_turn, grown_runs
from ctxctl.budget.measure import Measured, Reader
from ctxctl.budget.plan import Model, Plan, policy_of
from ctxctl.errors import UsageError
from ctxctl.model.fitting import Room
from ctxctl.model.money import ZERO, Tokens, priced
from ctxctl.model.whatif import Limits
from ctxctl.text import visible
from ctxctl.tokens.cache import CountCache, default_path
from ctxctl.tokens.catalogue.rates import Priced, RateBook
from ctxctl.tokens.counter import Counter
from ctxctl.tokens.model_encodings import resolve_encoding
from ctxctl.tokens.ranks import NAMES

MOST_WORK: Final = 2_500_000
"""Candidates looked at in sessions under the policy (`fitted_runs.Session.work`): a few seconds."""
KEPT: Final = 0.5
"""How much of a part stays when it is asked what shrinking it would do."""


class Bill(NamedTuple):
    """US dollars and tokens of sessions, over the runs under the policy, with what a cache can give back."""

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


def bill_of_runs(
    model: Model, runs: Sequence[Run], own: dict[str, dict[str, Any]]
) -> tuple[Bill | None, str]:
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
            tokens = tokens_by_billing(request, rates, caching=model.caching)
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


def tokens_by_billing(request: Request, found: Priced, *, caching: bool) -> Tokens:
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


class Shrunk(NamedTuple):
    """What half of one part less would do."""

    name: str
    tokens: int
    """What it holds in the window at the last turn, in half of the sessions at most."""
    first_over: FirstTurn


class LeftOut(NamedTuple):
    """What the policy takes out when it first does something."""

    name: str
    runs: int
    """Of the sessions in which it does something, those in which it takes out some of this."""
    tokens: int
    """In half of these at most."""


class Estimate(NamedTuple):
    """Everything that is said about a plan."""

    name: str
    """Of the plan, as it was given."""
    plan: Plan
    ground: PlanBase
    parts: tuple[Measured, ...]
    turns: tuple[AtTurn, ...]
    """Each turn of the conversation, with nothing left out."""
    first_wanted: FirstTurn
    """The first turn that wants more than the cap: the policy has to do something, if it can."""
    first_between: Between
    """The turn of `first_wanted` in the middle run, and the turns between which nine of ten runs lie."""
    acted_between: Between
    over_between: Between
    """As `first_acted` and `first_over`."""
    acted: int
    """Sessions that were taken to where the policy first does something: for `first_acted` and `left_out`."""
    runs: int
    """Sessions that were taken to their end under the policy: what `first_over` and `bill` are about."""
    first_acted: FirstTurn
    first_over: FirstTurn
    """The first turn that is over the cap under the policy, or is not sent."""
    left_out: tuple[LeftOut, ...]
    """The most frequent first."""
    bill: Bill | None
    unpriced: str
    """Why there is no bill."""
    shrunk: tuple[Shrunk, ...]
    """What helps most first; empty where nothing overflows."""

    @property
    def unit(self) -> str:
        """What the plan calls a turn: `turn`, or `request` in a session of one prompt."""
        return self.plan.conversation.unit

    @property
    def start_tokens(self) -> int | None:
        """What the window holds where the session goes on; None of one that begins."""
        start = self.plan.start
        if start is None:
            return None
        parts = (p for p in self.parts if p.part.now is not None or p.size.fixed)
        held = (p.part.now if p.part.now is not None else p.p50 for p in parts)
        return start.tokens + sum(held)

    @property
    def cap(self) -> int:
        """What a prompt may hold."""
        return self.ground.room.cap

    def total(self, level: str) -> int:
        """All parts at this level; the sum of what each does not exceed."""
        return sum(getattr(part, level) for part in self.parts)

    def server(self, name: str, level: str) -> int:
        """The parts of one server."""
        return sum(getattr(part, level) for part in self.parts if part.part.server == name)


def estimate(
    plan: Plan,
    name: str,
    folder: Path,
    own: dict[str, dict[str, Any]],
    listed: Mapping[str, Any] | None = None,
) -> Estimate:
    """Work a plan out; the same plan, files and prices give the same estimate.

    Args:
        plan: The plan.
        name: What it is called.
        folder: Where its files are.
        own: Models of the user's own settings.
        listed: By part, what its MCP server lists; a part whose server was not asked is an error.

    Raises what `plan_base`, `Reader.measure` and `policy_of` raise.
    """
    base = plan_base(plan.model, own)
    path = default_path()
    cache = CountCache(path) if path is not None else None
    try:
        counter = Counter(base.encoding, cache)
        parts = Reader(folder, counter, exact=base.exact, listed=listed).measure(plan)
        growth = grown_runs(plan, parts)
        policy = policy_of(plan, name)
        # Texts that a policy makes up are nothing for the user's cache of counts.
        count = lru_cache(maxsize=4096)(Counter(base.encoding).count)
        room = base.room
        firsts = growth.first_over(base.room.cap)
        runs = fitted_runs(plan, parts, policy, room, lambda text: count(text)[0], MOST_WORK)
        acted = runs_until_acting(plan, parts, policy, room, lambda text: count(text)[0], firsts, runs)
    finally:
        if cache is not None:
            cache.close()
    first = first_turn(firsts)
    bill, unpriced = bill_of_runs(plan.model, runs, own)
    return Estimate(
        name, plan, base, parts,
        tuple(at_turn(growth, turn) for turn in range(plan.first, plan.last + 1)),
        first, between(firsts),
        between(run.first_acted for run in acted), between(run.first_over for run in runs),
        len(acted), len(runs),
        first_turn(run.first_acted for run in acted), first_turn(run.first_over for run in runs),
        tuple(_left_out(acted)), bill, unpriced,
        tuple(_shrunk(growth, base.room.cap)) if first.p99 is not None else (),
    )  # fmt: skip


def _left_out(runs: list[Run]) -> Iterator[LeftOut]:
    found: dict[str, list[int]] = {}
    for run in runs:
        for name, tokens in run.left_out:
            found.setdefault(name, []).append(tokens)
    for name, sizes in sorted(found.items(), key=lambda pair: (-len(pair[1]), -sum(pair[1]), pair[0])):
        yield LeftOut(name, len(sizes), quantile(sizes, 0.5))


def _shrunk(growth: Growth, cap: int) -> list[Shrunk]:
    made = []
    for at, name in enumerate(growth.names):
        held = quantile((run[-1][at] for run in growth.rows), 0.5)
        if held:
            made.append(Shrunk(name, held, first_turn(growth.first_over(cap, at, KEPT))))
    return sorted(made, key=lambda s: ([-_far(turn) for turn in s.first_over], -s.tokens, s.name))


def _far(turn: int | None) -> float:
    return float("inf") if turn is None else turn


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class PlanBase(NamedTuple):
    """What the numbers rest on."""

    room: Room
    limits_from: str
    """Who says the limits, in one sentence."""
    encoding: str
    exact: bool
    """Whether the model is known to use the encoding."""
    assumed: str
    """What was assumed about the encoding, one sentence; empty: nothing."""


def plan_base(model: Model, own: dict[str, dict[str, Any]]) -> PlanBase:
    """The base of a plan; raises UsageError: `unknown-window`, `unknown-encoding`, `bad-plan`.

    Args:
        model: The plan's table.
        own: Models of the user's own settings.
    """
    limits, limits_from = _limits(model, own)
    cap = limits.cap
    assert cap is not None
    if limits.window is not None and model.reserve >= limits.window:
        raise UsageError(
            "bad-plan", f"model.reserve ({model.reserve:,}) leaves nothing of the window ({limits.window:,})"
        )
    if model.date is not None and _DAY.fullmatch(model.date) is None:
        raise UsageError("bad-plan", "model.date must be a day, such as '2026-11-01'")
    if model.encoding is not None and model.encoding not in NAMES:
        raise UsageError(
            "unknown-encoding",
            f"no encoding is called {visible(model.encoding)!r}",
            hint=f"there are: {', '.join(NAMES)}",
        )
    found = resolve_encoding(model.name)
    room = Room(cap, limits.window, limits.reserve, limits.max_input)
    if model.encoding is not None and (model.name is None or model.encoding != found.encoding):
        return PlanBase(room, limits_from, model.encoding, model.name is None, "")
    assumed = found.assumed.replace("The trace names", "The plan names")
    return PlanBase(room, limits_from, found.encoding, found.known, assumed)


def _limits(model: Model, own: dict[str, dict[str, Any]]) -> tuple[Limits, str]:
    """The limits and who says so: the plan goes before all that is known of the model."""
    if model.window is not None or model.max_input is not None:
        return Limits(model.window, model.reserve, model.max_input), "The plan says so."
    if model.name is None:
        raise UsageError(
            "unknown-window",
            "the plan names neither a model nor a window",
            hint="[model] needs name = '…', or window = 128000",
        )
    from ctxctl.tokens.catalogue.find import find_model, near_names

    known = find_model(model.name, model.provider, own=own)
    if known.window is None and known.max_input is None:
        alike = near_names(model.name) if known.how == "unknown" else []
        raise UsageError(
            "unknown-window",
            f"the window of {visible(model.name[:80])!r} is not known: {visible(known.note)}",
            hint=(f"near: {', '.join(alike)}; or " if alike else "") + "give window = 128000 in [model]",
        )
    limits_from = known.note if known.sure else f"{known.note} Name the provider to be sure."
    return Limits(known.window, model.reserve, known.max_input), limits_from

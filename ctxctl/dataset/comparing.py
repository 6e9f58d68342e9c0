"""Two groups of sessions held beside each other, measure by measure, with how sure a difference is.

A measure is a ratio of two sums over sessions (tokens read of tokens sent, breaks of requests).  Its interval
is the percentile bootstrap: sessions are drawn anew with a fixed seed, so requests of one session stay
together and the same data gives the same figures.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, Literal, NamedTuple

Row = Mapping[str, Any]
"""A session's sums, as the question `measures` answers."""
Better = Literal["lower", "higher"]
LEAST: Final = 20
"""Sessions on each side below which no interval is given: it would promise more than they can say."""
_DRAWS: Final = 1000
_GROUPS: Final = 400
"""More sessions than these are dealt into as many groups, and groups are drawn."""
_SEED: Final = 20
_TAIL: Final = 0.025


class Measure(NamedTuple):
    """One measure of a group of sessions."""

    name: str
    type: str
    """As the columns of questions have it."""
    says: str
    over: str
    """What its sum is divided by, in words."""
    better: Better | None
    """Which way is better; None: neither."""
    sums: Callable[[Row], tuple[float, float] | None]
    """A session's part of both sums; None: it cannot say."""


class Side(NamedTuple):
    """A measure of one group."""

    value: float | None
    sessions: int
    """That can say."""
    silent: int
    """That cannot."""


class Compared(NamedTuple):
    """A measure of two groups."""

    measure: Measure
    a: Side
    b: Side
    difference: float | None
    """B less A; None: one side has no value."""
    low: float | None
    """95 % interval of the difference; None: too few sessions."""
    high: float | None
    effect: float | None
    """Cliff's delta, -1 to 1: how much likelier a session of B has the larger value than one of A."""

    @property
    def is_certain(self) -> bool:
        """Whether the interval leaves no room for no difference."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def is_too_small(self) -> bool:
        """Whether there are too few sessions to tell how sure the difference is."""
        return self.difference is not None and self.low is None


def _ratio(part: str, whole: str, times: float = 1) -> Callable[[Row], tuple[float, float] | None]:
    def sums(row: Row) -> tuple[float, float] | None:
        if row[part] is None or not row[whole]:
            return None
        return times * row[part], row[whole]

    return sums


def _mean(name: str) -> Callable[[Row], tuple[float, float] | None]:
    return lambda row: None if row[name] is None else (row[name], 1)


def _all_priced(whole: str | None) -> Callable[[Row], tuple[float, float] | None]:
    """Cost of sessions of which every request has a price: of others the sum is a part."""

    def sums(row: Row) -> tuple[float, float] | None:
        if row["usd"] is None or row["priced"] < row["requests"]:
            return None
        over = 1 if whole is None else row[whole]
        return (row["usd"], over) if over else None

    return sums


MEASURES: Final = (
    Measure("cost", "usd", "list price", "session with a price for each request", "lower", _all_priced(None)),
    Measure("cost-per-turn", "usd", "list price", "turn of such a session", "lower", _all_priced("turns")),
    Measure("first-request", "tokens", "sent by the first request", "session", "lower", _mean("first")),
    Measure("request", "tokens", "sent", "request of known size", "lower", _ratio("sent", "sized")),
    Measure("largest", "tokens", "sent by the largest request", "session", "lower", _mean("largest")),
    Measure("over", "number", "requests larger than their limit leaves", "100 requests with a limit", "lower", _ratio("over", "limited", 100)),
    Measure("cache-rate", "share", "tokens read from a cache", "token sent, where a bill says", "higher", _ratio("read", "read_of")),
    Measure("breaks", "number", "broken prefixes", "100 requests with cache figures", "lower", _ratio("breaks", "cached", 100)),
    Measure("misses", "number", "unexplained cache misses", "100 requests with cache figures", "lower", _ratio("misses", "cached", 100)),
    Measure("compactions", "number", "compactions", "100 turns", "lower", _ratio("compactions", "turns", 100)),
    Measure("stale", "share", "stale token-steps", "token-step carried", "lower", _ratio("old", "carried")),
    Measure("definitions", "share", "token-steps of tool definitions", "token-step carried", "lower", _ratio("definitions", "carried")),
    Measure("repeats", "share", "tool outputs that came again", "tool output", "lower", _ratio("again", "outputs")),
    Measure("requests-per-turn", "number", "requests", "turn", None, _ratio("requests", "turns")),
    Measure("sub-agents", "share", "sub-agents' requests", "request", None, _ratio("sub_requests", "requests")),
)  # fmt: skip
"""In the order in which they are shown."""


def measure(name: str) -> Measure:
    """The measure of a name.  Raises KeyError."""
    return {one.name: one for one in MEASURES}[name]


def side(measure: Measure, rows: Sequence[Row]) -> Side:
    """A measure of a group."""
    parts = [part for row in rows if (part := measure.sums(row)) is not None]
    whole = sum(part[1] for part in parts)
    value = sum(part[0] for part in parts) / whole if whole else None
    return Side(value, len(parts), len(rows) - len(parts))


def compared(a: Sequence[Row], b: Sequence[Row], measures: Sequence[Measure] = MEASURES) -> list[Compared]:
    """Each measure of both groups; the same rows in the same order give the same figures."""
    return [_compared(one, a, b) for one in measures]


def _compared(measure: Measure, a: Sequence[Row], b: Sequence[Row]) -> Compared:
    one, other = side(measure, a), side(measure, b)
    if one.value is None or other.value is None:
        return Compared(measure, one, other, None, None, None, None)
    parts = [[part for row in rows if (part := measure.sums(row)) is not None] for rows in (a, b)]
    effect = _cliff(*([part[0] / part[1] for part in group if part[1]] for group in parts))
    difference = other.value - one.value
    if min(one.sessions, other.sessions) < LEAST:
        return Compared(measure, one, other, difference, None, None, effect)
    drawn = sorted(
        after - before for before, after in zip(*map(_drawn, parts, (_SEED, _SEED + 1)), strict=True)
    )
    low, high = drawn[int(_TAIL * _DRAWS)], drawn[_DRAWS - 1 - int(_TAIL * _DRAWS)]
    return Compared(measure, one, other, difference, low, high, effect)


def _drawn(parts: Sequence[tuple[float, float]], seed: int) -> list[float]:
    """The ratio of sessions drawn with replacement, `_DRAWS` times."""
    chance = Random(seed)
    groups = _dealt(parts, chance)
    tops, bottoms = [one[0] for one in groups], [one[1] for one in groups]
    places = range(len(groups))
    values = []
    for _ in range(_DRAWS):
        chosen = chance.choices(places, k=len(groups))
        below = sum(map(bottoms.__getitem__, chosen))
        values.append(sum(map(tops.__getitem__, chosen)) / below if below else 0.0)
    return values


def _dealt(parts: Sequence[tuple[float, float]], chance: Random) -> list[tuple[float, float]]:
    """Sessions, or as many groups of them as can be drawn in a second."""
    if len(parts) <= _GROUPS:
        return list(parts)
    mixed = list(parts)
    chance.shuffle(mixed)
    return [
        (sum(part[0] for part in mixed[n::_GROUPS]), sum(part[1] for part in mixed[n::_GROUPS]))
        for n in range(_GROUPS)
    ]


def _cliff(a: Sequence[float], b: Sequence[float]) -> float | None:
    """How often a value of `b` is above one of `a`, less how often below, of all pairs."""
    if not a or not b:
        return None
    ordered = sorted(a)
    above = sum(bisect_left(ordered, one) for one in b)
    below = sum(len(ordered) - bisect_right(ordered, one) for one in b)
    return (above - below) / (len(a) * len(b))

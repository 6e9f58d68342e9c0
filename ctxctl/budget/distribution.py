"""Sizes as people know them: one number, a range, or a few percentiles; and how such sizes are drawn."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, isfinite
from random import Random
from typing import Any, Final, TypeVar

from ctxctl.model.whatif import MOST_TOKENS, parse_tokens
from ctxctl.wording import given_share

_QUANTILE: Final = re.compile(r"p([1-9]\d?)", re.ASCII)
_WANTED: Final = "a number, {from, to}, or percentiles {min, p50, p95, p99, max}"
T = TypeVar("T")


class Size(int):
    """A number of tokens that may be written as `128k`."""


class Amount:
    """A bound that is a number of tokens (`4000`, `"4k"`) or a share of the cap (`"5%"`)."""

    __slots__ = ("share", "tokens")

    def __init__(self, tokens: int | None, share: float | None) -> None:
        self.tokens = tokens
        self.share = share

    def of(self, cap: int) -> int:
        """The bound in tokens, rounded down, for a cap in tokens."""
        return self.tokens if self.tokens is not None else int(cap * (self.share or 0.0))

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens" if self.tokens is not None else given_share(self.share or 0)


class Distribution:
    """A distribution by its quantile function: straight lines between `points`.

    `points` are (probability, value), the first at 0 and the last at 1, values never falling.
    """

    __slots__ = ("points",)

    def __init__(self, points: tuple[tuple[float, float], ...]) -> None:
        self.points = points

    @property
    def fixed(self) -> bool:
        """Whether every draw gives the same value."""
        return self.points[0][1] == self.points[-1][1]

    @property
    def mean(self) -> float:
        """The expected value, before rounding."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return sum((q - p) * (a + b) / 2 for (p, a), (q, b) in pairs)

    def at(self, share: float) -> int:
        """The value that this share of all does not exceed, rounded to a whole number."""
        found = bisect_right(self.points, share, key=lambda point: point[0])
        if found >= len(self.points):
            return _whole(self.points[-1][1])
        (p, a), (q, b) = self.points[max(found - 1, 0)], self.points[found]
        return _whole(a + (b - a) * (share - p) / (q - p)) if q > p else _whole(b)

    def draw(self, chance: Random) -> int:
        """One value; takes one number from `chance` whatever the distribution, so that draws stay aligned."""
        return self.at(chance.random())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Distribution) and self.points == other.points

    def __hash__(self) -> int:
        return hash(self.points)


def constant(value: int) -> Distribution:
    """The same value each time."""
    return Distribution(((0.0, float(value)), (1.0, float(value))))


def measured_spread(values: Sequence[int]) -> dict[str, int] | int:
    """Percentiles of observed values, as `distribution` reads them; the value itself where all are equal.

    Needs at least one value.
    """
    ordered = sorted(values)
    if ordered[0] == ordered[-1]:
        return ordered[0]
    shares = (10, 25, 50, 75, 90, 95, 99)
    last = len(ordered) - 1
    found = {"min": ordered[0]}
    for share in shares:
        exact = last * share / 100
        low = int(exact)
        high = min(low + 1, last)
        found[f"p{share}"] = _whole(ordered[low] + (ordered[high] - ordered[low]) * (exact - low))
    found["max"] = ordered[-1]
    return found


def quantile(values: Iterable[T], share: float, key: Any = None) -> T:
    """The smallest of the values that at least this share of them does not exceed (nearest rank)."""
    ordered = sorted(values, key=key)
    return ordered[max(0, ceil(share * len(ordered) - 1e-9) - 1)]


def token_size(value: object) -> Size:
    """A number of tokens from 0 up; raises ValueError."""
    if isinstance(value, str):
        try:
            return Size(parse_tokens(value, least=0))
        except ValueError as error:
            raise ValueError(f"must be {error}") from None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_TOKENS:
        raise ValueError("must be a number of tokens from 0 up, such as 128000 or '128k'")
    return Size(value)


def amount_bound(value: object) -> Amount:
    """A bound; raises ValueError."""
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            share = float(value.strip()[:-1])
        except ValueError:
            share = -1.0
        if not 0 <= share <= 100:
            raise ValueError("must be a share from 0% to 100%, such as '5%'")
        return Amount(None, share / 100)
    try:
        return Amount(int(token_size(value)), None)
    except ValueError:
        raise ValueError(
            "must be a number of tokens, such as 4000 or '4k', or a share, such as '5%'"
        ) from None


def distribution(value: object) -> Distribution:
    """A distribution; raises ValueError."""
    if not isinstance(value, Mapping):
        try:
            return constant(token_size(value))
        except ValueError:
            raise ValueError(f"must be {_WANTED}") from None
    if set(value) == {"from", "to"}:
        low, high = token_size(value["from"]), token_size(value["to"])
        if low > high:
            raise ValueError(f"must have from <= to, not {low} and {high}")
        return Distribution(((0.0, float(low)), (1.0, float(high))))
    return _percentiles(value)


def _percentiles(value: Mapping[Any, object]) -> Distribution:
    points: dict[float, float] = {}
    for name, given_value in value.items():
        match = _QUANTILE.fullmatch(str(name))
        if name not in ("min", "max") and match is None:
            raise ValueError(f"must be {_WANTED}; {str(name)[:40]!r} is none of these")
        share = 0.0 if name == "min" else 1.0 if match is None else int(match[1]) / 100
        points[share] = float(token_size(given_value))
    if not points.keys() - {0.0, 1.0}:
        raise ValueError(f"must be {_WANTED}")
    ordered = sorted(points.items())
    values = [given_value for _, given_value in ordered]
    if values != sorted(values):
        raise ValueError("must have percentiles that do not fall")
    if 0.0 not in points:
        ordered.insert(0, (0.0, 0.0))
    if 1.0 not in points:
        ordered.append((1.0, values[-1]))
    return Distribution(tuple(ordered))


def _whole(value: float) -> int:
    return int(value + 0.5) if isfinite(value) else 0

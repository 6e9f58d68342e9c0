# ruff: noqa: E501 - rows and lines of a page
"""What a fleet of any size takes, from what was measured at several sizes: a line through them, and its error.

A figure grows as `fixed + each * sessions`.  The line is laid so that the shares by which it misses the
measured points are least; its error is the share by which the line through the smaller points misses the largest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

SIZES: Final = (20_000, 100_000, 1_000_000, 10_000_000)
"""Sessions that the model is asked about."""
BEGIN, END = "<!-- written by make bench-fleet: model -->", "<!-- end of model -->"


class Point(NamedTuple):
    """A dataset of some size, as measured."""

    sessions: int
    megabytes: float
    name: str
    """The slowest question."""
    slowest: float
    every: float
    """Seconds, warm: of that question, and of all one after the other."""


class Line(NamedTuple):
    """`fixed + each * sessions`."""

    fixed: float
    each: float

    def at(self, sessions: float) -> float:
        """What it says."""
        return self.fixed + self.each * sessions


def fitted(points: Sequence[tuple[float, float]]) -> Line:
    """The line with the least squares of shares by which it misses points; none that begins below zero."""
    weights = [1 / (y * y) for _, y in points]
    w, wx = sum(weights), sum(k * x for k, (x, _) in zip(weights, points, strict=True))
    wy = sum(k * y for k, (_, y) in zip(weights, points, strict=True))
    wxx = sum(k * x * x for k, (x, _) in zip(weights, points, strict=True))
    wxy = sum(k * x * y for k, (x, y) in zip(weights, points, strict=True))
    spread = w * wxx - wx * wx
    each = (w * wxy - wx * wy) / spread if spread else wy / wx
    fixed = (wy - each * wx) / w
    return Line(fixed, each) if fixed >= 0 else Line(0.0, wxy / wxx)


def missed_by(points: Sequence[tuple[float, float]]) -> float:
    """The share by which the line through all points but the largest misses that one; negative: too little."""
    *smaller, (x, y) = sorted(points)
    return fitted(smaller).at(x) / y - 1


def of_page(text: str) -> tuple[float, float, list[Point]]:
    """Of docs/benchmarks-fleet.md: sessions a second of CPU, bytes of a capture, and the measured sizes."""
    rate = re.search(r"\| sessions read, a second of CPU \| ([\d.]+) \|", text)
    fleet = re.search(r"The fleet is [\d,]+ captures, [\d,]+ MB\s+\((\d+) kB each\)", text)
    if rate is None or fleet is None:
        raise ValueError("the page has no such figures")
    row = re.compile(
        r"^\| ([\d,]+) \| [\d,]+ \| ([\d,.]+) MB \| `([\w-]+)` \| ([\d.]+) s \| ([\d.]+) s \|", re.M
    )
    points = [
        Point(int(m[1].replace(",", "")), float(m[2].replace(",", "")), m[3], float(m[4]), float(m[5]))
        for m in row.finditer(text)
    ]
    return float(rate[1]), float(fleet[1]) * 1000, points


def block(text: str) -> str:
    """The table of docs/fleet.md, from the measurements on docs/benchmarks-fleet.md."""
    rate, each, points = of_page(text)
    sizes = [(float(one.sessions), one.megabytes) for one in points]
    slow = [(float(one.sessions), one.slowest) for one in points]
    size, slowest = fitted(sizes), fitted(slow)
    rows = [
        f"| {n:,} | {_bytes(n * each)} | {_time(n / rate)} | {_bytes(size.at(n) * 1e6)} | {_time(slowest.at(n))} |"
        for n in SIZES
    ]
    largest = max(one.sessions for one in points)
    return f"""{BEGIN}
| sessions | captures | reading, of one core | dataset | slowest question, of two cores |
|---:|---:|---:|---:|---:|
{chr(10).join(rows)}

Through measured datasets of {_listed([f"{one.sessions:,}" for one in sorted(points)])} sessions: {size.each * 1e3:.2f} kB and {slowest.each * 1e6:.1f} µs
for each session more. The line through the smaller ones says {_off(missed_by(sizes))} for the size at {largest:,} and {_off(missed_by(slow))} for the
slowest question.
{END}"""


def replaced(page: str, made: str) -> str:
    """docs/fleet.md with that table.  Raises ValueError where it has no place for it."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("docs/fleet.md has no place for the model")
    return before + made + after


def _off(share: float) -> str:
    return f"{abs(share):.0%} too {'little' if share < 0 else 'much'}"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _bytes(size: float) -> str:
    return _scaled(size, ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")))


def _time(seconds: float) -> str:
    return _scaled(seconds, ((86400, "days"), (3600, "h"), (60, "min"), (1, "s")))


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    for one, name in units[:-1]:
        if value >= 1.5 * one:
            return f"{_two(value / one)} {name}"
    return f"{_two(value / units[-1][0])} {units[-1][1]}"


def _two(value: float) -> str:
    """Two digits that count."""
    shown: Callable[[float], str] = lambda x: f"{x:,.0f}" if x >= 10 else f"{x:.1f}"  # noqa: E731
    return shown(float(f"{value:.2g}"))

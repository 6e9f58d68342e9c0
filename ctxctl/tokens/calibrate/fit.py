"""Least squares with bounded weights that a few wrong bills cannot bend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ctxctl.tokens.calibrate.features import (
    BOUNDS,
    CLASSES,
    SLOPE,
    WIDTH,
    Vector,
    WeightBound,
    weighed_tokens,
)
from ctxctl.tokens.calibrate.points import Point, Row

_ROUNDS: Final = 20
_SWEEPS: Final = 60
_STILL: Final = 1e-3
"""Change of a weight, in its spreads."""
_LEAST_SCALE: Final = 1e-4
"""Relative; below it an error is rounding and no reason to weigh a row less."""
_FULL: Final = 1.5
"""Errors up to this many scales count in full (Huber); beyond, by their size and not its square."""
_LOST: Final = 25.0
"""Errors beyond this many scales do not count: a wrong bill, or something that nothing recorded."""

SCALES: Final = (0.8, 1.25)
"""Bounds of a segment's own scale: its texts may be of another kind than those that the weights are from."""
JUMP: Final = 0.02
"""Share of a bill."""
_LEAST_SCALED: Final = 4
_LEAST_GROWTH: Final = 0.02
_NEAR: Final = 0.1
"""Share of the usual spread that weights are expected around those of models that split texts alike."""
_MOST_ROWS: Final = 4000
"""More say nothing that these do not; of more, every second, third … is taken."""

Weights = tuple[float, ...]


class Level(NamedTuple):
    """A segment's own: billed = beyond + scale * weighed content."""

    beyond: float
    scale: float

    def of(self, weights: Weights, sizes: Vector) -> float:
        """The size of a request of the segment."""
        return self.beyond + self.scale * weighed_tokens(weights, sizes)


class _Line(NamedTuple):
    """A row without its zeros."""

    terms: tuple[tuple[int, int], ...]
    change: int
    size: int


def fit(rows: Sequence[Row], near: Weights | None = None) -> Weights:
    """The weights under which the changes of what was counted explain the changes of what was billed.

    Errors are relative to the size of the request.  The order of the rows does not matter, bit for bit.  A
    class that the rows say little of is drawn to its weight in `near`, the weights of other models that split
    texts alike; without these to the slope of all rows, and one that no row has gets the slope of the rest.
    """
    usable = sorted({row for row in rows if any(row.moved)})
    lines = [
        _Line(tuple((i, v) for i, v in enumerate(row.moved) if v), row.change, row.reported)
        for row in usable[:: 1 + len(usable) // _MOST_ROWS]
    ]
    slope = overall(rows)
    centres = (
        [slope if i < len(CLASSES) else BOUNDS[i].usual for i in range(WIDTH)] if near is None else [*near]
    )
    spreads = [bound.spread * (1.0 if near is None else _NEAR) for bound in BOUNDS]
    weights = list(centres)
    if not lines:
        return tuple(weights)
    for _ in range(_ROUNDS):
        before = list(weights)
        errors = [abs(line.change - sum(weights[i] * v for i, v in line.terms)) / line.size for line in lines]
        scale = max(_LEAST_SCALE, 1.4826 * median(errors))
        square, right = _normal(lines, errors, scale)
        _solve(square, right, weights, centres, [(scale / spread) ** 2 for spread in spreads])
        if max(abs(a - b) / c.spread for a, b, c in zip(before, weights, BOUNDS, strict=True)) < _STILL:
            break
    if near is None:
        _unseen(weights, lines)
    return tuple(round(w, 4) for w in weights)


def _unseen(weights: list[float], lines: Sequence[_Line]) -> None:
    """Give classes that no row has the slope of those that the rows have, by their tokens."""
    tokens = [0] * len(CLASSES)
    for line in lines:
        for i, v in line.terms:
            if i < len(CLASSES):
                tokens[i] += abs(v)
    known = [i for i, n in enumerate(tokens) if n and BOUNDS[i] is SLOPE]
    whole = sum(tokens[i] for i in known)
    if whole:
        mean = sum(tokens[i] * weights[i] for i in known) / whole
        for i, n in enumerate(tokens):
            if not n:
                weights[i] = mean


def overall(rows: Sequence[Row]) -> float:
    """One slope for all classes: the median of billed for counted over rows that grew by enough."""
    ratios = []
    for row in set(rows):
        counted = sum(row.moved[: len(CLASSES)])
        if counted >= 200 and row.change > 0:
            items = sum(row.moved[len(CLASSES) :])
            ratios.append((row.change - BOUNDS[-1].usual * items) / counted)
    bound = BOUNDS[0]
    return _within(median(ratios), bound) if len(ratios) >= 3 else bound.usual


def _normal(
    lines: Sequence[_Line], errors: Sequence[float], scale: float
) -> tuple[list[list[float]], list[float]]:
    """The normal equations with each row weighed by how far it is off."""
    square = [[0.0] * WIDTH for _ in range(WIDTH)]
    right = [0.0] * WIDTH
    for line, error in zip(lines, errors, strict=True):
        off = error / scale
        if off > _LOST:
            continue
        trust = (1.0 if off <= _FULL else _FULL / off) / (line.size * line.size)
        for i, v in line.terms:
            part = trust * v
            right[i] += part * line.change
            into = square[i]
            for j, u in line.terms:
                into[j] += part * u
    return square, right


def _solve(
    square: list[list[float]],
    right: list[float],
    weights: list[float],
    centres: list[float],
    pull: list[float],
) -> None:
    """Bounded coordinate descent; each weight is drawn to its centre by its `pull`."""
    for _ in range(_SWEEPS):
        most = 0.0
        for i in range(WIDTH):
            others = weighed_tokens(square[i], tuple(weights)) - square[i][i] * weights[i]  # type: ignore[arg-type]
            best = (right[i] - others + pull[i] * centres[i]) / (square[i][i] + pull[i])
            best = _within(best, BOUNDS[i])
            most = max(most, abs(best - weights[i]) / BOUNDS[i].spread)
            weights[i] = best
        if most < _STILL:
            return


def median(values: Iterable[float]) -> float:
    """The middle value, the mean of the two middle ones; as `statistics.median`, which is slow to import."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _within(value: float, bound: WeightBound) -> float:
    return min(max(value, bound.low), bound.high)


def error_of(weights: Weights, row: Row) -> float:
    """How far the weights are off a row, as a share of the request's size."""
    return abs(row.change - weighed_tokens(weights, row.moved)) / row.reported


def levels(weights: Weights, points: Sequence[Point]) -> list[tuple[int, Level]]:
    """What a segment's bills are beside its weighed content, and from which point on.

    A new level begins where the bills jump by more than what came explains: something came or went that
    nobody recorded.
    """
    beyond = [point.reported - weighed_tokens(weights, point.sizes) for point in points]
    starts = [0] + [
        n for n in range(1, len(points)) if abs(beyond[n] - beyond[n - 1]) > JUMP * points[n].reported
    ]
    ends = [*starts[1:], len(points)]
    return [(start, _level(weights, points[start:end])) for start, end in zip(starts, ends, strict=True)]


def _level(weights: Weights, points: Sequence[Point]) -> Level:
    """Of points that hardly grow, or of fewer than four, the scale is 1."""
    pairs = sorted((weighed_tokens(weights, point.sizes), point.reported) for point in points)
    scale = 1.0
    if len(pairs) >= _LEAST_SCALED:
        half = len(pairs) // 2
        slopes = [
            (b[1] - a[1]) / (b[0] - a[0])
            for a, b in zip(pairs[:half], pairs[len(pairs) - half :], strict=True)
            if b[0] - a[0] > _LEAST_GROWTH * b[1]
        ]
        if len(slopes) >= 2:
            scale = min(max(median(slopes), SCALES[0]), SCALES[1])
    return Level(median(billed - scale * content for content, billed in pairs), scale)

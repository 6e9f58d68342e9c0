"""How far a fit is off on steps that it was not fitted to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from ctxctl.tokens.calibrate.features import CLASSES, weighed_tokens
from ctxctl.tokens.calibrate.fit import Weights, error_of, fit, levels, median
from ctxctl.tokens.calibrate.points import Lane, Point, Row, rows_of

FOLDS: Final = 5
_LEAST_GROUPS: Final = 3
_LEAST_SEGMENT: Final = 4


Group = list[tuple[Point, ...]]
"""Segments, each the points of one lane between two breaks."""
Sessions = list[list[Group]]
"""Segments by thread by session."""


class Errors(msgspec.Struct, frozen=True):
    """Errors of one method, as shares of what was billed."""

    steps: int
    p50: float
    p90: float
    p95: float
    p99: float
    worst: float
    reason: str
    """Of the worst, as far as the numbers tell."""


class WrongPrediction(NamedTuple):
    """A step that was predicted, and how far off."""

    error: float
    reported: int
    change: int
    """Billed less what the prediction starts from."""
    moved: tuple[int, ...]
    predicted: float


class ErrorsByMethod(NamedTuple):
    """Errors by method, and what sessions they are from."""

    next_size: Errors | None
    """From the last billed size; the weights are from other sessions, or other stretches of one."""
    by: str
    """What was left out of the fit in turn: `sessions`, `threads` or `stretches`."""
    alternate: Errors | None
    """A constant and a scale for each segment, and the weights, from every other step; the steps between."""
    halves: Errors | None
    """As `alternate`, but fitted to the first half of each segment and tested on its second half."""
    first: Errors | None
    """From the first billed size of a segment; the weights are from other sessions."""


class PredictionTest(NamedTuple):
    """Every step that was predicted without being fitted, by method; see `ErrorsByMethod`."""

    by: str
    next_size: list[WrongPrediction]
    alternate: list[WrongPrediction]
    halves: list[WrongPrediction]
    first: list[WrongPrediction]


def predict_by_methods(sessions: Sessions, near: Weights | None = None) -> PredictionTest:
    """Predict one model's segments (as `distinct_segments` gives them) by every method.

    The order of sessions does not matter.  `near` are weights of other models, as `fit` takes them.
    """
    by, groups = _groups(sessions)
    next_size: list[WrongPrediction] = []
    first: list[WrongPrediction] = []
    for kept, left in _folds(groups):
        train = {row for group in kept for stretch in group for row in rows_of(stretch)}
        weights = fit(list(train), near)
        for group in left:
            for stretch in group:
                next_size += [_miss(weights, row) for row in rows_of(stretch) if row not in train]
                first += [_from(weights, stretch[0], point) for point in stretch[1:]]
    pieces = [points for lanes in sessions for lane in lanes for points in lane]
    return PredictionTest(
        by,
        next_size,
        _levels(pieces, lambda n: (slice(0, n, 2), slice(1, n, 2))),
        _levels(pieces, lambda n: (slice(0, n // 2), slice(n // 2, n))),
        first,
    )


def method_errors(found: PredictionTest) -> ErrorsByMethod:
    """The errors of what was predicted, by method."""
    return ErrorsByMethod(
        summed(found.next_size), found.by, summed(found.alternate), summed(found.halves), summed(found.first)
    )


def summed(misses: Sequence[WrongPrediction]) -> Errors | None:
    """Quantiles of errors; None of nothing."""
    if not misses:
        return None
    ordered = sorted(misses)
    errors = [miss.error for miss in ordered]
    p50, p90, p95, p99 = (round(quantile(errors, share), 6) for share in (0.5, 0.9, 0.95, 0.99))
    worst = ordered[-1]
    return Errors(len(ordered), p50, p90, p95, p99, round(worst.error, 6), reason(worst))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The nearest-rank quantile of sorted values."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def reason(miss: WrongPrediction) -> str:
    """What the numbers say of why a step was predicted wrongly."""
    off = round(miss.change - miss.predicted)
    much, counted = abs(off), sum(miss.moved[: len(CLASSES)])
    largest = max(range(len(CLASSES)), key=lambda i: (abs(miss.moved[i]), -i))
    way = "more" if off > 0 else "less"
    if much > abs(miss.moved[largest]):
        return f"billed {much:,} {way} than expected where {counted:,} tokens were recorded as new"
    name = CLASSES[largest].replace("_", " ")
    return f"billed {much:,} {way} than expected; {miss.moved[largest]:,} tokens of {name} were new"


def segments(lane: Lane) -> Iterator[tuple[Point, ...]]:
    """A lane's points by segment."""
    start = 0
    for at in range(1, len(lane.points) + 1):
        if at == len(lane.points) or lane.points[at].segment != lane.points[start].segment:
            yield lane.points[start:at]
            start = at


def constant_beyond(weights: Weights, points: Sequence[Point]) -> float:
    """What was billed of a segment beyond what was recorded: the median."""
    return median(point.reported - weighed_tokens(weights, point.sizes) for point in points)


def distinct_segments(sessions: Sequence[Sequence[Lane]]) -> Sessions:
    """Segments by lane by session, longest first, less those that another one holds already.

    A session that was resumed or forked repeats what it grew from; to test on that would be to test on what
    was fitted.
    """
    order = sorted(
        ([[*segments(lane)] for lane in session] for session in sessions),
        key=lambda lanes: (-sum(len(points) for lane in lanes for points in lane), lanes),
    )
    seen: set[tuple[int, tuple[int, ...]]] = set()
    found: Sessions = []
    for lanes in order:
        kept_lanes = []
        for lane in sorted(lanes):
            kept = []
            for points in lane:
                marks = {(point.reported, point.sizes) for point in points}
                if 2 * len(marks & seen) <= len(marks):
                    kept.append(points)
                seen |= marks
            if kept:
                kept_lanes.append(kept)
        if kept_lanes:
            found.append(kept_lanes)
    return found


def _groups(found: Sessions) -> tuple[str, list[Group]]:
    """What is left out of a fit in turn: sessions, else threads, else stretches of segments."""
    by_session = [[points for lane in lanes for points in lane] for lanes in found]
    by_session = [group for group in by_session if any(len(points) > 1 for points in group)]
    if len(by_session) >= _LEAST_GROUPS:
        return "sessions", by_session
    by_thread = [lane for lanes in found for lane in lanes if any(len(points) > 1 for points in lane)]
    if len(by_thread) >= _LEAST_GROUPS:
        return "threads", by_thread
    stretches = []
    for lane in by_thread:
        for points in lane:
            size = max(2, -(-len(points) // FOLDS))
            stretches += [[points[max(0, at - 1) : at + size]] for at in range(0, len(points), size)]
    return "stretches", stretches


def _folds(groups: Sequence[Group]) -> Iterator[tuple[list[Group], list[Group]]]:
    """(kept, left out), of about the same size each; the largest groups are dealt out first."""
    dealt: list[list[int]] = [[] for _ in range(min(FOLDS, len(groups)))]
    sizes = [0] * len(dealt)
    for n in sorted(range(len(groups)), key=lambda n: (-sum(map(len, groups[n])), groups[n])):
        at = sizes.index(min(sizes))
        dealt[at].append(n)
        sizes[at] += sum(map(len, groups[n]))
    if len(dealt) < 2:
        return
    for left in dealt:
        chosen = set(left)
        yield [group for n, group in enumerate(groups) if n not in chosen], [groups[n] for n in left]


def _levels(
    stretches: Sequence[tuple[Point, ...]], parted: Callable[[int], tuple[slice, slice]]
) -> list[WrongPrediction]:
    """Errors of a level for each segment, on the steps that `parted` leaves out of the fit."""
    pairs = [(points, *parted(len(points))) for points in stretches if len(points) >= _LEAST_SEGMENT]
    weights = fit([row for points, fitted, _ in pairs for row in rows_of(points[fitted])])
    misses = []
    for points, fitted, rest in pairs:
        known = range(len(points))[fitted]
        own = [(known[start], level) for start, level in levels(weights, points[fitted])]
        for at in range(len(points))[rest]:
            before, point = points[at - 1], points[at]
            level = next((level for start, level in reversed(own) if start < at), own[0][1])
            predicted = level.of(weights, point.sizes) - before.reported
            moved = tuple(b - a for a, b in zip(before.sizes, point.sizes, strict=True))
            change = point.reported - before.reported
            error = abs(change - predicted) / point.reported
            misses.append(WrongPrediction(error, point.reported, change, moved, predicted))
    return misses


def _miss(weights: Weights, row: Row) -> WrongPrediction:
    return WrongPrediction(
        error_of(weights, row), row.reported, row.change, row.moved, weighed_tokens(weights, row.moved)
    )


def _from(weights: Weights, start: Point, point: Point) -> WrongPrediction:
    moved = tuple(b - a for a, b in zip(start.sizes, point.sizes, strict=True))
    return _miss(weights, Row(point.reported, point.reported - start.reported, moved))

"""Calibrations as values: fits by model, under a digest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ctxctl.tokens.calibrate.errors import (
    Errors,
    Sessions,
    WrongPrediction,
    constant_beyond,
    distinct_segments,
    method_errors,
    predict_by_methods,
    quantile,
)
from ctxctl.tokens.calibrate.features import BOUNDS, CLASSES, WIDTH, weighed_tokens
from ctxctl.tokens.calibrate.fit import Weights, fit, median
from ctxctl.tokens.calibrate.points import BlindRequest, Lane, Point, Row, family, rows_of
from ctxctl.tokens.calibrate.relatives import relative_kind
from ctxctl.tokens.calibrate.spread import Common, ErrorSpread, SizeError, spread_of
from ctxctl.tokens.model_encodings import resolve_encoding
from ctxctl.tokens.ranks import RANKS_OF
from ctxctl.typed_decoding import from_json
from ctxctl.wording import error_share, given_share

VERSION: Final = 1
LEAST_NEAR: Final = 200
"""Steps of relatives from which their common weights are taken."""
LEAST_STEPS: Final = 20
"""Steps that follow another one of their segment, to fit a dozen weights to and to test them."""
MOST_P50: Final = 0.02
LEAST_BEYOND: Final = 0.1
"""Share of a segment's bills that it may have been billed less than its content weighs."""
_MUCH: Final = 0.2
MOST_P95: Final = 0.10
"""Errors of the next size beyond which a fit is refused: it would be no better than a guess."""


class BeyondRecorded(msgspec.Struct, frozen=True):
    """What was billed beyond what was recorded, in tokens, over segments.  Whatever it is: instructions, tool
    definitions, wrappers, or content that the runtime does not write down."""

    segments: int
    p10: int
    p50: int
    p90: int


class Fit(msgspec.Struct, frozen=True):
    """What is known of one model's tokenizer."""

    model: str
    """`points.family` of its name."""
    encoding: str
    """What the counts were made with that the weights belong to."""
    weights: tuple[float, ...]
    """For each class of `features.CLASSES` billed tokens for one counted, then billed tokens for an item."""
    seen: tuple[int, ...]
    """For each class the counted tokens that came or went in the fitted steps, then the items."""
    steps: int
    sessions: int
    contradicted: int
    """Bills that were left out because they cannot be the size of what was counted."""
    blind: int
    """Bills of steps that brought content which nobody recorded or counted: neither fitted nor tested."""
    beyond: BeyondRecorded
    by: str
    """What was left out in turn for `next_size`: `sessions`, `threads` or `stretches` of one session."""
    next_size: Errors
    first: Errors | None = None
    alternate: Errors | None = None
    halves: Errors | None = None
    spread: ErrorSpread | None = None
    """Of the next size, on steps that were not fitted; None in calibrations of earlier versions."""
    blind_item: float = 0.0
    """Tokens of an item that has neither text nor count."""
    blinds: int = 0
    """Requests with such items that this is from."""


class RefusedModel(NamedTuple):
    """A model that is not calibrated, and why."""

    model: str
    steps: int
    why: str
    next_size: Errors | None = None


class Calibration(msgspec.Struct, frozen=True):
    """Fits of several models."""

    fits: tuple[Fit, ...] = ()
    """By model, then encoding."""
    version: int = VERSION
    common: Common | None = None

    @property
    def digest(self) -> str:
        """16 hex digits that stand for all numbers in it; empty if there are none."""
        return sha256(self.encode()).hexdigest()[:16] if self.fits else ""

    def encode(self) -> bytes:
        """As JSON, the same bytes for the same numbers."""
        return msgspec.json.encode(self, order="deterministic")

    def of(self, model: str | None, encoding: str) -> Fit | None:
        """The fit for a model and the encoding of the counts; None for one with a public tokenizer."""
        if model is None or not self.fits or resolve_encoding(model).known:
            return None
        name, ranks = family(model), RANKS_OF[encoding]
        names = [name]
        if name.startswith("claude-"):
            names.append(name.replace(".", "-"))  # Copilot writes claude-opus-4.6
        fits = {f.model: f for f in self.fits if RANKS_OF.get(f.encoding) == ranks}
        return next((fits[one] for one in names if one in fits), None)

    def with_fits(self, fits: Iterable[Fit]) -> Calibration:
        """This one with other fits in place of its own for the same models."""
        named = {(f.model, f.encoding): f for f in (*self.fits, *fits)}
        return Calibration(tuple(named[key] for key in sorted(named)), common=self.common)


class Outcome(NamedTuple):
    """What came of calibrating."""

    calibration: Calibration
    refused: tuple[RefusedModel, ...]


def decode(raw: bytes) -> Calibration:
    """A calibration from its JSON; raises ValueError for what is none, or has a weight out of bounds."""
    found = from_json(raw, Calibration)
    if found.version != VERSION:
        raise ValueError(f"its version is {found.version}, not {VERSION}")
    for one in found.fits:
        if len(one.weights) != WIDTH or len(one.seen) != WIDTH:
            raise ValueError(f"it has not {WIDTH} weights for each model")
        if not all(b.low <= w <= b.high for w, b in zip(one.weights, BOUNDS, strict=True)):
            raise ValueError("a weight is out of bounds")
        if one.encoding not in RANKS_OF:
            raise ValueError("an encoding in it is not known")
    return found


def calibrate(sessions: Iterable[Sequence[Lane]], encoding: str) -> Outcome:
    """Fit every model of some sessions whose tokenizer is not public.

    Args:
        sessions: The lanes of each; their order does not matter.
        encoding: What their contents were counted with.
    """
    by_model: dict[str, list[list[Lane]]] = defaultdict(list)
    for session in sessions:
        lanes: dict[str, list[Lane]] = defaultdict(list)
        for lane in session:
            lanes[lane.model].append(lane)
        for model, own in lanes.items():
            by_model[model].append(own)
    fits, refused = [], []
    for model in sorted(by_model):
        found = fitted(model, by_model[model], encoding, relatives(model, by_model))
        if isinstance(found, Fit):
            fits.append(found)
        else:
            refused.append(found)
    return Outcome(Calibration(tuple(fits)), tuple(refused))


def relatives(model: str, by_model: Mapping[str, Sequence[Sequence[Lane]]]) -> Weights | None:
    """Weights of the other models that split texts alike; None where they say too little."""
    own = relative_kind(model)
    if own is None:
        return None
    rows: list[Row] = []
    for name, sessions in by_model.items():
        other = relative_kind(name)
        if name != model and other is not None and other.group == own.group:
            rows += _rows(sound(distinct_segments(sessions))[0])
    return fit(rows) if len(rows) >= LEAST_NEAR else None


def fitted(
    model: str, sessions: Sequence[Sequence[Lane]], encoding: str, near: Weights | None = None
) -> Fit | RefusedModel:
    """Fit one model, or say why not; `near` are the weights of relatives, as `fit.fit` takes them."""
    if resolve_encoding(model).known:
        steps = sum(len(lane.points) for lanes in sessions for lane in lanes)
        return RefusedModel(model, steps, "its tokenizer is public: counts are exact")
    found, less = sound(distinct_segments(sessions))
    rows = _rows(found)
    contradicted = less + sum(lane.contradicted for lanes in sessions for lane in lanes)
    if why := _too_little(rows, contradicted):
        return RefusedModel(model, len(rows), why)
    misses = predict_by_methods(found, near)
    held = method_errors(misses)
    errors = held.next_size
    if errors is None or errors.steps < LEAST_STEPS // 4:
        return RefusedModel(model, len(rows), "too few steps to test: the sessions repeat one another")
    if errors.p50 > MOST_P50 or errors.p95 > MOST_P95:
        why = (
            f"what was counted does not explain what was billed: off by {error_share(errors.p50)} at p50 and"
            f" {error_share(errors.p95)} at p95 on steps that were not fitted; at most"
            f" {given_share(MOST_P50)} and {given_share(MOST_P95)} are accepted"
        )
        return RefusedModel(model, len(rows), why, errors)
    weights = fit(rows, near)
    seen = tuple(sum(abs(row.moved[i]) for row in rows) for i in range(WIDTH))
    if stuck := _at_bounds(weights, seen):
        return RefusedModel(model, len(rows), f"the slope of {stuck} runs into its bound", errors)
    blinds = sorted({one for lanes in sessions for lane in lanes for one in lane.blinds})
    item, wide = blind_items(weights, blinds)
    return Fit(
        model=model,
        encoding=encoding,
        weights=weights,
        seen=seen,
        steps=len(rows),
        sessions=len(found),
        contradicted=contradicted,
        blind=sum(lane.blind for lanes in sessions for lane in lanes),
        beyond=_beyond(weights, found),
        by=held.by,
        next_size=errors,
        first=held.first,
        alternate=held.alternate,
        halves=held.halves,
        spread=spread_of(offs_of(weights, misses.next_size), wide),
        blind_item=item,
        blinds=len(wide),
    )


def _too_little(rows: Sequence[Row], contradicted: int) -> str:
    """Why there is nothing to fit to; empty if there is."""
    if contradicted > len(rows):
        return f"{contradicted:,} of its bills cannot be the sizes of what was counted"
    usable = sum(any(row.moved) for row in rows)
    if usable >= LEAST_STEPS:
        return ""
    why = f"too few steps to fit and to test: {usable}, at least {LEAST_STEPS} are needed"
    return why + (f" ({len(rows) - usable} more recorded nothing new)" if usable < len(rows) else "")


def _rows(sessions: Sessions) -> list[Row]:
    return [row for lanes in sessions for lane in lanes for points in lane for row in rows_of(points)]


def sound(sessions: Sessions) -> tuple[Sessions, int]:
    """Without the threads that were billed less, from the first, than what is recorded of them weighs.

    A provider adds to what it is sent and takes nothing away: such bills are of something else.  Later in a
    thread it may be less: the runtime has cut something out and not recorded it.
    """
    weights = fit(_rows(sessions))

    def enough(points: tuple[Point, ...]) -> bool:
        return constant_beyond(weights, points) >= -LEAST_BEYOND * median(point.reported for point in points)

    kept = [[lane for lane in lanes if enough(lane[0])] for lanes in sessions]
    sizes = [sum(len(points) for lanes in s for lane in lanes for points in lane) for s in (sessions, kept)]
    return [lanes for lanes in kept if lanes], sizes[0] - sizes[1]


def _at_bounds(weights: Weights, seen: tuple[int, ...]) -> str:
    """Classes of much content whose slopes are as low or high as may be: they explain nothing."""
    whole = sum(seen[: len(CLASSES)])
    stuck = {
        name: tokens
        for name, bound, weight, tokens in zip(CLASSES, BOUNDS, weights, seen, strict=False)
        if tokens and name != "reasoning" and weight in (bound.low, bound.high)
    }
    return ", ".join(stuck).replace("_", " ") if sum(stuck.values()) >= _MUCH * whole else ""


def offs_of(weights: Weights, misses: Iterable[WrongPrediction]) -> list[SizeError]:
    """How far each was off, beside the tokens of the model that came or went."""
    return [SizeError(miss.change - miss.predicted, gross(weights, miss.moved)) for miss in misses]


def gross(weights: Weights, moved: Sequence[int]) -> float:
    """Tokens of a model that came or went."""
    return sum(abs(w * n) for w, n in zip(weights[: len(CLASSES)], moved, strict=False))


def blind_items(weights: Weights, blinds: Sequence[BlindRequest]) -> tuple[float, list[SizeError]]:
    """What an item without text or count is billed, the median, and how far each request is off with that."""
    came = [(one, one.row.change - weighed_tokens(weights, one.row.moved)) for one in blinds if one.items > 0]
    if not came:
        return 0.0, []
    item = max(0.0, round(median(off / one.items for one, off in came), 1))
    offs = [SizeError(off - item * one.items, gross(weights, one.row.moved), one.items) for one, off in came]
    return item, offs


def _beyond(weights: Weights, sessions: Sessions) -> BeyondRecorded:
    constants = sorted(
        constant_beyond(weights, points) for lanes in sessions for lane in lanes for points in lane
    )
    return BeyondRecorded(len(constants), *(round(quantile(constants, share)) for share in (0.1, 0.5, 0.9)))


__all__ = ["CLASSES", "Calibration", "Fit", "Outcome", "RefusedModel", "calibrate", "decode", "fitted"]

"""What a session tells about a model's tokenizer: reported sizes beside counted ones, and where they belong
together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from ctxctl.model.results import Step
from ctxctl.tokens.calibrate.features import CLASSES, NOTHING, Vector, movement, vector_sum

BREAKS: Final = frozenset({"compacted", "branched", "cleared", "unrecorded_cut"})
"""Flags of a step that begins a new segment: what the provider adds may be another there."""
LEAST_SHARE: Final = 0.4
"""A report below this share of what was counted is no size of that request (placeholders, another unit)."""
LEFT_SHARE: Final = 0.5
"""Where more than this share of what was counted leaves at once, a new root began, whatever is recorded."""
MOST: Final = 100_000_000
"""Tokens; no window is near it."""

_DATED: Final = re.compile(r"(?:[-@]20\d{6}|[-@]latest|-v\d+|:[a-z0-9.]+|\[\d+m\]|[^\x21-\x7e])+$")
_LONGEST: Final = 200
_REGION: Final = re.compile(r"^(?:(?:us|eu|apac|global)\.)?(?:anthropic|amazon|meta|mistral|google)\.")


class Point(NamedTuple):
    """One request: what it held by our count, and what was billed."""

    segment: int
    """Points of one thread with the same number can be compared."""
    reported: int
    sizes: Vector


class Row(NamedTuple):
    """One request against the last one of its segment."""

    reported: int
    change: int
    """Reported less reported before."""
    moved: Vector


class BlindRequest(NamedTuple):
    """A request that brought content of which the trace has neither text nor count."""

    row: Row
    items: int
    """Of that content: those that came less those that went."""


class Lane(NamedTuple):
    """The requests of one thread to one model, in order."""

    model: str
    """`family` of its name."""
    points: tuple[Point, ...]
    contradicted: int = 0
    """Reports left out because they cannot be the size of what was counted."""
    blind: int = 0
    """Reports of steps that brought, or only hold, content of which the trace has neither text nor count."""
    blinds: tuple[BlindRequest, ...] = ()
    """Those of them that can be held against the report before."""


@lru_cache(maxsize=256)
def family(model: str) -> str:
    """A model's name without who carries it, its date and its tags: one tokenizer, one name."""
    model = model[:_LONGEST]
    name = model.strip().lower().rsplit("/", 1)[-1]
    name = _DATED.sub("", _REGION.sub("", name))
    return name[:80] or model.strip().lower()[:80]


def plausible(reported: object, counted: int) -> bool:
    """Whether a report can be the size of a request of which so much was counted."""
    return type(reported) is int and 0 < reported < MOST and reported >= LEAST_SHARE * counted


def is_break(step: Step) -> bool:
    """Whether a step begins a new segment: what the provider adds to it may be another from here on."""
    ledger = step.ledger
    if ledger.reweighed or not BREAKS.isdisjoint(step.flags):
        return True
    return ledger.freed > LEFT_SHARE * ledger.window_before


_Key = tuple[str | None, str, str]
"""Session, thread, model."""


class _Thread:
    __slots__ = ("broken", "last", "model", "segment", "sizes", "uncounted")

    def __init__(self) -> None:
        self.sizes = NOTHING
        self.last: Point | None = None
        self.segment = 0
        self.broken = False
        self.uncounted = 0
        self.model: str | None = None


class Gatherer:
    """Collects the points of one trace; feed it with every step in order."""

    def __init__(self) -> None:
        self._threads: dict[tuple[str | None, str], _Thread] = {}
        self._points: dict[_Key, list[Point]] = {}
        self._contradicted: Counter[_Key] = Counter()
        self._blind: Counter[_Key] = Counter()
        self._blinds: dict[_Key, list[BlindRequest]] = {}

    def add(self, step: Step) -> None:
        """Take one step in."""
        at = self._threads.setdefault((step.session, step.thread), _Thread())
        at.sizes = vector_sum(at.sizes, movement(step))
        at.broken = at.broken or is_break(step)
        usage = step.usage
        if usage is None or usage.sent is None or "simulated" in step.flags:
            return
        if step.model is None or usage.provenance != "native":
            # What was worked out from other reports is not fitted to.
            return
        model = family(step.model)
        key = (step.session, step.thread, model)
        if not any(at.sizes[: len(CLASSES)]):
            self._blind[key] += 1
            return
        if not self._plausible(usage.sent, at):
            self._contradicted[key] += 1
            return
        blind = step.window.uncounted != at.uncounted and at.last is not None
        if blind and not at.broken and model == at.model and at.last is not None:
            row = _row(at.last, Point(at.segment, usage.sent, at.sizes))
            items = step.window.uncounted - at.uncounted
            self._blinds.setdefault(key, []).append(BlindRequest(row, items))
        if at.broken or blind or model != at.model:
            at.segment += 1
            self._blind[key] += blind
        at.uncounted = step.window.uncounted
        at.broken, at.model = False, model
        at.last = Point(at.segment, usage.sent, at.sizes)
        self._points.setdefault(key, []).append(at.last)

    @staticmethod
    def _plausible(reported: int, at: _Thread) -> bool:
        """A bill that stays the same to the token while the window changes is a placeholder."""
        counted = sum(at.sizes[: len(CLASSES)])
        if at.last is not None and at.last.reported == reported and not at.broken:
            same = sum(at.last.sizes[: len(CLASSES)]) == counted
            return same and plausible(reported, counted)
        return plausible(reported, counted)

    def sessions(self) -> list[list[Lane]]:
        """The points by session, and in it by thread and model."""
        found: dict[str | None, list[Lane]] = {}
        for key in dict.fromkeys([*self._points, *self._contradicted, *self._blind]):
            points = tuple(self._points.get(key, ()))
            blinds = tuple(self._blinds.get(key, ()))
            lane = Lane(key[2], points, self._contradicted[key], self._blind[key], blinds)
            found.setdefault(key[0], []).append(lane)
        return list(found.values())


def rows_of(points: Iterable[Point]) -> list[Row]:
    """Each point against the one before it in its segment."""
    rows = []
    last: Point | None = None
    for point in points:
        if last is not None and last.segment == point.segment:
            rows.append(_row(last, point))
        last = point
    return rows


def _row(last: Point, point: Point) -> Row:
    moved = tuple(b - a for a, b in zip(last.sizes, point.sizes, strict=True))
    return Row(point.reported, point.reported - last.reported, moved)

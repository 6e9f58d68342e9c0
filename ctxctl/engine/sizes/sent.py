"""The size that a step sent: the bill, else an expected size, else the recorded size (DESIGN section 3, the
true window)."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.sizes.scales import EnteredSize, Scales
from ctxctl.model.vocab import UsedMethod
from ctxctl.tokens.calibrate.features import CLASSES, WIDTH, Vector, class_of


class LastBill(NamedTuple):
    """The last bill of a thread that gives its request's size."""

    tokens: int
    model: str | None
    unrecorded: int
    """Tokens of the bill that were not recorded."""


class SentMemory(NamedTuple):
    """Memory of a thread between its steps. It is immutable, so copies of a replay share it."""

    bill: LastBill | None = None
    thread: object = None
    """What the scales remember of the thread."""
    uncounted: int = 0
    """Number of the previous step's placements without a count."""
    largest: int = 0
    """The largest bill so far, in input tokens."""


NEW = SentMemory()


class ObservedStep(NamedTuple):
    """The inputs for the size of one step."""

    model: str | None
    recorded: int
    """Tokens of the recorded frame, even if another is shown."""
    moved: Vector
    """What entered and left the recorded frame at this step."""
    uncounted: int
    broken: bool
    reported: int | None
    """The step's size by its bill."""
    altered: bool
    """Whether the frame is a what-if's and not the one sent."""
    frame: int
    """Tokens of the shown frame."""
    whole: str | None = None
    """See `scales.EnteredSize`."""


class SentSize(NamedTuple):
    """A step's size and its method."""

    used: int
    method: UsedMethod
    error: int | None
    unrecorded: int | None
    predicted: int | None
    """The size expected before the bill; None without a basis."""
    predicted_error: int | None = None
    """Nine of ten expectations err by at most this, in tokens; None if unknown."""


def sent_size(running: SentMemory, seen: ObservedStep, scales: Scales) -> tuple[SentMemory, SentSize]:
    """Return a step's size, and the new memory of its thread."""
    entered = EnteredSize(seen.moved, seen.uncounted - running.uncounted, seen.broken, seen.whole)
    thread = scales.enter(running.thread, entered)
    expects = running.bill is not None or seen.whole is not None
    expected = scales.expect(thread, seen.model, seen.recorded) if expects else None
    predicted = None if expected is None else expected.tokens
    if seen.reported is None:
        now = running._replace(thread=thread, uncounted=seen.uncounted)
        if expected is None:
            return now, SentSize(seen.frame, "recorded", None, None, None)
        return now, _shown(seen, expected.tokens, expected.error, predicted)
    thread = scales.billed(thread, seen.model, seen.reported, seen.recorded)
    last = LastBill(seen.reported, seen.model, seen.reported - seen.recorded)
    now = SentMemory(last, thread, seen.uncounted, max(running.largest, seen.reported))
    size = _shown(seen, seen.reported, None, predicted)
    return now, size if expected is None else size._replace(predicted_error=expected.error)


def moved_by(delta: FrameDelta) -> Vector:
    """Return what entered and left a recorded frame, by class, whatever a what-if shows instead."""
    moved = [0] * WIDTH
    for sign, placements in ((1, delta.inserted), (-1, delta.removed)):
        for placement in placements:
            at = class_of(placement.kind)
            recorded = placement.instead_of
            moved[at] += sign * (placement.tokens if recorded is None else recorded)
            moved[at + len(CLASSES)] += sign
    return tuple(moved)


def _shown(seen: ObservedStep, size: int, error: int | None, predicted: int | None) -> SentSize:
    """Return the size of the shown frame. A what-if's frame has the unrecorded part of what was sent."""
    unrecorded = size - seen.recorded
    if seen.altered:
        return SentSize(max(0, seen.frame + unrecorded), "expected", error, unrecorded, predicted)
    return SentSize(size, "expected" if seen.reported is None else "reported", error, unrecorded, predicted)

"""What a step sent: the bill, else what is to be expected from the last one or by the API's rules,
else what is recorded (DESIGN section 3, the true window)."""

from __future__ import annotations

from typing import NamedTuple

from ctxctl.engine.replay.frames import FrameDelta
from ctxctl.engine.sizes.scales import EnteredSize, Scales
from ctxctl.model.vocab import UsedMethod
from ctxctl.tokens.calibrate.features import CLASSES, WIDTH, Vector, class_of


class LastBill(NamedTuple):
    """The last bill of a thread that says how large its request was."""

    tokens: int
    model: str | None
    unrecorded: int
    """Of it, what was not recorded."""


class SentMemory(NamedTuple):
    """What is remembered of a thread between its steps; a value, so copies of a replay share it."""

    bill: LastBill | None = None
    thread: object = None
    """What the scales remember of it."""
    uncounted: int = 0
    """Placements of the step before that nobody could count."""
    largest: int = 0
    """The largest bill so far, in tokens of input."""


NEW = SentMemory()


class ObservedStep(NamedTuple):
    """What the size of one step depends on."""

    model: str | None
    recorded: int
    """Tokens of the recorded frame, whatever stands in its place."""
    moved: Vector
    """What of it came and left at this step."""
    uncounted: int
    broken: bool
    reported: int | None
    """Its size by its bill."""
    altered: bool
    """The frame is another one than was sent: a what-if's."""
    frame: int
    """Tokens of the frame that is shown."""
    whole: str | None = None
    """As `scales.Entered` has it."""


class SentSize(NamedTuple):
    """A step's size and how it is known."""

    used: int
    method: UsedMethod
    error: int | None
    unrecorded: int | None
    predicted: int | None
    """What was to be expected before the bill came; None: nothing to expect it from."""
    predicted_error: int | None = None
    """Nine of ten such expectations are off by no more; None: not known."""


def sent_size(running: SentMemory, seen: ObservedStep, scales: Scales) -> tuple[SentMemory, SentSize]:
    """A step's size, and what is remembered of its thread from here on."""
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
    """What a recorded frame has more than the one before, by class, whatever a what-if shows in its place."""
    moved = [0] * WIDTH
    for sign, placements in ((1, delta.inserted), (-1, delta.removed)):
        for placement in placements:
            at = class_of(placement.kind)
            recorded = placement.instead_of
            moved[at] += sign * (placement.tokens if recorded is None else recorded)
            moved[at + len(CLASSES)] += sign
    return tuple(moved)


def _shown(seen: ObservedStep, size: int, error: int | None, predicted: int | None) -> SentSize:
    """The size of the frame that is shown: that of a what-if holds as much beside its content as was sent."""
    unrecorded = size - seen.recorded
    if seen.altered:
        return SentSize(max(0, seen.frame + unrecorded), "expected", error, unrecorded, predicted)
    return SentSize(size, "expected" if seen.reported is None else "reported", error, unrecorded, predicted)

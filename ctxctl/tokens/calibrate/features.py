"""What a request's size is explained by: tokens and items of each class of content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ctxctl.model.results import Change, Step
from ctxctl.model.vocab import Mode

CLASSES: Final = ("text", "assistant", "tool_result", "tool_call", "reasoning", "tool_definition")
"""Classes of content; `text` is all that is none of the others: prompts, documents, reminders, notes."""

_CLASS_OF_KIND: Final = {
    "assistant_message": 1,
    "tool_result": 2,
    "tool_call": 3,
    "reasoning": 4,
    "tool_definition": 5,
}
WIDTH: Final = 2 * len(CLASSES)
"""Length of a `Vector`: counted tokens of each class, then items of each class."""

Vector = tuple[int, ...]
NOTHING: Final[Vector] = (0,) * WIDTH


class WeightBound(NamedTuple):
    """What a weight may be."""

    low: float
    high: float
    usual: float
    """What it is drawn to where the data say little."""
    spread: float
    """How far from `usual` it is expected."""


SLOPE: Final = WeightBound(0.5, 2.5, 1.15, 0.25)
"""Tokens billed for one counted.  Any two tokenizers in use are far inside of the bounds; measured on
captures: 0.8 to 1.7 (docs/calibration.md)."""
REASONING: Final = WeightBound(0.0, 5.0, 1.15, 1.0)
"""Providers drop, sum up or re-encode reasoning: nothing of it need be billed, or several times its text."""
PER_ITEM: Final = WeightBound(0.0, 200.0, 8.0, 30.0)
"""Tokens that an item costs beside its text: roles, ids, and what a runtime adds to it unrecorded."""

BOUNDS: Final = tuple(REASONING if name == "reasoning" else SLOPE for name in CLASSES) + (PER_ITEM,) * len(
    CLASSES
)


def class_of(kind: str) -> int:
    """Where a context kind's class stands in a vector."""
    return _CLASS_OF_KIND.get(kind, 0)


def movement(step: Step) -> Vector:
    """What a step's frame has more than the one before, by class; of a thread's first frame, all it has.

    From the step's changes alone, so it costs what changed.
    """
    return movement_of(step.changes, step.mode)


def movement_of(changes: Iterable[Change], mode: Mode) -> Vector:
    """As `movement`, from a step's changes and its thread's mode."""
    moved = [0] * WIDTH
    for change in changes:
        at = class_of(change.kind)
        moved[at] += change.new - change.freed
        if change.status == "added":
            moved[at + len(CLASSES)] += 1
        elif change.status == "removed":
            moved[at + len(CLASSES)] -= not change.in_window
        elif change.status == "updated" and mode == "append" and change.new and not change.freed:
            moved[at + len(CLASSES)] += 1  # another copy; the old one stays, stale
    return tuple(moved)


def vector_sum(a: Vector, b: Vector) -> Vector:
    """The sum, class by class."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def weighed_tokens(weights: Sequence[float], vector: Vector) -> float:
    """Tokens that a model makes of a vector."""
    return sum(w * v for w, v in zip(weights, vector, strict=True))

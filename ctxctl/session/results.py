"""Values that the façade returns: problems, frame diffs, outlines, lives of items, and limits of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ctxctl.engine.replay.changes import ChangeContext, compare_frames, no_cause, rescored_items
from ctxctl.model.outline import Life, Row
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Frame, Placement, Step, Summary, Turn, Window
from ctxctl.model.vocab import LimitSource

_MAX_KEPT_PROBLEMS = 1000
LATE = frozenset(("late-event", "late-usage"))
"""Problems of events that came after their step's end."""


class ReportedProblems:
    """Problems of one engine pass: the first of them, and their number."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.count = 0
        self.late = 0
        """Number of events after their step's end (`late-event`, `late-usage`)."""

    @property
    def told(self) -> tuple[list[Problem], int, int]:
        """The kept problems, the number of all problems, and the number of late events."""
        return self.kept, self.count, self.late

    def add(self, problem: Problem) -> None:
        """Add a problem."""
        self.count += 1
        if problem.slug in LATE:
            self.late += 1
        if self.count <= _MAX_KEPT_PROBLEMS:
            self.kept.append(problem)


class FrameDiff(NamedTuple):
    """Two frames compared by the plain definition.

    For recorded content, `after = before + new - freed + reweighed`. For what was sent, `sent_after =
    sent_before + new - freed + reweighed + unrecorded`.
    """

    changes: tuple[Change, ...]
    new: int
    freed: int
    before: int
    """Tokens of the first frame's recorded content."""
    after: int
    sent_before: int
    """Tokens sent with the first frame. Its step's window says how that is known."""
    sent_after: int
    unrecorded: int | None
    """Growth in tokens of the unrecorded part from the first frame to the second; None if one is unknown."""

    @property
    def reweighed(self) -> int:
        """Growth in tokens of the texts in both frames. A thread's bills refine how later texts are counted,
        and two traces may have two models. It is nearly always 0."""
        return self.after - self.before - self.new + self.freed


def frame_diff(a: Window, b: Window, changes: tuple[Change, ...], new: int, freed: int) -> FrameDiff:
    """Return the comparison of two frames with their sizes."""
    beside = None
    if a.unrecorded is not None and b.unrecorded is not None:
        beside = b.unrecorded - a.unrecorded
    return FrameDiff(changes, new, freed, a.recorded, b.recorded, a.used, b.used, beside)


class Outline(NamedTuple):
    """A row for every step of a replay, in the order of the steps."""

    rows: tuple[Row, ...]
    summary: Summary


def life_of(
    results: Iterable[Step | Turn], item: str, session: str | None, thread: str | None
) -> Iterator[Life]:
    """Return what happened to an item at each step at which it was in a frame, left one, or was omitted."""
    present: dict[tuple[str | None, str], Change] = {}
    ordinal = -1
    for step in results:
        if isinstance(step, Turn):
            continue
        ordinal += 1
        if (session is not None and step.session != session) or (
            thread is not None and step.thread != thread
        ):
            continue
        key = (step.session, step.thread)
        change = next((c for c in step.changes if c.item == item), None)
        if change is not None:
            yield _moment(ordinal, step, change, change.status)
            if change.status in ("added", "updated", "skipped"):
                present[key] = change
            elif change.status == "removed":
                present.pop(key, None)
        elif key in present:
            yield _moment(ordinal, step, present[key], "skipped")


def _moment(ordinal: int, step: Step, change: Change, status: str) -> Life:
    removed = status == "removed"
    return Life(
        ordinal=ordinal,
        session=step.session,
        thread=step.thread,
        turn=step.turn,
        step=step.step,
        status=status,
        version=change.previous_version if removed else change.version,
        tokens=change.size,
        cause=None if status == "skipped" else change.cause,
        reason=None if status == "skipped" else change.reason,
        into=None if status == "skipped" else change.into,
        mode=step.mode,
    )


def with_common_keys(
    a: Sequence[Placement], b: Sequence[Placement]
) -> tuple[list[Placement], list[Placement]]:
    """Return two frames with keys from one numbering instead of two."""
    keys: dict[tuple[str, str | None, str | None, int], int] = {}
    made: dict[tuple[int, bool, str], Placement] = {}

    def again(p: Placement) -> Placement:
        textless = p.tokens if p.content is None else 0
        key = keys.setdefault((p.item, p.version, p.digest, textless), len(keys))
        found = made.get((key, p.stale, p.segment))
        if found is None:
            found = made[key, p.stale, p.segment] = msgspec.structs.replace(p, key=key)
        return found

    return [again(p) for p in a], [again(p) for p in b]


def compared_frames(a: Frame, b: Frame) -> FrameDiff:
    """Compare any two frames, also of two traces, by the plain definition."""
    before, after = with_common_keys(a.placements, b.placements)
    scored = rescored_items(a.step.scores, b.step.scores)
    result = compare_frames(before, after, ChangeContext(no_cause, rescored=scored))
    return frame_diff(a.step.window, b.step.window, result.changes, result.new, result.freed)


class Ceiling(NamedTuple):
    """One limit and the steps that had it."""

    cap: int | None
    """Most tokens of a prompt; None if unknown."""
    source: LimitSource | None
    note: str | None
    """How the limit was found, or why there is none. For several steps, the last one's note."""
    steps: int


class Ceilings:
    """Limits of steps, by first appearance. There are only a few, however many steps."""

    def __init__(self) -> None:
        self._found: dict[tuple[int | None, LimitSource | None, str | None], Ceiling] = {}

    def add(self, window: Window) -> None:
        """Add one step's window."""
        # The note on an unknown limit contains its step's figure, so it would differ at each step.
        key = (window.cap, window.limit_source, None if window.cap is None else window.limit_note)
        known = self._found.get(key)
        steps = 1 if known is None else known.steps + 1
        self._found[key] = Ceiling(window.cap, window.limit_source, window.limit_note, steps)

    @property
    def rows(self) -> tuple[Ceiling, ...]:
        """The limits so far."""
        return tuple(self._found.values())

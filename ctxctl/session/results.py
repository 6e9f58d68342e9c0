"""Values that the façade gives: problems, frame diffs, outlines, an item's life, and the limits of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ctxctl.engine.replay.changes import ChangeContext, compare_frames, no_cause, rescored_items
from ctxctl.model.outline import Life, Row
from ctxctl.model.problem import Problem
from ctxctl.model.results import Change, Frame, Placement, Step, Summary, Turn, Window
from ctxctl.model.vocab import LimitSource

_KEPT_PROBLEMS = 1000
LATE = frozenset(("late-event", "late-usage"))
"""Problems that say that an event came for a step that was over."""


class ReportedProblems:
    """Problems of one pass of the engine: the first of them, and how many there were."""

    def __init__(self) -> None:
        self.kept: list[Problem] = []
        self.count = 0
        self.late = 0
        """Events for a step that was over (`late-event`, `late-usage`)."""

    @property
    def told(self) -> tuple[list[Problem], int, int]:
        """The problems that are kept, how many there were, and how many late events."""
        return self.kept, self.count, self.late

    def add(self, problem: Problem) -> None:
        """Add a problem."""
        self.count += 1
        if problem.slug in LATE:
            self.late += 1
        if self.count <= _KEPT_PROBLEMS:
            self.kept.append(problem)


class FrameDiff(NamedTuple):
    """Two frames compared by the plain definition.

    Of recorded content `after = before + new - freed + reweighed`; of what was sent, the same with the
    difference of what is not recorded: `sent_after = sent_before + new - freed + reweighed + unrecorded`.
    """

    changes: tuple[Change, ...]
    new: int
    freed: int
    before: int
    """Tokens of the first frame's recorded content."""
    after: int
    sent_before: int
    """What was sent with the first frame; how that is known, its step's window says."""
    sent_after: int
    unrecorded: int | None
    """By how many tokens more was sent beside the second frame's content than beside the first's; None where
    that is not known of both."""

    @property
    def reweighed(self) -> int:
        """By how much texts that both frames hold weigh more in the second: a thread's bills refine what its
        later texts are weighed with, and two traces may be of two models.  Nearly always 0."""
        return self.after - self.before - self.new + self.freed


def frame_diff(a: Window, b: Window, changes: tuple[Change, ...], new: int, freed: int) -> FrameDiff:
    """The comparison of two frames with their sizes."""
    beside = None
    if a.unrecorded is not None and b.unrecorded is not None:
        beside = b.unrecorded - a.unrecorded
    return FrameDiff(changes, new, freed, a.recorded, b.recorded, a.used, b.used, beside)


class Outline(NamedTuple):
    """Every step of a replay as a small row, in the order of the steps."""

    rows: tuple[Row, ...]
    summary: Summary


def life_of(
    results: Iterable[Step | Turn], item: str, session: str | None, thread: str | None
) -> Iterator[Life]:
    """What happened to an item at each step at which it was in a frame, left one, or was omitted."""
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
    """Two frames whose keys were given out separately, under keys of their own."""
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
    """Any two frames, also of two traces, by the plain definition."""
    before, after = with_common_keys(a.placements, b.placements)
    scored = rescored_items(a.step.scores, b.step.scores)
    result = compare_frames(before, after, ChangeContext(no_cause, rescored=scored))
    return frame_diff(a.step.window, b.step.window, result.changes, result.new, result.freed)


class Ceiling(NamedTuple):
    """One limit, over the steps that had it."""

    cap: int | None
    """What a prompt may hold, in tokens; None: nobody knows."""
    source: LimitSource | None
    note: str | None
    """How it was found, or why there is none; of several steps the last one's."""
    steps: int


class Ceilings:
    """Limits of steps, in the order in which they come first; some few, however many steps."""

    def __init__(self) -> None:
        self._found: dict[tuple[int | None, LimitSource | None, str | None], Ceiling] = {}

    def add(self, window: Window) -> None:
        """Take in one step's window."""
        # The note on a limit that is not known holds a figure of its step, and so would differ at each step.
        key = (window.cap, window.limit_source, None if window.cap is None else window.limit_note)
        known = self._found.get(key)
        steps = 1 if known is None else known.steps + 1
        self._found[key] = Ceiling(window.cap, window.limit_source, window.limit_note, steps)

    @property
    def rows(self) -> tuple[Ceiling, ...]:
        """The limits so far."""
        return tuple(self._found.values())

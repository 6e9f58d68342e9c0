"""The requests of the main screen, and their answers, which are computed in `ctxctl.tui.answers`.

Of a frame's changes the answer is a `Detail`, of an item's text an `ItemText`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from ctxctl.tui.changes import AS_IT_IS, Arrangement, ChangeTable
from ctxctl.tui.cost_column import Paids
from ctxctl.tui.document import Document, Reading
from ctxctl.tui.finding_marks import NO_MARKS, FindingMarks
from ctxctl.tui.requests import Request
from ctxctl.tui.screens.turns.state import Detail, ItemKey, ItemText, Target
from ctxctl.tui.step_words import StepWords
from ctxctl.tui.tabs import Compared

ReadingKind = Literal["stages", "problems", "about"]


@dataclass(frozen=True, slots=True)
class ItemLife:
    """An item's life, as far as it is known."""

    key: ItemKey
    document: Document


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """An item's record."""

    key: ItemKey
    document: Document


@dataclass(frozen=True, slots=True)
class VersionDiff:
    """The diff of an item to an older version."""

    key: ItemKey
    compared: Compared


@dataclass(frozen=True, slots=True)
class DetailRequest(Request):
    """The changes of a frame."""

    newest_only: ClassVar[bool] = True

    target: Target
    with_skipped: bool
    arrangement: Arrangement = AS_IT_IS

    def failed(self, why: str) -> Detail:
        """Tell of a frame without changes."""
        return Detail(self.target, None, None, ChangeTable(), self.with_skipped, why)


@dataclass(frozen=True, slots=True)
class Costs:
    """What some steps cost; of several answers to one request each tells of the next ones."""

    epoch: int
    paids: Paids
    done: bool = False
    """Whether that is all there is to be told."""


@dataclass(frozen=True, slots=True)
class CostRequest(Request):
    """What steps cost, from one on to the last one that is over."""

    worker: ClassVar[str] = "costs"

    epoch: int
    start: int
    stop: int

    def failed(self, why: str) -> Costs:
        """Tell of no step: a list without that column says so by itself."""
        return Costs(self.epoch, Paids.of(self.start, ()), done=True)


@dataclass(frozen=True, slots=True)
class Said:
    """What was done in some steps."""

    epoch: int
    words: Mapping[int, StepWords | None]
    """By ordinal; None: nothing that could be named."""


@dataclass(frozen=True, slots=True)
class WordsRequest(Request):
    """What was done in some steps, which are listed."""

    worker: ClassVar[str] = "words"

    epoch: int
    ordinals: tuple[int, ...]

    def failed(self, why: str) -> Said:
        """Have their numbers listed alone."""
        return Said(self.epoch, dict.fromkeys(self.ordinals))


@dataclass(frozen=True, slots=True)
class Marked:
    """What lint finds, for the marks of the lists."""

    epoch: int
    findings: FindingMarks


@dataclass(frozen=True, slots=True)
class MarksRequest(Request):
    """What lint finds in the trace, which takes a replay where it is not kept."""

    worker: ClassVar[str] = "findings"

    epoch: int

    def failed(self, why: str) -> Marked:
        """Mark nothing; whoever asks for the findings is told why."""
        return Marked(self.epoch, NO_MARKS)


@dataclass(frozen=True, slots=True)
class ItemRequest(Request):
    """An item's text and diff."""

    worker: ClassVar[str] = "item"
    newest_only: ClassVar[bool] = True

    key: ItemKey

    def failed(self, why: str) -> ItemText:
        """Tell that there is no text."""
        return ItemText(self.key, None, None, why, why)


@dataclass(frozen=True, slots=True)
class ReadingRequest(Request):
    """Something of a step, or of the trace, for the full-screen reader."""

    kind: ReadingKind
    """The stages of a step, the problems of the trace, or what it records and what it does not."""
    title: str
    ordinal: int = -1
    """The step's, for its stages."""

    def failed(self, why: str) -> Reading:
        """Tell the reason."""
        return Reading(self.title, Document.of_lines([("!", why)]))


@dataclass(frozen=True, slots=True)
class LifeRequest(Request):
    """What happened to an item, step by step: a pass over the whole trace."""

    worker: ClassVar[str] = "life"
    newest_only: ClassVar[bool] = True

    key: ItemKey

    def failed(self, why: str) -> ItemLife:
        """Tell that no life is known."""
        return ItemLife(self.key, Document.of_lines([("!", why)]))


@dataclass(frozen=True, slots=True)
class RecordRequest(Request):
    """Every field of an item's record."""

    worker: ClassVar[str] = "record"

    key: ItemKey

    def failed(self, why: str) -> ItemRecord:
        """Tell that there is no record."""
        return ItemRecord(self.key, Document.of_lines([("!", why)]))


@dataclass(frozen=True, slots=True)
class VersionRequest(Request):
    """The diff to the `back`-th version before the usual one."""

    worker: ClassVar[str] = "life"

    key: ItemKey
    back: int

    def failed(self, why: str) -> VersionDiff:
        """Tell that there is no diff."""
        return VersionDiff(self.key, Compared(self.back, "", None, why))

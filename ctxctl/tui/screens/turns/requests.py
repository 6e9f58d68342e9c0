"""The requests of the main screen, and their answers, which are computed in `ctxctl.tui.answers`.

Of a frame's changes the answer is a `Detail`, of an item's text an `ItemText`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ctxctl.tui.changes import AS_IT_IS, Arrangement, ChangeTable
from ctxctl.tui.document import Document, Reading
from ctxctl.tui.requests import Request
from ctxctl.tui.screens.turns.state import Detail, ItemKey, ItemText, Target
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

"""The requests of the diff screen, and their answers, which are computed in `ctxctl.tui.answers`.

Of a text the answer is an `ItemDiff`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ctxctl.tui.requests import Request
from ctxctl.tui.screens.diff.values import FrameDiff, ItemDiff, Pair, Pairing, TextKey


@dataclass(frozen=True, slots=True)
class FramesCompared:
    """The two frames, item by item."""

    pair: Pair
    diff: FrameDiff


@dataclass(frozen=True, slots=True)
class Incomparable:
    """Why the two frames cannot be compared."""

    why: str


@dataclass(frozen=True, slots=True)
class ComparisonRequest(Request):
    """Two frames, item by item.  `pair` is called where it is answered: after the traces have been opened."""

    worker: ClassVar[str] = "diff"

    pair: Pairing

    def failed(self, why: str) -> Incomparable:
        """The answer that says why there is none."""
        return Incomparable(why)


@dataclass(frozen=True, slots=True)
class TextRequest(Request):
    """An item's texts at both ends, or those of all that changed."""

    worker: ClassVar[str] = "diff"
    newest_only: ClassVar[bool] = True

    key: TextKey

    def failed(self, why: str) -> ItemDiff:
        """The answer that says why there is none."""
        return ItemDiff(self.key, None, why)

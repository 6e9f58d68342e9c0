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
class ComparisonRequest(Request):
    """Two frames, item by item.  `pair` is called where it is answered: after the traces have been opened."""

    worker: ClassVar[str] = "diff"

    pair: Pairing


@dataclass(frozen=True, slots=True)
class TextRequest(Request):
    """An item's texts at both ends, or those of all that changed."""

    worker: ClassVar[str] = "diff"
    newest_only: ClassVar[bool] = True

    key: TextKey

    def failed(self, why: str) -> ItemDiff:
        """In the place of the texts, the reason."""
        return ItemDiff(self.key, None, why)

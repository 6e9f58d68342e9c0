"""What the diff screen asks for, and what it is told; the answers are computed in `ctxctl.tui.answers`."""

from __future__ import annotations

from textual.message import Message

from ctxctl.tui.diff.values import FrameDiff, ItemDiff, Pair, Pairing, TextKey
from ctxctl.tui.messages import Want

LANE = "diff"


class Compared(Message, bubble=False):
    """The two frames are there."""

    def __init__(self, pair: Pair, diff: FrameDiff) -> None:
        super().__init__()
        self.pair = pair
        self.diff = diff


class Incomparable(Message, bubble=False):
    """They are not."""

    def __init__(self, why: str) -> None:
        super().__init__()
        self.why = why


class TextCompared(Message, bubble=False):
    """An item's text level is there."""

    def __init__(self, text: ItemDiff) -> None:
        super().__init__()
        self.text = text

    def can_replace(self, message: Message) -> bool:
        """The cursor has moved on: an older one is not worth painting."""
        return isinstance(message, TextCompared)


class WantComparison(Want):
    """Two frames, item by item.  `pair` is called where it is answered: after the traces have been opened."""

    lane = LANE

    def __init__(self, pair: Pairing) -> None:
        super().__init__()
        self.pair = pair

    def failed(self, why: str) -> Message:
        """Why there is none."""
        return Incomparable(why)


class WantText(Want):
    """An item's texts at both ends, or those of all that changed."""

    lane = LANE

    def __init__(self, key: TextKey) -> None:
        super().__init__()
        self.key = key

    def failed(self, why: str) -> Message:
        """Why there is none."""
        return TextCompared(ItemDiff(self.key, None, why))

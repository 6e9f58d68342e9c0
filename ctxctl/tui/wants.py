"""What the main screen asks for, and what it is told; the answers are computed in `ctxctl.tui.answers`."""

from __future__ import annotations

from textual.message import Message

from ctxctl.tui.changes import AS_IT_IS, Arrangement, ChangeTable
from ctxctl.tui.document import Document
from ctxctl.tui.messages import Want
from ctxctl.tui.state import Detail, ItemKey, ItemText, Target


class Detailed(Message, bubble=False):
    """A frame's changes are there."""

    def __init__(self, detail: Detail) -> None:
        super().__init__()
        self.detail = detail

    def can_replace(self, message: Message) -> bool:
        """The cursor has moved on: an older one is not worth painting."""
        return isinstance(message, Detailed)


class Texted(Message, bubble=False):
    """An item's text is there."""

    def __init__(self, text: ItemText) -> None:
        super().__init__()
        self.text = text

    def can_replace(self, message: Message) -> bool:
        """The cursor has moved on: an older one is not worth painting."""
        return isinstance(message, Texted)


class Reading(Message, bubble=False):
    """A text for the full-screen reader is there."""

    def __init__(self, title: str, document: Document) -> None:
        super().__init__()
        self.title = title
        self.document = document


class WantDetail(Want):
    """The changes of a frame."""

    def __init__(self, target: Target, with_skipped: bool, how: Arrangement = AS_IT_IS) -> None:
        super().__init__()
        self.target = target
        self.with_skipped = with_skipped
        self.how = how

    def failed(self, why: str) -> Message:
        """A frame without changes."""
        return Detailed(Detail(self.target, None, None, ChangeTable(), self.with_skipped, why))


class WantItem(Want):
    """An item's text and diff."""

    lane = "item"

    def __init__(self, key: ItemKey) -> None:
        super().__init__()
        self.key = key

    def failed(self, why: str) -> Message:
        """No text."""
        return Texted(ItemText(self.key, None, None, why, why))


class WantReading(Want):
    """Something of a step, or of the trace, for the full-screen reader."""

    def __init__(self, title: str, ordinal: int = -1) -> None:
        super().__init__()
        self.title = title
        self.ordinal = ordinal

    def failed(self, why: str) -> Message:
        """The reason."""
        return Reading(self.title, Document.of_lines([("!", why)]))


class WantStages(WantReading):
    """The stages of a step."""


class WantProblems(WantReading):
    """The problems of the trace."""


class WantAbout(WantReading):
    """What the trace records, and what it does not."""

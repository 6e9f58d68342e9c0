"""What the item pane asks for beyond an item's text, and what it is told."""

from __future__ import annotations

from textual.message import Message

from ctxctl.tui.document import Document
from ctxctl.tui.messages import Want
from ctxctl.tui.state import ItemKey
from ctxctl.tui.tabs import Compared


class Lived(Message, bubble=False):
    """An item's life, as far as it is known."""

    def __init__(self, key: ItemKey, document: Document) -> None:
        super().__init__()
        self.key = key
        self.document = document

    def can_replace(self, message: Message) -> bool:
        """A later one knows more."""
        return isinstance(message, Lived)


class Recorded(Message, bubble=False):
    """An item's record is there."""

    def __init__(self, key: ItemKey, document: Document) -> None:
        super().__init__()
        self.key = key
        self.document = document


class ComparedWith(Message, bubble=False):
    """The diff to an older version is there."""

    def __init__(self, key: ItemKey, compared: Compared) -> None:
        super().__init__()
        self.key = key
        self.compared = compared


class WantLife(Want):
    """What happened to an item, step by step: a pass over the whole trace."""

    lane = "life"

    def __init__(self, key: ItemKey) -> None:
        super().__init__()
        self.key = key

    def failed(self, why: str) -> Message:
        """No life."""
        return Lived(self.key, Document.of_lines([("!", why)]))


class WantRecord(Want):
    """Every field of an item's record."""

    lane = "record"

    def __init__(self, key: ItemKey) -> None:
        super().__init__()
        self.key = key

    def failed(self, why: str) -> Message:
        """No record."""
        return Recorded(self.key, Document.of_lines([("!", why)]))


class WantVersion(Want):
    """The diff to the `back`-th version before the usual one."""

    lane = "life"

    def __init__(self, key: ItemKey, back: int) -> None:
        super().__init__()
        self.key = key
        self.back = back

    def failed(self, why: str) -> Message:
        """No diff."""
        return ComparedWith(self.key, Compared(self.back, "", None, why))

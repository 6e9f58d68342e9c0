"""What the screen of why, blame and findings asks for, and what it is told."""

from __future__ import annotations

from textual.message import Message

from ctxctl.tui.messages import Want
from ctxctl.tui.pointers.values import Line, Page, page


class Paged(Message, bubble=False):
    """The page, or as much of it as is known."""

    def __init__(self, shown: Page) -> None:
        super().__init__()
        self.shown = shown

    def can_replace(self, message: Message) -> bool:
        """A later one says more."""
        return isinstance(message, Paged)


class WantPage(Want):
    """Why, blame or findings; they may take a pass over the trace."""

    lane = "pointers"

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title = title

    def failed(self, why: str) -> Message:
        """The reason."""
        return Paged(page(self.title, [Line(why, "!")]))


class WantWhy(WantPage):
    """Why an item is, or is not, in the window of a step."""

    def __init__(self, title: str, ordinal: int, item: str) -> None:
        super().__init__(title)
        self.ordinal = ordinal
        self.item = item


class WantBlame(WantPage):
    """Whose the blocks of a step's window are."""

    def __init__(self, title: str, ordinal: int, only: str = "") -> None:
        super().__init__(title)
        self.ordinal = ordinal
        self.only = only


class WantFindings(WantPage):
    """What the rules find in the trace."""

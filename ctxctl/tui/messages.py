"""What the loader tells the screens, and what the screens ask of it."""

from __future__ import annotations

from textual.message import Message

from ctxctl.tui.document import Document
from ctxctl.tui.outline import Growth
from ctxctl.tui.state import Detail, ItemKey, ItemText, Target, Trace


class Opened(Message, bubble=False):
    """The trace is open; reading begins."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace


class Grown(Message, bubble=False):
    """A part of the trace, 0 to 1, has been read, and these turns are new or have changed.

    Each speaks of its own turns, so none replaces another; the loader sends few a second.
    """

    def __init__(self, growth: Growth, part: float) -> None:
        super().__init__()
        self.growth = growth
        self.part = part


class Outlined(Message, bubble=False):
    """All turns are known; `growth` is what the messages before did not tell."""

    def __init__(self, growth: Growth, trace: Trace) -> None:
        super().__init__()
        self.growth = growth
        self.trace = trace


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


class Failed(Message, bubble=False):
    """The trace cannot be shown at all."""

    def __init__(self, message: str, hint: str | None, exit_code: int) -> None:
        super().__init__()
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


class Fault(Message, bubble=False):
    """Something inside went wrong for one view; `where` names code, never data."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where


class Want(Message):
    """A screen asks the loader for something; it reaches the app by bubbling."""


class WantDetail(Want):
    """The changes of a frame."""

    def __init__(self, target: Target, with_skipped: bool) -> None:
        super().__init__()
        self.target = target
        self.with_skipped = with_skipped


class WantItem(Want):
    """An item's text and diff."""

    def __init__(self, key: ItemKey) -> None:
        super().__init__()
        self.key = key


class WantAssembled(Want):
    """The assembled text of a step."""

    def __init__(self, ordinal: int, title: str) -> None:
        super().__init__()
        self.ordinal = ordinal
        self.title = title


class WantStages(Want):
    """The stages of a step."""

    def __init__(self, ordinal: int, title: str) -> None:
        super().__init__()
        self.ordinal = ordinal
        self.title = title


class WantProblems(Want):
    """The problems of the trace."""


class WantAbout(Want):
    """What the trace records, and what it does not."""

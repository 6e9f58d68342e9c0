"""What the loader tells the application, and how a screen asks for what it shows."""

from __future__ import annotations

from typing import ClassVar

from textual.message import Message
from textual.message_pump import MessagePump

from ctxctl.tui.outline import Growth
from ctxctl.tui.state import Trace
from ctxctl.tui.watching import Watching


class Opened(Message, bubble=False):
    """The trace is open; reading begins."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.trace = trace


class Grown(Message, bubble=False):
    """A part of the trace, 0 to 1, has been read, and these turns are new or have changed.

    Each speaks of its own turns, so none replaces another; the loader sends few a second.
    """

    def __init__(self, growth: Growth, part: float, kept: int | None = None) -> None:
        super().__init__()
        self.growth = growth
        self.part = part
        self.kept = kept
        """Rows that are as they were told before; None: all of them."""


class Outlined(Message, bubble=False):
    """All turns are known; `growth` is what the messages before did not tell."""

    def __init__(self, growth: Growth, trace: Trace) -> None:
        super().__init__()
        self.growth = growth
        self.trace = trace


class Anew(Message, bubble=False):
    """Another session is watched now, or the file was replaced: what was shown is of the past."""

    def __init__(self, name: str, why: str, *, same: bool = False) -> None:
        super().__init__()
        self.name = name
        self.why = why
        self.same = same
        """The same bytes are only read otherwise."""


class Watched(Message, bubble=False):
    """How the watch stands, and how many problems there are by now."""

    def __init__(self, watching: Watching, problems: int) -> None:
        super().__init__()
        self.watching = watching
        self.problems = problems

    def can_replace(self, message: Message) -> bool:
        """The newest one says it all."""
        return isinstance(message, Watched)


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
    """A screen asks for something; `ctxctl.tui.answers` knows how it is answered, in a thread.

    One class for each kind of request: a newer one of the same class replaces an older one.
    """

    lane: ClassVar[str] = "views"
    """Which thread answers: requests that may take long have one of their own."""

    asker: MessagePump | None = None
    """Who gets the answer; the application where it is None."""

    def failed(self, why: str) -> Message | None:
        """The answer where there is none, with the reason in words."""
        return None


def ask(asker: MessagePump, want: Want) -> None:
    """Ask for something that is answered to `asker` itself."""
    want.asker = asker
    asker.app.post_message(want)

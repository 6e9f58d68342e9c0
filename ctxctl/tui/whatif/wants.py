"""What the what-if screen asks for, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping

from textual.message import Message

from ctxctl.model.whatif import Supposition
from ctxctl.tui.messages import Want
from ctxctl.tui.whatif.table import News


class Recorded(Message, bubble=False):
    """What the trace records of each field, and what there is to choose from."""

    def __init__(
        self, values: Mapping[str, str], choices: Mapping[str, tuple[str, ...]], policy: str
    ) -> None:
        super().__init__()
        self.values = values
        self.choices = choices
        self.policy = policy


class Noted(Message, bubble=False):
    """What to know of a comparison; `reading`: the trace is not read to its end yet, or still written."""

    def __init__(self, run: int, notes: tuple[str, ...], reading: bool) -> None:
        super().__init__()
        self.run = run
        self.notes = notes
        self.reading = reading


class Compared(Message, bubble=False):
    """More of a comparison; `done`: all of it."""

    def __init__(self, run: int, news: News, done: bool) -> None:
        super().__init__()
        self.run = run
        self.news = news
        self.done = done


class Refused(Message, bubble=False):
    """A field names what does not exist."""

    def __init__(self, run: int, field: str, why: str) -> None:
        super().__init__()
        self.run = run
        self.field = field
        self.why = why


class Broken(Message, bubble=False):
    """There is no comparison."""

    def __init__(self, run: int, why: str) -> None:
        super().__init__()
        self.run = run
        self.why = why


class WantRecorded(Want):
    """What the trace records at a step; None where no step is known yet."""

    def __init__(self, ordinal: int | None) -> None:
        super().__init__()
        self.ordinal = ordinal


class WantComparison(Want):
    """A replay under a supposition; None stops the one that runs."""

    lane = "whatif"

    def __init__(self, run: int, supposition: Supposition | None) -> None:
        super().__init__()
        self.run = run
        self.supposition = supposition

    def failed(self, why: str) -> Message:
        """The reason."""
        return Broken(self.run, why)

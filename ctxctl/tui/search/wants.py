"""What the search screen asks for, and what it is told."""

from __future__ import annotations

from typing import ClassVar

from textual.message import Message

from ctxctl.engine.query import Query
from ctxctl.model.hits import Found
from ctxctl.tui.messages import Want


class Hits(Message, bubble=False):
    """A search has come further.  Each message has hits of its own, so none replaces another."""

    def __init__(self, serial: int, found: Found) -> None:
        super().__init__()
        self.serial = serial
        self.found = found


class Unsearched(Message, bubble=False):
    """A search has failed."""

    def __init__(self, serial: int, why: str) -> None:
        super().__init__()
        self.serial = serial
        self.why = why


class WantSearch(Want):
    """Everything in the trace that a query holds of."""

    lane: ClassVar[str] = "search"

    def __init__(self, query: Query, serial: int) -> None:
        super().__init__()
        self.query = query
        self.serial = serial

    def failed(self, why: str) -> Message:
        """The reason."""
        return Unsearched(self.serial, why)

"""The pieces that a request's body is cut by, and what is known of those that no model read."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import listed, mapping

COMPACTIONS: Final = ("compaction", "compaction_summary", "context_compaction")
"""Types of OpenAI's items that stand for a history."""


class Unit(NamedTuple):
    """A piece of a request body that is cut by itself: a tool, a system block, a message."""

    section: str
    """The field of the body it stands in."""
    value: Any
    at: int
    """Among the units of its section."""
    head: bool
    """Whether it stands before the conversation: tools, system prompt."""


Piece = tuple[Unit, ...]
"""What a model reads in the place of one unit: nothing, the unit or what is left of it, and what it loads."""


class LeftOut:
    """What the answers of one conversation said so far."""

    def __init__(self) -> None:
        self.cleared: set[str] = set()
        """Tool uses whose results are cleared, by id: they stay so while later requests repeat them."""
        self.thinking = 0
        """Turns, from the first on, whose thinking is cleared."""
        self.summaries: set[str] = set()
        """Ids of compactions that a provider made on its way to an answer: what stands before them is not
        read.  A compaction that was asked for gives out what stays before it."""
        self.deferred: frozenset[bytes] = frozenset()
        """Digests of the tools that were sent and not read, as they were told last."""

    def answered(self, response: Json) -> None:
        """Take in what an answer brought."""
        if response.get("object") != "response.compaction":
            items = (mapping(item) for item in listed(response.get("output")))
            self.summaries.update(
                str(item.get("id")) for item in items if item.get("type") in COMPACTIONS and item.get("id")
            )

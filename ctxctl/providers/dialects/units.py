"""The pieces into which a request's body is cut, and what is known of those that no model read."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ctxctl.ingest.build import Json
from ctxctl.ingest.parts import listed, mapping

COMPACTIONS: Final = ("compaction", "compaction_summary", "context_compaction")
"""Types of OpenAI's items that replace a history."""


class Unit(NamedTuple):
    """A piece of a request body: a tool, a system block, a message."""

    section: str
    """The field of the body that has it."""
    value: Any
    at: int
    """Among the units of its section."""
    head: bool
    """Whether it precedes the conversation: tools, system prompt."""


Piece = tuple[Unit, ...]
"""What a model reads in the place of one unit: nothing, or the unit or a part of it, then the tools that it
loads."""


class LeftOut:
    """Facts from the answers of one conversation so far."""

    def __init__(self) -> None:
        self.cleared: set[str] = set()
        """Ids of tool uses whose results are cleared; they stay so while later requests repeat them."""
        self.thinking = 0
        """Turns, from the first on, whose thinking is cleared."""
        self.summaries: set[str] = set()
        """Ids of compactions that a provider made on its way to an answer: the model does not read what
        precedes them.
        A compaction that was asked for returns what stays."""
        self.deferred: frozenset[bytes] = frozenset()
        """Digests of the tools that were last recorded as sent and not read."""

    def answered(self, response: Json) -> None:
        """Take in what an answer brought."""
        if response.get("object") != "response.compaction":
            items = (mapping(item) for item in listed(response.get("output")))
            self.summaries.update(
                str(item.get("id")) for item in items if item.get("type") in COMPACTIONS and item.get("id")
            )

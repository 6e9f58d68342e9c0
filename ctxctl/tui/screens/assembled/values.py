"""The assembled text of a frame: one text, and which stretch of it is whose."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxctl.model.vocab import MODEL, UsedMethod
from ctxctl.tui.document import Document
from ctxctl.tui.spans import Spans


class Block(NamedTuple):
    """One placement's stretch of the text: from `start` to `end`, the joint behind it included."""

    start: int
    end: int
    item: str
    kind: str
    title: str
    """The item's title, else its first words, else its id."""
    segment: str
    tokens: int
    counted: bool
    cached: bool
    """It is part of the possible cache prefix."""
    notes: tuple[str, ...] = ()
    """What is special about it: a stale copy, derived, redacted, not recorded …"""
    breaks: str = ""
    """What ended the possible prefix in front of it."""


class BlockDocument(Document):
    """The exact text of a step, with its blocks in order."""

    __slots__ = ("blocks", "starts")

    def __init__(self, text: str, blocks: Sequence[Block], spans: Spans) -> None:
        super().__init__(text, spans=spans)
        self.blocks = tuple(blocks)
        self.starts = array("Q", [block.start for block in blocks])

    @property
    def gutter(self) -> int:
        """Cells in front of the text: the current block's mark, the prefix bar, the segment, a blank."""
        return 4

    def block_at(self, offset: int) -> int:
        """The block that holds an offset."""
        return max(bisect_right(self.starts, offset) - 1, 0)


@dataclass(frozen=True, slots=True)
class Assembled:
    """What the screen shows: the text, and the facts above it."""

    ordinal: int
    document: BlockDocument | None
    trace: str = ""
    address: str = ""
    thread: str = ""
    model: str | None = None
    layer: str = ""
    basis: str = ""
    recorded: int = 0
    """Tokens of the blocks."""
    sent: int = 0
    """What the request came to; as `recorded` where nothing was billed."""
    method: UsedMethod = "recorded"
    """How `sent` is known."""
    uncounted: int = 0
    prefix: int | None = None
    """Tokens of the possible prefix; None in a thread's first request, and of what is no model's."""
    first: bool = False
    """It is its thread's first request."""
    broken: str = ""
    """What ended it; empty where all of the previous request was kept."""
    break_block: int | None = None
    """The block in front of which it ended; None where that is behind the last one."""
    again: int = 0
    """Tokens behind the break that the previous request held too: no cache can give them."""
    reported: int | None = None
    """What the provider said it read from its cache."""
    missed: str = ""
    """What it could have read and did not, where nothing recorded explains it; empty where it is nothing."""
    target: str = MODEL
    """Whose view it is."""
    joint_known: bool = True
    """Whether the trace records what stands between the blocks."""
    joint_name: str = ""
    """What the trace calls it, where it says no more than that."""
    remarks: tuple[str, ...] = ()
    error: str = ""

    @property
    def label(self) -> str:
        """The address of the frame."""
        return f"{self.trace}@{self.address}"

"""The assembled text of one frame by its blocks: whose each stretch of it is, since when, and what it costs.

Texts and names are those of the trace, raw; a view makes them visible.  Offsets count characters of the
assembled text; tokens are the model's own, those of the frame's placements.  What was sent beside these is in
no block: it is a part of its own, so that all shares together are the whole request.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ctxctl.model.records import Fidelity
from ctxctl.model.results import Placement, Step

AGES: Final = ((0, "this turn"), (1, "1 turn"), (4, "2-4 turns"), (9, "5-9 turns"), (19, "10-19 turns"))
"""Classes of age: the most turns, and what it is called."""
OLDER: Final = "20 turns and more"
BEFORE: Final = "from before the trace"


class Moment(msgspec.Struct, frozen=True, gc=False):
    """A step, by its ordinal and by its numbers in its thread."""

    ordinal: int
    turn: int
    step: int


class Twin(msgspec.Struct, frozen=True, gc=False):
    """An earlier block of the same frame that says the same, or nearly."""

    position: int
    """Order number of that block in the frame, 0-based."""
    share: int
    """Per cent of their content in common; 100: the texts are equal."""


class Block(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One placement's stretch of the assembled text, without the joint behind it.

    ``text[start:body]`` opens it, ``text[body:stop]`` is its own text, ``text[stop:end]`` closes it.
    """

    position: int
    """Order number in the frame, 0-based: index in `Blame.blocks`."""
    placement: Placement
    start: int
    body: int
    stop: int
    end: int
    since: Moment | None
    """The step from which on the window has held this very copy, without a break: this version in this
    rendering.  Of several copies of one text the nth stands since there have been n.  None: since before the
    trace began.
    """
    entered: Moment | None
    """The step from which on the window has held the item without a break, in whatever version; not after
    `since`."""
    age: int | None
    """Turns that have begun since `since`: 0 for what entered in the frame's own turn."""
    server: str | None
    """The tool server that its names tell."""
    twin: Twin | None
    """What it repeats; None for the first copy of a text."""
    repeated: int = 0
    """Number of later blocks that repeat this one."""

    @property
    def changed(self) -> Moment | None:
        """The step at which its item last changed, if it did since it entered."""
        return self.since if self.since != self.entered else None


class Total(msgspec.Struct, frozen=True, gc=False):
    """What a group of blocks has together."""

    name: str | None
    """None: of what the trace gives no such name for."""
    blocks: int
    tokens: int
    uncounted: int
    """Blocks that add 0 because there is neither text nor count."""


class Totals(msgspec.Struct, frozen=True, gc=False):
    """Sums over all blocks of a frame, each list the largest first; ages the youngest first."""

    kinds: tuple[Total, ...]
    sources: tuple[Total, ...]
    servers: tuple[Total, ...]
    """Of blocks that name a tool server; these only."""
    ages: tuple[Total, ...]
    stale: Total
    duplicate: Total
    """Blocks that repeat an earlier one."""


class Blame(msgspec.Struct, frozen=True, eq=False):
    """A frame's assembled text and its blocks in order.

    ``joint`` stands between two blocks; blocks and joints together are `text`, which is what
    ``ctxctl show --text`` prints of the frame.  The tokens of the blocks add up to ``step.window.recorded``;
    with ``step.window.unrecorded`` they are what was sent.
    """

    ordinal: int
    step: Step
    several: bool
    """The trace holds several sessions, so that an address must name one."""
    text: str
    joint: str
    joint_known: bool
    """Whether the trace records the joint; else it is a line end, for want of anything better."""
    joint_name: str
    """What the trace calls it where it says no more than that."""
    blocks: tuple[Block, ...]
    totals: Totals
    fidelity: tuple[Fidelity, ...] = ()
    """What the import of the trace measured: it names what the capture does not hold."""

    def share(self, tokens: int) -> float | None:
        """Tokens as a part of what was sent, 0 to 1; None where nothing is known to have been."""
        used = self.step.window.used
        return tokens / used if used > 0 else None

    @property
    def evidence(self) -> int | None:
        """Tokens that the provider billed and no block holds: separators, overhead, what it adds itself.

        Negative where more was counted than billed; None without a bill.
        """
        usage = self.step.usage
        return None if usage is None or usage.difference is None else -usage.difference


def age_class(age: int | None) -> str:
    """The class of age that a number of turns belongs to."""
    if age is None:
        return BEFORE
    return next((name for most, name in AGES if age <= most), OLDER)

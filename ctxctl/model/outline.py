"""The shape of a replayed trace: one small row for each step, cheap to keep for a whole session."""

from __future__ import annotations

import msgspec

from ctxctl.model.annotations import Origin
from ctxctl.model.results import Counts
from ctxctl.model.vocab import LimitSource, Mode, UsedMethod


class Row(msgspec.Struct, frozen=True, gc=False):
    """One step in line order; what lists, charts and addresses need, without its changes."""

    ordinal: int
    """0-based in the order in which steps are replayed."""
    session: str | None
    thread: str
    turn: int
    step: int
    turn_id: str | None
    step_id: str | None
    time: str | None
    used: int
    """Tokens that were sent: see `method`."""
    new: int
    freed: int
    cap: int | None
    limit: int | None
    stale: int
    saved: int | None
    uncounted: int
    counts: Counts
    compacted: bool
    flags: tuple[str, ...]
    title: str | None
    """First words of the turn's prompt, on its first step."""
    model: str | None
    reported: int | None
    first_line: int
    offset: int
    """Byte at which the step's first event begins."""
    broken: bool = False
    """Whether a prompt cache could reuse less than nine tenths of the request before."""
    missed: int = 0
    """Tokens that a cache could have given and did not, where nothing recorded explains it."""
    cached: int | None = None
    answered: int | None = None
    """What the provider reported besides its input: tokens from a cache, tokens of the answer (as counted
    where the client logged only a part of it)."""
    origin: Origin | None = None
    """On a thread's first step, what set the thread off."""
    has_partial_output: bool = False
    """The client logged the output before the answer's end; `answered` has it as counted."""
    recorded: int = 0
    """Tokens of the frame's content."""
    method: UsedMethod = "recorded"
    """How `used` is known."""
    unrecorded: int | None = None
    """`used` less `recorded`; None: nothing was billed from which it could be known."""
    limit_source: LimitSource | None = None
    """Who says the limit."""
    threshold: int | None = None
    """Where the runtime compacts by itself; None: not known."""
    threshold_source: str | None = None

    @property
    def over(self) -> bool:
        """More was sent than the cap allows."""
        return self.cap is not None and self.used > self.cap


class Life(msgspec.Struct, frozen=True, gc=False):
    """What happened to an item at one step."""

    ordinal: int
    session: str | None
    thread: str
    turn: int
    step: int
    status: str
    version: str | None
    tokens: int | None
    """None: not known."""
    cause: str | None
    reason: str | None
    into: str | None
    mode: Mode = "window"
    """Of the step: whether what is unchanged was sent again."""

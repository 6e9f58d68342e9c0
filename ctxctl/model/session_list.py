"""Sessions in a list: what is known of each without opening it, and what reading it told."""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal

import msgspec

from ctxctl.model.cost_sums import StatedSums

Live = Literal["", "open", "written"]
"""Whether a session goes on: a program has its file open for writing, or wrote to it within `LIVE_SECONDS`.

Empty: neither was seen, which is no proof that it is over."""
LIVE_SECONDS: Final = 120
PROMPT: Final = 240
"""Characters of a first prompt that are kept."""


class SessionFacts(msgspec.Struct, frozen=True, array_like=True):
    """What reading a session told."""

    directory: str | None
    """Where it ran."""
    prompt: str | None
    """First words of the first prompt of its main thread; a stranger's text."""
    sessions: int
    """How many there are in the capture: a database holds many."""
    turns: int
    steps: int
    sent: int
    """Tokens of all its requests; of those of unknown size, what is recorded."""
    unbilled: int
    """Requests that nobody billed, whose tokens and price are expected, counted or not known."""
    unsized: int
    """Those of them whose size nothing tells."""
    cost: Decimal | None
    """US dollars; None where no request has a known price and size."""
    counted: bool
    """Whether a part of `cost` is as counted or expected: nobody billed it, or its output is partial."""
    at_least: bool
    """Whether something that was sent or answered is not in `cost`."""
    first: str | None
    last: str | None
    """Times of its first and of its last request."""
    stated: StatedSums = msgspec.field(default_factory=StatedSums)
    """The costs and totals that the runtime states."""


class ListedSession(msgspec.Struct, frozen=True):
    """A session in a list."""

    path: str
    """Absolute; a file, or a directory that is one capture."""
    format: str
    """As `--read-as` takes it: which client wrote it."""
    directory: str | None
    """Where it ran, as its log says."""
    written: float
    """Seconds since the epoch at which it, or what belongs to it, was written last."""
    size: int
    """Bytes of the file; of all files of a directory."""
    live: Live = ""
    facts: SessionFacts | None = None
    """None: not read yet, or it cannot be read."""
    outdated: bool = False
    """Whether the session went on since `facts` were read."""
    failed: str | None = None
    """Why it cannot be read."""

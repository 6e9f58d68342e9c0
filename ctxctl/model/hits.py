"""What a search over a trace finds: plain values for every view."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ctxctl.model.results import Counts
from ctxctl.model.vocab import Status, UsedMethod


class Excerpt(NamedTuple):
    """Where a text says what was searched for: raw, and no longer than a line or two."""

    before: str
    match: str
    after: str
    starts: bool
    """The text begins with `before`; else something was left out."""


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A change that a query holds of, or with `item` None a step as a whole."""

    ordinal: int
    session: str | None
    thread: str
    turn: int
    step: int
    status: Status | None = None
    item: str | None = None
    kind: str = ""
    title: str | None = None
    words: str = ""
    """First words of an item without a title, where its text is at hand."""
    tokens: int | None = 0
    """Size of the item's version spoken of, None where it is not known; of a step, what it sent (see
    `method`)."""
    cause: str | None = None
    reason: str | None = None
    cap: int | None = None
    flags: tuple[str, ...] = ()
    """The step's, where `item` is None, as are `cap` and `counts`."""
    counts: Counts | None = None
    excerpt: Excerpt | None = None
    """None where the query looks for nothing in texts, or found it in the title."""
    method: UsedMethod = "recorded"
    """Of a step, how its size is known."""


class Found(NamedTuple):
    """How far a search has come, and what it has found since it last said so."""

    hits: tuple[Hit, ...]
    """In the order of the steps."""
    total: int
    """All so far, those not kept included."""
    part: float
    """Share of the trace searched, 0 to 1."""
    steps: int
    """Steps searched."""
    textless: int
    """Versions of items that could have matched, but whose text the trace does not hold."""
    withheld: int
    """The same of items whose text was redacted."""
    done: bool = False

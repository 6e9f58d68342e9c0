"""Why an item is, or is not, in the window of a step: the chain of recorded decisions as plain values.

Names and order of the fields are those of the ``--json`` contract (``docs/json.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ctxctl.model.vocab import Provenance

State = Literal["current", "stale", "out", "omitted", "untold", "available", "later", "unread", "unknown"]
"""Of an item at a step.

`current`: a current copy is in the frame.  `stale`: only superseded copies are.  `out`: it was in an earlier
frame and has left.  `omitted`: it was named there or before and never was in a frame.
`untold`: the frame has an item that stands for what a compaction left, and whether it is part of that is not
recorded.  `available`: it was on the surface and nobody named it.  `later`: it enters the trace behind the
step.  `unread`: the capture holds the text, and its importer did not take it.  `unknown`: nothing that was
recorded has it.
"""

PRESENT = ("current", "stale")
"""States of what the target can see."""


class Rest(msgspec.Struct, frozen=True, gc=False):
    """The event that a sentence rests on."""

    line: int
    """1-based line of the trace."""
    event_id: str | None
    event_type: str
    source_line: int | None = None
    """Line of the foreign capture that it was made from, where the importer says so."""
    source_file: str | None = None
    """File beside the capture that was opened; None for that one."""


class Moment(msgspec.Struct, frozen=True, gc=False):
    """The step at which something happened."""

    ordinal: int
    turn: int
    step: int


class Link(msgspec.Struct, frozen=True):
    """One sentence of the chain."""

    stage: str
    """`surface`, `selection`, `budget`, `window`, `assembly`, `injection`, `evidence`, `compaction`,
    `redaction`, `missing`, `cost`, `room` or `whatif`."""
    verdict: str
    """What happened to the item: `available`, `ranked`, `kept`, `omitted`, `dropped`, `cut`, `compacted` …"""
    text: str
    """One sentence; it may quote the trace, so it goes through `text.visible` before a person sees it."""
    at: Moment | None = None
    event: Rest | None = None
    """None where the sentence is worked out from several events, or rests on what is not there."""
    numbers: Mapping[str, int | float | str | None] = {}
    """The figures of the sentence by name; tokens are integers."""
    provenance: Provenance = "native"


class Why(msgspec.Struct, frozen=True):
    """The whole answer."""

    item: str
    """The item's id, or what was asked for where the trace has no such item."""
    version: str | None
    """The version that was asked for (`ID@VERSION`); None: any."""
    kind: str | None
    title: str | None
    source: str | None
    ordinal: int
    session: str | None
    thread: str
    turn: int
    step: int
    target: str
    state: State
    tokens: int | None
    """Size of the version last spoken of; None where nobody knows."""
    in_window: int
    """What all its copies hold in the frame."""
    links: tuple[Link, ...] = ()
    left_out: int = 0
    """Links of the middle of its life that were left out; `--all` lists them."""
    sources: tuple[str, ...] = ()
    """How the name was understood, one phrase each; empty where it is the item's id."""

    @property
    def present(self) -> bool:
        """Whether the target can see some copy of it."""
        return self.state in PRESENT


class WhatIf(msgspec.Struct, frozen=True):
    """What was found by supposing something else; everything here is simulated or derived."""

    links: tuple[Link, ...] = ()
    replays: int = 0
    """Replays that it took."""

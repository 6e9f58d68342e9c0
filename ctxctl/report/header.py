"""The resolved parameters that every report names first."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ctxctl.report.tables import labelled
from ctxctl.text import visible


class Header(msgspec.Struct, frozen=True):
    """What a report was made from and under; with the trace it determines all that follows."""

    trace: str
    """Base name of the trace as typed; `-` for standard input."""
    format: str
    policy: str
    model: str | None
    """The model that was asked for; None: each step's own."""
    encoding: str
    encoding_known: bool
    assumed: str
    """One sentence on what was assumed about the encoding; empty where it is known."""
    target: str
    version: str
    """Version of ctxctl."""
    thread: str | None = None
    """Only this thread was asked for."""
    turn: str | None = None
    """Only this turn was asked for, as typed."""


def header_lines(header: Header, width: int, *, mode: str | None = None) -> Iterator[str]:
    """The parameters as labelled lines."""
    facts = [
        ("trace", visible(header.trace)),
        ("format", visible(header.format)),
        ("policy", visible(header.policy)),
        ("model", visible(header.model) if header.model else "as recorded"),
        ("encoding", visible(header.encoding)),
        ("assumed", "nothing" if header.encoding_known else visible(header.assumed)),
        ("target", visible(header.target)),
    ]
    if mode is not None:
        facts.append(("mode", mode))
    if header.thread is not None:
        facts.append(("thread", f"only {visible(header.thread)}"))
    if header.turn is not None:
        facts.append(("turn", f"only {visible(header.turn)}"))
    for label, text in facts:
        yield from labelled(label, text, width)

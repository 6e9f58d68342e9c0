"""The resolved parameters that every report names first."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from ctxctl.model.whatif import AS_RECORDED, UNEDITED, Edited, Limits


def base_name(path: str) -> str:
    """The name under which reports speak of a trace: the same wherever the file lies."""
    return os.path.basename(path) or path


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
    fitting: bool = False
    """The policy says what is left out of a window that is too small."""
    limits: Limits = AS_RECORDED
    """Limits that are supposed in place of the recorded ones."""
    edited: Edited = UNEDITED
    """What is supposed to be gone from the session, or otherwise in it."""
    late: int = 0
    """Events of the trace that came for steps that were over."""
    calibration: dict[str, Any] | None = None
    """The calibration in force: digest, where it is from, and its models with their errors in per cent."""
    doubts: tuple[str, ...] = ()
    """What the importer of a capture did not understand, a sentence each."""
    learned: dict[str, Any] | None = None
    """What a log was completed by: client, version, digest, items, and how well they fit what was billed."""

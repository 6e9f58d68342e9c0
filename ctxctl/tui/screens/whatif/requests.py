"""The requests of the what-if screen, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ctxctl.model.whatif import Supposition
from ctxctl.tui.requests import Request
from ctxctl.tui.screens.whatif.state import News


@dataclass(frozen=True, slots=True)
class RecordedFields:
    """What the trace records of each field, and what there is to choose from."""

    values: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]]
    policy: str


@dataclass(frozen=True, slots=True)
class Notes:
    """What to know of a comparison; `reading`: the trace is not read to its end yet, or still written."""

    run: int
    notes: tuple[str, ...]
    reading: bool


@dataclass(frozen=True, slots=True)
class TurnsCompared:
    """More of a comparison; `done`: all of it."""

    run: int
    news: News
    done: bool


@dataclass(frozen=True, slots=True)
class FieldRefused:
    """Which field names what does not exist, and why it cannot be."""

    run: int
    field: str
    why: str


@dataclass(frozen=True, slots=True)
class RecordedRequest(Request):
    """What the trace records at a step; None where no step is known yet."""

    ordinal: int | None


@dataclass(frozen=True, slots=True)
class SimulationRequest(Request):
    """A replay under a supposition; None stops the one that runs."""

    worker: ClassVar[str] = "whatif"

    run: int
    supposition: Supposition | None

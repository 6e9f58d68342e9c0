"""What a policy that only checks is given of a step, and what it says ought to have been recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Part(NamedTuple):
    """An item as it was when the step was recorded."""

    item: str
    title: str | None
    kind: str
    read: Callable[[], str | None]
    """Its own text; None where the trace does not have it."""
    native: Mapping[str, Any]
    """What its importer kept of the runtime's own record."""


class Piece(NamedTuple):
    """A block of the recorded assembly."""

    item: str
    read: Callable[[], str | None]
    """As it was rendered."""


class Recorded(NamedTuple):
    """The records of a step that its stages are recomputed from, and held against."""

    selected: tuple[Part, ...]
    """In the selection's order; empty without a selection."""
    entered: tuple[Part, ...]
    """What came at this step, in order."""
    query: str | None
    selection: Mapping[str, Any] | None
    """The runtime's own record of the selection; None: there was none."""
    budget: Mapping[str, Any] | None
    """The same of the budget."""
    max_items: int | None
    dropped: tuple[str, ...]
    cut: tuple[str, ...]
    pieces: Sequence[Piece]
    """In order; each is made when it is asked for, and the whole window may be in it."""
    separator: str | None


class Recomputed(NamedTuple):
    """One stage: it matches if the first two are equal.  All are JSON values."""

    expected: Any
    recorded: Any
    inputs: Mapping[str, Any]


@runtime_checkable
class Recomputer(Protocol):
    """The rules of a runtime, for stages that can be worked out anew from what was recorded."""

    @property
    def name(self) -> str:
        """As it is asked for."""
        ...

    def recompute(self, recorded: Recorded) -> Mapping[str, Recomputed]:
        """By stage; those about which nothing can be said are left out."""
        ...

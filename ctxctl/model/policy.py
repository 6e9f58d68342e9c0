"""What a policy decides from and what it decides: plain values, so that a policy is a pure function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from ctxctl.model.vocab import Mode


class Offered(NamedTuple):
    """An item that a source has for this step."""

    item: str
    version: str | None
    title: str | None
    source: str | None


class Situation(NamedTuple):
    """What a policy sees of one step."""

    attached: tuple[str, ...] | None
    """Sources attached at this step, in order; None if the trace never said."""
    offered: tuple[Offered, ...]
    """The newest version of each live item, in order of first appearance."""
    silent: frozenset[str]
    """Attached sources that had nothing to give (`null`)."""
    seen: Mapping[str, Offered]
    """What the policy put in its `seen` at the step before."""


class Act(NamedTuple):
    """One decision about one item."""

    action: Literal["added", "updated", "skipped", "removed"]
    item: str
    before: str = ""
    """Text that goes in front of the item's content; of a removed item the whole marker."""


class Plan(NamedTuple):
    """All decisions of one step, in the order in which they are injected."""

    acts: tuple[Act, ...]
    seen: Mapping[str, Offered]
    opening: str = ""
    """Text in front of all that the step injects; like `closing` an overhead that the ledger leaves out."""
    closing: str = ""


@runtime_checkable
class Policy(Protocol):
    """A deterministic strategy; it has no state of its own."""

    name: str
    mode: Mode

    def plan(self, situation: Situation) -> Plan:
        """Decide what one step injects."""
        ...

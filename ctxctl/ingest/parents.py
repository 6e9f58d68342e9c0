"""Which record of a capture follows which: the one gate through which the parents of all importers go.

Parents are what a file says, and a file can say anything: a record that follows itself, records that follow
each other in a circle, one id with two parents.  Whoever walks from a record to its parents asks here first,
so that each walk ends and what cannot be is told once, by line.

A circle is broken at the record that closes it, which is the last of its records in the file: its parent is
not believed.  Of two parents of one id the first one counts.  A parent that comes later in the file is none
of this: it is followed once it is there.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import Enum
from typing import Final, Generic, TypeVar

from ctxctl.model.problem import Problem

CIRCLE: Final = "circular-parents"
"""The slug of the problem of a record that follows itself, directly or by way of others."""
SECOND: Final = "second-parent"
"""The slug of the problem of a record that is told again with another parent."""
_SHOWN: Final = 80

_Id = TypeVar("_Id", bound=Hashable)


class Kinship(Enum):
    """What is to be said of the parent that a record names."""

    FITS = "fits"
    CIRCLE = "circle"
    """It follows the record itself, or is it: not believed."""
    SECOND = "second"
    """The same id came before with another parent, which counts."""


class Lineage(Generic[_Id]):
    """The parents of a capture's records, taken in one after the other.

    Work is nearly linear in the number of records: where a parent leads to is asked of those records alone
    that another one named before they came, as no other can close a circle; and what was walked once is cut
    short.
    """

    def __init__(self) -> None:
        self._parents: dict[_Id, _Id | None] = {}
        self._further: dict[_Id, _Id] = {}
        """By record, one further up that it is known to lead to."""
        self._named: set[_Id] = set()
        """The parents that were named and had not come."""

    def enter(self, record: _Id, parent: _Id | None) -> Kinship:
        """Take a record in; a parent that does not fit is left out of what is known."""
        parents = self._parents
        if record in parents:
            return Kinship.FITS if parents[record] == parent else Kinship.SECOND
        if parent is None:
            parents[record] = None
            return Kinship.FITS
        if parent == record or (record in self._named and self.top(parent) == record):
            parents[record] = None
            return Kinship.CIRCLE
        parents[record] = parent
        if parent not in parents:
            self._named.add(parent)
        return Kinship.FITS

    def parent(self, record: _Id) -> _Id | None:
        """The parent that counts; None for a record that begins a conversation, or that has not come."""
        return self._parents.get(record)

    def __contains__(self, record: _Id) -> bool:
        """Whether a record was taken in."""
        return record in self._parents

    def top(self, record: _Id) -> _Id:
        """The record that a walk from one to its parents ends at: itself, if no parent of it is known."""
        parents, further = self._parents, self._further
        walked: list[_Id] = []
        at = record
        while True:
            above = further.get(at)
            if above is None:
                above = parents.get(at)
            if above is None:
                break
            walked.append(at)
            at = above
        for one in walked:
            further[one] = at
        return at


def circle(line: int, offset: int, record: str, parent: str, instead: str) -> Problem:
    """The problem of a parent that leads back; `instead`: what its record is taken to do, as in `begin`."""
    record, parent = record[:_SHOWN], parent[:_SHOWN]
    how = "names itself as its parent" if record == parent else f"follows {parent}, which follows from it"
    return Problem(line, offset, CIRCLE, f"{record} {how}: it is taken to {instead}")


def second(line: int, offset: int, record: str, parent: str) -> Problem:
    """The problem of a record that is told again with another parent."""
    message = f"{record[:_SHOWN]} has another parent here, {parent[:_SHOWN]}: the first one counts"
    return Problem(line, offset, SECOND, message)

"""The costs of a directory's sessions: each alone, in groups, and in total."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ctxctl.model.cost_sums import CostSums
from ctxctl.model.problem import Problem

BY: Final = ("session", "day", "project", "branch", "model")
"""The criteria for grouping sessions."""
NOT_KNOWN: Final = {
    "day": "(no time is recorded)",
    "project": "(no directory is recorded)",
    "branch": "(no branch is recorded)",
    "model": "(no model is named)",
}
"""The group of captures without the value."""


class CostWords(msgspec.Struct, frozen=True, array_like=True):
    """The settings that a session's costs depend on."""

    target: str
    model: str | None
    encoding: str | None
    policy: str | None
    calibration: str
    learned: str
    models: dict[str, dict[str, Any]]
    provider: str | None = None
    """The provider whose prices apply, instead of the one that a trace names."""
    as_of: str | None = None
    contents: bool = True
    """Whether what is recorded, cache breaks and misses are asked for too, and not the bills alone."""


class CostPart(msgspec.Struct, frozen=True, array_like=True):
    """The requests of one session, day, branch and model within a capture, with their cost."""

    session: str | None
    day: str | None
    """YYYY-MM-DD, in UTC."""
    branch: str | None
    model: str | None
    first: str | None
    last: str | None
    """Times of the first and the last request."""
    sums: CostSums


class SessionCosts(msgspec.Struct, frozen=True, array_like=True):
    """What one capture's requests cost."""

    format: str
    directory: str | None
    """Where the session ran."""
    learned: str | None
    """The learned set that was used for the log."""
    as_of: str
    """The day whose prices requests without a time have."""
    catalogue: tuple[str, list[tuple[str, str]]]
    """The date of the catalogue, and its sources with theirs."""
    parts: list[CostPart]
    requests: bytes
    """Packed by `shared_requests.RequestsHeld`."""
    problems: list[Problem]
    problem_count: int
    finding_count: int


class RequestsAlone(msgspec.Struct, frozen=True, array_like=True):
    """Only the requests of a `SessionCosts`; the fields before them are skipped."""

    format: msgspec.Raw
    directory: msgspec.Raw
    learned: msgspec.Raw
    as_of: msgspec.Raw
    catalogue: msgspec.Raw
    parts: msgspec.Raw
    requests: bytes


class Group(msgspec.Struct):
    """Requests that belong together, with their cost."""

    name: str
    captures: int = 0
    first: str | None = None
    last: str | None = None
    models: list[str] = []
    formats: list[str] = []
    sums: CostSums = msgspec.field(default_factory=CostSums)

    def add(self, costs: SessionCosts, part: CostPart) -> None:
        """Add a part of a capture."""
        self.note(costs, part)
        self.sums.plus(part.sums)

    def note(self, costs: SessionCosts, part: CostPart) -> None:
        """Note what a part of a capture is of, without its cost."""
        times = [time for time in (self.first, part.first, self.last, part.last) if time is not None]
        self.first, self.last = min(times, default=None), max(times, default=None)
        if part.model is not None and part.model not in self.models:
            self.models.append(part.model)
        if costs.format not in self.formats:
            self.formats.append(costs.format)


class CostGroups:
    """Groups by one criterion, and the total; call `add` in order of the names."""

    def __init__(self, by: str) -> None:
        self._by = by
        self.groups: dict[str, Group] = {}
        self.whole = Group("")
        self.as_of: str | None = None
        self.catalogue: tuple[str, list[tuple[str, str]]] | None = None
        """The catalogue, which is the same for all captures; None before the first."""

    def add(self, name: str, costs: SessionCosts) -> None:
        """Add a capture."""
        self.as_of, self.catalogue = costs.as_of, costs.catalogue
        self.whole.captures += 1
        seen: set[str] = set()
        for part in costs.parts:
            self.whole.add(costs, part)
            called = self._name(name, costs, part)
            group = self.groups.get(called)
            if group is None:
                group = self.groups[called] = Group(called)
            group.captures += called not in seen
            seen.add(called)
            if self._by == "session" and len(costs.parts) == 1:  # the group will not hold more
                group.note(costs, part)
                group.sums = part.sums
            else:
                group.add(costs, part)
        if self._by == "session" and not costs.parts:
            self.groups[name] = Group(name, captures=1, formats=[costs.format])

    def _name(self, name: str, costs: SessionCosts, part: CostPart) -> str:
        if self._by == "session":
            return name
        if self._by == "project":
            return costs.directory or name.rpartition("/")[0] or NOT_KNOWN["project"]
        told: str | None = getattr(part, self._by)
        return told or NOT_KNOWN[self._by]

    def ordered(self) -> list[Group]:
        """Return days in order; other groups by cost, the highest first, then by name."""
        if self._by == "day":
            return sorted(self.groups.values(), key=lambda group: group.name)
        key: Callable[[Group], Any] = lambda group: (-group.sums.sent.total, group.name)  # noqa: E731
        return sorted(self.groups.values(), key=key)

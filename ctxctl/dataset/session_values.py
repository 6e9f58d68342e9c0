"""A session of a dataset with its figures, as the overview and the page have it: plain values."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ctxctl.model.addresses import prefix


class Figures(msgspec.Struct, frozen=True, gc=False):
    """Sums over requests to a model."""

    requests: int = 0
    sent: int = 0
    """Tokens."""
    unbilled: int = 0
    """Requests whose size nobody billed: `sent` is approximate."""
    filled: float | None = None
    """Of its limit, what the fullest request sent; None: no limit is known."""
    unlimited: int = 0
    """Requests without a known limit: `filled` is at least."""
    read: int | None = None
    """Tokens read from a cache, as billed; None: no bill says."""
    read_of: int | None = None
    """Tokens sent by the requests whose bills say so."""
    usd: float | None = None
    """List price of the requests that have one; None: none has."""
    unpriced: int = 0
    """Requests without a price: `usd` is at least."""
    least: int = 0
    """Requests whose price leaves something out: likewise."""
    counted: int = 0
    """Requests that are priced as counted or expected: `usd` is approximate."""
    misses: int | None = 0
    """Requests that missed the cache, unexplained by a recorded change; None: no cache figures."""
    unread: int = 0
    """Sessions without cache figures: `misses` is at least."""
    compactions: int = 0


class Places(msgspec.Struct, frozen=True, gc=False):
    """Addresses of the requests of a session that matter, without its name in front; None: there is none."""

    largest: str | None = None
    dearest: str | None = None
    missed: str | None = None
    """That of the most tokens."""
    compacted: str | None = None
    """That of the most tokens."""


class SessionRow(msgspec.Struct, frozen=True, gc=False):
    """A session of a capture."""

    key: str
    """The session's keyed digest, 16 hexadecimal digits."""
    source: str
    """That of the capture."""
    name: str | None
    title: str | None
    project: str | None
    branch: str | None
    client: str | None
    client_version: str | None
    model: str | None
    format: str
    started: datetime | None
    """UTC, without a zone; None: no time is recorded."""
    turns: int
    labels: tuple[tuple[str, str], ...]
    path: str | None
    """The capture; None: paths are not kept."""
    sessions: int
    """Of that capture."""
    own: Figures
    copied: Figures
    """The part of `own` that counts in another capture: requests, sent, unbilled, read, read_of, usd,
    unpriced, least, counted, misses, compactions."""
    places: Places

    def address(self, place: str | None) -> str | None:
        """One of its places as `ctxctl show PATH@…` takes it; None where the session cannot be named."""
        if place is None or self.sessions <= 1:
            return place
        return None if self.name is None else prefix("main", self.name) + place


class SessionRows(msgspec.Struct, frozen=True, gc=False):
    """What a version of a dataset holds."""

    dataset: str
    """Where it is, as it was named."""
    version: int
    rows: tuple[SessionRow, ...]
    """The newest first, those without a time last."""
    total: int
    """Sessions of the dataset; one that two captures hold is one session and two rows."""
    more: bool = False
    """Whether there are older sessions than these rows."""

"""Every session of a dataset with its figures, a row each: what the overview groups, filters and sorts.

A request that several captures hold counts once where sessions are summed up (the view `copies`), so a row
has its session's own figures and, beside them, the part of them that counts in another capture.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ctxctl.dataset.duck import Asked
from ctxctl.dataset.questions import tables_of
from ctxctl.model.addresses import prefix

if TYPE_CHECKING:
    from ctxctl.dataset.opening import OpenDataset

MOST_SESSIONS: Final = 100_000
"""Sessions that are held at once, the newest."""


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
    unpriced, misses, compactions."""
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


def session_tables() -> set[str]:
    """The tables that `session_rows` reads."""
    return tables_of(_sql()) | {"sessions"}


def session_rows(opened: OpenDataset, most: int = MOST_SESSIONS) -> SessionRows:
    """The newest sessions of a version that was opened with `session_tables`.  Raises as `Asked` does."""
    with Asked(opened.files) as asked:
        found = asked.select(_sql(), {}, most)
        total = int(asked.select("SELECT count(DISTINCT session) FROM sessions", {}).rows[0][0])
    return SessionRows(opened.place, opened.version, tuple(map(_row, found.rows)), total, found.more)


@cache
def _sql() -> str:
    return (files(__package__) / "session_rows.sql").read_text("utf-8")


_TEXTS: Final = ("name", "title", "project", "branch", "client", "client_version", "model", "format")
_FACTS: Final = 15
_OWN: Final = 12
_COPIED: Final = (
    "requests",
    "sent",
    "unbilled",
    "read",
    "read_of",
    "usd",
    "unpriced",
    "misses",
    "compactions",
)


def _row(found: tuple[Any, ...]) -> SessionRow:
    started, turns, labels, path, sessions = found[10:_FACTS]
    copies_at = _FACTS + _OWN
    places_at = copies_at + len(_COPIED)
    copied = {
        name: value
        for name, one in zip(_COPIED, found[copies_at:places_at], strict=True)
        if (value := _plain(one)) is not None
    }
    return SessionRow(
        key=f"{found[0]:016x}", source=f"{found[1]:016x}", started=started, turns=turns,
        labels=tuple(sorted((labels or {}).items())), path=path, sessions=sessions,
        own=Figures(*map(_plain, found[_FACTS:copies_at])), copied=Figures(**copied),
        places=Places(*map(_address, found[places_at:])),
        **dict(zip(_TEXTS, found[2:10], strict=True)),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """Sums of integers come as ones of any size."""
    return value if value is None or isinstance(value, float) else int(value)


def _address(place: Any) -> str | None:
    return None if place is None else f"{prefix(place['thread'])}{place['turn']}.{place['step']}"
